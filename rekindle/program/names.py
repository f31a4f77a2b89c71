"""The qualified names of compiled objects: ``__torch__.package.module.Class``, made unique where two have the same."""

from __future__ import annotations

import itertools
from typing import Any

from rekindle.ir.mangling import demangled

_counter = itertools.count()
_taken: set[str] = set()
"""Names that were given out. Mangled names are not stored: their numbers make them unique."""


def qualified_name(obj: Any) -> str:
    """Return the name of a Python function or class in compiled programs; for objects without a ``__name__``, that of
    their class. Names in ``__main__`` are directly below ``__torch__``."""
    name = getattr(obj, "__name__", None) or type(obj).__name__
    if name == "<lambda>":
        name = "_lambda"
    module = getattr(obj, "__module__", None)
    if module is None or module == "__main__":
        return f"__torch__.{name}"
    return f"__torch__.{module.replace('<', '_').replace('>', '_')}.{name}"


def unique_name(name: str) -> str:
    """Return ``name`` if it is unused, else the same name with ``___torch_mangle_N`` before its last component. The
    result is reserved. Such a component of ``name`` itself is removed first."""
    name = demangled(name)
    if name not in _taken:
        _taken.add(name)
        return name
    prefix, _, last = name.rpartition(".")
    return f"{prefix}{'.' if prefix else ''}___torch_mangle_{next(_counter)}.{last}"
