"""Types of operator results as Python has them: tuples instead of lists, dtypes and layouts instead of ints. Also which
operators return None in Python, but a list here."""

from __future__ import annotations

from typing import Final

from rekindle.errors import SourceRange
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
    instead of a list, a dtype or layout instead of an int. Return ``made``. Programs that do not follow Python keep the
    type."""
    if (kind not in _TUPLES and kind not in _CLASSES) or not made.node.graph.follows_python:
        return made
    if kind in _CLASSES and made.type == INT:
        made.set_type(_CLASSES[kind])
    elif isinstance(made.type, ListType) and (made.type.element == INT or isinstance(made.type.element, TensorType)):
        made.set_type(ListType(made.type.element, _TUPLES[kind]))
    return made


def with_none(value: Value, range: SourceRange) -> Value:
    """Return the gradient ``x.grad`` as an Optional, since there may be none; other values unchanged. The operator says
    that it is a Tensor, as which it can be used. It has to be an Optional where it is compared with None or becomes a
    variable."""
    graph = value.node.graph
    if value.node.kind != "prim::grad" or not graph.follows_python:
        return value
    cast = graph.create("prim::unchecked_cast", [value], types=[optional(TENSOR)], range=range)
    return graph.insert_node(cast).output


def gives_nothing(kind: str, made: Value, itself: NamedValue | None) -> bool:
    """Return whether the result of a method call is None in Python: of ``append``, whose operator returns the changed
    list, and of operators without results. ``itself`` is the receiver; None for a call of a function."""
    if itself is None:
        return False
    if made.type == TupleType(()):
        return True
    return isinstance(made.type, ListType) and kind == "aten::append"
