"""Reader of relocatable 64-bit ELF objects (System V gABI, chapters 4 and 5)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rekindle.errors import RekindleError


class LinkError(RekindleError):
    """Raised if objects cannot be linked: an object is of another format, a symbol is defined twice, an export is not
    defined, or a relocation has an unsupported type."""


SHT_PROGBITS: Final = 1
SHT_SYMTAB: Final = 2
SHT_RELA: Final = 4
SHT_NOBITS: Final = 8
SHF_WRITE: Final = 1
SHF_ALLOC: Final = 2
SHF_EXECINSTR: Final = 4
STB_LOCAL: Final = 0
STB_GLOBAL: Final = 1
STT_OBJECT: Final = 1
EM_X86_64: Final = 62

_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELA: Final = struct.Struct("<QQq")
_DISCARDED: Final = (".eh_frame", ".note.GNU-stack", ".llvm_addrsig", ".comment")
"""Sections that no library needs: exceptions do not pass through its code."""


class Relocation(NamedTuple):
    """A relocation: the location at ``offset`` of a section depends on the address of a symbol."""

    offset: int
    type: int
    symbol: int
    addend: int


@dataclass(slots=True)
class Section:
    """A section that is loaded. ``address`` is assigned by the linker."""

    name: str
    type: int
    flags: int
    size: int
    alignment: int
    content: bytes
    relocations: list[Relocation] = field(default_factory=list)
    address: int = 0

    @property
    def is_written(self) -> bool:
        return bool(self.flags & SHF_WRITE)

    @property
    def is_code(self) -> bool:
        return bool(self.flags & SHF_EXECINSTR)


@dataclass(slots=True)
class Symbol:
    """A symbol. ``section`` is None if another object has to define it."""

    name: str
    binding: int
    kind: int
    section: Section | None
    value: int
    size: int

    @property
    def is_definition(self) -> bool:
        """Whether this is a definition to which other objects may refer."""
        return self.binding != STB_LOCAL and self.section is not None

    @property
    def address(self) -> int:
        assert self.section is not None
        return self.section.address + self.value


@dataclass(slots=True)
class ObjectFile:
    """An object file: the sections that are loaded, and its symbols in the order of the symbol table."""

    machine: int
    sections: list[Section]
    symbols: list[Symbol]

    @staticmethod
    def of_data(name: str, content: bytes) -> ObjectFile:
        """Return an object that defines the symbol ``name`` as constant data."""
        section = Section(".rodata", SHT_PROGBITS, SHF_ALLOC, len(content), 64, content)
        return ObjectFile(EM_X86_64, [section], [Symbol(name, STB_GLOBAL, STT_OBJECT, section, 0, len(content))])

    @staticmethod
    def read(image: bytes) -> ObjectFile:
        """Read the object in ``image``.

        Raises:
            LinkError: it is not a relocatable little-endian 64-bit ELF object.
        """
        if image[:6] != b"\x7fELF\x02\x01":
            raise LinkError("this is not a little-endian 64-bit ELF object")
        _, kind, machine, *_rest = _HEADER.unpack_from(image)
        if kind != 1:
            raise LinkError("this ELF file is not a relocatable object")
        offset, count, names_index = _rest[3], _rest[9], _rest[10]
        headers = [_SECTION.unpack_from(image, offset + index * _SECTION.size) for index in range(count)]
        sections: dict[int, Section] = {}
        for index, (name, type, flags, _, start, size, _, _, alignment, _) in enumerate(headers):
            title = _text(image, headers[names_index][4], name)
            if flags & SHF_ALLOC and size and title not in _DISCARDED:
                content = b"" if type == SHT_NOBITS else image[start : start + size]
                sections[index] = Section(title, type, flags, size, max(alignment, 1), content)
        symbols = list(_symbols(image, headers, sections))
        for header in headers:
            if header[1] == SHT_RELA and header[7] in sections:
                sections[header[7]].relocations += _relocations(image, header)
        return ObjectFile(machine, list(sections.values()), symbols)


def _text(image: bytes, table: int, offset: int) -> str:
    start = table + offset
    return image[start : image.index(b"\0", start)].decode()


def _symbols(image: bytes, headers: list[tuple[int, ...]], sections: dict[int, Section]) -> Iterator[Symbol]:
    for header in headers:
        if header[1] != SHT_SYMTAB:
            continue
        names = headers[header[6]][4]
        for offset in range(header[4], header[4] + header[5], _SYMBOL.size):
            name, info, _, index, value, size = _SYMBOL.unpack_from(image, offset)
            yield Symbol(_text(image, names, name), info >> 4, info & 15, sections.get(index), value, size)


def _relocations(image: bytes, header: tuple[int, ...]) -> Iterator[Relocation]:
    for offset in range(header[4], header[4] + header[5], _RELA.size):
        place, info, addend = _RELA.unpack_from(image, offset)
        yield Relocation(place, info & 0xFFFFFFFF, info >> 32, addend)
