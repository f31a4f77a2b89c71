"""Types of operator results as Python has them: tuples instead of lists, dtypes and layouts instead of ints. Also which
operators return None in Python, but a list here."""

from __future__ import annotations

from typing import Final

from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import DTYPE, INT, LAYOUT, TENSOR, IntType, ListType, TensorType, TupleType, optional

_TUPLES: Final[dict[str, str]] = {
    "aten::size": "Size",
    **{
        f"aten::{name}": "tuple"
        for name in ("stride", "chunk", "split", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit")
    },
    **{
        f"aten::{name}": "tuple"
        for name in ("unbind", "unsafe_chunk", "unsafe_split", "meshgrid", "nonzero", "nonzero_numpy", "where")
    },
    **{f"aten::{name}": "tuple" for name in ("broadcast_tensors", "atleast_1d", "atleast_2d", "atleast_3d")},
}
"""Operators whose lists are tuples in Python."""

_CLASSES: Final[dict[str, IntType]] = {
    **dict.fromkeys(("prim::dtype", "aten::promote_types", "aten::result_type", "aten::get_autocast_dtype"), DTYPE),
    "prim::layout": LAYOUT,
}
"""Operators whose ints are dtypes or layouts in Python."""


def as_python_has_it(kind: str, made: Value) -> Value:
    """Set the type of ``made``, a result of the operator ``kind``, to one that records its class in Python: a tuple
    instead of a list, a dtype or layout instead of an int. Return ``made``, and for a gradient its cast to an Optional.
    Programs that do not follow Python keep the type."""
    if kind == "prim::grad" and made.node.graph.follows_python:
        graph, range = made.node.graph, made.node.range
        return graph.insert_node(
            graph.create("prim::unchecked_cast", [made], types=[optional(TENSOR)], range=range)
        ).output
    if (kind not in _TUPLES and kind not in _CLASSES) or not made.node.graph.follows_python:
        return made
    if kind in _CLASSES and made.type == INT:
        made.set_type(_CLASSES[kind])
    elif isinstance(made.type, ListType) and (made.type.element == INT or isinstance(made.type.element, TensorType)):
        made.set_type(ListType(made.type.element, _TUPLES[kind]))
    return made


def gives_nothing(kind: str, made: Value, itself: NamedValue | None) -> bool:
    """Return whether the result of a method call is None in Python: of ``append``, whose operator returns the changed
    list, and of operators without results. ``itself`` is the receiver; None for a call of a function."""
    if itself is None:
        return False
    if made.type == TupleType(()):
        return True
    return isinstance(made.type, ListType) and kind == "aten::append"
