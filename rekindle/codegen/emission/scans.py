"""Scans: cumulative sums and products along a row."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.memory import spread
from rekindle.codegen.emission.vector_types import element_type, literal, splat, vector
from rekindle.codegen.loop_ir.nodes import Expression


@dataclass(slots=True)
class Scan:
    """Emitter of a scan (a cumulative sum or product). ``place`` is the address of the previous result: that of the
    row, or of each lane's row if vectors extend across rows."""

    f: FunctionBuilder
    expression: Expression
    lanes: int
    place: str
    across: bool

    @property
    def element(self) -> str:
        return element_type(self.expression.scalar)

    @property
    def type(self) -> str:
        """The LLVM type of the held value."""
        return held_type(self.expression, self.lanes, self.across)

    def begin(self) -> None:
        self.f.emit(f"store {self.type} {self._neutral(self.lanes if self.across else 1)}, ptr {self.place}")

    def take(self, value: str) -> str:
        """Emit the scan of a vector of elements, and update the previous result; return the results."""
        f, whole = self.f, vector(self.element, self.lanes)
        known = f.emit_value(f"load {self.type}, ptr {self.place}")
        if not self.across and self.lanes > 1:
            value = self._within(value)
            known = spread(f, known, self.element, self.lanes)
        found = self._both(known, value)
        kept = found
        if not self.across and self.lanes > 1:
            kept = f.emit_value(f"extractelement {whole} {found}, i64 {self.lanes - 1}")
        f.emit(f"store {self.type} {kept}, ptr {self.place}")
        return found

    def _within(self, value: str) -> str:
        """Emit the scan of one vector, in log2 steps: the vector is added to itself shifted by one lane, then by two,
        by four."""
        whole, step = vector(self.element, self.lanes), 1
        neutral = self._neutral(self.lanes)
        while step < self.lanes:
            places = ", ".join(
                f"i32 {lane - step if lane >= step else self.lanes + lane}" for lane in range(self.lanes)
            )
            moved = self.f.emit_value(
                f"shufflevector {whole} {value}, {whole} {neutral}, <{self.lanes} x i32> <{places}>"
            )
            value = self._both(moved, value)
            step *= 2
        return value

    def _neutral(self, lanes: int) -> str:
        number = 1 if self.expression.kind == "scan_product" else 0
        return splat(self.element, literal(number, self.expression.scalar), lanes)

    def _both(self, a: str, b: str) -> str:
        instruction = "mul" if self.expression.kind == "scan_product" else "add"
        prefix = "f" if self.expression.scalar.is_float else ""
        return self.f.emit_value(f"{prefix}{instruction} {vector(self.element, self.lanes)} {a}, {b}")


def held_type(expression: Expression, lanes: int, across: bool) -> str:
    """Return the type of the previous result. It is a vector of ``lanes`` if the scan runs ``across`` rows, else one
    element."""
    return vector(element_type(expression.scalar), lanes if across else 1)
