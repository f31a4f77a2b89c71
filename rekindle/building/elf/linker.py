"""Linker: lay out sections, resolve symbols and write a shared library (System V gABI, chapter 5; x86-64 psABI, chapter
4).

The file has three segments, which are read-only, executable, and writable::

    headers  .hash .dynsym .dynstr .rela.dyn  read-only sections  |  code  stubs  |  .dynamic .got  data  .bss

Calls of functions that other libraries define go through a stub, which jumps to the address in the global offset table;
the loader fills that table when it loads the library.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from rekindle.building.elf.objects import EM_X86_64, SHT_NOBITS, STB_LOCAL, LinkError, ObjectFile, Section, Symbol

PAGE: Final = 0x1000

_FILE_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER: Final = struct.Struct("<IIQQQQQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELA: Final = struct.Struct("<QQq")
_ENTRY: Final = struct.Struct("<QQ")

PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
READ, WRITE, EXECUTE = 4, 2, 1

DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELAENT = 1, 4, 5, 6, 7, 8, 9
DT_STRSZ, DT_SYMENT, DT_SONAME, DT_RUNPATH, DT_FLAGS = 10, 11, 14, 29, 30
DF_BIND_NOW: Final = 8

R_64, R_PC32, R_PLT32, R_GOTPCREL, R_GOTPCRELX, R_REX_GOTPCRELX, R_PC64 = 1, 2, 4, 9, 41, 42, 24
R_GLOB_DAT, R_RELATIVE = 6, 8
_RELATIVE_32: Final = (R_PC32, R_PLT32)
_OF_GOT: Final = (R_GOTPCREL, R_GOTPCRELX, R_REX_GOTPCRELX)
_STUB: Final = 8
"""Size of a stub in bytes: ``jmp *got(%rip)``, and two bytes of padding."""


def link(
    objects: Sequence[ObjectFile],
    exports: Iterable[str],
    *,
    needed: Sequence[str] = (),
    soname: str = "",
    runpath: str = "",
) -> bytes:
    """Link ``objects`` into a shared library that exports the symbols ``exports``.

    ``needed`` are the shared libraries that define the symbols which the objects do not define; they are loaded with
    the result. ``runpath`` is a folder in which the loader looks for them, in addition to its default folders.

    Raises:
        LinkError: an object is not an x86-64 object, a symbol is defined twice, an export is not defined, or a
            relocation is unknown.
    """
    return _Linker(list(objects), tuple(exports), tuple(needed), soname, runpath).link()


@dataclass(slots=True)
class _Strings:
    """A string table."""

    content: bytearray = field(default_factory=lambda: bytearray(1))
    offsets: dict[str, int] = field(default_factory=lambda: {"": 0})

    def add(self, text: str) -> int:
        if text not in self.offsets:
            self.offsets[text] = len(self.content)
            self.content += text.encode() + b"\0"
        return self.offsets[text]


def _aligned(offset: int, alignment: int) -> int:
    return (offset + alignment - 1) // alignment * alignment


class _Linker:
    def __init__(
        self,
        objects: list[ObjectFile],
        exports: tuple[str, ...],
        needed: tuple[str, ...],
        soname: str,
        runpath: str,
    ) -> None:
        for each in objects:
            if each.machine != EM_X86_64:
                raise LinkError(f"objects for machine {each.machine} cannot be linked: this linker knows x86-64")
        self.objects = objects
        self.needed, self.soname, self.runpath = needed, soname, runpath
        self.defined = self._definitions()
        missing = [name for name in exports if name not in self.defined]
        if missing:
            raise LinkError(f"no object defines {', '.join(missing)}")
        self.exported = [self.defined[name] for name in exports]
        self.imported: dict[str, int] = {}
        """Undefined symbols, with their numbers in the dynamic symbol table."""
        self.got: dict[str | int, int] = {}
        """Slots of the global offset table: by name where imported, by identity of the symbol where defined here."""
        self.stubs: dict[str, int] = {}
        self.absolute: list[tuple[Section, int, Symbol, int]] = []
        self._collect()

    def _definitions(self) -> dict[str, Symbol]:
        found: dict[str, Symbol] = {}
        for each in self.objects:
            for symbol in each.symbols:
                if symbol.section is None or symbol.binding == STB_LOCAL or not symbol.name:
                    continue
                if symbol.name in found:
                    raise LinkError(f"'{symbol.name}' is defined twice")
                found[symbol.name] = symbol
        return found

    def _resolved(self, symbol: Symbol) -> Symbol:
        """Return the definition of a symbol; the symbol itself if no object defines it, so that another library
        must."""
        return symbol if symbol.section is not None else self.defined.get(symbol.name, symbol)

    def _collect(self) -> None:
        """Record the imported symbols, and the symbols that need a slot of the global offset table, a stub or a
        relocation by the loader.

        Raises:
            LinkError: a relocation has an unknown type.
        """
        for each in self.objects:
            for section in each.sections:
                for relocation in section.relocations:
                    self._collect_one(
                        section,
                        relocation.type,
                        self._resolved(each.symbols[relocation.symbol]),
                        relocation.offset,
                        relocation.addend,
                    )

    def _collect_one(self, section: Section, type: int, symbol: Symbol, offset: int, addend: int) -> None:
        is_imported = symbol.section is None
        if is_imported:
            self.imported.setdefault(symbol.name, 1 + len(self.imported))
        key: str | int = symbol.name if is_imported else id(symbol)
        if type in _OF_GOT:
            self.got.setdefault(key, len(self.got))
        elif type in _RELATIVE_32:
            if is_imported:
                self.got.setdefault(key, len(self.got))
                self.stubs.setdefault(symbol.name, len(self.stubs))
        elif type == R_64:
            self.absolute.append((section, offset, symbol, addend))
        elif type != R_PC64 or is_imported:
            raise LinkError(f"relocation {type} of '{symbol.name or section.name}' is not known")

    # ---------------------------------------------------------------------------------------------------------- layout

    def link(self) -> bytes:
        sections = [section for each in self.objects for section in each.sections]
        strings = _Strings()
        for name in (*self.imported, *(symbol.name for symbol in self.exported), *self.needed):
            strings.add(name)
        soname, runpath = strings.add(self.soname), strings.add(self.runpath)
        symbols = 1 + len(self.imported) + len(self.exported)

        at = _FILE_HEADER.size + 5 * _PROGRAM_HEADER.size
        at, hash_table = self._place(at, 4 * (3 + symbols), 8)
        at, symbol_table = self._place(at, _SYMBOL.size * symbols, 8)
        at, string_table = self._place(at, len(strings.content), 1)
        at, relocations = self._place(at, _RELA.size * (len(self.got) + len(self.absolute)), 8)
        read_end = self._place_sections(at, (each for each in sections if not each.is_written and not each.is_code))
        code_start = _aligned(read_end, PAGE)
        code_end = self._place_sections(code_start, (each for each in sections if each.is_code))
        code_end, stubs = self._place(code_end, _STUB * len(self.stubs), 16)
        data_start = _aligned(code_end, PAGE)
        entries = self._dynamic(
            hash_table, symbol_table, string_table, len(strings.content), relocations, soname, runpath, strings
        )
        at, dynamic = self._place(data_start, _ENTRY.size * len(entries), 8)
        at, got = self._place(at, 8 * len(self.got), 8)
        data = [each for each in sections if each.is_written]
        file_end = self._place_sections(at, (each for each in data if each.type != SHT_NOBITS))
        data_end = self._place_sections(file_end, (each for each in data if each.type == SHT_NOBITS))

        image = bytearray(file_end)
        for section in sections:
            image[section.address : section.address + len(section.content)] = section.content
        self._write_symbols(image, symbol_table, hash_table, strings)
        image[string_table : string_table + len(strings.content)] = strings.content
        self._relocate(image, got, stubs)
        for place, entry in self._loader_relocations(relocations, got):
            _RELA.pack_into(image, place, *entry)
        for index, pair in enumerate(entries):
            _ENTRY.pack_into(image, dynamic + _ENTRY.size * index, *pair)
        segments = (
            (PT_LOAD, READ, 0, read_end, read_end, PAGE),
            (PT_LOAD, READ | EXECUTE, code_start, code_end - code_start, code_end - code_start, PAGE),
            (PT_LOAD, READ | WRITE, data_start, file_end - data_start, data_end - data_start, PAGE),
            (PT_DYNAMIC, READ | WRITE, dynamic, _ENTRY.size * len(entries), _ENTRY.size * len(entries), 8),
            (PT_GNU_STACK, READ | WRITE, 0, 0, 0, 16),
        )
        names = _Strings()
        headers = [
            (0, 0, 0, 0, 0, 0, 0, 0),
            (names.add(".text"), 1, 6, code_start, code_end - code_start, 0, 0, 0),
            (names.add(".hash"), 5, 2, hash_table, 4 * (3 + symbols), 3, 0, 4),
            (names.add(".dynsym"), 11, 2, symbol_table, _SYMBOL.size * symbols, 4, 1, _SYMBOL.size),
            (names.add(".dynstr"), 3, 2, string_table, len(strings.content), 0, 0, 0),
            (names.add(".dynamic"), 6, 3, dynamic, _ENTRY.size * len(entries), 4, 0, _ENTRY.size),
            (names.add(".shstrtab"), 3, 0, 0, 0, 0, 0, 0),
        ]
        table = self._append_section_headers(image, headers, bytes(names.content))
        identity = b"\x7fELF\x02\x01\x01" + bytes(9)
        sizes = (_FILE_HEADER.size, _PROGRAM_HEADER.size, len(segments), 64, len(headers), len(headers) - 1)
        _FILE_HEADER.pack_into(image, 0, identity, 3, EM_X86_64, 1, 0, _FILE_HEADER.size, table, 0, *sizes)
        for index, (type, flags, offset, in_file, in_memory, alignment) in enumerate(segments):
            place = _FILE_HEADER.size + index * _PROGRAM_HEADER.size
            _PROGRAM_HEADER.pack_into(image, place, type, flags, offset, offset, offset, in_file, in_memory, alignment)
        return bytes(image)

    @staticmethod
    def _append_section_headers(image: bytearray, headers: Sequence[tuple[int, ...]], names: bytes) -> int:
        """Append the section headers, which linkers and debuggers read, to ``image``; return their offset."""
        names_at = len(image)
        image += names
        image += bytes(-len(image) % 8)
        table = len(image)
        for index, (name, type, flags, address, size, link, info, entry) in enumerate(headers):
            is_last = index == len(headers) - 1
            place, bytes_ = (names_at, len(names)) if is_last else (address, size)
            image += struct.pack("<IIQQQQIIQQ", name, type, flags, address, place, bytes_, link, info, 1, entry)
        return table

    @staticmethod
    def _place(at: int, size: int, alignment: int) -> tuple[int, int]:
        """Return the end and the aligned start of ``size`` bytes that are placed at or after offset ``at``."""
        start = _aligned(at, alignment)
        return start + size, start

    def _place_sections(self, at: int, sections: Iterable[Section]) -> int:
        for each in sections:
            at, each.address = self._place(at, each.size, each.alignment)
        return at

    def _dynamic(
        self,
        hash_table: int,
        symbol_table: int,
        string_table: int,
        string_bytes: int,
        relocations: int,
        soname: int,
        runpath: int,
        strings: _Strings,
    ) -> list[tuple[int, int]]:
        """Return the entries of the dynamic section."""
        return [
            *((DT_NEEDED, strings.add(name)) for name in self.needed),
            *([(DT_SONAME, soname)] if self.soname else []),
            *([(DT_RUNPATH, runpath)] if self.runpath else []),
            (DT_HASH, hash_table),
            (DT_STRTAB, string_table),
            (DT_SYMTAB, symbol_table),
            (DT_STRSZ, string_bytes),
            (DT_SYMENT, _SYMBOL.size),
            (DT_RELA, relocations),
            (DT_RELASZ, _RELA.size * (len(self.got) + len(self.absolute))),
            (DT_RELAENT, _RELA.size),
            (DT_FLAGS, DF_BIND_NOW),
            (0, 0),
        ]

    # --------------------------------------------------------------------------------------------------------- writing

    def _write_symbols(self, image: bytearray, table: int, hash_table: int, strings: _Strings) -> None:
        """Write the dynamic symbols, and a hash table of one bucket that chains all symbols, into ``image``."""
        for name, number in self.imported.items():
            _SYMBOL.pack_into(image, table + _SYMBOL.size * number, strings.add(name), 1 << 4, 0, 0, 0, 0)
        first = 1 + len(self.imported)
        for number, symbol in enumerate(self.exported, first):
            entry = (strings.add(symbol.name), 1 << 4 | symbol.kind, 0, 1, symbol.address, symbol.size)
            _SYMBOL.pack_into(image, table + _SYMBOL.size * number, *entry)
        count = first + len(self.exported)
        chain = [0, *range(2, count), 0] if count > 1 else [0]
        struct.pack_into(f"<{3 + len(chain)}I", image, hash_table, 1, count, 1 if count > 1 else 0, *chain)

    def _relocate(self, image: bytearray, got: int, stubs: int) -> None:
        for name, number in self.stubs.items():
            place = stubs + _STUB * number
            slot = got + 8 * self.got[name]
            image[place : place + _STUB] = b"\xff\x25" + struct.pack("<i", slot - (place + 6)) + b"\x66\x90"
        for each in self.objects:
            for section in each.sections:
                for relocation in section.relocations:
                    symbol = self._resolved(each.symbols[relocation.symbol])
                    place = section.address + relocation.offset
                    if relocation.type in _OF_GOT:
                        key = symbol.name if symbol.section is None else id(symbol)
                        self._patch(image, place, got + 8 * self.got[key] + relocation.addend, "<i")
                    elif relocation.type in _RELATIVE_32:
                        target = stubs + _STUB * self.stubs[symbol.name] if symbol.section is None else symbol.address
                        self._patch(image, place, target + relocation.addend, "<i")
                    elif relocation.type == R_PC64:
                        self._patch(image, place, symbol.address + relocation.addend, "<q")

    @staticmethod
    def _patch(image: bytearray, place: int, target: int, form: str) -> None:
        """Write the distance from ``place`` to ``target`` into ``image`` at ``place``, in the struct format
        ``form``."""
        struct.pack_into(form, image, place, target - place)

    def _loader_relocations(self, table: int, got: int) -> Iterable[tuple[int, tuple[int, int, int]]]:
        """Return the relocations for the loader: slots of the global offset table, and absolute addresses."""
        by_identity = {id(symbol): symbol for each in self.objects for symbol in each.symbols}
        entries = []
        for key, slot in self.got.items():
            place = got + 8 * slot
            if isinstance(key, str):
                entries.append((place, self.imported[key] << 32 | R_GLOB_DAT, 0))
            else:
                entries.append((place, R_RELATIVE, by_identity[key].address))
        for section, offset, symbol, addend in self.absolute:
            place = section.address + offset
            if symbol.section is None:
                entries.append((place, self.imported[symbol.name] << 32 | R_64, addend))
            else:
                entries.append((place, R_RELATIVE, symbol.address + addend))
        return [(table + _RELA.size * index, entry) for index, entry in enumerate(entries)]
