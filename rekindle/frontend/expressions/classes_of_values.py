"""Python classes of values by their types: whether a value is an instance of a class that is not a type of programs,
such as ``dict`` without the types of its items or ``collections.abc.Sequence``."""

from __future__ import annotations

import builtins
import collections
from typing import Final

import torch

from rekindle.ir.types import ANY, AwaitType, DictType, FutureType, ListType, Type

LATER: Final[dict[str, type[AwaitType] | type[FutureType]]] = {
    "Await": AwaitType,
    "_Await": AwaitType,
    "Future": FutureType,
}
"""Classes of asynchronous results, of any type, by their names in PyTorch and here."""

_CLASSES: Final[dict[str, type]] = {
    "TupleType": tuple,
    "StringType": str,
    "NoneType": type(None),
    "BoolType": bool,
    "IntType": int,
    "FloatType": float,
    "ComplexType": complex,
    "TensorType": torch.Tensor,
}
_CONTAINERS: Final[dict[str, type]] = {
    "tuple": tuple,
    "Size": torch.Size,
    "deque": collections.deque,
    "set": set,
    "frozenset": frozenset,
    "OrderedDict": collections.OrderedDict,
    "defaultdict": collections.defaultdict,
    "Counter": collections.Counter,
}
"""Python classes that list and dict types represent, by the name that such a type has for its class."""


def python_class_of(type: Type) -> builtins.type | None:
    """Return the Python class of the values of ``type``; None if the type does not determine it."""
    if isinstance(type, (ListType, DictType)):
        plain = list if isinstance(type, ListType) else dict
        return _CONTAINERS[type.python.partition(":")[0]] if type.python else plain
    return _CLASSES.get(type.kind)


def is_instance_of(part: Type, cls: builtins.type) -> bool | None:
    """Return whether values of type ``part`` are instances of ``cls``; None if the type does not determine it."""
    later = LATER.get(cls.__name__)
    if later is not None:
        return None if part == ANY else isinstance(part, later)
    own = python_class_of(part)
    return None if own is None else issubclass(own, cls)
