"""Class keys: the contents of a module's class, and of objects that its methods read at compile time, as part of the
key by which modules share their type. Python may change these afterwards."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from types import FunctionType
from typing import Any, Final

import torch

from rekindle.scripting.constants import SIMPLE_CONSTANTS
from rekindle.scripting.modules.class_members import members_of, owners_of

_BY_IDENTITY: Final = (FunctionType, property, staticmethod, classmethod)
"""Classes of values that are equal to themselves alone."""

_keys: dict[type, object] = {}
"""The keys of classes, cached during a compilation: classes are assumed not to change until it ends."""


def class_key(cls: type) -> object:
    """Return a key that is equal as long as ``cls`` and its bases have the same members. The key keeps these members
    alive. It is cached until :func:`forget_classes` is called."""
    found = _keys.get(cls)
    if found is None:
        owners = [owner for owner in owners_of(cls) if owner is not object]
        found = _keys[cls] = tuple((owner, _held_by(owner)) for owner in owners)
    return found


def forget_classes() -> None:
    """Discard the keys that :func:`class_key` has cached."""
    _keys.clear()


def _held_by(owner: type) -> object:
    return tuple((name, _value_key(value)) for name, value in visible_members(owner))


def visible_members(owner: type) -> Iterator[tuple[str, object]]:
    """Yield the members in the body of one class that programs can depend on. Of ``nn.Module``, these are the members
    that PyTorch does not define: constants and methods that a program has put there."""
    for name, value in members_of(owner):
        if is_seen(name, value) and not (owner is torch.nn.Module and _is_pytorchs(name, value)):
            yield name, value


def _is_pytorchs(name: str, value: object) -> bool:
    """Return whether a member of ``nn.Module`` is PyTorch's own: a function from the file of ``nn.Module``, or another
    object with its module. A wrapper of a function may have the function's name and module. Names that begin with
    ``__`` count as PyTorch's, since tools patch them."""
    if name.startswith("__"):
        return True
    if isinstance(value, FunctionType):
        return value.__code__.co_filename == torch.nn.Module.__init__.__code__.co_filename
    return getattr(value, "__module__", None) == torch.nn.Module.__module__


def is_seen(name: str, value: object) -> bool:
    """Return whether programs can depend on a class member. They cannot depend on data that Python itself maintains,
    such as ``__doc__``."""
    is_pythons = name.startswith("__") and name.endswith("__") and not name.startswith("__jit_")
    return not is_pythons or isinstance(value, _BY_IDENTITY)


def _value_key(value: Any) -> object:
    if isinstance(value, _BY_IDENTITY):
        return value
    if isinstance(value, (enum.Enum, tuple, list, *SIMPLE_CONSTANTS)):
        return constant_key(value)
    if type(value) is dict:
        return _Same(value), tuple((_value_key(key), _value_key(item)) for key, item in value.items())
    if type(value) in (set, frozenset):
        return _Same(value), frozenset(map(_value_key, value))
    return _Same(value)


def constant_key(value: object) -> object:
    """Return a key that is equal for constants that are interchangeable in programs: ``1``, ``1.0`` and ``True``
    differ, and so do ``0.0`` and ``-0.0``."""
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(_value_key, value)))
    return (type(value), repr(value) if isinstance(value, (float, complex)) else value)


_MAX_DEPTH: Final = 3
"""Number of levels of objects that :func:`object_key` looks into; deeper ones are compared by identity."""


def object_key(obj: object, depth: int = 0) -> object:
    """Return a key that is equal as long as ``obj``, an object that programs read at compile time, is the same object
    with the same attributes and items, and its class has the same members."""
    if isinstance(obj, (enum.Enum, *SIMPLE_CONSTANTS)):
        return constant_key(obj)
    if depth > _MAX_DEPTH or isinstance(obj, (type, torch.Tensor, torch.nn.Module, *_BY_IDENTITY)):
        return _Same(obj)
    items: object = ()
    if isinstance(obj, Mapping):
        items = tuple((object_key(key, depth + 1), object_key(value, depth + 1)) for key, value in obj.items())
    elif isinstance(obj, (tuple, list)):
        items = tuple(object_key(item, depth + 1) for item in obj)
    elif isinstance(obj, (set, frozenset)):
        items = frozenset(object_key(item, depth + 1) for item in obj)
    state = getattr(obj, "__dict__", {})
    attributes = tuple((name, object_key(value, depth + 1)) for name, value in state.items())
    return _Same(obj), class_key(type(obj)), items, attributes


class _Same:
    """A key that is equal only for the same object."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
