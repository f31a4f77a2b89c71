"""Files of arguments and results, as ``drivers/driver.h`` reads and writes them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

_TENSOR, _STRING, _INT = range(3)
_DTYPES: Final = (torch.float32, torch.int64)


def write_arguments(path: Path, values: Sequence[Any]) -> None:
    """Write a file of arguments: their number, then each argument."""
    path.write_bytes(struct.pack("<q", len(values)) + b"".join(map(leaf_bytes, values)))


def leaf_bytes(value: Any) -> bytes:
    """Return the bytes that represent a tensor, a string or an int in a file of the drivers."""
    if isinstance(value, str):
        data = value.encode()
        return struct.pack("<4q", _STRING, 0, 0, len(data)) + data
    if isinstance(value, Tensor):
        sizes, data = tuple(value.shape), value.contiguous().numpy().tobytes()
        head = (_TENSOR, _DTYPES.index(value.dtype), len(sizes), *sizes, len(data))
        return struct.pack(f"<{len(head)}q", *head) + data
    return struct.pack("<5q", _INT, 1, 0, 8, value)


def read_leaves(path: Path) -> list[Any]:
    """Return the values that :func:`leaf_bytes` has written one after the other."""
    content, at, found = path.read_bytes(), 0, []
    while at < len(content):
        kind, dtype, rank = struct.unpack_from("<3q", content, at)
        *sizes, count = struct.unpack_from(f"<{rank + 1}q", content, at + 24)
        at += 24 + 8 * (rank + 1)
        data = content[at : at + count]
        at += count
        if kind == _STRING:
            found.append(data.decode())
        elif kind == _INT:
            found.append(struct.unpack("<q", data)[0])
        else:
            found.append(torch.frombuffer(bytearray(data), dtype=_DTYPES[dtype]).reshape(sizes))
    return found


def read_arguments(path: Path) -> list[Any]:
    """Return the arguments in a file of :func:`write_arguments`. A file of the same name with the suffix ``.leaves`` is
    written beside it."""
    rest = path.with_suffix(".leaves")
    rest.write_bytes(path.read_bytes()[8:])
    return read_leaves(rest)
