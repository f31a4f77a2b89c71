"""Activations that convolutions and linear maps apply to their results: as instructions, and as PyTorch's operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional

from rekindle.codegen.emission.expressions import Expressions
from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.machines import HostMachine
from rekindle.codegen.llvm.target import Target
from rekindle.codegen.loop_ir.builder import Builder
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.loop_ir.scalar_types import F32
from rekindle.codegen.operators import activations


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation that is applied to the result of a convolution. ``apply`` runs PyTorch's operator, and may write to
    the result. ``formula`` builds the expression for kernels. ``number`` identifies the activation in a kernel's
    parameters."""

    name: str
    number: int
    apply: Callable[[Tensor], Tensor]
    formula: Callable[[Builder, Expression], Expression]

    def emit(self, f: FunctionBuilder, target: Target, lanes: int, value: str) -> str:
        """Emit the activation of a vector of floats; return the operand that holds it."""
        builder = Builder()
        expression = self.formula(builder, builder.load(0, F32))
        return Expressions(f, HostMachine(target), lanes, lambda _: value).write(expression)


def _tanh(b: Builder, x: Expression) -> Expression:
    return b.call("tanh", x)


_ALL: Final = (
    Activation("none", 0, lambda result: result, lambda b, x: x),
    Activation("relu", 1, torch.relu_, activations.relu),
    Activation("relu6", 2, functional.relu6, activations.relu6),
    Activation("hardsigmoid", 3, functional.hardsigmoid, activations.hardsigmoid),
    Activation("hardswish", 4, functional.hardswish, activations.hardswish),
    Activation("sigmoid", 5, torch.sigmoid, activations.sigmoid),
    Activation("silu", 6, functional.silu, activations.silu),
    Activation("tanh", 7, torch.tanh, _tanh),
    Activation("gelu", 8, functional.gelu, partial(activations.gelu, approximate="none")),
    Activation(
        "gelu_tanh",
        9,
        partial(functional.gelu, approximate="tanh"),
        partial(activations.gelu, approximate="tanh"),
    ),
)
ACTIVATIONS: Final = {each.name: each for each in _ALL}
"""By name: that of the attribute ``activation`` of packed operators."""
NONE: Final = ACTIVATIONS["none"]
RELU: Final = ACTIVATIONS["relu"]
RELU6: Final = ACTIVATIONS["relu6"]
HARDSWISH: Final = ACTIVATIONS["hardswish"]
