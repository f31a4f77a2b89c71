"""Losses."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
backward mse_loss(grad, self, target, reduction) -> self, target:
    grad_self = torch.mse_loss_backward(grad, self, target, reduction)
    return grad_self, -grad_self

backward l1_loss(grad, self, target, reduction) -> self, target:
    grad_self = own.unreduced_loss(grad, self, reduction) * (self - target).sgn()
    return grad_self, -grad_self

backward kl_div(grad, self, target, reduction, log_target) -> self, target:
    back = own.unreduced_loss(grad, self, reduction)
    if log_target:
        grad_self = -back * target.exp()
        grad_target = back * target.exp() * (target + 1 - self)
    else:
        grad_self = -back * target
        grad_target = back * (target.log() + 1 - self).masked_fill(target == 0, 0)
    return own.sum_to(grad_self, self.size()), own.sum_to(grad_target, target.size())

backward binary_cross_entropy_with_logits(grad, self, target, weight, pos_weight, reduction) -> self, target:
    back = own.unreduced_loss(grad, self, reduction)
    if weight is not None:
        back = back * weight
    if pos_weight is not None:
        positive = target * pos_weight
        grad_self = back * ((positive + 1 - target) * self.sigmoid() - positive)
        grad_target = back * ((pos_weight - 1) * torch.softplus(-self) - self)
    else:
        grad_self = back * (self.sigmoid() - target)
        grad_target = -back * self
    return grad_self, grad_target

backward cross_entropy_loss(grad, self, target, weight, reduction, ignore_index, label_smoothing,
                            needs_target) -> self, target:
    if label_smoothing == 0 and self.dim() == 2 and target.dim() == 1:
        logs = torch._log_softmax(self, 1, False)
        total_weight = torch.nll_loss_forward(logs, target, weight, reduction, ignore_index)[1]
        of_logs = torch.nll_loss_backward(grad, logs, target, weight, reduction, ignore_index, total_weight)
        grad_self = torch._log_softmax_backward_data(of_logs, logs, 1, self.dtype)
    else:
        grad_self = own.cross_entropy_back(grad, self, target, weight, reduction, ignore_index, label_smoothing)
    grad_target = grad
    if needs_target:
        grad_target = own.cross_entropy_target(grad, self, weight, reduction, label_smoothing)
    return grad_self, grad_target

backward smooth_l1_loss(grad, self, target, reduction, beta) -> self, target:
    grad_self = torch.smooth_l1_loss_backward(grad, self, target, reduction, beta)
    return grad_self, -grad_self

backward huber_loss(grad, self, target, reduction, delta) -> self, target:
    grad_self = torch.huber_loss_backward(grad, self, target, reduction, delta)
    return grad_self, -grad_self

backward soft_margin_loss(grad, self, target, reduction) -> self:
    return torch.soft_margin_loss_backward(grad, self, target, reduction)

backward binary_cross_entropy(grad, self, target, weight, reduction) -> self, target:
    back = own.unreduced_loss(grad, self, reduction)
    if weight is not None:
        back = back * weight
    grad_self = back * (self - target) / ((1 - self) * self).clamp_min(1e-12)
    return grad_self, back * ((-self).log1p() - self.log())

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

backward margin_ranking_loss(grad, input1, input2, target, margin, reduction) -> input1, input2, target:
    difference = input1 - input2
    inside = margin - target * difference
    back = own.unreduced_loss(grad, inside, reduction) * (inside >= 0)
    grad_first = -back * target
    grad_target = own.sum_to(-back * difference, target.size())
    return own.sum_to(grad_first, input1.size()), own.sum_to(-grad_first, input2.size()), grad_target

backward hinge_embedding_loss(grad, self, target, margin, reduction) -> self:
    far = torch.logical_and(target != 1, self <= margin)
    back = (target != -1).to(self.dtype) - far.to(self.dtype)
    return own.sum_to(own.unreduced_loss(grad, back, reduction) * back, self.size())

backward poisson_nll_loss(grad, input, target, log_input, full, eps, reduction) -> input, target:
    if log_input:
        of_input, of_target = input.exp() - target, -input
    else:
        of_input, of_target = 1 - target / (input + eps), -(input + eps).log()
    if full:
        of_target = of_target + (target.log() + 0.5 / target) * (target > 1)
    back = own.unreduced_loss(grad, of_input, reduction)
    return own.sum_to(back * of_input, input.size()), own.sum_to(back * of_target, target.size())

backward multi_margin_loss(grad, self, target, p, margin, weight, reduction) -> self:
    return torch.multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction)

forward multilabel_margin_loss(self, target, reduction):
    result, is_target = torch.multilabel_margin_loss_forward(self, target, reduction)
    return result, is_target

backward multilabel_margin_loss(grad, self, target, reduction, is_target) -> self:
    return torch.multilabel_margin_loss_backward(grad, self, target, reduction, is_target)

composite pairwise_distance(x1, x2, p, eps, keepdim):
    return torch.norm(x1 - x2 + eps, p, [-1], keepdim)

def length_from(self: Tensor, dim: int, eps: float) -> Tensor:
    length = torch.linalg_vector_norm(self, 2, [dim], True)
    return length + (eps - length.detach()).clamp_min(0)

composite cosine_similarity(x1, x2, dim, eps):
    if eps < 0:
        raise RuntimeError("eps must be non-negative, got: {}".format(eps))
    dtype = torch.result_type(x1, x2)
    a, b = x1.to(dtype), x2.to(dtype)
    return ((a / length_from(a, dim, eps)) * (b / length_from(b, dim, eps))).sum([dim])
"""
