"""Reductions: vectors of partial results, which are reduced to one element at the end if vectors extend along a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.memory import load_one, spread, store_one
from rekindle.codegen.emission.vector_types import element_type, literal, splat, suffix, vector
from rekindle.codegen.loop_ir.nodes import Reduction
from rekindle.codegen.loop_ir.scalar_types import BF16, F16, F32, I64, ScalarType

_INFINITE: Final = float("inf")
SLOT: Final = 8
"""Size in bytes of a result that is passed between phases of a kernel."""


def identity_element(kind: str, scalar: ScalarType) -> str:
    """Return the identity element of a reduction."""
    if kind in ("any", "all"):
        return "true" if kind == "all" else "false"
    if kind in ("sum", "product"):
        return literal(0.0 if kind == "sum" else 1.0, scalar) if scalar.is_float else str(int(kind == "product"))
    is_largest = kind in ("maximum", "argmaximum")
    if scalar.is_float:
        return literal(-_INFINITE if is_largest else _INFINITE, scalar)
    low = -(1 << (scalar.bits - 1)) if scalar.is_signed else 0
    high = (1 << (scalar.bits - scalar.is_signed)) - 1
    return str(low if is_largest else high)


Values = tuple[str, ...]
"""Accumulators of a reduction: a vector of values, and one of indices if the reduction returns the position of an
extremum."""


@dataclass(slots=True)
class ReductionWriter:
    """Emitter of one reduction. ``variable`` returns the address of a new variable of a type."""

    f: FunctionBuilder
    reduction: Reduction
    lanes: int
    variable: Callable[[str], str]
    accumulators: int
    """Number of vectors that are reduced independently, to hide the latency."""
    places: list[Values] = field(init=False)

    def __post_init__(self) -> None:
        assert self.scalar not in (BF16, F16)
        self.places = [tuple(map(self.variable, self._types(self.lanes))) for _ in range(self.accumulators)]

    @property
    def scalar(self) -> ScalarType:
        return self.reduction.value.scalar

    @property
    def slots(self) -> int:
        return len(self.scalars)

    @property
    def _has_index(self) -> bool:
        return self.reduction.kind in ("argmaximum", "argminimum")

    @property
    def scalars(self) -> tuple[ScalarType, ...]:
        """The accumulator types: of the value, and of its index if that is needed."""
        return (self.scalar, I64) if self._has_index else (self.scalar,)

    def _types(self, lanes: int) -> list[str]:
        return [vector(element_type(scalar), lanes) for scalar in self.scalars]

    def _neutrals(self) -> list[str]:
        value = splat(element_type(self.scalar), identity_element(self.reduction.kind, self.scalar), self.lanes)
        return [value, splat("i64", "0", self.lanes)][: self.slots]

    # ------------------------------------------------------------------------------------------------------ in a loop

    def begin(self) -> None:
        for places in self.places:
            for type, neutral, place in zip(self._types(self.lanes), self._neutrals(), places, strict=True):
                self.f.emit(f"store {type} {neutral}, ptr {place}")

    def take(self, value: str, index: str, mask: str | None, way: int) -> None:
        """Emit the reduction of a vector into the accumulator ``way``. ``index`` has the indices of its elements; with
        a ``mask``, only the lanes that are set count."""
        given = (value, index)[: self.slots]
        known = self._loaded(self.places[way])
        found = self.combine(known, given, self.lanes)
        if mask is not None:
            truth = vector("i1", self.lanes)
            found = tuple(
                self.f.emit_value(f"select {truth} {mask}, {type} {new}, {type} {old}")
                for type, new, old in zip(self._types(self.lanes), found, known, strict=True)
            )
        self._kept(found, self.places[way])

    def _loaded(self, places: Values) -> Values:
        return tuple(
            self.f.emit_value(f"load {type}, ptr {place}")
            for type, place in zip(self._types(self.lanes), places, strict=True)
        )

    def _kept(self, values: Values, places: Values) -> None:
        for type, value, place in zip(self._types(self.lanes), values, places, strict=True):
            self.f.emit(f"store {type} {value}, ptr {place}")

    # ----------------------------------------------------------------------------------------------------- what it gave

    def lane_results(self, ways: Iterable[int]) -> str:
        """Emit the reduction of the accumulators ``ways`` to one, lane by lane."""
        return self._together(ways)[-1]

    def _together(self, ways: Iterable[int]) -> Values:
        """Emit the reduction of several accumulators to one. Their number is a power of two."""
        values = [self._loaded(self.places[way]) for way in ways]
        while len(values) > 1:
            values = [self.combine(a, b, self.lanes) for a, b in zip(values[::2], values[1::2], strict=True)]
        return values[0]

    def end(self) -> Values:
        """Emit the reduction of all accumulators and lanes to single elements."""
        found, lanes = self._together(range(len(self.places))), self.lanes
        while lanes > 1:  # halves are folded until one is left
            half = lanes // 2
            found = self.combine(self._half(found, lanes, 0), self._half(found, lanes, half), half)
            lanes = half
        return found

    def _half(self, values: Values, lanes: int, first: int) -> Values:
        f, half, found = self.f, lanes // 2, []
        places = ", ".join(f"i32 {lane}" for lane in range(first, first + half))
        for type, scalar, value in zip(self._types(lanes), self.scalars, values, strict=True):
            part = f.emit_value(f"shufflevector {type} {value}, {type} poison, <{half} x i32> <{places}>")
            if half == 1:
                part = f.emit_value(f"extractelement <1 x {element_type(scalar)}> {part}, i64 0")
            found.append(part)
        return tuple(found)

    def result(self) -> str:
        """Emit the result of the reduction in all lanes."""
        return spread(self.f, self.end()[-1], element_type(self.scalars[-1]), self.lanes)

    # -------------------------------------------------------------------------------------------- between functions

    def store(self, slots: str, first: int) -> None:
        """Emit the reduction to single elements, and their stores to memory, from slot ``first`` of ``slots`` on."""
        for number, (scalar, value) in enumerate(zip(self.scalars, self.end(), strict=True), first):
            store_one(self.f, scalar, value, self._slot(slots, number))

    def store_value(self, value: str, slots: str, slot: int) -> None:
        """Emit the store of a value of the type of the result, to slot ``slot`` of ``slots``."""
        store_one(self.f, self.scalar, value, self._slot(slots, slot))

    def load(self, slots: str, first: int) -> str:
        """Emit the load of a stored result; return it in all lanes."""
        number, scalar = first + self.slots - 1, self.scalars[-1]
        value = load_one(self.f, scalar, self._slot(slots, number))
        return spread(self.f, value, element_type(scalar), self.lanes)

    def take_stored(self, slots: str, first: int) -> None:
        """Emit the reduction of stored partial results into the accumulators, which are single elements."""
        given = tuple(
            load_one(self.f, scalar, self._slot(slots, number)) for number, scalar in enumerate(self.scalars, first)
        )
        self._kept(self.combine(self._loaded(self.places[0]), given, 1), self.places[0])

    def _slot(self, slots: str, number: int) -> str:
        return self.f.emit_value(f"getelementptr i8, ptr {slots}, i64 {number * SLOT}")

    # ---------------------------------------------------------------------------------------------------- two into one

    def combine(self, a: Values, b: Values, lanes: int) -> Values:
        """Emit the reduction of two vectors to one, lane by lane."""
        if not self._has_index:
            return (self._two(a[0], b[0], lanes),)
        f, truth = self.f, vector("i1", lanes)
        whole, place = vector(element_type(self.scalar), lanes), vector("i64", lanes)
        is_new = self._is_beyond(b[0], a[0], lanes)
        same = f.emit_value(f"{'fcmp ueq' if self.scalar.is_float else 'icmp eq'} {whole} {a[0]}, {b[0]}")
        if self.scalar.is_float:  # a NaN is beyond all numbers, and equal to another
            nan_a, nan_b = (f.emit_value(f"fcmp uno {whole} {each[0]}, {each[0]}") for each in (a, b))
            differ = f.emit_value(f"xor {truth} {nan_a}, {nan_b}")
            is_new = f.emit_value(f"select {truth} {differ}, {truth} {nan_b}, {truth} {is_new}")
            alike = f.emit_value(f"xor {truth} {differ}, {splat('i1', 'true', lanes)}")
            same = f.emit_value(f"and {truth} {same}, {alike}")
        earlier = f.emit_value(f"and {truth} {same}, {f.emit_value(f'icmp slt {place} {b[1]}, {a[1]}')}")
        chosen = f.emit_value(f"or {truth} {is_new}, {earlier}")
        return (
            f.emit_value(f"select {truth} {chosen}, {whole} {b[0]}, {whole} {a[0]}"),
            f.emit_value(f"select {truth} {chosen}, {place} {b[1]}, {place} {a[1]}"),
        )

    def _is_beyond(self, a: str, b: str, lanes: int) -> str:
        """Emit a comparison: whether ``a`` is larger than ``b`` for a maximum, or smaller for a minimum; false with a
        NaN."""
        larger = self.reduction.kind in ("maximum", "argmaximum")
        type = vector(element_type(self.scalar), lanes)
        if self.scalar.is_float:
            return self.f.emit_value(f"fcmp {'ogt' if larger else 'olt'} {type} {a}, {b}")
        order = ("s" if self.scalar.is_signed else "u") + ("gt" if larger else "lt")
        return self.f.emit_value(f"icmp {order} {type} {a}, {b}")

    def _two(self, a: str, b: str, lanes: int) -> str:
        f, type, truth = self.f, vector(element_type(self.scalar), lanes), vector("i1", lanes)
        kind = self.reduction.kind
        if kind in ("any", "all"):
            return f.emit_value(f"{'or' if kind == 'any' else 'and'} {type} {a}, {b}")
        if kind in ("sum", "product"):
            instruction = "add" if kind == "sum" else "mul"
            return f.emit_value(f"{'f' if self.scalar.is_float else ''}{instruction} {type} {a}, {b}")
        if self.scalar is F32 and f.module.is_for_gpu:
            return f.call(type, f"llvm.{kind}.{suffix('float', lanes)}", (type, a), (type, b))
        beyond = self._is_beyond(a, b, lanes)
        if self.scalar.is_float:
            # A NaN on either side wins: b where it is one, or a is not beyond it; then a where that is one.
            beyond = f.emit_value(f"or {truth} {beyond}, {f.emit_value(f'fcmp uno {type} {a}, {a}')}")
        return f.emit_value(f"select {truth} {beyond}, {type} {a}, {type} {b}")
