"""Casts, and operators that return their argument."""

from __future__ import annotations

from rekindle.codegen.loop_ir.builder import Builder
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.operators.pointwise_ops import ResultDtype, elementwise

E = Expression


@elementwise(
    "dropout", "feature_dropout", "alpha_dropout", constants="train", result=ResultDtype.SELF, may_be_self=True
)
def dropout(b: Builder, input: E, p: E, train: bool) -> E:
    """Return the operand: in inference dropout is the identity, and only such dropouts are fused."""
    return input


@elementwise("to.dtype", constants="dtype non_blocking copy memory_format", result=ResultDtype.GIVEN, may_be_self=True)
def to_dtype(b: Builder, self: E, dtype: int, non_blocking: bool, copy: bool, memory_format: int | None) -> E:
    """Return the operand: its user casts the result."""
    return self
