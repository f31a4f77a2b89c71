"""The directory of a zip file: its members and the offsets of their bytes.

Readers of zip files disagree where a file contradicts itself (two directories, local headers that differ from the
directory, members that overlap). Every such file is rejected here, so that all readers agree with this package.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from rekindle.archive.limits import ArchiveLimits
from rekindle.archive.zip_files.names import check_distinct, check_name, printable
from rekindle.errors import ArchiveLimitError, CorruptArchiveError, UnsupportedArchiveError

STORED: Final = 0
DEFLATED: Final = 8

_END: Final = struct.Struct("<4s4H2LH")
_LOCATOR: Final = struct.Struct("<4sLQL")
_END_64: Final = struct.Struct("<4sQ2H2L4Q")
_CENTRAL: Final = struct.Struct("<4s6H3L5H2L")
_LOCAL: Final = struct.Struct("<4s5H3L2H")

_ENCRYPTED: Final = 0x2041
"""Flags of members that are encrypted, strongly or not, or whose headers are."""
_DESCRIPTOR: Final = 0x0008
"""Flag: sizes and checksum follow the data instead of being in the local header."""


@dataclass(slots=True, frozen=True)
class Entry:
    """A member: its full name, its compression, and the offset of its bytes in the file."""

    name: str
    method: int
    crc: int
    start: int
    stored_size: int
    """Bytes in the file."""
    size: int
    """Bytes once decompressed."""


@dataclass(slots=True, frozen=True)
class _Header:
    """The directory entry of a member, before its local header is read."""

    raw_name: bytes
    name: str
    flags: int
    method: int
    crc: int
    stored_size: int
    size: int
    offset: int


def read_directory(data: memoryview, limits: ArchiveLimits) -> list[Entry]:
    """Return the members of the zip file ``data``, in the order of the directory. Entries of folders are omitted.

    Raises:
        ArchiveError: the data are not a zip file, are truncated or inconsistent, have unsafe names, or have more
            members than the limits allow.
    """
    start, count, end = _find_directory(data, limits)
    headers = _read_headers(data[start:end], count)
    for header in headers:
        check_name(header.name)
    check_distinct([header.name.removesuffix("/") for header in headers])
    entries = []
    previous = 0
    for header in sorted(headers, key=lambda header: header.offset):
        entry = _locate(data, header, previous, start)
        previous = entry.start + entry.stored_size
        if not header.name.endswith("/"):
            entries.append((header, entry))
        elif header.size:
            raise CorruptArchiveError("A folder has content.", member=printable(header.name))
    found = {id(header): entry for header, entry in entries}
    return [found[id(header)] for header in headers if id(header) in found]


def _find_directory(data: memoryview, limits: ArchiveLimits) -> tuple[int, int, int]:
    """Return where the directory begins, how many members it has, and where it ends.

    Raises:
        ArchiveError: the file is not an archive, is truncated or inconsistent, or has too many members.
    """
    at = bytes(data[-0xFFFF - _END.size :]).rfind(b"PK\x05\x06")
    if at < 0:
        raise _no_archive(data)
    at += max(0, len(data) - 0xFFFF - _END.size)
    if at + _END.size > len(data):
        raise CorruptArchiveError("The archive is cut off within its directory.")
    _, disk, first_disk, here, count, size, start, comment = _END.unpack_from(data, at)
    if at + _END.size + comment != len(data):
        raise CorruptArchiveError("Something follows the end of the archive, or its end is cut off.")
    end = at
    located = at - _LOCATOR.size
    if located >= 0 and bytes(data[located : located + 4]) == b"PK\x06\x07":
        _, end_disk, end, disks = _LOCATOR.unpack_from(data, located)
        if end + _END_64.size != located or bytes(data[end : end + 4]) != b"PK\x06\x06":
            raise CorruptArchiveError("The two ends of the archive (of 32 and of 64 bits) do not fit together.")
        long = _END_64.unpack_from(data, end)
        for short, value, full in zip((here, count, size, start), long[6:], _FULL, strict=True):
            if short not in (full, value):
                raise CorruptArchiveError("The two ends of the archive (of 32 and of 64 bits) contradict each other.")
        disk, first_disk, here, count, size, start = long[4:]
        disk += end_disk + (disks > 1)
    if disk or first_disk or here != count:
        raise UnsupportedArchiveError("The archive is one part of several, which cannot be read.")
    if start + size != end:
        raise CorruptArchiveError("The directory of the archive is not at the recorded offset.")
    if count > limits.members:
        raise ArchiveLimitError(
            f"The archive has {count} members; the limit is {limits.members}.", hint=_set("members")
        )
    if count * _CENTRAL.size > size:
        raise CorruptArchiveError("The directory of the archive is shorter than its number of members.")
    return start, count, end


_FULL: Final = (0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
"""Values of fields of the short end record if the value is in the long one."""


def _set(limit: str) -> str:
    return f"If you trust this file, raise the limit: limits=rekindle.ArchiveLimits({limit}=…)."


def _no_archive(data: memoryview) -> CorruptArchiveError:
    if not len(data):
        return CorruptArchiveError("The file is empty.")
    if bytes(data[:4]) == b"PK\x03\x04":
        return CorruptArchiveError("The archive is truncated: its directory, which is at the end, is missing.")
    if bytes(data[:2]) == b"\x80\x02":
        return CorruptArchiveError(
            "The file is a pickle, not an archive.",
            hint="torch.save wrote such files before PyTorch 1.6; they hold no program. Read it with torch.load.",
        )
    return CorruptArchiveError("The file is not an archive: it has no zip directory.")


def _read_headers(directory: memoryview, count: int) -> list[_Header]:
    headers = []
    at = 0
    for _ in range(count):
        if at + _CENTRAL.size > len(directory):
            raise CorruptArchiveError("The directory of the archive is cut off.")
        fields = _CENTRAL.unpack_from(directory, at)
        signature, _, _, flags, method, _, _, crc, stored, size, name_size, extra_size, comment, disk, *rest = fields
        after = at + _CENTRAL.size + name_size + extra_size + comment
        if signature != b"PK\x01\x02" or after > len(directory):
            raise CorruptArchiveError("The directory of the archive is broken.")
        raw = bytes(directory[at + _CENTRAL.size :][:name_size])
        name = _decode(raw)
        extra = bytes(directory[at + _CENTRAL.size + name_size :][:extra_size])
        size, stored, offset, disk = _long_values(name, extra, (size, stored, rest[-1], disk))
        if disk:
            raise UnsupportedArchiveError("The archive is one part of several, which cannot be read.")
        headers.append(_Header(raw, name, flags, method, crc, stored, size, offset))
        at = after
    if at != len(directory):
        raise CorruptArchiveError("The directory of the archive has more members than the archive says.")
    return headers


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise CorruptArchiveError("The name of a member is not UTF-8.", member=printable(repr(raw)[2:-1])) from None


def _long_values(name: str, extra: bytes, short: tuple[int, ...]) -> tuple[int, ...]:
    """Return size, stored size, offset and disk. Those that exceed a field of the header are read from the extra
    field.

    Raises:
        CorruptArchiveError: the extra field is broken, or lacks a size.
    """
    at = 0
    values = list(short)
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        body = extra[at + 4 : at + 4 + size]
        if len(body) != size:
            raise CorruptArchiveError("The header of a member is broken.", member=printable(name))
        if kind == 1:
            widths = [8 if i < 3 else 4 for i, value in enumerate(short) if value == (0xFFFFFFFF if i < 3 else 0xFFFF)]
            if sum(widths) > size:
                raise CorruptArchiveError("The header of a member lacks its size.", member=printable(name))
            for i, value in enumerate(short):
                if value == (0xFFFFFFFF if i < 3 else 0xFFFF):
                    width = 8 if i < 3 else 4
                    values[i], body = int.from_bytes(body[:width], "little"), body[width:]
            return tuple(values)
        at += 4 + size
    return tuple(values)


def _locate(data: memoryview, header: _Header, previous: int, directory: int) -> Entry:
    """Return the entry of a member, after a check that its local header agrees with the directory. The member may not
    begin before ``previous``, where the previous member ends, nor extend into the directory.

    Raises:
        ArchiveError: the headers do not agree, the member overlaps another or is cut off, or it is encrypted or
            compressed by an unsupported method.
    """
    name = printable(header.name)
    _check_kind(header, name)
    at = header.offset
    if at + _LOCAL.size > directory:
        raise CorruptArchiveError("The member is not at the offset that the directory records.", member=name)
    if at < previous:
        raise CorruptArchiveError("The member overlaps with another one.", member=name)
    signature, _, flags, method, _, _, crc, stored, size, name_size, extra_size = _LOCAL.unpack_from(data, at)
    start = at + _LOCAL.size + name_size + extra_size
    local_name = bytes(data[at + _LOCAL.size :][:name_size])
    if signature != b"PK\x03\x04" or local_name != header.raw_name:
        raise CorruptArchiveError("The member is not at the offset that the directory records.", member=name)
    if start + header.stored_size > directory:
        raise CorruptArchiveError("The member is cut off.", member=name)
    extra = bytes(data[at + _LOCAL.size + name_size : start])
    size, stored, *_ = _long_values(header.name, extra, (size, stored, 0, 0))
    recorded = (crc, stored, size)
    deferred = flags & _DESCRIPTOR and recorded == (0, 0, 0)
    if (
        flags != header.flags
        or method != header.method
        or not (deferred or recorded == (header.crc, header.stored_size, header.size))
    ):
        raise CorruptArchiveError("The header of the member contradicts the directory.", member=name)
    return Entry(header.name, header.method, header.crc, start, header.stored_size, header.size)


def _check_kind(header: _Header, name: str) -> None:
    if header.flags & _ENCRYPTED:
        raise UnsupportedArchiveError("The member is encrypted.", member=name)
    if header.method not in (STORED, DEFLATED):
        raise UnsupportedArchiveError(
            f"The member is compressed by method {header.method}; only deflate (8) can be read.", member=name
        )
    if header.method == STORED and header.size != header.stored_size:
        raise CorruptArchiveError("The sizes of the member contradict each other.", member=name)
