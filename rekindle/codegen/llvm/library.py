"""LLVM itself, loaded when it is first needed: its library is large, and many programs never compile anything."""

from __future__ import annotations

import importlib
import threading
from functools import cache
from typing import Any

from rekindle.errors import InternalError, RekindleError
from rekindle.errors.fork_locks import held_while_forking


class CodegenError(InternalError):
    """LLVM rejects a module that this package generated."""


class MissingSymbolError(RekindleError):
    """Code calls functions that no loaded library has; ``names`` are their names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(f"no library that is loaded here has {', '.join(names)}")
        self.names = names


LOCK = held_while_forking(threading.RLock(), 4)
"""Held while LLVM's library works on anything."""


@cache
def _load() -> Any:
    llvm = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    return llvm


def llvm() -> Any:
    """Return the module ``llvmlite.binding``, ready for use."""
    with LOCK:
        return _load()


@cache
def versions() -> str:
    """Return the versions of LLVM and of its Python bindings."""
    of_llvm = ".".join(map(str, llvm().llvm_version_info))
    return f"LLVM {of_llvm}, llvmlite {importlib.import_module('llvmlite').__version__}"
