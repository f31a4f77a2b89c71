"""Python's classes of the sequences in results: tuples of data-dependent length, and ``torch.Size``.

To a library they are lists. The manifest records where a result has them, as nested lists of JSON::

    Tuple[int, ...]                        ["tuple", null]
    List[torch.Size]                       ["list", ["Size", null]]
    Tuple[Tensor, Dict[str, torch.Size]]   ["items", [null, ["dict", ["Size", null]]]]
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from rekindle.ir.types import DictType, ListType, TupleType, Type, without_none

Classes: TypeAlias = "list[Any] | None"
"""Classes of the sequences in a value; None if they are those that the library returns."""


def classes_of(type: Type) -> Classes:
    """Return the classes of the sequences in values of ``type``; None for a Union too, whose member is not known."""
    type = without_none(type)
    if isinstance(type, ListType):
        inner = classes_of(type.element)
        name = type.python if type.is_tuple else "list"
        return None if name == "list" and inner is None else [name, inner]
    if isinstance(type, DictType):
        inner = classes_of(type.value)
        return None if inner is None else ["dict", inner]
    if isinstance(type, TupleType):
        parts = [classes_of(element) for element in type.elements]
        return None if all(part is None for part in parts) else ["items", parts]
    return None


def with_classes(value: Any, classes: Classes) -> Any:
    """Return a result of a library with its sequences in Python's classes."""
    if classes is None or value is None:
        return value
    name, inner = classes
    if name == "items":
        return tuple(with_classes(item, part) for item, part in zip(value, inner, strict=True))
    if name == "dict":
        return {key: with_classes(item, inner) for key, item in value.items()}
    items = [with_classes(item, inner) for item in value]
    return items if name == "list" else tuple(items) if name == "tuple" else torch.Size(items)
