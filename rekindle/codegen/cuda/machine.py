"""NVIDIA's GPUs, as far as arithmetic depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rekindle.codegen.emission.inline_math import INLINE
from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.vector_types import element_type, literal, splat, vector
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.scalar_types import F32, F64, ScalarType

_ONE: Final = ("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos")
_MORE: Final = ("atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "lgamma", "cbrt")
_TWO: Final = ("atan2", "pow", "hypot", "fmod", "nextafter")
FUNCTIONS: Final = frozenset({*_ONE, *_MORE, *_TWO})
"""The functions of libdevice that kernels call: ``__nv_<name>`` of doubles, ``__nv_<name>f`` of floats."""


@dataclass(frozen=True, slots=True)
class CudaMachine:
    """A GPU. Functions are those of libdevice, NVIDIA's library in LLVM's bitcode, which PyTorch's kernels call too.
    Without it, kernels have the few of float32 that are inline."""

    has_libdevice: bool = True

    @property
    def has_fma(self) -> bool:
        return True

    @property
    def has_status(self) -> bool:
        return False

    def call(self, f: FunctionBuilder, name: str, scalar: ScalarType, values: Sequence[str], lanes: int) -> str:
        if name == "sigmoid":
            return self._sigmoid(f, scalar, values[0], lanes)
        if not self.has_libdevice and name in INLINE and scalar is F32:
            return INLINE[name](f, values[0], lanes)
        if not self.has_libdevice:
            raise Unsupported(f"'{name}' on a GPU without libdevice")
        if name not in FUNCTIONS or scalar not in (F32, F64):
            raise Unsupported(f"'{name}' of {scalar} on a GPU")
        element = element_type(scalar)
        symbol, type = f"__nv_{name}{'f' if scalar is F32 else ''}", vector(element, lanes)
        if lanes == 1:
            return f.call(element, symbol, *((element, value) for value in values))
        result = "poison"
        for lane in range(lanes):
            parts = [f.emit_value(f"extractelement {type} {value}, i64 {lane}") for value in values]
            one = f.call(element, symbol, *((element, part) for part in parts))
            result = f.emit_value(f"insertelement {type} {result}, {element} {one}, i64 {lane}")
        return result

    def _sigmoid(self, f: FunctionBuilder, scalar: ScalarType, value: str, lanes: int) -> str:
        element, type = element_type(scalar), vector(element_type(scalar), lanes)
        negative = f.emit_value(f"fneg {type} {value}")
        power = self.call(f, "exp", scalar, [negative], lanes)
        one = splat(element, literal(1.0, scalar), lanes)
        return f.emit_value(f"fdiv {type} {one}, {f.emit_value(f'fadd {type} {power}, {one}')}")
