"""Descriptions of elementwise operators: the expression of one element of the result, and its dtype."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rekindle.codegen.loop_ir.nodes import Expression

Build = Callable[..., Expression]
"""Called with a :class:`~rekindle.codegen.loop_ir.builder.Builder` and the arguments of the schema in order:
expressions for tensors and numbers, in the type of the computation; other constants unchanged."""


class ResultDtype(Enum):
    """The dtype of a result, and the dtype in which the operator computes."""

    COMMON = "common"
    """The dtype that all operands promote to, in which the operator also computes."""
    FLOAT = "float"
    """The promoted dtype, with integers converted to the default dtype first."""
    TRUTH = "truth"
    """Bool; the operator computes in the dtype that all operands promote to."""
    SELF = "self"
    """The dtype of the first operand, in which the operator also computes."""
    SUM = "sum"
    """The common dtype, but integers become int64; or the one that the argument ``dtype`` specifies."""
    INDEX = "index"
    """int64; the operator computes in the dtype of the first operand."""
    GIVEN = "given"
    """The one that the argument ``dtype`` specifies; the operator computes with that of the first operand."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """What PyTorch rounds to half precision before it computes with tensors of it: the operands, and ``factors``, which
    are numbers. ``unrounded`` are exceptions on the CPU, if they are numbers or tensors of one element;
    ``unrounded_on_gpu`` are exceptions on GPUs, if they are numbers."""

    factors: frozenset[str] = frozenset()
    unrounded: frozenset[str] = frozenset()
    unrounded_on_gpu: frozenset[str] = frozenset()


ROUNDING: Final = Rounding()


@dataclass(frozen=True, slots=True)
class PointwiseOp:
    """An elementwise operator.

    ``wrapped`` names the numbers that count as operands, as tensors without dimensions do; ``promoting`` those that
    count for the dtype of the result, but not for its sizes and layout. ``conditions`` names bool operands that do not
    affect the result dtype. ``constants`` are the parameters that have to be known when the graph is compiled. An
    operator with ``may_be_self`` may return its first argument itself, not a copy.
    """

    build: Build
    result: ResultDtype = ResultDtype.COMMON
    wrapped: frozenset[str] = frozenset()
    promoting: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()
    may_be_self: bool = False
    channels: frozenset[str] = frozenset()
    """Operands that have one element for each channel, which is dimension 1 of the first operand; that operand alone
    then determines the layout of the result."""
    refuses_bool: bool = False
    """Whether an operand of truth values is an error, whatever it would be promoted to."""
    one_dtype: bool = False
    """Whether tensors of several dtypes are left to PyTorch: they are an error, or are rounded first."""
    is_contiguous: bool = False
    """Whether the result is contiguous however the operands lie in memory."""
    optional: frozenset[str] = frozenset()
    """Operands that may be None in some calls, which run operator by operator."""
    rounding: Rounding = ROUNDING
    laid_out_as: str = ""
    """The operand whose strides come first where the strides of the result are chosen, if it is not the first one."""


RULES: Final[dict[str, PointwiseOp]] = {}
"""By qualified name."""

CHECKS: Final[dict[str, tuple[str, PointwiseOp]]] = {}
"""Names of parameters, separated by blanks, and rules of operators that only composites apply. They return their first
operand. Where its elements are refused, the kernel fails, and PyTorch's operators run and raise their errors."""


def names(text: str) -> frozenset[str]:
    """Return the words of ``text``."""
    return frozenset(text.split())


def elementwise(
    *operators: str,
    result: ResultDtype = ResultDtype.COMMON,
    wrapped: str = "",
    promoting: str = "",
    conditions: str = "",
    constants: str = "",
    may_be_self: bool = False,
    refuses_bool: bool = False,
    channels: str = "",
    one_dtype: bool = False,
    is_contiguous: bool = False,
    rounding: Rounding = ROUNDING,
    laid_out_as: str = "",
) -> Callable[[Build], Build]:
    """Register the decorated function for operators, named without ``aten::``; see :class:`PointwiseOp`. Names of
    parameters are in one string, separated by spaces."""

    def decorate(build: Build) -> Build:
        named = (names(wrapped), names(promoting), names(conditions), names(constants))
        rule = PointwiseOp(
            build,
            result,
            *named,
            may_be_self,
            names(channels),
            refuses_bool,
            one_dtype,
            is_contiguous,
            rounding=rounding,
            laid_out_as=laid_out_as,
        )
        for operator in operators:
            RULES[f"aten::{operator}"] = rule
        return build

    return decorate
