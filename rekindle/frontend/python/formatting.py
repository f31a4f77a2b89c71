"""Emit ``str`` of values whose Python class differs from their type in the IR: tuples of variable length,
``torch.Size``, dtypes, layouts."""

from __future__ import annotations

from rekindle.errors import SourceRange
from rekindle.frontend.containers import set_values
from rekindle.frontend.containers.set_values import is_shown_otherwise
from rekindle.frontend.python.library import library_function
from rekindle.frontend.sugared_values.base import CallSite
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue, unpack_tuple
from rekindle.ir.types import IntType, ListType, OptionalType, Type


def text_of(graph: Graph, value: Value, range: SourceRange) -> Value:
    """Emit ``str`` of a value whose string in Python differs from that in the IR, and return it. The elements of a
    tuple are formatted one by one."""
    function = _function_of(value.type)
    if function is not None:
        given = graph.insert("aten::list", [value], range=range) if isinstance(value.type, ListType) else value
        return library_function(function).call(_call(range, graph, given)).as_value(range, graph)
    items = unpack_tuple(graph, value, range)
    template = "({},)" if len(items) == 1 else f"({', '.join(['{}'] * len(items))})"
    parts = [
        text_of(graph, item, range)
        if is_shown_otherwise(item.type)
        else graph.insert("aten::format", ["{!r}", item], range=range)
        for item in items
    ]
    return graph.insert("aten::format", [template, *parts], range=range)


def _function_of(type: Type) -> str | None:
    if isinstance(type, OptionalType):
        return f"{_function_of(type.element)}_or_none"
    if isinstance(type, IntType):
        return f"text_of_{type.python_name.removeprefix('torch.')}"
    if isinstance(type, ListType):
        return "text_of_size" if type.python == "Size" else "text_of_tuple"
    return None


def _call(range: SourceRange, graph: Graph, *values: Value) -> CallSite:
    return CallSite(range, graph, [NamedValue(value, range=range) for value in values])


set_values.text_of = text_of
