"""Batching rules of the operators of derivatives (:mod:`rekindle.autodiff`). ``own.NAME`` is an operator of
``autodiff``."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
batch own.seed(value):
    if value.dim() != 1:
        raise RuntimeError(
            f"a gradient is of a tensor without dimensions, and this has the sizes {inner_sizes(value)}; add it up, or "
            "use rekindle.vjp or rekindle.jacrev"
        )
    return torch.ones_like(value)

batch own.unit(like, place):
    return same_for_all(own.unit(torch.select(like, 0, 0), place), batch_size)

batch own.jacobian(rows, result, argument):
    sizes = [batch_size] + inner_sizes(result) + inner_sizes(argument)
    if len(rows) == 0:
        return torch.new_zeros(argument, sizes)
    return torch.reshape(torch.stack(rows, 1), sizes)

batch own.or_zeros(gradient, like):
    return torch.zeros_like(like) if gradient is None else gradient

batch own.or_zeros.list(gradient, like):
    found: List[Tensor] = []
    for i in range(len(like)):
        each: Optional[Tensor] = None
        if gradient is not None:
            each = gradient[i]
        found.append(torch.zeros_like(like[i]) if each is None else each)
    return found

batch own.sum_of(a, b):
    if a is None:
        return b
    if b is None:
        return a
    return a + b

batch own.fitted(self, value):
    if torch.size(value) != torch.size(self):
        mine, other = inner_sizes(self), inner_sizes(value)
        raise RuntimeError(f"output with shape {mine} doesn't match the broadcast shape {other}")
    return torch.to(value, self.dtype)

batch own.in_dtype(gradient, dtype):
    return own.in_dtype(gradient, dtype)

batch own.plus(a, b):
    return a if b is None else a + b

batch own.size_unless_equal(self, batched_self, other, batched_other):
    mine = inner_sizes(self) if batched_self else torch.size(self)
    others = inner_sizes(other) if batched_other else torch.size(other)
    return None if mine == others else mine

batch own.sum_to(self, size):
    return summed_to(self, size)

batch own.sums_to(gradients, tensors):
    found: List[Tensor] = []
    for i in range(len(tensors)):
        gradient = gradients[i]
        if gradient is None:
            found.append(torch.zeros_like(tensors[i]))
        else:
            found.append(summed_to(gradient, inner_sizes(tensors[i])))
    return found

def unreduced(grad: Tensor, size: List[int], dim: Optional[List[int]], keepdim: bool) -> Tensor:
    rank = len(size)
    made = grad
    if not keepdim:
        reduced = [False for _ in range(rank)]
        if dim is None or len(dim) == 0:
            reduced = [True for _ in range(rank)]
        else:
            for each in dim:
                if rank > 0:
                    reduced[each] = True
        for i in range(rank):
            if reduced[i]:
                made = torch.unsqueeze(made, i + 1)
    return torch.expand(made, [torch.size(grad, 0)] + size)

batch own.unreduced(grad, size, dim, keepdim):
    return unreduced(grad, size, dim, keepdim)

batch own.slice_back(grad, size, dim, start, end, step):
    where = dim + 1 if dim >= 0 else dim + 1 + len(size)
    return torch.slice_backward(
        grad, [torch.size(grad, 0)] + size, where, 0 if start is None else start,
        size[dim] if end is None else end, step
    )

# ---- Products.

batch own.matmul_self(grad, batched_grad, size, other, batched_other):
    rank = example_rank(other, batched_other)
    if rank == 1 and len(size) == 1:
        a, b = aligned(grad, batched_grad, other, batched_other)
        return a * b
    if rank == 1:
        a, b = aligned(torch.unsqueeze(grad, -1), batched_grad, other, batched_other)
        return summed_to(a * b, size)
    turned = torch.transpose(other, -2, -1)
    if len(size) == 1:
        made = product(torch.unsqueeze(grad, -2), batched_grad, turned, batched_other)
        return summed_to(torch.squeeze(made, -2), size)
    return summed_to(product(grad, batched_grad, turned, batched_other), size)

batch own.matmul_other(grad, batched_grad, self, batched_self, size):
    rank = example_rank(self, batched_self)
    if rank == 1 and len(size) == 1:
        a, b = aligned(grad, batched_grad, self, batched_self)
        return a * b
    if rank == 1:
        a, b = aligned(torch.unsqueeze(self, -1), batched_self, torch.unsqueeze(grad, -2), batched_grad)
        return summed_to(a * b, size)
    turned = torch.transpose(self, -2, -1)
    if len(size) == 1:
        made = product(turned, batched_self, torch.unsqueeze(grad, -1), batched_grad)
        return summed_to(torch.squeeze(made, -1), size)
    return summed_to(product(turned, batched_self, grad, batched_grad), size)

batch own.linear_input(grad, batched_grad, size, weight, batched_weight):
    if example_rank(weight, batched_weight) == 1:
        a, b = aligned(torch.unsqueeze(grad, -1), batched_grad, weight, batched_weight)
        return a * b
    return product(grad, batched_grad, weight, batched_weight)

batch own.linear_weight(grad, input, size):
    if len(size) == 1:
        return torch.sum(flat_rows(torch.unsqueeze(grad, -1) * input), [1])
    if input.dim() == 2:
        return torch.unsqueeze(grad, 2) * torch.unsqueeze(input, 1)
    return torch.bmm(torch.transpose(flat_rows(grad), 1, 2), flat_rows(input))

def flat_rows(self: Tensor) -> Tensor:
    return torch.unsqueeze(self, 1) if self.dim() == 2 else torch.flatten(self, 1, -2)

# ---- Losses.

def like_elements(grad: Tensor, self: Tensor) -> Tensor:
    return torch.reshape(grad, [torch.size(grad, 0)] + [1] * (self.dim() - 1)) if grad.dim() == 1 else grad

def share(self: Tensor, reduction: int) -> float:
    number = 1
    for size in inner_sizes(self):
        number = number * size
    return 1.0 / number if reduction == 1 else 1.0

batch mse_loss_backward(grad_output, self, target, reduction):
    return like_elements(grad_output, self) * (self - target) * (2.0 * share(self, reduction))

batch own.unreduced_loss(grad, self, reduction):
    return torch.expand(like_elements(grad, self) * share(self, reduction), torch.size(self))

def cross_entropy_backward(
    grad: Tensor, self: Tensor, target: Tensor, weight: Optional[Tensor], reduction: int, ignore_index: int,
    smoothing: float
) -> Tensor:
    # [batch, N, classes, ...], and [batch, N, ...] or chances of the size of the first
    classes = torch.size(self, 2)
    sizes = [torch.size(self, 0), 1, classes] + [1] * (self.dim() - 3)
    if torch.is_floating_point(target):
        wanted = target * (1.0 - smoothing) + smoothing / classes
        if weight is not None:
            wanted = wanted * torch.reshape(weight, sizes)
        each = torch.select(self, 2, 0)
        if reduction == 0:
            spread = torch.unsqueeze(grad, 2)
        else:
            spread = like_elements(grad, self) * share(each, reduction)
        back = -wanted * spread
    else:
        used = target != ignore_index
        places = torch.unsqueeze(torch.where(used, target, torch.zeros_like(target)), 2)
        weights = weights_of(target, weight, ignore_index, self)
        if reduction == 0:
            spread = grad
        else:
            spread = like_elements(grad, weights)
            if reduction == 1:
                spread = spread / like_elements(torch.sum(flat(weights), [1]), weights)
        one = torch.unsqueeze(weights * spread * (1.0 - smoothing), 2)
        back = -torch.scatter(torch.zeros_like(self), 2, places, one)
        if smoothing != 0.0:
            every = torch.unsqueeze(spread * used, 2) * (smoothing / classes)
            back = back - (every if weight is None else every * torch.reshape(weight, sizes))
    return back - torch.softmax(self, 2) * torch.sum(back, [2], True)

batch nll_loss_forward(self, target, weight, reduction, ignore_index):
    if self.dim() == 2:
        a, b = torch.unsqueeze(self, 1), torch.unsqueeze(target, 1)
    else:
        a, b = self, target
    made = negative_log_likelihood(a, b, weight, reduction, ignore_index)
    if self.dim() == 2 and reduction == 0:
        made = torch.squeeze(made, 1)
    return made, torch.sum(flat(weights_of(b, weight, ignore_index, a)), [1])

batch nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    if self.dim() == 2:
        a, b = torch.unsqueeze(self, 1), torch.unsqueeze(target, 1)
    else:
        a, b = self, target
    used = b != ignore_index
    places = torch.unsqueeze(torch.where(used, b, torch.zeros_like(b)), 2)
    weights = weights_of(b, weight, ignore_index, a)
    if reduction == 0:
        spread = torch.unsqueeze(grad_output, 1) if self.dim() == 2 else grad_output
    else:
        spread = like_elements(grad_output, weights)
        if reduction == 1:
            spread = spread / like_elements(total_weight, weights)
    one = torch.unsqueeze(torch.where(used, weights * spread, torch.zeros_like(weights)), 2)
    back = -torch.scatter(torch.zeros_like(a), 2, places, one)
    return torch.squeeze(back, 1) if self.dim() == 2 else back

batch own.cross_entropy_back(grad, self, target, weight, reduction, ignore_index, label_smoothing):
    if self.dim() == 2:
        given = torch.unsqueeze(grad, 1) if reduction == 0 else grad
        return torch.squeeze(
            cross_entropy_backward(
                given, torch.unsqueeze(self, 1), torch.unsqueeze(target, 1), weight, reduction, ignore_index,
                label_smoothing
            ),
            1,
        )
    return cross_entropy_backward(grad, self, target, weight, reduction, ignore_index, label_smoothing)

# ---- Layers.

def for_each_dim(option: List[int], rank: int) -> List[int]:
    return option * rank if len(option) == 1 else option

batch own.convolution_back(
    grad, input, weight, batched_weight, has_bias, stride, padding, dilation, transposed, output_padding, groups, needed
):
    # Examples are groups of channels.
    alone = grad.dim() == example_rank(weight, batched_weight)
    whole = torch.unsqueeze(grad, 1) if alone else grad
    source = torch.unsqueeze(input, 1) if alone else input
    filters = weight if batched_weight else same_for_all(weight, batch_size)
    given = torch.flatten(torch.movedim(whole, 0, 1), 1, 2)
    channels = torch.flatten(torch.movedim(source, 0, 1), 1, 2)
    bias_sizes = [torch.size(given, 1)] if has_bias else None
    rank = filters.dim() - 3
    a, b, c = torch.convolution_backward(
        given, channels, torch.flatten(filters, 0, 1), bias_sizes, for_each_dim(stride, rank),
        for_each_dim(padding, rank), for_each_dim(dilation, rank), transposed, for_each_dim(output_padding, rank),
        groups * batch_size, [needed[0], needed[1], needed[2] and has_bias]
    )
    if needed[0]:
        a = torch.movedim(torch.unflatten(a, 1, [batch_size, torch.size(source, 2)]), 1, 0)
        if alone:
            a = torch.squeeze(a, 1)
    if needed[1]:
        b = torch.unflatten(b, 0, [batch_size, torch.size(filters, 1)])
    if needed[2] and has_bias:
        c = torch.unflatten(c, 0, [batch_size, torch.size(whole, 2)])
    return a, b, c
"""
