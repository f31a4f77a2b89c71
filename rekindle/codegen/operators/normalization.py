"""Normalization with known statistics: an elementwise operator.

:mod:`~rekindle.codegen.operators.rows` has the normalizations whose statistics are those of rows.
"""

from __future__ import annotations

from rekindle.codegen.loop_ir.builder import Builder, Unsupported
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.operators.pointwise_ops import ResultDtype, elementwise

E = Expression


@elementwise(
    "batch_norm", result=ResultDtype.SELF, constants="training", channels="weight bias running_mean running_var"
)
def batch_norm(
    b: Builder,
    input: E,
    weight: E | None,
    bias: E | None,
    running_mean: E | None,
    running_var: E | None,
    training: bool,
    momentum: E,
    eps: E,
    cudnn_enabled: bool,
) -> E:
    """Return ``batch_norm`` by running statistics: ``input * scale + shift``, with one scale and shift for each
    channel.

    Raises:
        Unsupported: it is in training, has no running statistics, or takes integers.
    """
    if training or running_mean is None or running_var is None:
        raise Unsupported("the statistics of a batch")
    if not input.scalar.is_float:
        raise Unsupported("a normalization of integers")
    scale = b.reciprocal(b.call("sqrt", b.add(running_var, eps)))
    if weight is not None:
        scale = b.mul(scale, weight)
    shift = b.neg(b.mul(running_mean, scale)) if bias is None else b.sub(bias, b.mul(running_mean, scale))
    return b.add(b.mul(input, scale), shift)
