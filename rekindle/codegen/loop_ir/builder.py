"""Construction of expressions, with hash-consing and constant folding."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final

import torch

from rekindle.codegen.loop_ir.nodes import Datum, Expression
from rekindle.codegen.loop_ir.scalar_types import BF16, BOOL, F16, F32, F64, I64, ScalarType

_HALVES: Final = {F16: torch.float16, BF16: torch.bfloat16}


class Unsupported(Exception):
    """Raised if there is no kernel for a graph; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Cost model of a kind of machine, and where PyTorch's arithmetic there is special. ``accumulator`` is the type of
    float sums that must be accurate. ``divides_fast``: a division costs about as much as a product. ``keeps_rows``:
    writing a row to memory and reading it again costs less than recomputing functions of its elements.
    ``has_half_powers``: PyTorch computes roots of half floats as powers, so that those of -inf and -0.0 are inf and
    0.0."""

    accumulator: ScalarType
    divides_fast: bool
    keeps_rows: bool
    has_half_powers: bool


CPU_ARITHMETIC: Final = Arithmetic(F64, divides_fast=True, keeps_rows=True, has_half_powers=True)
GPU_ARITHMETIC: Final = Arithmetic(F32, divides_fast=False, keeps_rows=False, has_half_powers=False)


class Builder:
    """Builds the expressions of one loop nest. Equal expressions are one object."""

    def __init__(self, arithmetic: Arithmetic = CPU_ARITHMETIC) -> None:
        self.arithmetic = arithmetic
        self._made: dict[tuple[object, ...], Expression] = {}

    def accumulator(self, scalar: ScalarType) -> ScalarType:
        """Return the type in which elements of type ``scalar`` are summed if the sum must be accurate."""
        return F64 if scalar is F64 else self.arithmetic.accumulator

    def make(self, kind: str, scalar: ScalarType, *operands: Expression, datum: Datum = None) -> Expression:
        """Return the expression of this kind and operands; the same object each time."""
        exact = struct.pack("<d", datum) if isinstance(datum, float) else datum  # 0.0 and -0.0 are two
        key = (kind, scalar, operands, type(datum), exact)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Expression(kind, scalar, operands, datum)
        return found

    # ---------------------------------------------------------------------------------------------------------- leaves

    def constant(self, value: float, scalar: ScalarType) -> Expression:
        """Return a number, converted to ``scalar`` as C++ does.

        Raises:
            Unsupported: the number is infinite or NaN, and ``scalar`` an integer.
        """
        if scalar.is_float:
            return self.make("constant", scalar, datum=_rounded(float(value), scalar))
        if scalar is BOOL:
            return self.make("constant", scalar, datum=bool(value))
        if isinstance(value, float):
            if not math.isfinite(value):
                raise Unsupported(f"{value} as an integer")
            value = math.trunc(value)
        wrapped = value & ((1 << scalar.bits) - 1)
        if scalar.is_signed and wrapped >> (scalar.bits - 1):
            wrapped -= 1 << scalar.bits
        return self.make("constant", scalar, datum=wrapped)

    def like(self, value: float, other: Expression) -> Expression:
        """Return the constant ``value`` in the type of ``other``."""
        return self.constant(value, other.scalar)

    def load(self, access: int, scalar: ScalarType) -> Expression:
        return self.make("load", scalar, datum=access)

    def argument(self, number: int, scalar: ScalarType) -> Expression:
        """Return the argument with index ``number`` among those passed by value."""
        return self.make("argument", scalar, datum=number)

    def reduced(self, number: int, scalar: ScalarType) -> Expression:
        """Return the result of reduction ``number``, after its phase."""
        return self.make("reduced", scalar, datum=number)

    def length(self) -> Expression:
        """Return the trip count of the reduction loops."""
        return self.make("length", I64)

    # ------------------------------------------------------------------------------------------------------ arithmetic

    def cast(self, value: Expression, scalar: ScalarType) -> Expression:
        if value.scalar is scalar:
            return value
        if value.kind == "constant":
            assert isinstance(value.payload, int | float)
            return self.constant(value.payload, scalar)
        return self.make("cast", scalar, value)

    def _same(self, kind: str, *operands: Expression) -> Expression:
        scalar = operands[0].scalar
        assert all(operand.scalar is scalar for operand in operands), kind
        return self.make(kind, scalar, *operands)

    def add(self, a: Expression, b: Expression) -> Expression:
        return self.either(a, b) if a.scalar is BOOL else self._same("add", a, b)

    def sub(self, a: Expression, b: Expression) -> Expression:
        return self._same("sub", a, b)

    def mul(self, a: Expression, b: Expression) -> Expression:
        return self.both(a, b) if a.scalar is BOOL else self._same("mul", a, b)

    def div(self, a: Expression, b: Expression) -> Expression:
        if not a.scalar.is_float:
            raise Unsupported("a division of integers")
        return self._same("div", a, b)

    def fma(self, a: Expression, b: Expression, c: Expression) -> Expression:
        """Return ``a * b + c``: one operation for floats, rounded once if the machine can; two operations for
        integers."""
        return self._same("fma", a, b, c) if a.scalar.is_float else self.add(self.mul(a, b), c)

    def neg(self, a: Expression) -> Expression:
        return self._same("neg", a)

    def reciprocal(self, a: Expression) -> Expression:
        return self.div(self.like(1.0, a), a)

    def call(self, name: str, *operands: Expression) -> Expression:
        """Return the call of a function of the mathematical library, or of ``sqrt``, ``floor``, ``ceil``, ``trunc``,
        ``round`` (half to even), ``abs`` or ``copysign``."""
        return self._same(name, *operands)

    # ------------------------------------------------------------------------------------------------- truth and choice

    def compare(self, kind: str, a: Expression, b: Expression) -> Expression:
        """Return a comparison. ``kind`` is ``lt``, ``le``, ``gt``, ``ge``, ``eq`` or ``ne``; with a NaN only ``ne`` is
        true."""
        assert a.scalar is b.scalar
        return self.make(kind, BOOL, a, b)

    def select(self, condition: Expression, then: Expression, other: Expression) -> Expression:
        assert condition.scalar is BOOL
        assert then.scalar is other.scalar
        return self.make("select", then.scalar, condition, then, other)

    def checked(self, value: Expression, condition: Expression) -> Expression:
        """Return ``value``; where ``condition`` is false, the kernel fails, and the operators run in its place."""
        assert condition.scalar is BOOL
        return self.make("checked", value.scalar, value, condition)

    def both(self, a: Expression, b: Expression) -> Expression:
        return self._same("and", a, b)

    def either(self, a: Expression, b: Expression) -> Expression:
        return self._same("or", a, b)

    def differ(self, a: Expression, b: Expression) -> Expression:
        return self._same("xor", a, b)

    def invert(self, a: Expression) -> Expression:
        return self._same("not", a)

    def truth(self, a: Expression) -> Expression:
        """Return whether ``a`` is not zero; true for NaN."""
        return self.cast(a, BOOL)

    def is_nan(self, a: Expression) -> Expression:
        return self.compare("ne", a, a) if a.scalar.is_float else self.constant(False, BOOL)

    # ------------------------------------------------------------------------------------------------------- extremes

    def clamp_min(self, a: Expression, least: Expression) -> Expression:
        """Return the larger of ``a`` and ``least``; NaN if ``a`` is NaN."""
        return self.select(self.compare("gt", least, a), least, a)

    def clamp_max(self, a: Expression, most: Expression) -> Expression:
        """Return the smaller of ``a`` and ``most``; NaN if ``a`` is NaN."""
        return self.select(self.compare("lt", most, a), most, a)

    def maximum(self, a: Expression, b: Expression) -> Expression:
        """Return the larger of ``a`` and ``b``; NaN if either is NaN."""
        if a.scalar is BOOL:
            return self.either(a, b)
        larger = self.select(self.compare("gt", a, b), a, b)
        return self.select(self.is_nan(a), a, larger) if a.scalar.is_float else larger

    def minimum(self, a: Expression, b: Expression) -> Expression:
        """Return the smaller of ``a`` and ``b``; NaN if either is NaN."""
        if a.scalar is BOOL:
            return self.both(a, b)
        smaller = self.select(self.compare("lt", a, b), a, b)
        return self.select(self.is_nan(a), a, smaller) if a.scalar.is_float else smaller


def _rounded(value: float, scalar: ScalarType) -> float:
    """Return ``value`` rounded to a float type, as C++ does: to half precision from float32."""
    if scalar is F64 or not math.isfinite(value):
        return value
    try:
        [single] = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(torch.tensor(single).to(_HALVES[scalar]) if scalar in _HALVES else single)


def substituted(expression: Expression, old: Expression, new: Expression, b: Builder) -> Expression:
    """Return ``expression`` with every occurrence of ``old`` replaced by ``new``; expressions that change are built by
    ``b``."""
    made: dict[Expression, Expression] = {old: new}

    def visit(each: Expression) -> Expression:
        found = made.get(each)
        if found is None:
            operands = [visit(operand) for operand in each.operands]
            found = made[each] = b.make(each.kind, each.scalar, *operands, datum=each.payload) if operands else each
        return found

    return visit(expression)


ARGUMENT_TYPES = {int: I64, bool: I64, float: F64}
"""Types in which Python numbers are passed to kernels."""
