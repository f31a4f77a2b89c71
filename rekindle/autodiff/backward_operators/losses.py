"""Losses and their backward."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rekindle.ops.registration.declare import implements


@implements("autodiff::unreduced_loss(Tensor(a) grad, Tensor self, int reduction) -> Tensor(a)")
def unreduced_loss(grad: Tensor, self: Tensor, reduction: int) -> Tensor:
    """Return the gradient of each summand of a loss, from that of the reduced loss."""
    return grad.expand(self.shape) / max(self.numel(), 1) if reduction == 1 else grad.expand(self.shape)


@implements(
    "autodiff::nll(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor, Tensor)"
)
def nll(self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int) -> Any:
    """Compute ``nll_loss_nd``; return its result, and the total weight of the targets."""
    if self.dim() <= 2:
        return torch.ops.aten.nll_loss_forward(self, target, weight, reduction, ignore_index)
    planes, targets = _planes(self, target)
    result, total = torch.ops.aten.nll_loss2d_forward(planes, targets, weight, reduction, ignore_index)
    return result.reshape(target.shape) if reduction == 0 else result, total


@implements(
    "autodiff::nll_back(Tensor grad, Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index,"
    " Tensor total_weight) -> Tensor"
)
def nll_back(
    grad: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """Return the gradient of ``nll_loss_nd``."""
    aten = torch.ops.aten
    found: Tensor
    if self.dim() <= 2:
        found = aten.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight)
        return found
    planes, targets = _planes(self, target)
    if reduction == 0:
        grad = grad.reshape(targets.shape)
    found = aten.nll_loss2d_backward(grad, planes, targets, weight, reduction, ignore_index, total_weight)
    return found.reshape(self.shape)


def _planes(self: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return predictions and targets with two dimensions after the classes."""
    if self.dim() == 4:
        return self, target
    batch, classes = self.shape[:2]
    return self.reshape(batch, classes, 1, -1), target.reshape(batch, 1, -1)


@implements(
    "autodiff::cross_entropy_back(Tensor grad, Tensor self, Tensor target, Tensor? weight, int reduction,"
    " int ignore_index, float label_smoothing) -> Tensor"
)
def cross_entropy_back(
    grad: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    label_smoothing: float,
) -> Tensor:
    """Return the gradient of the logits of ``cross_entropy``. It is computed from the gradient of their
    ``log_softmax``, in which the loss is linear."""
    axis = 0 if self.dim() == 1 else 1
    classes = self.shape[axis]
    shaped = None if weight is None else weight.reshape([-1] + [1] * (self.dim() - 1 - axis))
    even = label_smoothing / classes
    if target.is_floating_point():
        parts = target * (1 - label_smoothing) + even
        total: Tensor | float = max(self.numel() // max(classes, 1), 1)
    else:
        kept = target != ignore_index
        chosen = torch.where(kept, target, torch.zeros_like(target)).unsqueeze(axis)
        parts = torch.full_like(self, even).scatter_add(
            axis, chosen, torch.full_like(chosen, 1, dtype=self.dtype) * (1 - label_smoothing)
        )
        parts = parts * kept.unsqueeze(axis)
        total = kept.sum() if weight is None else (weight[chosen.squeeze(axis)] * kept).sum()
    if shaped is not None:
        parts = parts * shaped
    back = grad.unsqueeze(axis) if reduction == 0 else grad / total if reduction == 1 else grad
    logs = -(back * parts)
    return logs - self.softmax(axis) * logs.sum(axis, keepdim=True)


@implements(
    "autodiff::cross_entropy_target(Tensor grad, Tensor self, Tensor? weight, int reduction, float label_smoothing)"
    " -> Tensor"
)
def cross_entropy_target(
    grad: Tensor, self: Tensor, weight: Tensor | None, reduction: int, label_smoothing: float
) -> Tensor:
    """Return the gradient of the targets of ``cross_entropy``, where they are probabilities."""
    axis = 0 if self.dim() == 1 else 1
    classes = self.shape[axis]
    logs = self.log_softmax(axis) * (label_smoothing - 1)
    if weight is not None:
        logs = logs * weight.reshape([-1] + [1] * (self.dim() - 1 - axis))
    back = grad.unsqueeze(axis) if reduction == 0 else grad
    return back * logs / max(self.numel() // max(classes, 1), 1) if reduction == 1 else back * logs
