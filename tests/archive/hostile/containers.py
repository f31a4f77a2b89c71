"""Zip files written by hand, so that they can be wrong in every way."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Member:
    """A member and what the file says of it: what is None is as it should be."""

    name: str
    content: bytes
    deflated: bool = False
    crc: int | None = None
    size: int | None = None


def unpacked(archive: bytes) -> list[Member]:
    """The members of a well-formed archive, with the top folder in their names."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        return [Member(info.filename, file.read(info), info.compress_type == 8) for info in file.infolist()]


def packed(members: Sequence[Member]) -> bytes:
    """The archive of these members, whatever they are called and however often they are there."""
    body = bytearray()
    directory = bytearray()
    for member in members:
        crc = zlib.crc32(member.content) if member.crc is None else member.crc
        size = len(member.content) if member.size is None else member.size
        stored = _deflated(member.content) if member.deflated else member.content
        name = member.name.encode("utf-8", "surrogateescape")
        method = 8 if member.deflated else 0
        sizes = (crc & 0xFFFFFFFF, len(stored), size & 0xFFFFFFFF)
        offset = len(body)
        padding = b"FB" + struct.pack("<H", pad := -(offset + 34 + len(name)) % 64) + b"Z" * pad
        body += struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0x800, method, 0, 0, *sizes, len(name), len(padding))
        body += name + padding + stored
        facts = (20, 20, 0x800, method, 0, 0, *sizes, len(name), 0, 0, 0, 0, 0, offset)
        directory += struct.pack("<4s6H3L5H2L", b"PK\1\2", *facts) + name
    end = (0, 0, len(members), len(members), len(directory), len(body), 0)
    return bytes(body + directory + struct.pack("<4s4H2LH", b"PK\5\6", *end))


def _deflated(content: bytes) -> bytes:
    machine = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return machine.compress(content) + machine.flush()
