"""Losses."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward mse_loss(grad, self, target, reduction) -> self, target:
    grad_self = torch.mse_loss_backward(grad, self, target, reduction)
    return grad_self, -grad_self

backward smooth_l1_loss(grad, self, target, reduction, beta) -> self, target:
    grad_self = torch.smooth_l1_loss_backward(grad, self, target, reduction, beta)
    return grad_self, -grad_self

backward huber_loss(grad, self, target, reduction, delta) -> self, target:
    grad_self = torch.huber_loss_backward(grad, self, target, reduction, delta)
    return grad_self, -grad_self

backward soft_margin_loss(grad, self, target, reduction) -> self:
    return torch.soft_margin_loss_backward(grad, self, target, reduction)

backward binary_cross_entropy(grad, self, target, weight, reduction) -> self, target:
    grad_target = own.unreduced_loss(grad, self, reduction) * ((-self).log1p() - self.log())
    if weight is not None:
        grad_target = grad_target * weight
    return torch.binary_cross_entropy_backward(grad, self, target, weight, reduction), grad_target

forward nll_loss(self, target, weight, reduction, ignore_index):
    result, total_weight = torch.nll_loss_forward(self, target, weight, reduction, ignore_index)
    return result, total_weight

backward nll_loss(grad, self, target, weight, reduction, ignore_index, total_weight) -> self:
    return torch.nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight)

forward nll_loss2d(self, target, weight, reduction, ignore_index):
    result, total_weight = torch.nll_loss2d_forward(self, target, weight, reduction, ignore_index)
    return result, total_weight

backward nll_loss2d(grad, self, target, weight, reduction, ignore_index, total_weight) -> self:
    return torch.nll_loss2d_backward(grad, self, target, weight, reduction, ignore_index, total_weight)

forward nll_loss_nd(self, target, weight, reduction, ignore_index):
    result, total_weight = own.nll(self, target, weight, reduction, ignore_index)
    return result, total_weight

backward nll_loss_nd(grad, self, target, weight, reduction, ignore_index, total_weight) -> self:
    return own.nll_back(grad, self, target, weight, reduction, ignore_index, total_weight)

"""
