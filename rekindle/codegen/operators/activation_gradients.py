"""Gradients of activations, as PyTorch computes them.

Where ``self`` is NaN, PyTorch's vectorized loops and the loops over what remains differ: this is what the former do.
"""

from __future__ import annotations

import math
from typing import Final

from rekindle.codegen.loop_ir.builder import Builder, Unsupported
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.operators.activations import GELU_BETA, GELU_KAPPA, HALF_ROOT
from rekindle.codegen.operators.pointwise_ops import elementwise

E = Expression

_NORMAL_DENSITY: Final = 1 / math.sqrt(2.0 * math.pi)
"""The density of the standard normal distribution at 0."""
_SIXTH: Final = 0.16666667163372040
"""1 / 6 in float32, which PyTorch uses in float64 too."""


def _floats(*values: E) -> None:
    if not all(value.scalar.is_float for value in values):
        raise Unsupported("a gradient of integers")


@elementwise("threshold_backward", laid_out_as="self")
def threshold_backward(b: Builder, grad_output: E, self: E, threshold: E) -> E:
    return b.select(b.compare("le", self, threshold), b.like(0, grad_output), grad_output)


@elementwise("sigmoid_backward")
def sigmoid_backward(b: Builder, grad_output: E, output: E) -> E:
    _floats(output)
    return b.mul(b.mul(grad_output, b.sub(b.like(1.0, output), output)), output)


@elementwise("tanh_backward")
def tanh_backward(b: Builder, grad_output: E, output: E) -> E:
    _floats(output)
    return b.mul(grad_output, b.sub(b.like(1.0, output), b.mul(output, output)))


@elementwise("gelu_backward", constants="approximate", one_dtype=True)
def gelu_backward(b: Builder, grad_output: E, self: E, approximate: str) -> E:
    _floats(self)
    half, one = b.like(0.5, self), b.like(1.0, self)
    square = b.mul(self, self)
    if approximate == "tanh":
        cube = b.mul(square, self)
        inner = b.mul(b.like(GELU_BETA, self), b.add(self, b.mul(b.like(GELU_KAPPA, self), cube)))
        tanh = b.call("tanh", inner)
        of_inner = b.mul(b.like(GELU_BETA, self), b.add(one, b.mul(b.like(3 * GELU_KAPPA, self), square)))
        of_tanh = b.mul(b.sub(one, b.mul(tanh, tanh)), of_inner)
        slope = b.add(b.mul(half, b.add(one, tanh)), b.mul(b.mul(half, self), of_tanh))
    else:
        share = b.mul(half, b.add(one, b.call("erf", b.mul(self, b.like(HALF_ROOT, self)))))
        density = b.mul(b.call("exp", b.mul(square, b.like(-0.5, self))), b.like(_NORMAL_DENSITY, self))
        slope = b.add(share, b.mul(self, density))
    return b.mul(grad_output, slope)


@elementwise("silu_backward")
def silu_backward(b: Builder, grad_output: E, self: E) -> E:
    _floats(self)
    one = b.like(1.0, self)
    share = b.div(one, b.add(one, b.call("exp", b.neg(self))))
    return b.mul(b.mul(grad_output, share), b.add(one, b.mul(self, b.sub(one, share))))


@elementwise("leaky_relu_backward", constants="self_is_result", laid_out_as="self")
def leaky_relu_backward(b: Builder, grad_output: E, self: E, negative_slope: E, self_is_result: bool) -> E:
    _floats(self)
    return b.select(b.compare("gt", self, b.like(0.0, self)), grad_output, b.mul(grad_output, negative_slope))


@elementwise("elu_backward", constants="is_result")
def elu_backward(b: Builder, grad: E, alpha: E, scale: E, input_scale: E, is_result: bool, self: E) -> E:
    _floats(self)
    factor = b.mul(alpha, scale)
    raised = b.add(self, factor) if is_result else b.mul(b.call("exp", b.mul(self, input_scale)), factor)
    below = b.mul(b.mul(grad, input_scale), raised)
    return b.select(b.compare("gt", self, b.like(0.0, self)), b.mul(grad, scale), below)


@elementwise("hardtanh_backward")
def hardtanh_backward(b: Builder, grad_output: E, self: E, min_val: E, max_val: E) -> E:
    _floats(self)
    inside = b.both(b.compare("gt", self, min_val), b.compare("lt", self, max_val))
    return b.select(inside, grad_output, b.like(0.0, self))


@elementwise("hardsigmoid_backward")
def hardsigmoid_backward(b: Builder, grad_output: E, self: E) -> E:
    _floats(self)
    inside = b.both(b.compare("gt", self, b.like(-3.0, self)), b.compare("lt", self, b.like(3.0, self)))
    return b.select(inside, b.mul(grad_output, b.like(_SIXTH, self)), b.like(0.0, self))


@elementwise("hardswish_backward")
def hardswish_backward(b: Builder, grad_output: E, self: E) -> E:
    _floats(self)
    three = b.like(3.0, self)
    between = b.mul(grad_output, b.add(b.div(self, three), b.like(0.5, self)))
    above = b.select(b.compare("ge", self, three), grad_output, between)
    return b.select(b.compare("le", self, b.neg(three)), b.like(0.0, self), above)


@elementwise("hardshrink_backward", "softshrink_backward")
def shrink_backward(b: Builder, grad_out: E, self: E, lambd: E) -> E:
    _floats(self)
    outside = b.either(b.compare("gt", self, lambd), b.compare("lt", self, b.neg(lambd)))
    return b.select(outside, grad_out, b.like(0.0, self))


@elementwise("softplus_backward")
def softplus_backward(b: Builder, grad_output: E, self: E, beta: E, threshold: E) -> E:
    _floats(self)
    scaled = b.mul(self, beta)
    power = b.call("exp", scaled)
    share = b.div(power, b.add(power, b.like(1.0, self)))
    return b.select(b.compare("gt", scaled, threshold), grad_output, b.mul(grad_output, share))
