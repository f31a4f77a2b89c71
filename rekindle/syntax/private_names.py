"""Name mangling: within a class ``C``, the private name ``__name`` means ``_C__name``."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any, Final

_PRIVATE: Final = re.compile(r"\b__\w*(?<!__)\b")

_FIELDS: Final[dict[type[ast.AST], str]] = {
    ast.Attribute: "attr",
    ast.Name: "id",
    ast.arg: "arg",
    ast.keyword: "arg",
    ast.FunctionDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
    ast.Global: "names",
    ast.Nonlocal: "names",
}
"""The field with a name, or a list of names, that are mangled, by the class of the node."""


def mangle_private_names(node: ast.AST, text: str, obj: Any) -> None:
    """Rename the private names in ``node``, the definition of a method or class ``obj``, in place: ``__x`` to
    ``_Class__x``, as Python does. ``text`` is its source."""
    owner = _owner(inspect.unwrap(obj)) if _PRIVATE.search(text) else ""
    if not owner:
        return

    def mangled(name: str) -> str:
        return f"_{owner}{name}" if _PRIVATE.fullmatch(name) else name

    for each in ast.walk(node):
        field = _FIELDS.get(type(each))
        if field is None:
            continue
        names = getattr(each, field)
        if isinstance(names, str):
            setattr(each, field, mangled(names))
        elif names is not None:
            setattr(each, field, list(map(mangled, names)))


def _owner(obj: Any) -> str:
    """Return the name of the class whose private names a definition uses, without leading underscores; empty if there
    is none, and for a function within a method."""
    if isinstance(obj, type):
        return obj.__name__.lstrip("_")
    owners = str(getattr(obj, "__qualname__", "")).split(".")[:-1]
    return owners[-1].lstrip("_") if owners and owners[-1] != "<locals>" else ""
