"""Builder of vector code in LLVM IR: each method emits an instruction, and returns the name of its result.

>>> writer = VectorWriter("double", 4)
>>> writer.add("%x", writer.splat(1.0))
'%v1'
>>> print(writer.lines[0])
%v1 = fadd <4 x double> %x, splat (double 0x3FF0000000000000)
"""

from __future__ import annotations

import struct
from typing import Final

_INTEGER: Final = {"float": "i32", "double": "i64"}


def vector_type(element: str, lanes: int) -> str:
    """Return the type of ``lanes`` elements; of one, the type of the element."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def hexadecimal(value: float) -> str:
    """Format a float for LLVM IR without rounding: as the hexadecimal digits of a double."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class VectorWriter:
    """Writes ``lines`` on vectors of ``lanes`` elements of ``element``, which is ``float`` or ``double``.

    ``has_fma`` states whether the processor has an instruction that multiplies and adds.
    """

    def __init__(self, element: str, lanes: int, *, has_fma: bool = False) -> None:
        self.element = element
        self.lanes = lanes
        self.has_fma = has_fma
        self.lines: list[str] = []
        self.intrinsics: dict[str, str] = {}
        """The declarations of the intrinsics that are called, by name."""
        self._count = 0

    @property
    def type(self) -> str:
        return vector_type(self.element, self.lanes)

    @property
    def integers(self) -> str:
        """The type of integers of the same size."""
        return vector_type(_INTEGER[self.element], self.lanes)

    @property
    def booleans(self) -> str:
        return vector_type("i1", self.lanes)

    def emit(self, expression: str) -> str:
        """Emit an instruction; return the name of its result."""
        self._count += 1
        self.lines.append(f"%v{self._count} = {expression}")
        return f"%v{self._count}"

    def splat(self, value: float) -> str:
        """Return a constant in all lanes."""
        if self.lanes == 1:
            return hexadecimal(value)
        return f"splat ({self.element} {hexadecimal(value)})"

    def splat_integer(self, value: int) -> str:
        return str(value) if self.lanes == 1 else f"splat ({_INTEGER[self.element]} {value})"

    # ------------------------------------------------------------------------------------------------------ arithmetic

    def add(self, a: str, b: str) -> str:
        return self.emit(f"fadd {self.type} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self.emit(f"fsub {self.type} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        return self.emit(f"fmul {self.type} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        return self.emit(f"fdiv {self.type} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Emit ``a * b + c``, rounded once if the machine has that instruction, else twice."""
        if self.has_fma:
            return self.call("llvm.fma", a, b, c)
        return self.add(self.mul(a, b), c)

    def call(self, intrinsic: str, *arguments: str) -> str:
        """Emit a call of one of LLVM's intrinsics that is defined for every vector type."""
        suffix = f"v{self.lanes}" if self.lanes > 1 else ""
        name = f"{intrinsic}.{suffix}{'f32' if self.element == 'float' else 'f64'}"
        self.intrinsics[name] = f"declare {self.type} @{name}({', '.join([self.type] * len(arguments))})"
        return self.emit(f"call {self.type} @{name}({', '.join(f'{self.type} {a}' for a in arguments)})")

    def polynomial(self, x: str, coefficients: list[float]) -> str:
        """Emit the polynomial ``c0 + c1 x + c2 x² + …``."""
        value = self.splat(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.fma(value, x, self.splat(coefficient))
        return value

    # --------------------------------------------------------------------------------------------------- choices, bits

    def compare(self, predicate: str, a: str, b: str) -> str:
        """Emit a comparison by one of LLVM's predicates of floats, such as ``olt`` or ``uno``."""
        return self.emit(f"fcmp {predicate} {self.type} {a}, {b}")

    def select(self, condition: str, a: str, b: str) -> str:
        return self.emit(f"select {self.booleans} {condition}, {self.type} {a}, {self.type} {b}")

    def bits(self, a: str) -> str:
        return self.emit(f"bitcast {self.type} {a} to {self.integers}")

    def from_bits(self, a: str) -> str:
        return self.emit(f"bitcast {self.integers} {a} to {self.type}")

    def integer(self, operation: str, a: str, b: str) -> str:
        """Emit an operation on integers: ``add``, ``shl``, ``ashr`` …"""
        return self.emit(f"{operation} {self.integers} {a}, {b}")
