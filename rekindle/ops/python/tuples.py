"""Pack lists, tuples, dicts and objects, and unpack tuples and lists: primitives that only the compiler emits.

They take any number of inputs of any types, so their schemas declare nothing. The node determines what they do.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import AliasAnalysisKind, Operation
from rekindle.ir.types import TupleType
from rekindle.ops.python.values import new_named_tuple
from rekindle.ops.registration.declare import declare, implements, implements_for_node, int_attribute

# ------------------------------------------------------------------------------------------------------------ building


@implements("prim::ListConstruct(...) -> ...", effects=AliasAnalysisKind.SPECIAL)
def construct_list(*items: Any) -> list[Any]:
    """Return a list of the items: ``[…]``."""
    return list(items)


@implements("prim::DictConstruct(...) -> ...", effects=AliasAnalysisKind.SPECIAL)
def construct_dict(*items: Any) -> dict[Any, Any]:
    """Return a dict, ``{…}``. The items are alternately keys and values."""
    following = iter(items)
    return dict(zip(following, following, strict=True))


def _construct_plain_tuple(*items: Any) -> tuple[Any, ...]:
    return items


@implements_for_node("prim::TupleConstruct(...) -> ...", effects=AliasAnalysisKind.SPECIAL)
def construct_tuple(node: Node) -> Operation:
    """Return the operation that constructs a tuple, or the NamedTuple given by the type of the output."""
    type = node.output.type
    if isinstance(type, TupleType) and type.fields is not None:
        made: Operation = new_named_tuple(type)
        return made
    return _construct_plain_tuple


# -------------------------------------------------------------------------------------------------------- unpacking


def _single(items: Any) -> Any:
    """Return the only element: an operation with one output returns the value instead of a tuple."""
    (item,) = items
    return item


def _elements(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the elements as Python unpacks them: without a call of ``len``, which a subclass may refuse."""
    return items if type(items) is tuple else tuple(iter(items))


@implements_for_node("prim::TupleUnpack(Any tup) -> ...", effects=AliasAnalysisKind.SPECIAL)
def unpack_tuple(node: Node) -> Operation:
    """Return the operation that unpacks a tuple to one output for each element."""
    return _single if len(node.outputs) == 1 else _elements


@implements_for_node("prim::ListUnpack(...) -> ...", effects=AliasAnalysisKind.SPECIAL)
def unpack_list(node: Node) -> Operation:
    """Return the operation that unpacks a list to one output for each element. It raises Python's ValueError for a list
    of more or fewer elements than the node has outputs."""
    expected = len(node.outputs)

    def unpack(items: list[Any]) -> Any:
        check_count(items, expected)
        return items[0] if expected == 1 else tuple(items)

    return unpack


def check_count(items: Sequence[object], expected: int) -> None:
    """Raise Python's error if ``items`` are unpacked to another number of names.

    Raises:
        ValueError: there are more items or fewer than are ``expected``.
    """
    found = tuple.__len__(items) if isinstance(items, tuple) else len(items)
    if found < expected:
        raise ValueError(f"not enough values to unpack (expected {expected}, got {found})")
    if found > expected:
        raise ValueError(f"too many values to unpack (expected {expected})")


declare(operator.getitem, "prim::TupleIndex(Any tup, int i) -> Any", effects=AliasAnalysisKind.SPECIAL)


@implements_for_node("prim::TupleSlice(...) -> ...", effects=AliasAnalysisKind.SPECIAL)
def slice_tuple(node: Node) -> Operation:
    """Return the operation that slices a tuple from attribute ``beg`` to before ``end``, in steps of ``step`` if that
    is given."""
    part = slice(int_attribute(node, "beg"), int_attribute(node, "end"), int_attribute(node, "step", 1))

    def take(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(items[part])

    return take
