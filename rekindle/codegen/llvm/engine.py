"""JIT compilation of LLVM IR to machine code in this process.

:func:`compile_module` verifies and optimizes a module for a :class:`~rekindle.codegen.llvm.target.Target`, has LLVM
write an object, stores the object on disk, and links it. Symbols that the module declares and does not define are
looked up in the libraries of this process. Code is freed when its :class:`NativeCode` is deleted.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol

import torch

from rekindle.codegen.llvm.disk_cache import DiskCache, cache_directory
from rekindle.codegen.llvm.library import LOCK, CodegenError, MissingSymbolError, llvm, versions
from rekindle.codegen.llvm.optimization import machine_for, optimized
from rekindle.codegen.llvm.symbols import find
from rekindle.codegen.llvm.target import Target, host_target
from rekindle.errors.fork_locks import held_while_forking
from rekindle.ir.profiling import recorded

REVISION: Final = 3
"""Part of the key of objects on disk: increment it when the output for equal modules changes."""

_SPEED: Final = 3
"""LLVM's optimization level: as ``-O3``."""


@dataclass(frozen=True, slots=True)
class _Object:
    """An object file of the cache: its code, the functions that it defines, and those that it calls."""

    defines: tuple[str, ...]
    calls: tuple[str, ...]
    image: bytes

    def pack(self) -> bytes:
        head = json.dumps({"defines": self.defines, "calls": self.calls}).encode()
        return len(head).to_bytes(4, "little") + head + self.image

    @staticmethod
    def unpack(payload: bytes) -> _Object:
        end = 4 + int.from_bytes(payload[:4], "little")
        head = json.loads(payload[4:end])
        return _Object(tuple(head["defines"]), tuple(head["calls"]), payload[end:])


@dataclass(frozen=True, slots=True)
class LazyModule:
    """An LLVM module that is generated only if its code is not cached. Modules of equal ``name`` are equal for the same
    target, as long as the code generator is unchanged."""

    name: str
    write: Callable[[], str]


class Library(Protocol):
    """Functions and variables by name that code is linked with, in addition to the libraries of the process."""

    @property
    def addresses(self) -> Mapping[str, int]: ...


class NativeCode:
    """Machine code in this process, which is freed with this object. ``target`` is the target it was compiled for;
    ``addresses`` are those of its functions; ``seconds`` is the time that compiling took, ``from_cache`` whether it was
    loaded from disk."""

    __slots__ = ("__weakref__", "_source", "_tracker", "addresses", "from_cache", "kept", "seconds", "target")

    def __init__(
        self, source: LazyModule, target: Target, tracker: Any, addresses: dict[str, int], from_cache: bool
    ) -> None:
        self._source = source
        self.target = target
        self.from_cache = from_cache
        self.seconds = 0.0
        self.kept: list[object] = []
        """Objects that the code keeps alive."""
        self._tracker = tracker
        self.addresses = addresses

    @property
    def text(self) -> str:
        """The LLVM IR of the code, which is generated again at each access."""
        return self._source.write()

    def address(self, name: str) -> int:
        """Return the address of the function ``name``, which the module defines."""
        return self.addresses[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions that can be called from outside of the module."""
        return tuple(self.addresses)

    def optimized(self) -> str:
        """Return the LLVM IR after all passes of LLVM."""
        text = self.text
        with LOCK, machine_for(self.target, text, _SPEED, is_jit=True) as machine:
            return str(optimized(text, machine, _SPEED))

    def assembly(self) -> str:
        """Return the assembly of the code."""
        text = self.text
        with LOCK, machine_for(self.target, text, _SPEED, is_jit=True) as machine:
            return str(machine.emit_assembly(optimized(text, machine, _SPEED)))

    def __del__(self) -> None:
        try:
            with LOCK:
                self._tracker.close()
        except (AttributeError, TypeError):
            pass  # the interpreter shuts down, and module globals may be None


def compile_module(
    source: str | LazyModule,
    *,
    target: Target | None = None,
    cache: bool = True,
    libraries: Sequence[Library] = (),
    is_shared: bool = True,
) -> NativeCode:
    """Compile a module for ``target`` (by default :func:`~rekindle.codegen.llvm.target.host_target`).

    Equal modules share their code while it is alive, if ``is_shared``; modules with different ``libraries`` must not be
    shared. ``cache``: whether to use the disk cache. Undefined symbols are looked up in ``libraries`` first.

    Raises:
        CodegenError: LLVM rejects the module.
        MissingSymbolError: no library has a function that the module calls.
    """
    target = target or host_target()
    name = source if isinstance(source, str) else f"{source.name}\nwritten by {generator_state()}"
    source = source if isinstance(source, LazyModule) else LazyModule(name, lambda: name)
    known = _known.get((name, target)) if is_shared else None
    if known is not None:
        return known
    started = time.perf_counter()
    disk = disk_cache() if cache else None
    key = _key(name, target) if disk is not None else b""
    code = _from_disk(disk, key, source, target, libraries) if disk is not None else None
    if code is None:
        with recorded("LLVM"):
            built = _build(source.write(), target)
        code = _link(built, source, target, libraries, from_cache=False)
        if disk is not None:
            disk.store(key, built.pack())
    code.seconds = time.perf_counter() - started
    if not is_shared:
        return code
    with _known_lock:
        return _known.setdefault((name, target), code)


@cache
def generator_state() -> str:
    """Return a digest of the code generator: PyTorch's version, and the sizes and modification times of the files in
    ``rekindle/codegen``."""
    folder = Path(__file__).parents[1]
    state = hashlib.sha256(torch.__version__.encode())
    for path in sorted(folder.rglob("*.py")):
        status = path.stat()
        state.update(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return state.hexdigest()


def disk_cache() -> DiskCache | None:
    """Return the cache of this process, by the current environment variables; None if it is turned off."""
    directory = cache_directory(os.environ)
    if directory is None:
        return None
    return _caches.setdefault(str(directory), DiskCache(directory))


_known: weakref.WeakValueDictionary[tuple[str, Target], NativeCode] = weakref.WeakValueDictionary()
_known_lock: Final = held_while_forking(threading.RLock(), 3)
_caches: dict[str, DiskCache] = {}
_numbers: Final = itertools.count()


def _key(name: str, target: Target) -> bytes:
    return "\n".join([versions(), str(REVISION), str(_SPEED), target.cpu, target.features, name]).encode()


def _from_disk(
    disk: DiskCache, key: bytes, source: LazyModule, target: Target, libraries: Sequence[Library]
) -> NativeCode | None:
    payload = disk.load(key)
    if payload is None:
        return None
    try:
        return _link(_Object.unpack(payload), source, target, libraries, from_cache=True)
    except CodegenError:
        disk.discard(key)
        return None


# ------------------------------------------------------------------------------------------------------------ compiling


def _build(text: str, target: Target) -> _Object:
    with LOCK, machine_for(target, text, _SPEED, is_jit=True) as machine:
        module = optimized(text, machine, _SPEED)
        defines, calls = [], []
        for function in module.functions:
            if not function.is_declaration:
                if function.linkage.name == "external":
                    defines.append(function.name)
            elif not function.name.startswith("llvm."):
                calls.append(function.name)
        calls += [variable.name for variable in module.global_variables if variable.is_declaration]
        return _Object(tuple(defines), tuple(calls), machine.emit_object(module))


# -------------------------------------------------------------------------------------------------------------- linking


@cache
def _linker() -> Any:
    """Return LLVM's JIT linker for this process. JITLink allocates all sections of an object together. LLVM's other
    linker maps them one by one; if two are more than 2 GiB apart, relocations overflow, and LLVM aborts the process."""
    return llvm().create_lljit_compiler(use_jit_link=True, suppress_errors=True)


def _link(
    built: _Object, source: LazyModule, target: Target, libraries: Sequence[Library], *, from_cache: bool
) -> NativeCode:
    own = {name: address for library in libraries for name, address in library.addresses.items()}
    called = {name: own.get(name) or find(name) for name in built.calls}
    missing = tuple(name for name, address in called.items() if address is None)
    if missing:
        raise MissingSymbolError(missing)
    with LOCK:
        binding = llvm()
        builder = binding.JITLibraryBuilder().add_object_img(built.image)
        if os.name == "posix":
            builder.add_current_process()  # LLVM puts calls of memcpy and of fmod where it likes
        for name, address in called.items():
            builder.import_symbol(name, address)
        for name in built.defines:
            builder.export_symbol(name)
        try:
            tracker = builder.link(_linker(), f"rekindle{next(_numbers)}")
        except RuntimeError as error:
            raise CodegenError(f"an object cannot be linked: {str(error).strip()}") from None
        code = NativeCode(source, target, tracker, {name: tracker[name] for name in built.defines}, from_cache)
        code.kept += libraries
        return code
