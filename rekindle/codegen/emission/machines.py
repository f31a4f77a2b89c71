"""Properties of the processor that the emitters of loops depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rekindle.codegen.emission.inline_math import INLINE
from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.vector_types import element_type, vector
from rekindle.codegen.llvm.target import Target
from rekindle.codegen.llvm.vector_math import vector_function
from rekindle.codegen.loop_ir.scalar_types import F32, ScalarType


class Machine(Protocol):
    """A kind of processor, as far as arithmetic on elements depends on it."""

    @property
    def has_fma(self) -> bool:
        """Whether the machine has a fused multiply-add, which rounds once."""

    @property
    def has_status(self) -> bool:
        """Whether kernels report failures through an additional last buffer."""

    def call(self, f: FunctionBuilder, name: str, scalar: ScalarType, values: Sequence[str], lanes: int) -> str:
        """Emit a mathematical function (``exp``, ``pow`` …) of ``lanes`` floats or doubles; return its result.

        Raises:
            Unsupported: a GPU has no function of this name.
            UnsupportedFunction: a CPU has none.
        """


@dataclass(frozen=True, slots=True)
class HostMachine:
    """The processor of this process, or an older one of its kind."""

    target: Target

    @property
    def has_fma(self) -> bool:
        return self.target.has("fma")

    @property
    def has_status(self) -> bool:
        return True

    def call(self, f: FunctionBuilder, name: str, scalar: ScalarType, values: Sequence[str], lanes: int) -> str:
        if name in INLINE and scalar is F32 and self.has_fma:
            return INLINE[name](f, values[0], lanes, self.target.has("avx512f"))
        type = vector(element_type(scalar), lanes)
        function = vector_function(name, element_type(scalar), lanes, self.target)
        f.module.functions[function.symbol] = function
        text = ", ".join(f"{type} {value}" for value in values)
        return f.emit_value(f"call {type} @{function.symbol}({text})")
