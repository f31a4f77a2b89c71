"""Reductions along a row: a vector of partial results, which are folded into one at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.emission.names import Function
from rekindle.codegen.emission.registers import element_type, literal, splat, vector
from rekindle.codegen.loops.form import Reduction
from rekindle.codegen.loops.scalars import BF16, Scalar

_INFINITE: Final = float("inf")


def _neutral(kind: str, scalar: Scalar) -> str:
    """What changes nothing."""
    if kind in ("any", "all"):
        return "true" if kind == "all" else "false"
    if kind == "sum":
        return literal(0.0, scalar) if scalar.is_float else "0"
    if scalar.is_float:
        return literal(-_INFINITE if kind == "maximum" else _INFINITE, scalar)
    low = -(1 << (scalar.bits - 1)) if scalar.is_signed else 0
    high = (1 << (scalar.bits - scalar.is_signed)) - 1
    return str(low if kind == "maximum" else high)


@dataclass(slots=True)
class Fold:
    """Writes one reduction; ``variable`` makes a place for a value of a type."""

    f: Function
    reduction: Reduction
    lanes: int
    variable: Callable[[str], str]
    ways: int
    """How many vectors are folded beside each other, so that none has to wait for the one before."""
    places: list[str] = field(init=False)

    def __post_init__(self) -> None:
        assert self.scalar is not BF16
        self.places = [self.variable(vector(self.type, self.lanes)) for _ in range(self.ways)]

    @property
    def scalar(self) -> Scalar:
        return self.reduction.value.scalar

    @property
    def type(self) -> str:
        """The type of one element."""
        return element_type(self.scalar)

    def _neutral(self) -> str:
        return splat(self.type, _neutral(self.reduction.kind, self.scalar), self.lanes)

    def begin(self) -> None:
        for place in self.places:
            self.f.do(f"store {vector(self.type, self.lanes)} {self._neutral()}, ptr {place}")

    def take(self, value: str, mask: str | None, way: int) -> None:
        """Fold a vector in; of one under a mask, the elements that it tells."""
        f, type = self.f, vector(self.type, self.lanes)
        if mask is not None:
            value = f.let(f"select {vector('i1', self.lanes)} {mask}, {type} {value}, {type} {self._neutral()}")
        known = f.let(f"load {type}, ptr {self.places[way]}")
        f.do(f"store {type} {self._both(known, value, self.lanes)}, ptr {self.places[way]}")

    def end(self) -> str:
        """The result, one element: halves are folded until one is left."""
        f, lanes = self.f, self.lanes
        whole = vector(self.type, lanes)
        values = [f.let(f"load {whole}, ptr {place}") for place in self.places]
        while len(values) > 1:
            values = [self._both(a, b, lanes) for a, b in zip(values[::2], values[1::2], strict=True)]
        value = values[0]
        while lanes > 1:
            type, half = vector(self.type, lanes), lanes // 2
            halves = []
            for first in (0, half):
                places = ", ".join(f"i32 {lane}" for lane in range(first, first + half))
                halves.append(f.let(f"shufflevector {type} {value}, {type} poison, <{half} x i32> <{places}>"))
            if half == 1:
                one = f"<1 x {self.type}>"
                halves = [f.let(f"extractelement {one} {each}, i64 0") for each in halves]
            value = self._both(halves[0], halves[1], half)
            lanes = half
        return value

    def _both(self, a: str, b: str, lanes: int) -> str:
        f, type, truth = self.f, vector(self.type, lanes), vector("i1", lanes)
        kind = self.reduction.kind
        if kind in ("any", "all"):
            return f.let(f"{'or' if kind == 'any' else 'and'} {type} {a}, {b}")
        if kind == "sum":
            return f.let(f"{'fadd' if self.scalar.is_float else 'add'} {type} {a}, {b}")
        larger = kind == "maximum"
        if not self.scalar.is_float:
            order = ("s" if self.scalar.is_signed else "u") + ("gt" if larger else "lt")
            return f.let(f"select {truth} {f.let(f'icmp {order} {type} {a}, {b}')}, {type} {a}, {type} {b}")
        # A NaN on either side wins: b where it is one, or a is not beyond it; then a where that is one.
        beyond = f.let(f"fcmp {'ogt' if larger else 'olt'} {type} {a}, {b}")
        is_nan = f.let(f"fcmp uno {type} {a}, {a}")
        return f.let(f"select {truth} {f.let(f'or {truth} {beyond}, {is_nan}')}, {type} {a}, {type} {b}")
