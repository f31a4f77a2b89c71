"""Reading constants out of a graph, and comparing them."""

from __future__ import annotations

from collections.abc import Hashable

import torch

from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import AttributeValue, Graph, Node, Value
from rekindle.ir.types import FunctionType, Type


def is_constant(value: Value) -> bool:
    """Return whether ``value`` is a constant that has a Python value. A constant function has none."""
    return value.node.kind == "prim::Constant" and not isinstance(value.type, FunctionType)


def value_of(node: Node) -> object:
    """Return the Python value of a ``prim::Constant``; None for a constant function.

    Raises:
        GraphError: the graph was parsed from a text that omits the value.
    """
    return node.output.to_python()


def constant_bool(value: Value) -> bool | None:
    """Return the bool that ``value`` is a constant of, or None."""
    found = value_of(value.node) if is_constant(value) else None
    return found if isinstance(found, bool) else None


def constant_int(value: Value) -> int | None:
    """Return the int that ``value`` is a constant of, or None."""
    found = value_of(value.node) if is_constant(value) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def constant_ints(value: Value) -> list[int] | None:
    """Return the ints that ``value`` is a list of, if all are constants; else None."""
    if value.node.kind == "prim::ListConstruct":
        found = [constant_int(item) for item in value.node.inputs]
    else:
        held = value_of(value.node) if is_constant(value) else None
        if not isinstance(held, list):
            return None
        found = [item if isinstance(item, int) and not isinstance(item, bool) else None for item in held]
    known = [item for item in found if item is not None]
    return known if len(known) == len(found) else None


def constant_key(node: Node) -> Hashable:
    """Return a key that is equal for ``prim::Constant`` nodes of one type with indistinguishable values.

    A tensor is represented by its dtype, sizes and the like only: two with equal keys may have different elements.
    """
    attributes = tuple((name, attribute_key(value)) for name, value in sorted(node.attributes.items()))
    return node.output.type, attributes


def attribute_key(value: AttributeValue) -> Hashable:
    """Return a key that is equal for equal attributes. A tensor is represented by its dtype, sizes and the like
    only."""
    if isinstance(value, torch.Tensor):
        return value.dtype, value.device, value.layout, tuple(value.shape), value.requires_grad
    if isinstance(value, Graph):
        return id(value)
    if isinstance(value, ConstantObject):
        # By text, which distinguishes -0.0 from 0.0 and 1 from True; a value without a text equals itself only.
        return type(value.value), repr(value.value)
    if isinstance(value, list):
        return tuple(attribute_key(item) for item in value)
    if isinstance(value, Type):
        return value  # of two classes in torch.return_types the texts are the same
    return type(value), repr(value)
