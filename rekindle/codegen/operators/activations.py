"""Activations of neural networks, as PyTorch computes them."""

from __future__ import annotations

import math
from typing import Final

from rekindle.codegen.loop_ir.builder import Builder, Unsupported
from rekindle.codegen.loop_ir.nodes import Expression
from rekindle.codegen.operators.arithmetic import clamp
from rekindle.codegen.operators.pointwise_ops import ResultDtype, elementwise

E = Expression


def _float(value: E) -> None:
    if not value.scalar.is_float:
        raise Unsupported("an activation of integers")


@elementwise("relu")
def relu(b: Builder, self: E) -> E:
    return clamp(b, self, b.like(0, self), None)


@elementwise("relu6")
def relu6(b: Builder, self: E) -> E:
    return clamp(b, self, b.like(0, self), b.like(6, self))


@elementwise("sigmoid", result=ResultDtype.FLOAT)
def sigmoid(b: Builder, self: E) -> E:
    one = b.like(1.0, self)
    return b.div(one, b.add(one, b.call("exp", b.neg(self))))


@elementwise("silu")
def silu(b: Builder, self: E) -> E:
    _float(self)
    return b.div(self, b.add(b.like(1.0, self), b.call("exp", b.neg(self))))


HALF_ROOT: Final = math.sqrt(0.5)
GELU_BETA: Final = math.sqrt(2.0 / math.pi)
GELU_KAPPA: Final = 0.044715


@elementwise("gelu", constants="approximate")
def gelu(b: Builder, self: E, approximate: str) -> E:
    _float(self)
    half, one = b.like(0.5, self), b.like(1.0, self)
    if approximate == "tanh":
        cube = b.mul(b.mul(self, self), self)
        inner = b.mul(b.like(GELU_BETA, self), b.add(self, b.mul(b.like(GELU_KAPPA, self), cube)))
        return b.mul(b.mul(half, self), b.add(one, b.call("tanh", inner)))
    share = b.add(one, b.call("erf", b.mul(self, b.like(HALF_ROOT, self))))
    return b.mul(b.mul(self, half), share)


@elementwise("leaky_relu")
def leaky_relu(b: Builder, self: E, negative_slope: E) -> E:
    _float(self)
    return b.select(b.compare("gt", self, b.like(0.0, self)), self, b.mul(self, negative_slope))


@elementwise("elu")
def elu(b: Builder, self: E, alpha: E, scale: E, input_scale: E) -> E:
    _float(self)
    below = b.mul(b.call("expm1", b.mul(self, input_scale)), b.mul(alpha, scale))
    return b.select(b.compare("lt", self, b.like(0.0, self)), below, b.mul(self, scale))


@elementwise("selu")
def selu(b: Builder, self: E) -> E:
    return elu(b, self, b.like(1.6732632423543772, self), b.like(1.0507009873554805, self), b.like(1.0, self))


@elementwise("celu", constants="alpha")
def celu(b: Builder, self: E, alpha: E) -> E:
    if alpha.payload == 0:
        raise Unsupported("an alpha that is an error")
    return elu(b, self, alpha, b.like(1.0, self), b.reciprocal(alpha))


@elementwise("hardtanh", constants="min_val max_val")
def hardtanh(b: Builder, self: E, min_val: E, max_val: E) -> E:
    _float(self)
    return clamp(b, self, min_val, max_val)


def _gate(b: Builder, self: E) -> E:
    return clamp(b, b.add(self, b.like(3.0, self)), b.like(0.0, self), b.like(6.0, self))


@elementwise("hardsigmoid")
def hardsigmoid(b: Builder, self: E) -> E:
    _float(self)
    return b.div(_gate(b, self), b.like(6.0, self))


@elementwise("hardswish")
def hardswish(b: Builder, self: E) -> E:
    _float(self)
    return b.div(b.mul(self, _gate(b, self)), b.like(6.0, self))


@elementwise("softplus")
def softplus(b: Builder, self: E, beta: E, threshold: E) -> E:
    _float(self)
    scaled = b.mul(self, beta)
    soft = b.div(b.call("log1p", b.call("exp", scaled)), beta)
    return b.select(b.compare("gt", scaled, threshold), self, soft)


@elementwise("mish")
def mish(b: Builder, self: E) -> E:
    _float(self)
    return b.mul(self, b.call("tanh", b.call("log1p", b.call("exp", self))))


@elementwise("log_sigmoid", is_contiguous=True)
def log_sigmoid(b: Builder, self: E) -> E:
    _float(self)
    least = b.clamp_max(self, b.like(0.0, self))
    return b.sub(least, b.call("log1p", b.call("exp", b.neg(b.call("abs", self)))))


@elementwise("threshold")
def threshold(b: Builder, self: E, threshold: E, value: E) -> E:
    return b.select(b.compare("le", self, threshold), value, self)
