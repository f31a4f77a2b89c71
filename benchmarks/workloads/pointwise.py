"""Chains of pointwise operators, and reductions."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from benchmarks.workloads.case import Case, Workload

_F = torch._C._VariableFunctions


def chain(x: Tensor, y: Tensor) -> Tensor:
    """Compute eight pointwise operators."""
    a = torch.tanh(x * y + x)
    b = torch.sigmoid(y - x)
    return a * b + (1.0 - b) * x


def chain_by_hand(x: Tensor, y: Tensor) -> Tensor:
    a = _F.tanh(_F.add(_F.mul(x, y), x))
    b = _F.sigmoid(_F.sub(y, x))
    return _F.add(_F.mul(a, b), _F.mul(_F.rsub(b, 1.0), x))


def broadcast(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Scale and shift rows, and apply an activation."""
    z = x * scale + shift
    return z * torch.sigmoid(z) + torch.exp(-z.abs())


def broadcast_by_hand(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    z = _F.add(_F.mul(x, scale), shift)
    return _F.add(_F.mul(z, _F.sigmoid(z)), _F.exp(_F.neg(_F.abs(z))))


def softmax(x: Tensor) -> Tensor:
    """Compute softmax, written out."""
    e = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return e / e.sum(dim=-1, keepdim=True)


def softmax_by_hand(x: Tensor) -> Tensor:
    e = _F.exp(_F.sub(x, _F.amax(x, [-1], True)))
    return _F.div(e, _F.sum(e, [-1], True))


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Compute layer norm, written out."""
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred * centred).mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(variance + 1e-5) * weight + bias


def layer_norm_by_hand(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    centred = _F.sub(x, _F.mean(x, [-1], True))
    variance = _F.mean(_F.mul(centred, centred), [-1], True)
    return _F.add(_F.mul(_F.mul(centred, _F.rsqrt(_F.add(variance, 1e-5))), weight), bias)


def _chain(count: int) -> Case:
    return Case(chain, (torch.randn(count), torch.randn(count)), by_hand=chain_by_hand)


def _broadcast() -> Case:
    return Case(broadcast, (torch.randn(64, 256), torch.randn(256), torch.randn(64, 1)), by_hand=broadcast_by_hand)


def _softmax() -> Case:
    return Case(softmax, (torch.randn(256, 512),), by_hand=softmax_by_hand)


def _layer_norm() -> Case:
    return Case(layer_norm, (torch.randn(128, 256), torch.ones(256), torch.zeros(256)), by_hand=layer_norm_by_hand)


POINTWISE: tuple[Workload, ...] = (
    *(
        Workload(f"pointwise chain, {name}", partial(_chain, count))
        for name, count in (("100", 100), ("10 thousand", 10_000), ("1 million", 10**6), ("10 million", 10**7))
    ),
    Workload("pointwise, broadcast 64×256", _broadcast),
    Workload("softmax, written out, 256×512", _softmax),
    Workload("layer norm, written out, 128×256", _layer_norm),
)
