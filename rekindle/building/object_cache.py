"""Cache of object files on disk, which LLVM compiles from modules.

The modules are those of the program, and of the run-time functions that it calls: one for each function, so that
libraries contain only the functions that they need, and a machine compiles each of them once.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Final

from rekindle.building.elf import ObjectFile
from rekindle.building.lowlevel.compiler import table_symbol
from rekindle.building.lowlevel.module import compilation_unit, table_definition
from rekindle.building.lowlevel.types import FUNCTIONS, TABLES
from rekindle.codegen.llvm.engine import disk_cache
from rekindle.codegen.llvm.library import LOCK, versions
from rekindle.codegen.llvm.optimization import machine_for, optimized
from rekindle.codegen.llvm.target import Target

REVISION: Final = 1
"""Part of the key of objects on disk: increment it when the output for equal modules changes."""

LEVEL: Final = 2
"""LLVM's optimization level: as ``-O2``."""
_RUNTIME: Final = f"{__package__}.runtime."


def object_of(text: str, target: Target) -> bytes:
    """Return the object file of an LLVM module: from the cache, or compiled now and stored there.

    Raises:
        CodegenError: LLVM rejects the text.
    """
    return _cached(text, target, lambda: text)


def runtime_objects(objects: Sequence[ObjectFile], target: Target) -> list[ObjectFile]:
    """Return the objects of the functions and tables of the runtime that ``objects`` refer to, directly or through
    other functions."""
    units = _units()
    found: list[ObjectFile] = []
    known: set[str] = set()
    pending = list(objects)
    while pending:
        for symbol in pending.pop().symbols:
            if symbol.section is None and symbol.name in units and symbol.name not in known:
                known.add(symbol.name)
                found.append(ObjectFile.read(_unit(symbol.name, units[symbol.name], target)))
                pending.append(found[-1])
    return found


def _units() -> dict[str, Callable[[], str]]:
    """Return, by symbol, functions that write the LLVM module of each function and each table of the runtime."""
    found: dict[str, Callable[[], str]] = {}
    for module in filter(_is_of_the_runtime, FUNCTIONS):
        found |= {name: partial(compilation_unit, each) for name, each in FUNCTIONS[module].items()}
    for module in filter(_is_of_the_runtime, TABLES):
        found |= {table_symbol(each): partial(table_definition, each, "hidden") for each in TABLES[module].values()}
    return found


def _is_of_the_runtime(module: str) -> bool:
    return module.startswith(_RUNTIME)


def _unit(symbol: str, write: Callable[[], str], target: Target) -> bytes:
    """Return the object that defines a function or a table of the runtime. It stays in memory, since a process may
    build many libraries."""
    found = _known_units.get((symbol, target))
    if found is None:
        found = _cached(f"{symbol} of the runtime {_runtime_state()}", target, write)
        _known_units[symbol, target] = found
    return found


_known_units: Final[dict[tuple[str, Target], bytes]] = {}


@cache
def _runtime_state() -> str:
    """Return a digest of the runtime and of its compiler: Python's version, and the sizes and modification times of
    the files in ``rekindle/building``."""
    folder = Path(__file__).parent
    state = hashlib.sha256(sys.version.encode())
    for path in sorted(folder.rglob("*.py")):
        status = path.stat()
        state.update(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return state.hexdigest()


def _cached(name: str, target: Target, write: Callable[[], str]) -> bytes:
    """Return the object of the module that ``write`` returns, from the cache on disk if it is there. Modules of equal
    ``name`` are equal."""
    disk = disk_cache()
    if disk is None:
        return _compiled(write(), target)
    key = "\n".join(["library object", versions(), str(REVISION), target.cpu, target.features, name]).encode()
    found = disk.load(key)
    if found is None:
        found = _compiled(write(), target)
        disk.store(key, found)
    return found


def _compiled(text: str, target: Target) -> bytes:
    with LOCK, machine_for(target, text, LEVEL) as machine:
        image: bytes = machine.emit_object(optimized(text, machine, LEVEL))
        return image
