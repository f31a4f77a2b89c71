"""Attributes of nodes by ``torch.jit``'s accessors, one pair for each kind of attribute: ``node.i("value")``,
``node.i_("value", 1)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import torch

from rekindle.errors import GraphError
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import AttributeValue, Graph, Node
from rekindle.ir.types import Type

_KINDS: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (int, "i"),
    (float, "f"),
    (complex, "c"),
    (str, "s"),
    (torch.Tensor, "t"),
    (Graph, "g"),
    (Type, "ty"),
    (ConstantObject, "ival"),
)
"""The name of the accessor by the class of an attribute. The accessor of a list has an ``s`` appended."""

_NAMES: Final = {
    "i": "an int",
    "f": "a float",
    "c": "a complex",
    "s": "a string",
    "t": "a tensor",
    "g": "a graph",
    "ty": "a type",
    "ival": "an object",
    "is": "a list of ints",
    "fs": "a list of floats",
    "cs": "a list of complex numbers",
    "ss": "a list of strings",
    "ts": "a list of tensors",
    "gs": "a list of graphs",
    "tys": "a list of types",
}


def accessor_of(value: AttributeValue) -> str:
    """Return the name of the accessor for an attribute's value, such as ``i`` or ``ss``, as ``node.kindOf(name)`` does.
    An empty list has the accessor ``is``."""
    if isinstance(value, list):
        return f"{accessor_of(value[0])}s" if value else "is"
    return next(accessor for kind, accessor in _KINDS if isinstance(value, kind))


class _OfNode(Protocol):
    """A view of a node."""

    @property
    def ir(self) -> Node: ...


def _getter(accessor: str) -> Callable[[_OfNode, str], Any]:
    def get(self: _OfNode, name: str) -> Any:
        value = attribute_of(self.ir, name)
        found = accessor_of(value)
        if found != accessor and not (isinstance(value, list) and not value):
            raise GraphError(f"attribute '{name}' of {self.ir.kind} is {_NAMES[found]}, not {_NAMES[accessor]}")
        if isinstance(value, ConstantObject):
            return value.value
        return list(value) if isinstance(value, list) else value

    get.__name__ = accessor
    return get


def _setter(accessor: str) -> Callable[[_OfNode, str, Any], Any]:
    def set(self: _OfNode, name: str, value: Any) -> Any:
        if accessor == "ival":
            self.ir.set_attribute(name, ConstantObject(value))
        else:
            given = list(value) if isinstance(value, (list, tuple)) else value
            held = int(given) if isinstance(given, bool) else given
            if accessor == "f" and isinstance(held, int):
                held = float(held)
            if accessor_of(held) != accessor and not (isinstance(held, list) and not held):
                raise GraphError(f"'{accessor}_' takes {_NAMES[accessor]}, not a {type(value).__name__}")
            self.ir.set_attribute(name, held)
        return self

    set.__name__ = f"{accessor}_"
    return set


def attribute_of(node: Node, name: str) -> AttributeValue:
    """Return the value of the attribute ``name`` of a node.

    Raises:
        GraphError: the node does not have it.
    """
    if name not in node.attributes:
        raise GraphError(f"{node.kind} has no attribute '{name}'")
    return node.attributes[name]


class AttributeAccess:
    """The accessors of simple attributes. Those of graphs and types, which return views, are the node view's own.

    ``is`` is a keyword of Python: ``getattr(node, "is")("sizes")``, or ``node._is("sizes")``.
    """

    __slots__ = ()

    i, i_ = _getter("i"), _setter("i")
    f, f_ = _getter("f"), _setter("f")
    c, c_ = _getter("c"), _setter("c")
    s, s_ = _getter("s"), _setter("s")
    t, t_ = _getter("t"), _setter("t")
    z, z_ = t, t_
    ival, ival_ = _getter("ival"), _setter("ival")
    _is, is_ = _getter("is"), _setter("is")
    fs, fs_ = _getter("fs"), _setter("fs")
    ss, ss_ = _getter("ss"), _setter("ss")
    ts, ts_ = _getter("ts"), _setter("ts")
    zs, zs_ = ts, ts_


setattr(AttributeAccess, "is", AttributeAccess._is)
