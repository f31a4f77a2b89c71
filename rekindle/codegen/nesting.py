"""The loops that write outputs, with what they compute."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.layout import Ints, Layout
from rekindle.codegen.loops.builder import ARGUMENT_TYPES, Builder, Unsupported
from rekindle.codegen.loops.form import Access, Expression, Nest, Phase, Reduction, Step, Store
from rekindle.codegen.loops.scalars import Scalar
from rekindle.codegen.operators.views import IndexMap, broadcast, compose
from rekindle.codegen.phases import arrange
from rekindle.codegen.values import Computed, Folded, Input, Number, Tensor, ViewOf, scalar_of

LONG: Final = 1 << 16
"""Rows with more elements are summed up in wider types."""


@dataclass(slots=True)
class _Walk:
    """An access before loops are joined."""

    buffer: int
    scalar: Scalar
    offset: int
    strides: list[int]
    """In bytes."""


def nest_of(outputs: Sequence[Tensor], indices: Sequence[int], inputs: int, lengths: Ints | None) -> NestBuilder:
    """The builder of the nest that writes the ``outputs`` of these indices, which are laid out alike; the buffers of
    outputs are counted from ``inputs`` on. Where something is folded, ``lengths`` are those of its rows.

    Raises:
        Unsupported: there is none.
    """
    layout = outputs[indices[0]].layout
    if lengths is None:
        return NestBuilder(layout, inputs).written(outputs, indices)
    if layout.sizes[len(layout.sizes) - len(lengths) :] != lengths:
        return NestBuilder(layout, inputs, lengths, is_folded=True).written(outputs, indices)
    try:
        return NestBuilder(layout, inputs, lengths).written(outputs, indices)
    except Unsupported as error:  # then an element of it may stand for a row
        with suppress(Unsupported):
            return NestBuilder(layout, inputs, lengths, is_folded=True).written(outputs, indices)
        raise error from None


@dataclass(slots=True)
class NestBuilder:
    """Makes the loops that write outputs of one layout: rows of them where there are ``lengths``, or one element for
    each row where ``is_folded``. The loops along rows are the innermost."""

    layout: Layout
    inputs: int
    lengths: Ints | None = None
    is_folded: bool = False
    loops: int = 0
    inner: int = 0
    """How many of the loops go along a row."""
    sizes: list[int] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    b: Builder = field(default_factory=Builder)
    walks: list[_Walk] = field(default_factory=list)
    numbers: dict[tuple[int, int, Ints], int] = field(default_factory=dict)
    """Of the accesses, by buffer, offset and strides."""
    made: dict[tuple[Tensor, IndexMap], Expression] = field(default_factory=dict)

    def written(self, outputs: Sequence[Tensor], indices: Sequence[int]) -> NestBuilder:
        """Write the ``outputs`` of these indices."""
        places = self._places()
        for index in indices:
            layout = outputs[index].layout
            value = self.b.cast(self.element(outputs[index], places), scalar_of(layout.dtype))
            self.stores.append(Store(self.access(self.inputs + index, layout, places), value))
        return self

    def _places(self) -> IndexMap:
        """Choose the loops; tells where they stand in the outputs."""
        sizes, strides = self.layout.sizes, self.layout.strides
        rows = self.lengths or ()
        outer = len(sizes) if self.is_folded else len(sizes) - len(rows)
        order = sorted((dim for dim in range(outer) if sizes[dim] > 1), key=lambda dim: (-strides[dim], dim))
        self.sizes = [sizes[dim] for dim in order] + list(rows)
        order += [-1] * len(rows) if self.is_folded else range(outer, len(sizes))
        self.loops, self.inner = len(order), len(rows)
        return tuple((0, tuple(int(loop == dim) for loop in order)) for dim in range(len(sizes)))

    def access(self, buffer: int, layout: Layout, places: IndexMap) -> int:
        """The number of the access to a tensor at ``places``."""
        scalar = scalar_of(layout.dtype)
        offset = sum(start * stride for (start, _), stride in zip(places, layout.strides, strict=True))
        strides = [
            sum(steps[loop] * stride for (_, steps), stride in zip(places, layout.strides, strict=True)) * scalar.size
            for loop in range(self.loops)
        ]
        key = (buffer, offset, tuple(strides))
        if key not in self.numbers:
            self.numbers[key] = len(self.walks)
            self.walks.append(_Walk(buffer, scalar, offset * scalar.size, strides))
        return self.numbers[key]

    # ------------------------------------------------------------------------------------------------------- elements

    def element(self, value: Tensor, places: IndexMap) -> Expression:
        """The element of ``value`` at ``places``, of its own dtype."""
        key = (value, places)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = self._make(value, places)
        return found

    def _make(self, value: Tensor, places: IndexMap) -> Expression:
        if isinstance(value, ViewOf):
            return self.element(value.base, compose(value.places, places, self.loops))
        if isinstance(value, Input):
            return self.b.load(self.access(value.number, value.layout, places), scalar_of(value.layout.dtype))
        if isinstance(value, Folded):
            return self._fold(value, places)
        arguments = [
            self._argument(value, argument, places, index in value.conditions)
            for index, argument in enumerate(value.arguments)
        ]
        return self.b.cast(value.rule.build(self.b, *arguments), scalar_of(value.layout.dtype))

    def _argument(
        self, user: Computed | Folded, argument: object, places: IndexMap, is_condition: bool = False
    ) -> object:
        if isinstance(argument, Number):
            if argument.type is float and not user.scalar.is_float:
                raise Unsupported("a float among integers")
            if argument.value is not None:
                return self.b.constant(argument.value, user.scalar)
            assert argument.number is not None
            return self.b.cast(self.b.argument(argument.number, ARGUMENT_TYPES[argument.type]), user.scalar)
        if not isinstance(argument, Tensor):
            return argument
        own = argument.layout.sizes
        sizes = user.sizes if isinstance(user, Folded) else user.layout.sizes
        if own != sizes:
            places = compose(broadcast(own, sizes), places, self.loops)
        element = self.element(argument, places)
        return element if is_condition else self.b.cast(element, user.scalar)

    def _fold(self, value: Folded, places: IndexMap) -> Expression:
        """An element of the result of an operator on rows: the row has to be the one that the innermost loops walk."""
        if value.lengths != self.lengths:
            raise Unsupported("rows of different lengths")
        rank, first = len(value.sizes), self.loops - self.inner
        along = tuple(
            (0, tuple(int(loop == first + number) for loop in range(self.loops))) for number in range(self.inner)
        )
        if value.rule.is_folded:
            outer = places[: rank - self.inner]  # with keepdim, dimensions of one element follow
        else:
            outer = places[: rank - self.inner]
            if places[rank - self.inner :] != along:
                raise Unsupported("rows of different directions")
        if any(any(steps[first:]) for _, steps in outer):
            raise Unsupported("rows of different directions")
        whole = (*outer, *along)
        arguments = [self._argument(value, argument, whole) for argument in value.arguments]
        return self.b.cast(value.rule.build(self.b, self, *arguments), scalar_of(value.layout.dtype))

    @property
    def is_long(self) -> bool:
        return math.prod(self.lengths or ()) > LONG

    def reduce(self, kind: str, value: Expression) -> Expression:
        """What comes out where ``value`` is folded along the innermost loop."""
        for known in self.reductions:
            if known.kind == kind and known.value is value:
                return known.result
        result = self.b.reduced(len(self.reductions), value.scalar)
        self.reductions.append(Reduction(kind, value, result))
        return result

    # ----------------------------------------------------------------------------------------------------------- loops

    def nest(self) -> tuple[Nest, list[int]]:
        """The nest with as few loops as can be, and its parameters."""
        self._join()
        accesses = tuple(_access(walk) for walk in self.walks)
        if self.lengths is None:
            phases: tuple[Phase, ...] = (Phase(tuple(self.stores)),)
            last: tuple[Store, ...] = ()
        else:
            if self.inner != 1 or any(accesses[store.access].step is Step.STRIDE for store in self.stores):
                raise Unsupported("rows with gaps between their elements")
            phases, last = arrange(self.b, accesses, self.reductions, self.stores)
        parameters = [*self.sizes, *(number for walk in self.walks for number in (walk.offset, *walk.strides))]
        return Nest(len(self.sizes), accesses, phases, last), parameters

    def _join(self) -> None:
        """Make one loop of two where all accesses go on from the end of the inner one to the next step of the outer."""
        sizes = self.sizes
        for at in range(len(sizes) - 2, -1, -1):
            first = len(sizes) - self.inner
            if self.inner and at == first - 1:
                continue  # a row stays a row
            if sizes[at + 1] == 1:
                gone = at + 1
            elif sizes[at] == 1 or all(walk.strides[at] == walk.strides[at + 1] * sizes[at + 1] for walk in self.walks):
                gone = at
            else:
                continue
            sizes[at] *= sizes.pop(at + 1)
            for walk in self.walks:
                del walk.strides[gone]
            self.inner -= at >= first
        if not sizes:
            sizes.append(1)
            for walk in self.walks:
                walk.strides.append(walk.scalar.size if walk.buffer >= self.inputs else 0)
        elif self.inner and sizes[-1] == 1:
            for walk in self.walks:
                walk.strides[-1] = walk.strides[-1] and walk.scalar.size


def _access(walk: _Walk) -> Access:
    inner = walk.strides[-1]
    step = Step.STAYS if inner == 0 else Step.NEXT if inner == walk.scalar.size else Step.STRIDE
    return Access(walk.buffer, walk.scalar, step, not any(walk.strides))
