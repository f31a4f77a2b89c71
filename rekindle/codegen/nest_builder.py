"""Loop nest builder: the loops that write outputs, with the expressions that they store."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rekindle.codegen.layout import Ints, Layout, are_equal
from rekindle.codegen.loop_ir.builder import ARGUMENT_TYPES, CPU_ARITHMETIC, Arithmetic, Builder, Unsupported
from rekindle.codegen.loop_ir.nodes import Access, AccessStride, Expression, LoopNest, Phase, Reduction, Store
from rekindle.codegen.loop_ir.scalar_types import I64, ScalarType
from rekindle.codegen.operators.views import AffineExpr, AffineMap, broadcast, compose, grouping
from rekindle.codegen.phase_scheduling import schedule_phases
from rekindle.codegen.value_descriptors import (
    Concat,
    FlattenedRows,
    Gather,
    Input,
    Matmul,
    MergedGroups,
    Pointwise,
    RowOpResult,
    ScalarValue,
    Tensor,
    ViewValue,
    producers_of,
    row_ops_of,
    scalar_of,
)

LONG: Final = 1 << 16
"""Rows with more elements are summed in a wider type, if vectors extend along the row."""
LONG_COLUMN: Final = 1 << 10
"""Rows with more elements are summed in a wider type, if elements are added one after the other."""
SHORT: Final = 8
"""Maximum number of elements of a row for which vectors extend across rows, whatever the memory layout."""
MANY: Final = 16
"""Minimum number of adjacent rows for that."""


@dataclass(slots=True)
class _StridedAccess:
    """An access of a nest before loops are merged."""

    buffer: int
    scalar: ScalarType
    offset: int
    strides: list[int]
    """In bytes."""


class NeedsMaterialization(Unsupported):
    """Raised if ``value`` cannot be computed in the loops of its user: it must be materialized before."""

    def __init__(self, value: Tensor) -> None:
        super().__init__("rows of different directions")
        self.value = value


@dataclass(frozen=True, slots=True)
class StoreTarget:
    """A value, and its destination: the number of a buffer, and the layout in it from element ``offset`` on."""

    buffer: int
    value: Tensor
    layout: Layout
    offset: int = 0

    @property
    def is_concat(self) -> bool:
        return isinstance(self.value, Concat)

    def parts(self) -> list[StoreTarget]:
        """Return the targets to be written separately: the parts of a concatenation, or this one itself."""
        if not isinstance(self.value, Concat):
            return [self]
        sizes, strides, dtype = self.layout.sizes, self.layout.strides, self.layout.dtype
        found, dim = [], self.value.dim
        for start, part in self.value.starts():
            own = (*sizes[:dim], part.layout.sizes[dim], *sizes[dim + 1 :])
            found += StoreTarget(
                self.buffer, part, Layout(own, strides, dtype), self.offset + start * strides[dim]
            ).parts()
        return found


def shared_nests(targets: Sequence[StoreTarget]) -> list[list[tuple[StoreTarget, StoreTarget]]]:
    """Group the parts of ``targets`` into nests. Return for each nest its pairs of a target and a part of the target.

    Targets of one layout share a nest if they have equal reductions. So do parts of concatenations, and other targets
    of the same sizes, if some value is computed for both, and their strides are the same or their rows long. A product
    is alone.
    """
    nests: list[_SharedNest] = []
    for target in targets:
        for part in target.parts():
            own = _SharedNest(target, part)
            for nest in nests:
                if nest.may_contain(own):
                    nest.add(own)
                    break
            else:
                nests.append(own)
    return [nest.members for nest in nests]


def split_groups(targets: Sequence[StoreTarget], materialized: Container[Tensor]) -> list[StoreTarget]:
    """Return ``targets``, which have the same sizes and share a nest, with the groups of channels as a dimension of
    their own, if the rows of the nest are those of groups. Then groups are loops, whose rows can be reduced.

    All targets are split, and alike, because one nest writes them. Groups of another number are materialized.
    """
    sizes = targets[0].layout.sizes
    for target in targets:
        for each in producers_of(target.value, materialized):
            if isinstance(each, MergedGroups) and each.layout.rank == len(sizes) and each.layout.sizes[1] == sizes[1]:
                return [_split(split, each.channels) for split in targets]
            if isinstance(each, RowOpResult):
                return list(targets)
    return list(targets)


def _split(target: StoreTarget, inner: int) -> StoreTarget:
    """Return ``target`` with its channels as two dimensions: groups, and the ``inner`` channels of a group."""
    sizes, strides = target.layout.sizes, target.layout.strides
    layout = Layout(
        (sizes[0], sizes[1] // inner, inner, *sizes[2:]),
        (strides[0], strides[1] * inner, strides[1], *strides[2:]),
        target.layout.dtype,
    )
    value = ViewValue(
        Layout(layout.sizes, layout.strides, target.value.layout.dtype), target.value, grouping(len(sizes), inner)
    )
    return StoreTarget(target.buffer, value, layout, target.offset)


class _SharedNest:
    """A nest for several targets, or parts of them. It is created with one."""

    def __init__(self, target: StoreTarget, part: StoreTarget) -> None:
        producers = set(producers_of(part.value, ()))
        self.members = [(target, part)]
        self.layout = part.layout
        self.is_whole = not target.is_concat
        self.is_product = isinstance(part.value, Matmul)
        self.computed = {each for each in producers if isinstance(each, Pointwise | RowOpResult)}
        self.rows = {(each.sizes, each.dims) for each in producers if isinstance(each, RowOpResult)}

    def may_contain(self, other: _SharedNest) -> bool:
        """Return whether the loops of this nest may write the one member of ``other`` as well."""
        if self.is_product or other.is_product or self.rows != other.rows:
            return False
        mine, theirs = self.layout, other.layout
        if mine.sizes != theirs.sizes:
            return False
        if self.is_whole and other.is_whole and mine.strides == theirs.strides:
            return True
        return bool(self.computed & other.computed) and (
            mine.strides == theirs.strides or _have_long_rows(mine, theirs)
        )

    def add(self, other: _SharedNest) -> None:
        """Add the member of ``other``."""
        self.members += other.members
        self.is_whole = self.is_whole and other.is_whole
        self.computed |= other.computed


def _have_long_rows(*layouts: Layout) -> bool:
    """Return whether the adjacent elements of all ``layouts``, which have the same sizes, are those along their last
    dimension, and there are many: then loops over all of memory are not much faster."""
    return all(layout.rank and layout.strides[-1] == 1 and layout.sizes[-1] >= MANY for layout in layouts)


def nest_of(
    targets: Sequence[StoreTarget], materialized: Mapping[Tensor, Input], arithmetic: Arithmetic = CPU_ARITHMETIC
) -> NestBuilder:
    """Return the builder of the nest that writes ``targets``, which have the same sizes. Values that are
    ``materialized`` are loaded from memory.

    Raises:
        NeedsMaterialization: a value has to be materialized first.
        Unsupported: the values cannot be computed in loops.
    """
    layout = targets[0].layout
    folds = [fold for target in targets for fold in row_ops_of(target.value, materialized)]
    if not folds:
        return NestBuilder(layout, materialized, arithmetic=arithmetic).written(targets)
    main = folds[0]
    rows = ReductionRows(main, all(not fold.rule.is_ordered for fold in folds))
    if main.rule.is_folded and math.prod(layout.sizes) <= main.rows:
        return _with_rows(NestBuilder(layout, materialized, rows, arithmetic=arithmetic), targets)
    for dims in dict.fromkeys([main.dims, tuple(range(layout.rank - len(main.dims), layout.rank))]):
        if dims[0] >= 0 and dims[-1] < layout.rank and tuple(layout.sizes[dim] for dim in dims) == main.lengths:
            try:
                return _with_rows(NestBuilder(layout, materialized, rows, dims, arithmetic=arithmetic), targets)
            except NeedsMaterialization as error:
                if error.value is not main:
                    raise
    raise NeedsMaterialization(main)


def _with_rows(builder: NestBuilder, targets: Sequence[StoreTarget]) -> NestBuilder:
    """Return the builder of ``targets``, with vectors along rows or across them, depending on the memory layout."""
    written = builder.written(targets)
    if not written.prefers_outer_vectorization():
        return written
    return replace(builder, across=True).written(targets)


class ReductionRows:
    """The rows that the nests of a kernel reduce: those of the operator ``main``. Their loops are in memory order, if
    the order is free."""

    def __init__(self, main: RowOpResult, may_be_ordered: bool) -> None:
        self.main = main
        self.lengths = main.lengths
        order = list(range(len(main.dims)))
        if may_be_ordered:
            strides = main.arguments[0].layout.strides
            order.sort(key=lambda row: -strides[main.dims[row]])
        self.order: Sequence[int] = order
        """For each loop, the dimension of the row that it iterates over."""


@dataclass(slots=True)
class NestBuilder:
    """Builds the loop nest that writes values of one layout. With ``rows``, the loops along the dimensions ``dims`` of
    a row are the innermost; without ``dims``, each row has one element."""

    layout: Layout
    materialized: Mapping[Tensor, Input]
    rows: ReductionRows | None = None
    dims: Ints = ()
    across: bool = False
    arithmetic: Arithmetic = CPU_ARITHMETIC
    loops: int = field(init=False, default=0)
    inner: int = field(init=False, default=0)
    """Number of loops along a row."""
    outputs: int = field(init=False, default=0)
    """The first buffer that is written."""
    sizes: list[int] = field(init=False, default_factory=list)
    stores: list[Store] = field(init=False, default_factory=list)
    reductions: list[Reduction] = field(init=False, default_factory=list)
    b: Builder = field(init=False)
    scans: bool = field(init=False, default=False)
    """Whether elements depend on those before them."""
    walks: list[_StridedAccess] = field(init=False, default_factory=list)
    numbers: dict[tuple[int, int, Ints], int] = field(init=False, default_factory=dict)
    """The numbers of the accesses, by buffer, offset and strides."""
    given: list[int] = field(init=False, default_factory=list)
    """Additional parameters of the nest."""
    made: dict[tuple[Tensor, AffineMap], Expression] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.b = Builder(self.arithmetic)

    def written(self, targets: Sequence[StoreTarget]) -> NestBuilder:
        """Build the stores of ``targets``; return this builder."""
        places = self._places()
        self.outputs = min(target.buffer for target in targets)
        for target in targets:
            value = self.b.cast(self.element(target.value, places), scalar_of(target.layout.dtype))
            self.stores.append(Store(self.access(target.buffer, target.layout, places, target.offset), value))
        return self

    def _places(self) -> AffineMap:
        """Choose the loops; return the affine map from loop indices to positions in the output."""
        sizes, strides = self.layout.sizes, self.layout.strides
        long_dims = (dim for dim in range(len(sizes)) if sizes[dim] > 1 and dim not in self.dims)
        order = sorted(long_dims, key=lambda dim: (-strides[dim], dim))
        self.sizes = [sizes[dim] for dim in order]
        if self.rows is not None:
            self.sizes += [self.rows.lengths[row] for row in self.rows.order]
            order += [self.dims[row] if self.dims else -1 for row in self.rows.order]
            self.inner = len(self.rows.order)
        self.loops = len(order)
        return tuple((0, tuple(int(loop == dim) for loop in order)) for dim in range(len(sizes)))

    def access(self, buffer: int, layout: Layout, places: AffineMap, offset: int = 0) -> int:
        """Return the number of the access to a buffer: to the tensor of this layout, at the positions that the affine
        map ``places`` gives, from element ``offset`` on."""
        scalar = scalar_of(layout.dtype)
        offset += sum(start * stride for (start, _), stride in zip(places, layout.strides, strict=True))
        strides = [
            sum(steps[loop] * stride for (_, steps), stride in zip(places, layout.strides, strict=True)) * scalar.size
            for loop in range(self.loops)
        ]
        key = (buffer, offset, tuple(strides))
        if key not in self.numbers:
            self.numbers[key] = len(self.walks)
            self.walks.append(_StridedAccess(buffer, scalar, offset * scalar.size, strides))
        return self.numbers[key]

    # ------------------------------------------------------------------------------------------------------- elements

    def element(self, value: Tensor, places: AffineMap) -> Expression:
        """Return the expression of the element of ``value`` at ``places``, in its own dtype."""
        key = (value, places)
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = self._make(value, places)
        return found

    def _make(self, value: Tensor, places: AffineMap) -> Expression:
        if value in self.materialized:
            value = self.materialized[value]
        if isinstance(value, ViewValue):
            return self.element(value.base, compose(value.places, places, self.loops))
        if isinstance(value, Input):
            return self.b.load(self.access(value.number, value.layout, places), scalar_of(value.layout.dtype))
        if isinstance(value, RowOpResult):
            return self._fold(value, places)
        if isinstance(value, Concat):
            return self._part(value, places)
        if isinstance(value, MergedGroups):
            return self._of_group(value, places)
        if isinstance(value, Gather):
            return self._look_up(value, places)
        if isinstance(value, Matmul | FlattenedRows):
            raise NeedsMaterialization(value)
        arguments = [
            self._argument(value, argument, places, index in value.conditions)
            for index, argument in enumerate(value.arguments)
        ]
        return self.b.cast(value.rule.build(self.b, *arguments), scalar_of(value.layout.dtype))

    def _part(self, value: Concat, places: AffineMap) -> Expression:
        """Return the expression of an element of a concatenation. All loops must stay within one part.

        Raises:
            NeedsMaterialization: a loop covers several parts.
        """
        first, steps = places[value.dim]
        last = first + sum(step * (size - 1) for step, size in zip(steps, self.sizes, strict=True) if step)
        for start, part in value.starts():
            if first >= start and last < start + part.layout.sizes[value.dim]:
                moved = (*places[: value.dim], (first - start, steps), *places[value.dim + 1 :])
                return self.b.cast(self.element(part, moved), scalar_of(value.layout.dtype))
        raise NeedsMaterialization(value)

    def _of_group(self, value: MergedGroups, places: AffineMap) -> Expression:
        """Return the expression of an element of merged groups of channels. Each loop must run over either groups or
        the channels of a group.

        Raises:
            NeedsMaterialization: a loop covers both.
        """
        offset, steps = places[1]
        inner = value.channels
        groups = tuple(step // inner if step >= inner else 0 for step in steps)
        channels = tuple(0 if step >= inner else step for step in steps)
        last = sum(step * (size - 1) for step, size in zip(channels, self.sizes, strict=True) if step)
        if offset or last >= inner or any(of * inner != step for of, step in zip(groups, steps, strict=True) if of):
            raise NeedsMaterialization(value)
        return self.element(value.base, (places[0], (0, groups), (0, channels), *places[2:]))

    def _look_up(self, value: Gather, places: AffineMap) -> Expression:
        """Return the expression of a gather from a base that is in memory.

        Raises:
            NeedsMaterialization: the base is computed in the kernel, and not in memory.
        """
        dim, rank = value.dim, len(value.layout.sizes)
        of_index = places if value.is_aligned else places[dim : dim + value.index.layout.rank]
        behind = dim + 1 if value.is_aligned else dim + value.index.layout.rank
        still: AffineExpr = (0, (0,) * self.loops)
        moved = (*places[:dim], still, *places[behind:rank])
        base, step = value.base, value.base.layout.strides[dim]
        while isinstance(base, ViewValue) and base not in self.materialized:
            moved = compose(base.places, moved, self.loops)
            base = base.base
        base = self.materialized.get(base, base)
        if not isinstance(base, Input):
            raise NeedsMaterialization(base)
        b, scalar = self.b, scalar_of(base.layout.dtype)
        size, bytes = self._given(value.base.layout.sizes[dim]), self._given(step * scalar.size)
        index = b.cast(self.element(value.index, of_index), I64)
        if value.wraps:
            index = b.select(b.compare("lt", index, b.like(0, index)), b.add(index, size), index)
        return b.make("lookup", scalar, index, size, bytes, datum=self.access(base.number, base.layout, moved))

    def _given(self, number: int) -> Expression:
        """Return an additional parameter of the nest as an expression."""
        self.given.append(number)
        return self.b.make("given", I64, datum=len(self.given) - 1)

    def _argument(
        self, user: Pointwise | RowOpResult, argument: object, places: AffineMap, is_condition: bool = False
    ) -> object:
        if isinstance(argument, ScalarValue):
            if argument.type is float and not user.scalar.is_float:
                raise Unsupported("a float among integers")
            if argument.value is not None:
                number = self.b.constant(argument.value, user.scalar)
            else:
                assert argument.number is not None
                number = self.b.cast(self.b.argument(argument.number, ARGUMENT_TYPES[argument.type]), user.scalar)
            if argument.rounded is not None:
                number = self.b.cast(self.b.cast(number, argument.rounded), user.scalar)
            return number
        if not isinstance(argument, Tensor):
            return argument
        own = argument.layout.sizes
        sizes = user.sizes if isinstance(user, RowOpResult) else user.layout.sizes
        if not are_equal(own, sizes):
            places = compose(broadcast(own, sizes), places, self.loops)
        element = self.element(argument, places)
        return element if is_condition else self.b.cast(element, user.scalar)

    def _fold(self, value: RowOpResult, places: AffineMap) -> Expression:
        """Return the expression of an element of the result of an operator on rows. The row must be the one along the
        innermost loops.

        Raises:
            NeedsMaterialization: the row is another one.
        """
        if self.rows is None or value.lengths != self.rows.lengths:
            raise NeedsMaterialization(value)
        first = self.loops - self.inner
        along: list[AffineExpr] = [
            (0, tuple(int(loop == first + self.rows.order.index(row)) for loop in range(self.loops)))
            for row in range(self.inner)
        ]
        has_rows = len(value.layout.sizes) == len(value.sizes)
        outer = [place for dim, place in enumerate(places) if not (has_rows and dim in value.dims)]
        if not value.rule.is_folded and [places[dim] for dim in value.dims] != along:
            raise NeedsMaterialization(value)
        if any(any(steps[first:]) for _, steps in outer):
            raise NeedsMaterialization(value)
        of_outer, of_rows = iter(outer), iter(along)
        whole = tuple(next(of_rows) if dim in value.dims else next(of_outer) for dim in range(len(value.sizes)))
        arguments = [self._argument(value, argument, whole) for argument in value.arguments]
        return self.b.cast(value.rule.build(self.b, self, *arguments), scalar_of(value.layout.dtype))

    @property
    def is_long(self) -> bool:
        assert self.rows is not None
        return math.prod(self.rows.lengths) > (LONG_COLUMN if self.across else LONG)

    def reduce(self, kind: str, value: Expression) -> Expression:
        """Return the expression of the reduction of ``value`` along the rows."""
        for known in self.reductions:
            if known.kind == kind and known.value is value:
                return known.result
        scalar = I64 if kind in ("argmaximum", "argminimum") else value.scalar
        result = self.b.reduced(len(self.reductions), scalar)
        self.reductions.append(Reduction(kind, value, result))
        return result

    # ----------------------------------------------------------------------------------------------------------- loops

    def scan(self, kind: str, value: Expression) -> Expression:
        """Return the expression of the scan of ``value`` along the rows."""
        self.scans = True
        return self.b.make(f"scan_{kind}", value.scalar, value)

    def prefers_outer_vectorization(self) -> bool:
        """Return whether vectors should extend across rows: if adjacent elements in memory belong to different rows, or
        rows are short."""
        lane = self.loops - self.inner - 1
        if lane < 0 or self.sizes[lane] == 1:
            return False
        if not self.dims and math.prod(self.sizes[lane + 1 :]) <= SHORT and self.sizes[lane] >= MANY:
            return True
        last = max((loop for loop in range(lane + 1, self.loops) if self.sizes[loop] > 1), default=lane)

        def gaps(loop: int) -> int:
            return sum(walk.strides[loop] not in (0, walk.scalar.size) for walk in self.walks)

        return gaps(last) > gaps(lane)

    def nest(self) -> tuple[LoopNest, list[int]]:
        """Merge the loops of this builder, and return the nest with as few loops as possible, and its parameters."""
        self._join()
        rank = len(self.sizes)
        lane = rank - self.inner - 1 if self.across else rank - 1
        accesses = tuple(_access(walk, lane, range(rank - max(self.inner, 1), rank)) for walk in self.walks)
        phases: tuple[Phase, ...] = (Phase(tuple(self.stores)),)
        last: tuple[Store, ...] = ()
        if self.inner:
            phases, last = schedule_phases(self.b, accesses, self.reductions, self.stores)
        parameters = [*self.sizes, *(number for walk in self.walks for number in (walk.offset, *walk.strides))]
        nest = LoopNest(rank, accesses, phases, last, self.inner, self.across, self.scans, len(self.given))
        return nest, [*parameters, *self.given]

    def _join(self) -> None:
        """Merge adjacent loops if the inner one of every access ends where the next step of the outer one begins, or if
        one of them has a single iteration."""
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
                walk.strides.append(walk.scalar.size if walk.buffer >= self.outputs else 0)
        elif self.inner and sizes[-1] == 1:
            for walk in self.walks:
                walk.strides[-1] = walk.strides[-1] and walk.scalar.size


def _access(walk: _StridedAccess, lane: int, inner: range) -> Access:
    step = walk.strides[lane]
    kind = AccessStride.STAYS if step == 0 else AccessStride.NEXT if step == walk.scalar.size else AccessStride.STRIDE
    stays = not any(walk.strides[loop] for loop in inner)
    return Access(walk.buffer, walk.scalar, kind, not any(walk.strides), stays)
