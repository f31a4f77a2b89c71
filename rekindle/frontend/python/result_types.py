"""Python's types of operator results: tuples for lists, dtypes for ints, None for a list that changed."""

from __future__ import annotations

from typing import Final

from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import DTYPE, INT, LAYOUT, IntType, ListType, TensorType, TupleType

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
    """Return the result of an operator with a type that records its class in Python: a tuple instead of a list, a dtype
    or layout instead of an int."""
    if (kind not in _TUPLES and kind not in _CLASSES) or not made.node.graph.follows_python:
        return made
    if kind in _CLASSES and made.type == INT:
        made.set_type(_CLASSES[kind])
    elif isinstance(made.type, ListType) and (made.type.element == INT or isinstance(made.type.element, TensorType)):
        made.set_type(ListType(made.type.element, _TUPLES[kind]))
    return made


def gives_nothing(kind: str, made: Value, itself: NamedValue | None) -> bool:
    """Return whether Python returns None where the operator returns the changed list, or nothing."""
    if itself is None:
        return False
    if made.type == TupleType(()):
        return True
    return isinstance(made.type, ListType) and kind == "aten::append"
