"""Call native libraries from a C program: :file:`driver.c`, in a process without Python."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
from collections import deque
from enum import Enum
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import torch

from rekindle.building.lowering.constants import member_number
from rekindle.building.native_library import CODES
from rekindle.building.runtime.c_values import CKind
from rekindle.ir.scalar_types import number_of

DTYPES = {codes: dtype for dtype, codes in CODES.items()}
SOURCE = Path(__file__).with_name("driver.c")


def compiler() -> str | None:
    """Return the C compiler of the machine; None if it has none."""
    return next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


def memory_checker() -> tuple[str, ...] | None:
    """Return the command that runs a program under valgrind, which ends with an error for an invalid access and for a
    leak; None if the machine has none. It knows the instructions of x86-64-v3."""
    if shutil.which("valgrind") is None:
        return None
    leaks = ("--leak-check=full", "--errors-for-leak-kinds=definite,indirect,possible")
    return ("valgrind", "--quiet", *leaks, "--error-exitcode=9")


@cache
def driver() -> Path:
    """Return the driver, compiled."""
    found = compiler()
    assert found is not None
    path = Path(mkdtemp(prefix="rekindle-driver-")) / "driver"
    subprocess.run([found, "-O1", "-o", str(path), str(SOURCE), "-ldl"], check=True)
    return path


class Answer(NamedTuple):
    """What a call came to: an error code with a message, or 0 and a value."""

    code: int
    message: str
    value: Any


def run(
    build: Any, method: str, calls: list[tuple[Any, ...]], folder: Path, *, prefix: tuple[str, ...] = ()
) -> list[Answer]:
    """Call a method with some arguments after each other, in one process, and return what came of it.

    Raises:
        subprocess.CalledProcessError: the process crashed, or Python was in it.
    """
    given, results = folder / "calls.bin", folder / "results.bin"
    with given.open("wb") as file:
        _put(file, len(calls))
        for arguments in calls:
            _put(file, len(arguments))
            for each in arguments:
                write(file, each)
    command = [*prefix, driver(), build.library, build.name, build.weights or "-", method, given, results]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=600)
    file = io.BytesIO(results.read_bytes())
    answers = []
    for _ in calls:
        code, length = _get(file), 0
        length = _get(file)
        message = file.read(length).decode(errors="replace")
        answers.append(Answer(code, message, None if code else read(file)))
    return answers


def _put(file: Any, number: int) -> None:
    file.write(struct.pack("<q", number))


def _get(file: Any) -> int:
    return struct.unpack("<q", file.read(8))[0]


def write(file: Any, value: Any) -> None:
    """Write a value as the driver reads it."""
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        value = number_of(value)
    if isinstance(value, Enum):
        value = member_number(value)
    if isinstance(value, set | frozenset):
        value = dict.fromkeys(value, True)
    if isinstance(value, deque):
        value = list(value)
    kinds = (
        (type(None), CKind.NONE),
        (bool, CKind.BOOL),
        (int, CKind.INT),
        (float, CKind.FLOAT),
        (complex, CKind.COMPLEX),
        (str, CKind.STRING),
        (torch.Tensor, CKind.TENSOR),
        (list, CKind.LIST),
        (tuple, CKind.TUPLE),
        (dict, CKind.DICT),
    )
    kind = next((kind for cls, kind in kinds if isinstance(value, cls)), None)
    if kind is None:
        raise TypeError(f"a {type(value).__name__} has no form in C")
    data = value.encode() if isinstance(value, str) else b""
    _put(file, kind)
    if kind is CKind.COMPLEX:
        file.write(struct.pack("<2d", value.imag, value.real))
        return
    _put(file, len(data) if kind is CKind.STRING else len(value) if kind >= CKind.LIST else 1)
    if kind is CKind.STRING:
        file.write(data)
    elif kind is CKind.TENSOR:
        if value.dtype not in CODES:
            raise TypeError(f"a tensor of {value.dtype} has no form in C")
        code, bits = CODES[value.dtype]
        for number in (code | bits << 8, value.dim(), *value.shape):
            _put(file, number)
        file.write(value.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b"")
    elif kind >= CKind.LIST:
        items = [part for pair in value.items() for part in pair] if isinstance(value, dict) else value
        for each in items:
            write(file, each)
    elif kind is CKind.FLOAT:
        file.write(struct.pack("<d", value))
    else:
        _put(file, 0 if value is None else int(value))


def read(file: Any) -> Any:
    """Read a value as the driver writes it."""
    kind, count = CKind(_get(file)), _get(file)
    if kind is CKind.STRING:
        return file.read(count).decode("utf-8", "surrogatepass")
    if kind is CKind.TENSOR:
        dtype, rank = _get(file), _get(file)
        shape = [_get(file) for _ in range(rank)]
        result = torch.empty(shape, dtype=DTYPES[dtype & 255, dtype >> 8])
        if result.numel():
            data = bytearray(file.read(result.numel() * result.element_size()))
            result = torch.frombuffer(data, dtype=result.dtype).reshape(shape)
        return result
    if kind in (CKind.LIST, CKind.TUPLE, CKind.DICT):
        items = [read(file) for _ in range(count * (2 if kind is CKind.DICT else 1))]
        if kind is CKind.DICT:
            return dict(zip(items[::2], items[1::2], strict=True))
        return tuple(items) if kind is CKind.TUPLE else items
    word = file.read(8)
    if kind is CKind.COMPLEX:
        return complex(struct.unpack("<d", word)[0], struct.unpack("<d", struct.pack("<q", count))[0])
    if kind is CKind.FLOAT:
        return struct.unpack("<d", word)[0]
    number = struct.unpack("<q", word)[0]
    return None if kind is CKind.NONE else bool(number) if kind is CKind.BOOL else number
