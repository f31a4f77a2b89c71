"""Python values that are constants of programs: numbers, strings, None, enum members, and tuples and lists of these."""

from __future__ import annotations

import enum
from typing import Any, Final

import torch

from rekindle.errors import SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.scalar_types import NUMBERED_CLASSES
from rekindle.ir.types import DTYPE, LAYOUT, MEMORY_FORMAT, QSCHEME_NUMBER, ListType, TupleType, Type, unify_all
from rekindle.program.sources.outside_lists import FROM_OUTSIDE
from rekindle.scripting.annotations import enum_type, is_named_tuple, named_tuple_type

SIMPLE_CONSTANTS: Final = (
    *(bool, int, float, complex, str, type(None)),
    torch.device,
    *NUMBERED_CLASSES,
)
"""Classes of Python values that are constants of the IR as they are."""

_CLASSES: Final[dict[type, Type]] = {
    torch.dtype: DTYPE,
    torch.layout: LAYOUT,
    torch.memory_format: MEMORY_FORMAT,
    torch.qscheme: QSCHEME_NUMBER,
}
"""IR types of the Python objects that programs represent as ints, by class."""


def constant_value(obj: Any, range: SourceRange, graph: Graph) -> Value | None:
    """Insert a constant into ``graph`` and return its value: a number, a string, None, an enum member, or a tuple or
    list of constants. Return None for other objects, and for a list, or a tuple with a list in it, that is empty or
    whose items have no common type."""
    if isinstance(obj, enum.Enum):
        return graph.insert_constant(obj, enum_type(type(obj), range), range)
    if isinstance(obj, SIMPLE_CONSTANTS):
        return graph.insert_constant(plain(obj), _CLASSES.get(type(obj)), range)
    if not isinstance(obj, (tuple, list)):
        return None
    if not is_constant(obj):
        return None
    values = [constant_value(item, range, graph) for item in obj]
    known = [value for value in values if value is not None]
    if len(known) != len(values):
        return None
    if isinstance(obj, (torch.Size, list)):
        element = unify_all(value.type for value in known)
        if element is None:
            return None
        python = "Size" if isinstance(obj, torch.Size) else ""
        made = construct("prim::ListConstruct", known, ListType(element, python), range, graph)
        if not python:
            made.node.attributes[FROM_OUTSIDE] = 1
        return made
    if is_named_tuple(type(obj)):
        return construct("prim::TupleConstruct", known, named_tuple_type(type(obj), range), range, graph)
    return construct("prim::TupleConstruct", known, TupleType(tuple(value.type for value in known)), range, graph)


def is_constant(obj: Any) -> bool:
    if isinstance(obj, (tuple, list)):
        return all(map(is_constant, obj))
    return isinstance(obj, (*SIMPLE_CONSTANTS, enum.Enum))


def plain(obj: Any) -> Any:
    """Return ``obj`` converted to the builtin class from which it derives: an ``IntFlag`` to an int, a numpy float to a
    float, a str enum member to its value. Return other objects as they are."""
    if isinstance(obj, bool):
        return obj
    if isinstance(obj, enum.Enum) and isinstance(obj, str):
        return str(obj.value)  # its own text is "Mode.SUM"
    classes: tuple[type[Any], ...] = (int, float, complex, str)
    return next((cls(obj) for cls in classes if isinstance(obj, cls)), obj)


def construct(kind: str, values: list[Value], type: Type, range: SourceRange, graph: Graph) -> Value:
    return graph.insert_node(graph.create(kind, values, types=[type], range=range)).output
