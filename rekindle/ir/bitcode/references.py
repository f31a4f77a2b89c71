"""References of encoded graphs to objects that they do not contain."""

from __future__ import annotations

import marshal
from collections.abc import Hashable, Mapping
from typing import Any, Final, TypeAlias

from rekindle.ir.types import base
from rekindle.ir.types.base import Type

Encoded: TypeAlias = Any
"""Values that ``marshal`` supports: None, numbers, strings, bytes, and tuples of these."""

PLAIN: Final = frozenset({type(None), bool, int, float, complex, str})
"""Classes of values that are encoded directly."""

MARSHAL_VERSION: Final = 2
"""The version of ``marshal``'s format in which equal values have equal bytes: later ones refer to equal objects."""

SIMPLE_TYPES: Final[Mapping[str, Type]] = {
    type.kind: type for type in vars(base).values() if isinstance(type, Type) and not isinstance(type, base.IntType)
}
"""The types without parts, of which there is one object each, by their kinds."""


class NotEncodable(Exception):
    """A graph contains something that can be neither encoded nor referred to; the message names it."""


class References:
    """A numbering of objects of this process, by which encoded graphs refer to them. Equal types have one number; other
    objects are distinguished by identity."""

    __slots__ = ("_numbers", "objects")

    def __init__(self) -> None:
        self.objects: list[object] = []
        self._numbers: dict[Hashable, int] = {}

    def add(self, item: object) -> int:
        """Return the number of ``item``, which gets one if it has none."""
        key = _key(item)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.objects)
            self.objects.append(item)
        return number

    def find(self, item: object) -> int | None:
        """Return the number of ``item``; None if it has none."""
        return self._numbers.get(_key(item))


def _key(item: object) -> Hashable:
    return item if isinstance(item, Type) else id(item)


def marshalled(encoded: Encoded) -> bytes:
    """Serialize an encoded value. Equal values have equal bytes, in every process.

    Raises:
        NotEncodable: the value nests too deeply for ``marshal``.
    """
    try:
        return marshal.dumps(encoded, MARSHAL_VERSION)
    except ValueError as error:
        raise NotEncodable(f"blocks that nest too deep: {error}") from None
