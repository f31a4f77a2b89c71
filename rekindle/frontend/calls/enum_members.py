"""Members of enums that are numbers or strings too: ``IntEnum``, ``class Mode(str, Enum)``.

To the operators such a member is a value of another type. Where Python uses it as the number or the string that it is,
the program reads its value::

    mode == 1                   becomes      mode.value == 1
    sizes[Axis.ROWS]            becomes      sizes[Axis.ROWS.value]
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rekindle.errors import SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import FLOAT, INT, STRING, EnumType, Type

_CLASSES: Final[dict[Type, type]] = {INT: int, FLOAT: float, STRING: str}


_OF_ENUMS: Final = frozenset(
    f"__{name}__"
    for name in ("new", "init", "doc", "repr", "str", "format", "reduce_ex", "dir", "getattribute", "hash")
)
"""Special methods that enums may define: no operator stands for them."""


def plain_type(type: Type) -> Type | None:
    """Return the type of the number or string that the members of an enum are, too; None for other types, and for an
    enum that defines operators."""
    if not isinstance(type, EnumType) or type.python_class is None:
        return None
    cls = _CLASSES.get(type.value_type)
    return type.value_type if cls is not None and _inherits_operators(type.python_class, cls) else None


@lru_cache(maxsize=256)
def _inherits_operators(enum: type, cls: type) -> bool:
    """Return whether ``enum`` is derived from ``cls``, and has all of its operators."""
    names = [name for name in dir(cls) if name.startswith("__") and name not in _OF_ENUMS]
    return issubclass(enum, cls) and all(defined(enum, name) is defined(cls, name) for name in names)


def defined(cls: type, method: str) -> object:
    """Return the definition of a special method in a class or one of its bases; None if there is none. Methods of the
    metaclass, which an enum has many of, are not found."""
    return next((vars(base)[method] for base in cls.__mro__ if method in vars(base)), None)


def plain_value(graph: Graph, value: Value, range: SourceRange) -> Value:
    """Return the number or string that a member of an enum is, too, and emit its read; other values are returned
    unchanged."""
    type = plain_type(value.type)
    if type is None or not graph.follows_python:
        return value
    return graph.insert_node(graph.create("prim::EnumValue", [value], types=[type], range=range)).output
