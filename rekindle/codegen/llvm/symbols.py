"""Symbols that generated code may call: those of the libraries that torch ships, of CPython and of the C library.

A missing symbol is not an error: builds of torch differ in their contents (SLEEF, MKL, OpenMP).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import torch

_OF_TORCH: Final = ("torch_cpu", "torch_cuda", "c10", "torch_python", "gomp", "omp", "iomp5")
"""Libraries that are loaded with torch, by the part of their names that is the same on all platforms."""
_PREFIX: Final = "" if os.name == "nt" else "lib"


@cache
def find(name: str) -> int | None:
    """Return the address of the function or the variable ``name``; None if no library has it."""
    for library in _libraries():
        try:
            symbol = getattr(library, name)
        except (AttributeError, ValueError):
            continue
        return ctypes.cast(symbol, ctypes.c_void_p).value
    return None


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """Return the libraries to search, in this order: CPython, those of the process, and those of torch that are
    loaded."""
    found: list[ctypes.CDLL] = [ctypes.pythonapi]
    if os.name == "posix":
        found.append(ctypes.CDLL(None))
    for path in _files_of_torch():
        library = _loaded(path)
        if library is not None:
            found.append(library)
    return tuple(found)


def _files_of_torch() -> Iterator[Path]:
    """Yield the files of torch's libraries. Wheels differ in the location of OpenMP."""
    package = Path(torch.__file__).parent
    folders = [package / "lib", package.parent / "torch.libs"]
    for part in _OF_TORCH:
        for folder in folders:
            for path in sorted(folder.glob(f"{_PREFIX}{part}[.-]*")):
                if any(ending in path.name for ending in (".so", ".dylib", ".dll")):
                    yield path


def _loaded(path: Path) -> ctypes.CDLL | None:
    """Return the library in a file if this process has loaded it; else None. A second copy of OpenMP must not be
    loaded. On a platform without ``RTLD_NOLOAD``, the library is loaded."""
    already = getattr(os, "RTLD_NOLOAD", 0)
    try:
        return ctypes.CDLL(str(path), mode=os.RTLD_LAZY | already if already else ctypes.DEFAULT_MODE)
    except OSError:
        return None
