"""Constants as attributes of nodes, and their types."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch

from rekindle.errors import GraphError
from rekindle.ir.constants import OpaqueConstant
from rekindle.ir.scalar_types import NUMBERED_CLASSES, number_of
from rekindle.ir.types.base import ANY, BOOL, COMPLEX, DEVICE, FLOAT, GENERATOR, INT, NONE, STRING, Type
from rekindle.ir.types.containers import DictType, ListType, TupleType
from rekindle.ir.types.tensor import TENSOR
from rekindle.ir.types.unify import unify_all


class ConstantObject:
    """A constant other than the simple kinds: a list, a tuple, a dict, an enum member, an object.

    Immutable by convention: the runtime returns copies of mutable constants.
    """

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantObject) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash(repr(self.value))


KEYWORDS: Final = "keywords"
"""Name of the attribute that lists the parameter names of a node's last inputs, which are passed by keyword. Only nodes
whose operator is unknown have it."""

ConstantAttribute: TypeAlias = int | float | complex | str | torch.Tensor | ConstantObject
"""The attribute ``value`` of a ``prim::Constant``. A bool is an int there: the type of the constant distinguishes
it."""


def infer_type(value: object) -> Type | None:
    """Return the type of a Python value; None if the value, or an item of it, has no type. The items of a list or dict
    are unified to one type: None if that is impossible. An empty list is a ``Tensor[]``, an empty dict a
    ``Dict(str, Tensor)``.
    """
    for python, type in _SIMPLE:
        if isinstance(value, python):
            return type
    if isinstance(value, NUMBERED_CLASSES):
        return INT
    if isinstance(value, tuple):
        elements = [infer_type(item) for item in value]
        found = [element for element in elements if element is not None]
        return TupleType(tuple(found)) if len(found) == len(elements) else None
    if isinstance(value, list):
        if not value:
            return ListType(TENSOR)
        element = _common(value)
        return None if element is None else ListType(element)
    if isinstance(value, dict):
        if not value:
            return DictType(STRING, TENSOR)
        key, item = _common(list(value)), _common(list(value.values()))
        return None if key is None or item is None else DictType(key, item)
    return None


_SIMPLE: tuple[tuple[type, Type], ...] = (
    (bool, BOOL),
    (int, INT),
    (float, FLOAT),
    (complex, COMPLEX),
    (str, STRING),
    (type(None), NONE),
    (torch.Tensor, TENSOR),
    (torch.device, DEVICE),
    (torch.Generator, GENERATOR),
)


def _common(values: list[object]) -> Type | None:
    types = [infer_type(value) for value in values]
    if any(type is None for type in types):
        return None
    return unify_all(type for type in types if type is not None)


def constant_attribute(value: object) -> tuple[ConstantAttribute | None, Type]:
    """Return the attribute ``value`` of a ``prim::Constant`` that represents a Python value, and its type. The
    attribute is None for None. The type is Any where :func:`infer_type` returns None: for a container without a common
    type, and for an enum member.

    Raises:
        GraphError: a constant cannot have the class of ``value``.
    """
    if value is None:
        return None, NONE
    if isinstance(value, NUMBERED_CLASSES):
        return number_of(value), INT
    if isinstance(value, bool):
        return int(value), BOOL
    if isinstance(value, (int, float, complex, str, torch.Tensor)) and not isinstance(value, enum.Enum):
        type = infer_type(value)
        assert type is not None
        return value, type
    if isinstance(value, torch.device):
        return str(value), DEVICE
    if isinstance(value, (list, tuple, dict, enum.Enum, torch.Generator)):
        return ConstantObject(value), infer_type(value) or ANY
    raise GraphError(f"a {type_name(value)} cannot be a constant of a program")


def type_name(value: object) -> str:
    return type(value).__qualname__


def map_items(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a list, a tuple or a dict like ``value`` with the results of ``function`` for its items (of a dict, for
    its values); any other value unchanged."""
    if isinstance(value, list):
        return [function(item) for item in value]
    if isinstance(value, tuple):
        items = [function(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return {key: function(item) for key, item in value.items()} if isinstance(value, dict) else value


def is_writable(value: object) -> bool:
    """Return whether a program can write to a constant: a list, a dict, or a tuple that holds one."""
    if isinstance(value, tuple):
        return any(map(is_writable, value))
    return isinstance(value, (list, dict))


def constant_value(attribute: object, type: Type) -> object:
    """Return the Python value of a ``prim::Constant`` with this attribute and type.

    Raises:
        GraphError: the graph was parsed from a text that omits the value.
    """
    if attribute is None:
        return None
    if isinstance(attribute, ConstantObject):
        _check_known(attribute.value)
        return attribute.value
    if type == BOOL:
        return bool(attribute)
    if type == DEVICE:
        assert isinstance(attribute, str)
        return torch.device(attribute)
    if type == FLOAT and isinstance(attribute, int):
        return float(attribute)
    return attribute


def _check_known(value: object) -> None:
    if isinstance(value, OpaqueConstant):
        raise GraphError(
            f"the value of the constant '{value.text}' is not known: the graph was read from text, which omits"
            " it; pass it to parse_graph as one of `tensors`"
        )
    if isinstance(value, (list, tuple)):
        for item in value:
            _check_known(item)
    elif isinstance(value, dict):
        _check_known(list(value.values()))
