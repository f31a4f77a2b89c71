"""Emission of expressions as vector instructions in LLVM IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.machines import Machine
from rekindle.codegen.emission.vector_types import cast, element_type, literal, splat, suffix, vector
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.loop_ir.scalar_types import BOOL, ScalarType
from rekindle.codegen.phase_scheduling import SCANS

_FLOATS: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_WHOLE: Final = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_INTRINSICS: Final = {
    "sqrt": "llvm.sqrt",
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "round": "llvm.nearbyint",
    "copysign": "llvm.copysign",
}
"""Functions that are intrinsics of LLVM."""


@dataclass(slots=True)
class Expressions:
    """Emitter of expressions for ``lanes`` elements at a time, each once. ``leaf`` emits expressions without operands
    other than constants."""

    f: FunctionBuilder
    machine: Machine
    lanes: int
    leaf: Callable[[Expression], str]
    scan: Callable[[Expression, str], str] | None = None
    """Emits a scan; also takes the current element."""
    written: dict[Expression, str] = field(default_factory=dict)
    lookup: Callable[[Expression, list[str]], str] | None = None
    """Emits a load at an index; also takes the operands."""
    check: Callable[[str], None] | None = None
    """Emits a report to the caller where a condition is false; takes the condition."""

    def write(self, expression: Expression) -> str:
        """Emit ``expression``, unless it has been emitted; return the operand that holds it."""
        found = self.written.get(expression)
        if found is None:
            found = self.written[expression] = self._write(expression)
        return found

    def _type(self, scalar: ScalarType) -> str:
        return vector(element_type(scalar), self.lanes)

    def _write(self, e: Expression) -> str:
        if e.kind == "constant":
            assert isinstance(e.payload, int | float)
            return splat(element_type(e.scalar), literal(e.payload, e.scalar), self.lanes)
        if not e.operands:
            return self.leaf(e)
        values = [self.write(operand) for operand in e.operands]
        source = e.operands[0].scalar
        if e.kind in SCANS:
            assert self.scan is not None
            return self.scan(e, values[0])
        if e.kind == "lookup":
            assert self.lookup is not None
            return self.lookup(e, values)
        if e.kind == "checked":
            assert self.check is not None
            self.check(values[1])
            return values[0]
        if e.kind == "cast":
            return cast(self.f, values[0], source, e.scalar, self.lanes)
        if e.kind == "select":
            truth, type = self._type(BOOL), self._type(e.scalar)
            return self.f.emit_value(f"select {truth} {values[0]}, {type} {values[1]}, {type} {values[2]}")
        if e.kind in _ORDERED:
            return self._comparison(e.kind, source, values)
        return self._arithmetic(e, values)

    def _comparison(self, kind: str, scalar: ScalarType, values: list[str]) -> str:
        type = self._type(scalar)
        if scalar.is_float:
            return self.f.emit_value(f"fcmp {_ORDERED[kind]} {type} {values[0]}, {values[1]}")
        prefix = "" if kind in ("eq", "ne") else "s" if scalar.is_signed else "u"
        return self.f.emit_value(f"icmp {prefix}{kind} {type} {values[0]}, {values[1]}")

    def _arithmetic(self, e: Expression, values: list[str]) -> str:
        type, element = self._type(e.scalar), element_type(e.scalar)
        instruction = (_FLOATS if e.scalar.is_float else _WHOLE).get(e.kind)
        if instruction is not None:
            return self.f.emit_value(f"{instruction} {type} {values[0]}, {values[1]}")
        if e.kind == "neg":
            if e.scalar.is_float:
                return self.f.emit_value(f"fneg {type} {values[0]}")
            return self.f.emit_value(f"sub {type} {splat(element, '0', self.lanes)}, {values[0]}")
        if e.kind == "not":
            ones = splat(element, "true" if e.scalar is BOOL else "-1", self.lanes)
            return self.f.emit_value(f"xor {type} {values[0]}, {ones}")
        if e.kind == "fma":
            return self._fma(e, values)
        if e.kind == "abs":
            if e.scalar.is_float:
                return self._intrinsic("llvm.fabs", e.scalar, values)
            symbol = f"llvm.abs.{suffix(element, self.lanes)}"
            return self.f.call(type, symbol, (type, values[0]), ("i1", "false"))
        if e.kind in _INTRINSICS:
            return self._intrinsic(_INTRINSICS[e.kind], e.scalar, values)
        return self.machine.call(self.f, e.kind, e.scalar, values, self.lanes)

    def _intrinsic(self, name: str, scalar: ScalarType, values: list[str]) -> str:
        type = self._type(scalar)
        symbol = f"{name}.{suffix(element_type(scalar), self.lanes)}"
        return self.f.call(type, symbol, *((type, value) for value in values))

    def _fma(self, e: Expression, values: list[str]) -> str:
        a, b, c = values
        return multiply_add(self.f, self.machine.has_fma, element_type(e.scalar), self.lanes, a, b, c)


def multiply_add(f: FunctionBuilder, is_fused: bool, element: str, lanes: int, a: str, b: str, c: str) -> str:
    """Emit ``a * b + c`` of floats, rounded once if ``is_fused``."""
    type = vector(element, lanes)
    if is_fused:
        return f.call(type, f"llvm.fma.{suffix(element, lanes)}", (type, a), (type, b), (type, c))
    product = f.emit_value(f"fmul {type} {a}, {b}")
    return f.emit_value(f"fadd {type} {product}, {c}")


_ORDERED: Final = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
"""Predicates of float comparisons: if an operand is NaN, only ``ne`` holds."""
