"""Lazy sequence: items are made when they are first read.

A call matches the first overloads of most kinds, so that the remaining ones need not be made::

    overloads = LazySequence.mapped(make, names)
    next(each for each in overloads if fits(each))        # makes no item after the first that fits
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar, overload

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class LazySequence(Sequence[T_co], Generic[T_co]):
    """A sequence of known length. ``makers`` has one function for each item, which is called at most once."""

    __slots__ = ("_made", "_makers")

    def __init__(self, makers: Iterable[Callable[[], T_co]]) -> None:
        self._makers: list[Callable[[], T_co]] = list(makers)
        self._made: dict[int, T_co] = {}

    @classmethod
    def chained(cls, parts: Iterable[Sequence[T_co]]) -> LazySequence[T_co]:
        """Return the items of all ``parts`` in order, none of which is read before the item is."""
        return cls(partial(part.__getitem__, index) for part in parts for index in range(len(part)))

    @classmethod
    def mapped(cls, function: Callable[[T], T_co], items: Sequence[T]) -> LazySequence[T_co]:
        """Return the results of ``function`` for the ``items``, each computed, and its item read, when it is read."""
        return cls(partial(_result, function, items, index) for index in range(len(items)))

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, index: int) -> T_co: ...

    @overload
    def __getitem__(self, index: slice) -> list[T_co]: ...

    def __getitem__(self, index: int | slice) -> T_co | list[T_co]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self._makers)))]
        made = self._made
        if index < 0:
            index = range(len(self._makers))[index]  # or it raises IndexError
        if index not in made:
            made[index] = self._makers[index]()
        return made[index]

    def __iter__(self) -> Iterator[T_co]:
        return map(self.__getitem__, range(len(self._makers)))


def _result(function: Callable[[T], T_co], items: Sequence[T], index: int) -> T_co:
    return function(items[index])
