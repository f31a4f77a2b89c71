"""The classes of arguments and results that files of exported programs have to name."""

from __future__ import annotations

from typing import Any

from torch.utils import _pytree as pytree


def know_named_tuple(cls: Any) -> None:
    """Have files name a class of NamedTuples, unless they can do so already."""
    if cls in pytree.SUPPORTED_SERIALIZED_TYPES and _has_name(cls):
        return
    pytree._register_namedtuple(cls, serialized_type_name=f"{cls.__module__}.{cls.__qualname__}")


def _has_name(cls: Any) -> bool:
    found = pytree.SUPPORTED_SERIALIZED_TYPES[cls].serialized_type_name
    return found != pytree.NO_SERIALIZED_TYPE_NAME_FOUND


def know_structures(value: Any) -> None:
    """:func:`know_named_tuple` for every NamedTuple in an argument."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        know_named_tuple(type(value))
    if isinstance(value, (list, tuple)):
        for item in value:
            know_structures(item)
    elif isinstance(value, dict):
        for item in value.values():
            know_structures(item)
