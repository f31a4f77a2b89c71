"""The container that programs are kept in: a zip file with one top folder, read from a path, a file object or bytes.

======================  ==============================================================================================
``version``             the version of the format, a decimal number; ``.data/version`` where it is above 5
``byteorder``           ``little`` or ``big``; little where it is missing
``data.pkl``            the module; tensors in ``data/0``, ``data/1`` …
``constants.pkl``       what the texts call ``CONSTANTS.c0`` …; tensors in ``constants/0`` …
``code/__torch__/…``    program texts, one file a Python module, each with its source locations (``….py.debug_pkl``)
``python_results.json`` the Python classes of results; this package writes it where types do not show them
``extra/…``             what users added
======================  ==============================================================================================
"""

from __future__ import annotations

import mmap
import os
import stat
import zlib
from typing import IO, Final, Literal, TypeAlias

from rekindle.archive.limits import DEFAULT_LIMITS, ArchiveLimits
from rekindle.archive.zip_files.directory import DEFLATED, Entry, read_directory
from rekindle.archive.zip_files.names import printable, top_folder
from rekindle.errors import ArchiveLimitError, CorruptArchiveError, UnsupportedArchiveError

FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes] | bytes | bytearray | memoryview

OLDEST_VERSION: Final = 1
NEWEST_VERSION: Final = 10
"""The versions of the format that can be read: those of PyTorch 1.0 to today's."""

_CHUNK: Final = 1 << 20


class ArchiveReader:
    """The members of an archive, by their names without the top folder.

    With ``use_mmap``, a file given by its path is mapped into memory, so that reads do not copy. The checksum of a
    member is verified when it is read.
    """

    def __init__(self, f: FileLike, limits: ArchiveLimits = DEFAULT_LIMITS, *, use_mmap: bool = True) -> None:
        """Open an archive, and read the directory of its zip file.

        Raises:
            OSError: the file cannot be read.
            ArchiveError: it is not an archive, is broken, or exceeds the limits.
            TypeError: ``f`` is not a path, a file open in binary mode, or bytes.
        """
        self.limits = limits
        self._data, self._copy = _bytes_of(f, use_mmap, limits)
        entries = read_directory(self._data, limits)
        if not entries:
            raise CorruptArchiveError("The archive is empty.")
        self.top = top_folder([entry.name for entry in entries])
        self._entries = {entry.name[len(self.top) :]: entry for entry in entries}
        self._decompressed = 0
        self._views: dict[str, memoryview] = {}

    @property
    def names(self) -> list[str]:
        """The names of the members, in the order of the directory."""
        return list(self._entries)

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return len(self._data)

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def entry(self, name: str) -> Entry:
        """Return the directory entry of a file in the archive.

        Raises:
            CorruptArchiveError: there is no such member.
        """
        found = self._entries.get(name)
        if found is None:
            raise CorruptArchiveError("The archive lacks a member.", member=printable(name))
        return found

    def view(self, name: str) -> memoryview:
        """Return the bytes of a member, which must not be written to. A member without compression is not copied.

        Raises:
            ArchiveError: there is no such member, it is damaged, or its size when decompressed exceeds a limit.
        """
        known = self._views.get(name)
        if known is not None:
            return known
        entry = self.entry(name)
        stored = self._data[entry.start : entry.start + entry.stored_size]
        found = self._decompress(name, entry, stored) if entry.method == DEFLATED else stored
        if zlib.crc32(found) != entry.crc:
            raise CorruptArchiveError("The member does not have its checksum: the file is damaged.", member=name)
        self._views[name] = found
        return found

    def read(self, name: str) -> bytes:
        """Return a copy of the bytes that :meth:`view` returns."""
        return bytes(self.view(name))

    def writable(self, name: str, alignment: int) -> memoryview:
        """Return the bytes of a member that may be written to, without any effect on the archive: a copy-on-write
        mapping if the file is mapped and the member is uncompressed and aligned to ``alignment`` in it, else a copy.
        Later calls for a mapped member return the same memory."""
        found = self.view(name)
        entry = self.entry(name)
        if self._copy is None or entry.method == DEFLATED or entry.start % alignment:
            return memoryview(bytearray(found))
        return self._copy[entry.start : entry.start + entry.size]

    def _decompress(self, name: str, entry: Entry, stored: memoryview) -> memoryview:
        limits = self.limits
        if entry.size > _CHUNK and entry.size > limits.ratio * max(entry.stored_size, 1):
            raise ArchiveLimitError(
                f"The member grows from {entry.stored_size} to {entry.size} bytes when it is decompressed; the limit "
                f"is {limits.ratio} times.",
                member=name,
                hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(ratio=…).",
            )
        self._decompressed += entry.size
        if self._decompressed > limits.decompressed:
            raise ArchiveLimitError(
                f"The members take more than {limits.decompressed} bytes when they are decompressed.",
                member=name,
                hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(decompressed=…).",
            )
        return memoryview(_inflate(name, stored, entry.size))

    # --------------------------------------------------------------------------------------- what every archive has

    def version(self) -> int:
        """Return the version of the format.

        Raises:
            ArchiveError: the member with the version is missing or broken, or the version is not supported.
        """
        name = next((name for name in _VERSION_MEMBERS if name in self), None)
        if name is None:
            if "constants.pkl" not in self and "data.pkl" in self:
                raise UnsupportedArchiveError("The archive holds no program.", hint=_NO_PROGRAM)
            raise CorruptArchiveError("The archive lacks its version: it is not a TorchScript archive.")
        text = self._short_text(name)
        if not text.isascii() or not text.isdigit():
            raise CorruptArchiveError(f"'{printable(text)}' is not a version.", member=name)
        version = int(text)
        if version > NEWEST_VERSION:
            raise UnsupportedArchiveError(
                f"The archive is of version {version}; the newest that can be read is {NEWEST_VERSION}.",
                hint="A newer PyTorch wrote it: update rekindle.",
            )
        if version < OLDEST_VERSION:
            raise UnsupportedArchiveError(
                f"The archive is of version {version}; the oldest that can be read is {OLDEST_VERSION}.",
                hint="Load it with the PyTorch that wrote it and save it with PyTorch 1.4 or newer.",
            )
        return version

    def byte_order(self) -> Literal["little", "big"]:
        """Return the order of bytes in the tensors.

        Raises:
            CorruptArchiveError: the archive names another order.
        """
        if "byteorder" not in self:
            return "little"
        text = self._short_text("byteorder")
        if text == "little":
            return "little"
        if text == "big":
            return "big"
        raise CorruptArchiveError(f"'{printable(text)}' is not a byte order.", member="byteorder")

    def check_program(self) -> None:
        """Check that the archive holds a program, and not only tensors.

        Raises:
            ArchiveError: the archive holds no program.
        """
        if "constants.pkl" not in self and "model.json" not in self:
            raise UnsupportedArchiveError("The archive holds no program.", hint=_NO_PROGRAM)

    def _short_text(self, name: str) -> str:
        if self.entry(name).size > 100:
            raise CorruptArchiveError("The member is too long for its content.", member=name)
        try:
            return self.read(name).decode("utf-8").strip()
        except UnicodeDecodeError:
            raise CorruptArchiveError("The member is not text.", member=name) from None


_VERSION_MEMBERS: Final = ("version", ".data/version", ".format_version")
_NO_PROGRAM: Final = "torch.save wrote it, or torch.export: read it with torch.load or torch.export.load."


def _bytes_of(f: FileLike, use_mmap: bool, limits: ArchiveLimits) -> tuple[memoryview, memoryview | None]:
    """Return the bytes of a file. If the file is mapped, return also a second mapping, to which writes do not change
    the file; else None. With ``use_mmap``, a file on disk that is not empty is mapped.

    Reading through the first is twice as fast: pages of a mapping that may be written to are mapped one by one.

    Raises:
        TypeError: ``f`` is not a path, a file open in binary mode, or bytes.
        OSError: the file cannot be read.
        ArchiveError: the path is not a regular file, or a stream exceeds the limit.
    """
    if isinstance(f, (bytes, bytearray, memoryview)):
        return memoryview(f).cast("B").toreadonly(), None
    if isinstance(f, (str, os.PathLike)):
        with _open_regular(f) as file:
            if not use_mmap or not os.fstat(file.fileno()).st_size:
                return memoryview(file.read()), None
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return memoryview(mapped), memoryview(mmap.mmap(file.fileno(), len(mapped), access=mmap.ACCESS_COPY))
    if not hasattr(f, "read"):
        raise TypeError(
            f"an archive is read from a path, a file or bytes, not from a value of class '{type(f).__name__}'"
        )
    return memoryview(_read_all(f, limits)), None


def _open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading. Opening a pipe would wait for its writer, and a device may have no end.

    Raises:
        OSError: the file cannot be opened.
        UnsupportedArchiveError: the path is neither a regular file nor a link to one.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise _not_regular(f"'{printable(os.fspath(path))}'", mode)


def _not_regular(what: str, mode: int) -> UnsupportedArchiveError:
    kind = next((name for is_kind, name in _FILE_KINDS if is_kind(mode)), "something else")
    return UnsupportedArchiveError(f"An archive is read from a regular file, but {what} is {kind}.")


_FILE_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _read_all(file: IO[bytes], limits: ArchiveLimits) -> bytes:
    """Read a file object to its end; of a pipe or a socket at most ``limits.decompressed`` bytes.

    Raises:
        TypeError: the file was opened as text.
        UnsupportedArchiveError: the file is a device, which may have no end.
        ArchiveLimitError: a pipe or a socket has more bytes.
    """
    mode = _mode_of(file)
    if mode is not None and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)):
        raise _not_regular("the file that was given", mode)
    if mode is None or stat.S_ISREG(mode):
        data = file.read()
        if isinstance(data, str):
            raise TypeError("the file was opened as text; open it with mode 'rb'")
        return data
    chunks: list[bytes] = []
    size = 0
    while chunk := file.read(_CHUNK):
        size += len(chunk)
        if size > limits.decompressed:
            raise ArchiveLimitError(
                f"The stream has more than {limits.decompressed} bytes.",
                hint="If you trust it, raise the limit: limits=rekindle.ArchiveLimits(decompressed=…).",
            )
        chunks.append(chunk)
    return b"".join(chunks)


def _mode_of(file: IO[bytes]) -> int | None:
    """Return the mode of a file object, its type and permissions; None if it does not read a file of the system."""
    try:
        return os.fstat(file.fileno()).st_mode
    except (AttributeError, OSError, ValueError, TypeError):
        return None


def _inflate(name: str, stored: memoryview, size: int) -> bytes:
    """Return ``stored`` decompressed, which must be exactly ``size`` bytes; never more than that is held in memory.

    Raises:
        CorruptArchiveError: the data are damaged, or have another size when they are decompressed.
    """
    machine = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        out = machine.decompress(stored, size + 1)
        if len(out) == size and not machine.eof:
            out += machine.decompress(machine.unconsumed_tail, 1)
    except zlib.error:
        raise CorruptArchiveError("The member cannot be decompressed.", member=name) from None
    if len(out) != size or not machine.eof or machine.unused_data:
        raise CorruptArchiveError("The member does not have its size when it is decompressed.", member=name)
    return out
