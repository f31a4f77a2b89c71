"""The gradients of products of matrices."""

from __future__ import annotations

from torch import Tensor

from rekindle.autodiff.backward_operators.sizes import Sizes, sum_to
from rekindle.ops.declare import implements


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


@implements("autodiff::matmul_other(Tensor grad, Tensor self, int[] size) -> Tensor")
def matmul_other(grad: Tensor, self: Tensor, size: Sizes) -> Tensor:
    """The gradient of the second factor of ``torch.matmul``, which has the ``size`` given."""
    if self.dim() == 1:
        return grad * self if len(size) == 1 else (self.unsqueeze(-1) * grad.unsqueeze(-2)).sum_to_size(size)
    if len(size) == 1:
        return self.reshape(-1, self.shape[-1]).t().mv(grad.reshape(-1))
    if len(size) == 2:
        return self.reshape(-1, self.shape[-1]).t() @ grad.reshape(-1, grad.shape[-1])
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
        return input.reshape(-1, input.shape[-1]).t().mv(grad.reshape(-1))
    return grad.reshape(-1, grad.shape[-1]).t() @ input.reshape(-1, input.shape[-1])
