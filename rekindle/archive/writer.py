"""Writer of the container: equal members result in equal bytes, and a file is written completely or not at all.

Members are stored at multiples of 64 bytes, so that a reader can map their tensors; as PyTorch does it, an extra field
``FB`` in front of them fills the gap. Texts are compressed. All members carry the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Final, TypeAlias

from rekindle.archive.zip_files.directory import DEFLATED, STORED
from rekindle.archive.zip_files.names import check_distinct, check_name

Bytes: TypeAlias = bytes | bytearray | memoryview
Target: TypeAlias = str | os.PathLike[str] | IO[bytes]

_ALIGNMENT: Final = 64
_DATE: Final = 0x21
"""January 1, 1980, the earliest date that a zip file can store."""
_LARGE: Final = 0xFFFFFFFF
_MANY: Final = 0xFFFF
_UTF8: Final = 0x0800
_PADDING: Final = b"FB"


@dataclass(slots=True)
class _Member:
    name: bytes
    method: int
    crc: int
    size: int
    content: Bytes
    offset: int = 0


class ArchiveWriter:
    """Builder of an archive with one top folder. Members are written by :meth:`write`."""

    def __init__(self, top: str = "archive") -> None:
        self.top = top
        self._names: list[str] = []
        self._members: list[_Member] = []

    def add(self, name: str, content: Bytes, *, compress: bool = False) -> None:
        """Add a member. ``content`` is not copied and must not change before it is written. With ``compress``, it is
        deflated if that makes it smaller.

        Raises:
            UnsafeArchiveError: archives cannot have a member of that name.
        """
        check_name(name)
        self._names.append(name)
        crc, size = zlib.crc32(content), memoryview(content).nbytes
        method = STORED
        if compress:
            machine = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
            packed = machine.compress(content) + machine.flush()
            if len(packed) < size:
                method, content = DEFLATED, packed
        self._members.append(_Member(f"{self.top}/{name}".encode(), method, crc, size, content))

    def write(self, target: Target) -> None:
        """Write the archive to a path or into a file that is open for writing.

        A file at the path is replaced when the new one is complete and on the disk.

        Raises:
            ArchiveError: members have the same name, or names that differ in case alone; nothing is written.
            OSError: the target cannot be written; a file that was at the path is unchanged.
            TypeError: ``target`` is not a path or a file.
        """
        check_distinct(self._names)
        chunks = list(self._chunks())
        if isinstance(target, (str, os.PathLike)):
            _write_atomically(os.fspath(target), chunks)
        elif hasattr(target, "write"):
            for chunk in chunks:
                _write_all(target, chunk)
        else:
            raise TypeError(f"an archive is written to a path or a file, not to a {type(target).__name__}")

    def serialization_id(self) -> str:
        """Return forty decimal digits that depend only on the members so far, in the form of PyTorch's serialization
        id."""
        digest = hashlib.sha256()
        for member in self._members:
            digest.update(member.name + struct.pack("<LQ", member.crc, member.size))
        return f"{int.from_bytes(digest.digest()[:16], 'little'):040d}"

    # ---------------------------------------------------------------------------------------------------- the bytes

    def _chunks(self) -> Iterator[Bytes]:
        at = 0
        for member in self._members:
            member.offset = at
            header = self._local_header(member, at)
            yield header
            yield member.content
            at += len(header) + memoryview(member.content).nbytes
        directory = b"".join(self._central_header(member) for member in self._members)
        yield directory
        yield self._end(at, len(directory))

    def _local_header(self, member: _Member, at: int) -> bytes:
        stored = memoryview(member.content).nbytes
        extra = b""
        size = member.size
        if max(size, stored) >= _LARGE:
            extra = struct.pack("<HHQQ", 1, 16, size, stored)
            size = stored = _LARGE
        start = at + 30 + len(member.name) + len(extra) + 4
        padding = -start % _ALIGNMENT
        extra += _PADDING + struct.pack("<H", padding) + b"Z" * padding
        needed = 45 if stored == _LARGE else 20
        fields = (needed, _UTF8, member.method, 0, _DATE, member.crc, stored, size, len(member.name), len(extra))
        return struct.pack("<4s5H3L2H", b"PK\x03\x04", *fields) + member.name + extra

    def _central_header(self, member: _Member) -> bytes:
        stored, size, offset = memoryview(member.content).nbytes, member.size, member.offset
        long = [value for value in (size, stored, offset) if value >= _LARGE]
        extra = struct.pack(f"<HH{len(long)}Q", 1, 8 * len(long), *long) if long else b""
        size, stored, offset = (min(value, _LARGE) for value in (size, stored, offset))
        needed = 45 if long else 20
        fields = (needed, needed, _UTF8, member.method, 0, _DATE, member.crc, stored, size, len(member.name))
        rest = (len(extra), 0, 0, 0, 0, offset)
        return struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *fields, *rest) + member.name + extra

    def _end(self, start: int, size: int) -> bytes:
        count = len(self._members)
        out = b""
        if count >= _MANY or max(start, size) >= _LARGE:
            out = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, start)
            out += struct.pack("<4sLQL", b"PK\x06\x07", 0, start + size, 1)
        count, start, size = min(count, _MANY), min(start, _LARGE), min(size, _LARGE)
        return out + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, count, count, size, start, 0)


# --------------------------------------------------------------------------------------------------- the target


def _write_all(file: IO[bytes], chunk: Bytes) -> None:
    """Write all of ``chunk``: unbuffered files may take less at a time."""
    rest = memoryview(chunk).cast("B") if memoryview(chunk).nbytes else memoryview(b"")
    while len(rest):
        rest = rest[file.write(rest) or len(rest) :]


def _write_atomically(path: str, chunks: list[Bytes]) -> None:
    """Write a new file beside the target, then rename it to ``path``. A pipe or a device is written directly.

    Raises:
        OSError: the file cannot be written; a file that was at the path is unchanged.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:  # a pipe or a device; a folder says that it is one
            for chunk in chunks:
                _write_all(file, chunk)
        return
    temporary = f"{target}.{secrets.token_hex(8)}.tmp"
    try:
        with open(temporary, "xb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, os.stat(target).st_mode & 0o7777)
            for chunk in chunks:
                _write_all(file, chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.filename == temporary and error.filename2 is None:
            error.filename = path  # the name that the caller knows
        raise
    _sync_folder(os.path.dirname(target))


def _sync_folder(folder: str) -> None:
    """Flush the directory entry of the new file to disk, where the system supports it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
