"""Deferred imports: a module that most processes do not use is imported when it is first used.

Kernels of GPUs, the emission of kernels that are not on disk yet, and the operators of frozen programs would be a
third of the modules of ``codegen`` that the first ``script`` imports. A package whose names are deferred lists them
under ``if TYPE_CHECKING`` too, so that tools see the imports. The order of the layers holds for deferred imports too.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from rekindle.errors.gc_pause import gc_paused


def imported(module: str) -> ModuleType:
    """Import ``module`` and return it. Garbage collection, which would take a sixth of the time of importing PyTorch,
    is paused."""
    with gc_paused(everything_stays=True):
        return importlib.import_module(module)


def deferred_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of the module ``package``: it imports a name when the name is first read, and stores
    its value in the package. ``homes`` maps each name to the module that defines it; for others ``__getattr__`` raises
    AttributeError."""

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        found = getattr(imported(homes[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return get


def deferred_function(module: str, name: str) -> Callable[..., Any]:
    """Return a function that calls the one called ``name`` in ``module``, which is imported by the first call."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        return getattr(imported(module), name)(*arguments, **keywords)

    return call
