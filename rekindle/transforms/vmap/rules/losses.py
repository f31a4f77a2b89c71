"""Batching rules of losses: computed for each element, and reduced for each example."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
def reduced(loss: Tensor, reduction: int) -> Tensor:
    if reduction == 1:
        return torch.mean(flat(loss), [1])
    if reduction == 2:
        return torch.sum(flat(loss), [1])
    return loss

batch mse_loss, l1_loss(self, batched_self, target, batched_target, reduction):
    a, b = aligned(self, batched_self, target, batched_target)
    return reduced(torch.SAME(a, b, 0), reduction)

batch soft_margin_loss(self, target, reduction):
    a, b = aligned(self, True, target, True)
    return reduced(torch.soft_margin_loss(a, b, 0), reduction)

batch smooth_l1_loss(self, batched_self, target, batched_target, reduction, beta):
    a, b = aligned(self, batched_self, target, batched_target)
    return reduced(torch.smooth_l1_loss(a, b, 0, beta), reduction)

batch huber_loss(self, batched_self, target, batched_target, reduction, delta):
    a, b = aligned(self, batched_self, target, batched_target)
    return reduced(torch.huber_loss(a, b, 0, delta), reduction)

batch kl_div(self, batched_self, target, batched_target, reduction, log_target):
    a, b = aligned(self, batched_self, target, batched_target)
    return reduced(torch.kl_div(a, b, 0, log_target=log_target), reduction)

batch poisson_nll_loss(input, batched_input, target, batched_target, log_input, full, eps, reduction):
    a, b = aligned(input, batched_input, target, batched_target)
    return reduced(torch.poisson_nll_loss(a, b, log_input, full, eps, 0), reduction)

batch hinge_embedding_loss(self, batched_self, target, batched_target, margin, reduction):
    a, b = aligned(self, batched_self, target, batched_target)
    return reduced(torch.hinge_embedding_loss(a, b, margin, 0), reduction)

batch margin_ranking_loss(
    input1, batched_input1, input2, batched_input2, target, batched_target, margin, reduction
):
    a, b, c = aligned3(input1, batched_input1, input2, batched_input2, target, batched_target)
    return reduced(torch.margin_ranking_loss(a, b, c, margin, 0), reduction)

batch binary_cross_entropy(self, target, weight, reduction):
    loss = torch.binary_cross_entropy(self, target, None, 0)
    if weight is not None:
        loss = loss * padded(weight, True, self.dim() - 1)
    return reduced(loss, reduction)

batch binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction):
    if pos_weight is None:
        loss = torch.binary_cross_entropy_with_logits(self, target, None, None, 0)
    else:
        positive = padded(pos_weight, True, self.dim() - 1)
        loss = torch.binary_cross_entropy_with_logits(self, target, None, positive, 0)
    if weight is not None:
        loss = loss * padded(weight, True, self.dim() - 1)
    return reduced(loss, reduction)

# ---- Classes. Those of an example without a batch of its own are given one of size 1.

def weights_of(target: Tensor, weight: Optional[Tensor], ignore_index: int, like: Tensor) -> Tensor:
    used = target != ignore_index
    if weight is None:
        return torch.to(used, like.dtype)
    places = torch.flatten(torch.where(used, target, torch.zeros_like(target)), 1)
    return torch.reshape(torch.gather(weight, 1, places), torch.size(target)) * used

def negative_log_likelihood(
    self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int
) -> Tensor:
    # [batch, N, classes, ...] and [batch, N, ...]
    used = target != ignore_index
    places = torch.where(used, target, torch.zeros_like(target))
    weights = weights_of(target, weight, ignore_index, self)
    loss = -torch.squeeze(torch.gather(self, 2, torch.unsqueeze(places, 2)), 2) * weights
    loss = torch.where(used, loss, torch.zeros_like(loss))
    if reduction == 1:
        return torch.sum(flat(loss), [1]) / torch.sum(flat(weights), [1])
    return reduced(loss, reduction)

batch nll_loss_nd, nll_loss, nll_loss2d(self, target, weight, reduction, ignore_index):
    if self.dim() == 2:
        made = negative_log_likelihood(
            torch.unsqueeze(self, 1), torch.unsqueeze(target, 1), weight, reduction, ignore_index
        )
        return torch.squeeze(made, 1) if reduction == 0 else made
    return negative_log_likelihood(self, target, weight, reduction, ignore_index)

def cross_entropy(
    self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int, smoothing: float
) -> Tensor:
    chances = torch.log_softmax(self, 2)
    classes = torch.size(self, 2)
    sizes = [torch.size(self, 0), 1, classes] + [1] * (self.dim() - 3)
    if torch.is_floating_point(target):
        wanted = target * (1.0 - smoothing) + smoothing / classes
        each = chances * wanted
        if weight is not None:
            each = each * torch.reshape(weight, sizes)
        loss = -torch.sum(each, [2])
        if reduction == 1:
            return torch.mean(flat(loss), [1])
        return reduced(loss, reduction)
    loss = negative_log_likelihood(chances, target, weight, reduction, ignore_index)
    if smoothing == 0.0:
        return loss
    each = chances if weight is None else chances * torch.reshape(weight, sizes)
    spread = torch.where(target != ignore_index, -torch.sum(each, [2]), torch.zeros_like(torch.sum(each, [2])))
    if reduction == 1:
        weights = weights_of(target, weight, ignore_index, self)
        spread = torch.sum(flat(spread), [1]) / torch.sum(flat(weights), [1])
    else:
        spread = reduced(spread, reduction)
    return loss * (1.0 - smoothing) + spread * (smoothing / classes)

batch cross_entropy_loss(self, target, weight, reduction, ignore_index, label_smoothing):
    if self.dim() == 2:
        made = cross_entropy(
            torch.unsqueeze(self, 1), torch.unsqueeze(target, 1), weight, reduction, ignore_index, label_smoothing
        )
        return torch.squeeze(made, 1) if reduction == 0 else made
    return cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing)
"""
