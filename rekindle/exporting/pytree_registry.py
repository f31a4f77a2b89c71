"""Registration of NamedTuple classes with pytree, so that files of exported programs can name them."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from rekindle.ir.attributes import map_items


def register_named_tuple(cls: Any) -> None:
    """Register a NamedTuple class with pytree under a name that exported files can contain, if it has none."""
    if cls in pytree.SUPPORTED_SERIALIZED_TYPES and _has_name(cls):
        return
    pytree._register_namedtuple(cls, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}")


def _has_name(cls: Any) -> bool:
    found = pytree.SUPPORTED_SERIALIZED_TYPES[cls].serialized_type_name
    return found != pytree.NO_SERIALIZED_TYPE_NAME_FOUND


def register_pytrees(value: Any) -> None:
    """Call :func:`register_named_tuple` for the class of every NamedTuple in an argument, also in lists, tuples and
    dicts."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        register_named_tuple(type(value))
    if isinstance(value, (list, tuple)):
        for item in value:
            register_pytrees(item)
    elif isinstance(value, dict):
        for item in value.values():
            register_pytrees(item)


def copied(value: Any) -> Any:
    """Return a copy of the lists, dicts and tuples of an argument, with the same leaves."""
    return map_items(copied, value)


def is_same(value: Any, known: Any) -> bool:
    """Return whether ``value`` has the structure and the leaves of ``known``: tensors by identity, others also by
    equality."""
    if isinstance(value, (list, tuple)):
        return len(value) == len(known) and all(map(is_same, value, known))
    if isinstance(value, dict):
        return list(value) == list(known) and all(is_same(value[key], known[key]) for key in value)
    return value is known or (not isinstance(value, torch.Tensor) and type(value) is type(known) and value == known)
