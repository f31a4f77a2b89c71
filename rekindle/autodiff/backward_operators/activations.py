"""Dropout and other random activations, which also return what they drew, and the backward of ``prelu``."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rekindle.ops.registration.declare import implements


@implements("autodiff::prelu_back(Tensor grad, Tensor self, Tensor weight) -> (Tensor, Tensor)")
def prelu_back(grad: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``prelu``, whose weight is one number or one for each channel."""
    sizes = [1] * self.dim()
    if self.dim() > 1:
        sizes[1] = weight.numel()
    of_self, of_weight = torch.ops.aten._prelu_kernel_backward(grad, self, weight.reshape(sizes))
    return of_self, of_weight.sum_to_size(sizes).reshape(weight.shape)


@implements(
    "autodiff::rrelu(Tensor self, Scalar lower, Scalar upper, bool train) -> (Tensor, Tensor)", nondeterministic=True
)
def rrelu(self: Tensor, lower: float, upper: float, train: bool) -> tuple[Tensor, Tensor]:
    """Compute ``rrelu``; return its result, and the slopes that were drawn."""
    noise = torch.empty_like(self)
    return torch.ops.aten.rrelu_with_noise(self, noise, lower, upper, train), noise


@implements("autodiff::dropout(Tensor input, float p, bool train) -> (Tensor, Tensor?, float?)", nondeterministic=True)
def dropout(input: Tensor, p: float, train: bool) -> tuple[Tensor, Tensor | None, float | None]:
    """Return ``torch.dropout`` with the random numbers of eager, its mask, and the scale of the mask: None where the
    mask is scaled already. The mask is None where dropout has no effect."""
    if p == 0 or not train or input.numel() == 0:
        return input.clone(), None, None
    if p == 1:
        return input * torch.zeros_like(input), torch.zeros_like(input), None
    if input.is_cuda:  # the kernel of eager there: it draws other numbers than bernoulli_, and its mask is of bools
        result, mask = torch.native_dropout(input, p, True)
        return result, mask, 1 / (1 - p)
    noise = torch.empty_like(input).bernoulli_(1 - p).div_(1 - p)
    return input * noise, noise, None


@implements("autodiff::feature_dropout(Tensor input, float p, bool train) -> (Tensor, Tensor?)", nondeterministic=True)
def feature_dropout(input: Tensor, p: float, train: bool) -> tuple[Tensor, Tensor | None]:
    """Return ``torch.feature_dropout``, which drops whole channels, and its scaled mask: None where dropout has no
    effect."""
    if p == 0 or not train or input.numel() == 0:
        return input.clone(), None
    if p == 1:
        return input * torch.zeros_like(input), torch.zeros_like(input)
    noise = _channels(input).bernoulli_(1 - p).div_(1 - p)
    return input * noise, noise


@implements(
    "autodiff::alpha_dropout(Tensor input, float p, bool train, bool channels) -> (Tensor, Tensor?)",
    nondeterministic=True,
)
def alpha_dropout(input: Tensor, p: float, train: bool, channels: bool) -> tuple[Tensor, Tensor | None]:
    """Return ``torch.alpha_dropout``, or with ``channels`` its variant for whole channels, and its scaled mask: None
    where dropout has no effect."""
    if p == 0 or not train or input.numel() == 0:
        return input.clone(), None
    if p == 1:
        return input * torch.zeros_like(input), torch.zeros_like(input)
    low = 1.7580993408473766  # what selu tends to for small numbers, without the sign
    scale = 1 / math.sqrt((low * low * p + 1) * (1 - p))
    noise = (_channels(input) if channels else torch.empty_like(input)).bernoulli_(1 - p)
    shift = (noise - 1) * (low * scale) + low * scale * p
    noise = noise * scale
    return input * noise + shift, noise


def _channels(input: Tensor) -> Tensor:
    """Return an uninitialized tensor with one element for each channel of each sample."""
    return input.new_empty([*input.shape[:2], *([1] * (input.dim() - 2))])
