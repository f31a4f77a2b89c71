"""The gradients of products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from rekindle.autodiff.backward_operators.sizes import Sizes, sum_to
from rekindle.ops.registration.declare import implements


@implements("autodiff::matmul_self(Tensor grad, int[] size, Tensor other) -> Tensor")
def matmul_self(grad: Tensor, size: Sizes, other: Tensor) -> Tensor:
    """The gradient of the first factor of ``torch.matmul``, which has the ``size`` given."""
    if other.dim() == 1:
        return grad.unsqueeze(-1) * other if len(size) > 1 else grad * other
    if len(size) == 1:
        return (grad.unsqueeze(-2) @ other.mT).squeeze(-2).sum_to_size(size)
    if other.dim() == 2:
        return grad @ other.t()
    return sum_to(grad @ other.mT, size)


def _matrix(tensor: Tensor) -> Tensor:
    """``tensor`` as a matrix with its last dimension; a size of -1 would not be known of one without elements."""
    return tensor.reshape(tensor.shape[:-1].numel(), tensor.shape[-1])


@implements("autodiff::matmul_other(Tensor grad, Tensor self, int[] size) -> Tensor")
def matmul_other(grad: Tensor, self: Tensor, size: Sizes) -> Tensor:
    """The gradient of the second factor of ``torch.matmul``, which has the ``size`` given."""
    if self.dim() == 1:
        return grad * self if len(size) == 1 else (self.unsqueeze(-1) * grad.unsqueeze(-2)).sum_to_size(size)
    if len(size) == 1:
        return _matrix(self).t().mv(grad.reshape(-1))
    if len(size) == 2:
        return _matrix(self).t() @ _matrix(grad)
    return sum_to(self.mT @ grad, size)


@implements("autodiff::linear_input(Tensor grad, int[] size, Tensor weight) -> Tensor")
def linear_input(grad: Tensor, size: Sizes, weight: Tensor) -> Tensor:
    """The gradient of the input of ``torch.nn.functional.linear``."""
    if weight.dim() == 1:
        return grad.unsqueeze(-1) * weight
    return grad @ weight


@implements("autodiff::linear_weight(Tensor grad, Tensor input, int[] size) -> Tensor")
def linear_weight(grad: Tensor, input: Tensor, size: Sizes) -> Tensor:
    """The gradient of the weight of ``torch.nn.functional.linear``."""
    if len(size) == 1:
        return _matrix(input).t().mv(grad.reshape(-1))
    return _matrix(grad).t() @ _matrix(input)


@implements("autodiff::inner_back(Tensor grad, Tensor self, Tensor other) -> (Tensor, Tensor)")
def inner_back(grad: Tensor, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of ``torch.inner``: of sums over the last dimension, or of the product with a number."""
    if self.dim() == 0 or other.dim() == 0:
        return sum_to(grad * other, self.shape), sum_to(grad * self, other.shape)
    free = self.dim() - 1
    of_self = torch.tensordot(grad, other, (list(range(free, grad.dim())), list(range(other.dim() - 1))))
    of_other = torch.tensordot(grad, self, (list(range(free)), list(range(free))))
    return of_self, of_other


@implements("autodiff::kron_back(Tensor grad, Tensor self, Tensor other) -> (Tensor, Tensor)")
def kron_back(grad: Tensor, self: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of ``torch.kron``, whose result has a block for each element of ``self``."""
    rank = grad.dim()
    outer = [1] * (rank - self.dim()) + list(self.shape)
    inner = [1] * (rank - other.dim()) + list(other.shape)
    blocks = grad.reshape([size for pair in zip(outer, inner, strict=True) for size in pair])
    if rank == 0:
        return grad * other, grad * self
    wide_self = self.reshape([size for length in outer for size in (length, 1)])
    wide_other = other.reshape([size for length in inner for size in (1, length)])
    of_self = (blocks * wide_other).sum(list(range(1, 2 * rank, 2)))
    of_other = (blocks * wide_self).sum(list(range(0, 2 * rank, 2)))
    return of_self.reshape(self.shape), of_other.reshape(other.shape)


@implements(
    "autodiff::tensordot_back(Tensor grad, Tensor self, Tensor other, int[] dims_self, int[] dims_other)"
    " -> (Tensor, Tensor)"
)
def tensordot_back(
    grad: Tensor, self: Tensor, other: Tensor, dims_self: Sizes, dims_other: Sizes
) -> tuple[Tensor, Tensor]:
    """The gradients of ``torch.tensordot``. A dimension of one element goes with one of any length."""
    first = [dim % self.dim() for dim in dims_self]
    second = [dim % other.dim() for dim in dims_other]
    free = [dim for dim in range(self.dim()) if dim not in first]
    rest = [dim for dim in range(other.dim()) if dim not in second]
    a, b = self, other
    for here, there in zip(first, second, strict=True):
        if self.shape[here] != other.shape[there]:
            a = a.sum(here, keepdim=True)
            b = b.sum(there, keepdim=True)
    count = len(free)
    of_self = torch.tensordot(grad, b, (list(range(count, grad.dim())), rest))  # free, then as dims_other are ordered
    order = [*free, *[here for _, here in sorted(zip(second, first, strict=True))]]
    of_other = torch.tensordot(grad, a, (list(range(count)), free))
    behind = [*rest, *[there for _, there in sorted(zip(first, second, strict=True))]]
    return (
        of_self.permute([order.index(dim) for dim in range(self.dim())]).expand(self.shape),
        of_other.permute([behind.index(dim) for dim in range(other.dim())]).expand(other.shape),
    )


@implements("autodiff::multi_dot_back(Tensor grad, Tensor[] tensors) -> Tensor[]")
def multi_dot_back(grad: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of a product of matrices, whose ends may be vectors."""
    row, column = tensors[0].dim() == 1, tensors[-1].dim() == 1
    factors = list(tensors)
    factors[0] = factors[0].unsqueeze(0) if row else factors[0]
    factors[-1] = factors[-1].unsqueeze(-1) if column else factors[-1]
    back = grad.reshape(factors[0].shape[0], factors[-1].shape[1])
    found: list[Tensor] = []
    for index, factor in enumerate(factors):
        behind = factors[index + 1 :]
        rest = behind[0] if len(behind) == 1 else torch.linalg.multi_dot(behind) if behind else None
        found.append((back if rest is None else back @ rest.mT).reshape(tensors[index].shape))
        back = factor.mT @ back
    return found


@implements(
    "autodiff::cdist_back(Tensor grad, Tensor x1, Tensor x2, float p, Tensor result) -> (Tensor, Tensor)",
)
def cdist_back(grad: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of the distances of each row to each."""
    batch = list(result.shape[:-2])
    a = x1.expand([*batch, *x1.shape[-2:]]).contiguous()
    b = x2.expand([*batch, *x2.shape[-2:]]).contiguous()
    of_first = torch.ops.aten._cdist_backward(grad.contiguous(), a, b, p, result.contiguous())
    of_second = torch.ops.aten._cdist_backward(grad.mT.contiguous(), b, a, p, result.mT.contiguous())
    return sum_to(of_first, x1.shape), sum_to(of_second, x2.shape)


_MANY: Final = 256
"""Rows that make a product worth while."""


@implements(
    "autodiff::linear_weight_deferred(Tensor[](a!) grads, Tensor[](b!) inputs, Tensor grad, Tensor input, Tensor? sum, "
    "int[] size) -> Tensor?",
    may_alias_inputs=True,
)
def linear_weight_deferred(
    grads: list[Tensor], inputs: list[Tensor], grad: Tensor, input: Tensor, sum: Tensor | None, size: Sizes
) -> Tensor | None:
    """A sum of gradients of a weight, to which those for ``grad`` and ``input`` are added now or later."""
    grads.append(grad)
    inputs.append(input)
    if grad.numel() // max(1, grad.shape[-1]) * len(grads) < _MANY:
        return sum
    return linear_weight_flush(grads, inputs, sum, size)


@implements(
    "autodiff::linear_weight_flush(Tensor[](a!) grads, Tensor[](b!) inputs, Tensor? sum, int[] size) -> Tensor?",
    may_alias_inputs=True,
)
def linear_weight_flush(grads: list[Tensor], inputs: list[Tensor], sum: Tensor | None, size: Sizes) -> Tensor | None:
    """The same, with all that was collected added to it; None where nothing was ever added."""
    if not grads:
        return sum
    found = linear_weight(_rows(grads), _rows(inputs), size) if len(size) == 2 else _one_by_one(grads, inputs, size)
    grads.clear()
    inputs.clear()
    return found if sum is None else sum + found


def _rows(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat([_matrix(each) for each in tensors])


def _one_by_one(grads: Sequence[Tensor], inputs: Sequence[Tensor], size: Sizes) -> Tensor:
    return torch.stack([linear_weight(*each, size) for each in zip(grads, inputs, strict=True)]).sum(0)


@implements(
    "autodiff::sum_to_deferred(Tensor[](a!) grads, Tensor grad, Tensor? sum, int[] size) -> Tensor?",
    may_alias_inputs=True,
)
def sum_to_deferred(grads: list[Tensor], grad: Tensor, sum: Tensor | None, size: Sizes) -> Tensor | None:
    """A sum of gradients, to which ``grad`` summed to ``size`` is added now or later."""
    grads.append(grad)
    if grad.numel() // max(1, grad.shape[-1] if grad.dim() else 1) * len(grads) < _MANY:
        return sum
    return sum_to_flush(grads, sum, size)


@implements("autodiff::sum_to_flush(Tensor[](a!) grads, Tensor? sum, int[] size) -> Tensor?", may_alias_inputs=True)
def sum_to_flush(grads: list[Tensor], sum: Tensor | None, size: Sizes) -> Tensor | None:
    """The same, with all that was collected added to it; None where nothing was ever added."""
    if not grads:
        return sum
    if all(grad.shape == grads[0].shape for grad in grads):
        found = sum_to(grads[0] if len(grads) == 1 else torch.stack(grads), size)
    else:
        found = torch.stack([sum_to(grad, size) for grad in grads]).sum(0)
    grads.clear()
    return found if sum is None else sum + found
