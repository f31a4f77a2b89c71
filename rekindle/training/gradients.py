"""Gradient norms and gradient clipping, as PyTorch's ``clip_grad_norm_`` and ``clip_grad_value_`` define them.

Kernels do not write to the gradients: the norm becomes a factor, by which the update multiplies them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn

from rekindle.scripting.script import script
from rekindle.training.kernel_tables import KernelTable, TableKernel, addresses

_EPSILON = 1e-6
"""The number that PyTorch adds to a norm before it divides by the norm."""


@dataclass(slots=True, frozen=True)
class Clipping:
    """Limits of gradients: of the ``norm_type`` norm of all gradients together, or of the magnitude of each element."""

    max_norm: float | None = None
    norm_type: float = 2.0
    max_value: float | None = None

    def factor(self, norm: float) -> float:
        """Return the number by which gradients of this total norm are multiplied: at most 1. It is NaN if ``norm``
        is NaN, and 1 if there is no maximum norm."""
        if self.max_norm is None:
            return 1.0
        factor = self.max_norm / (norm + _EPSILON)
        return 1.0 if factor > 1 else factor

    def clip(self, parameters: Sequence[Tensor]) -> float | None:
        """Clip the gradients of ``parameters`` in place by PyTorch's functions. Return their norm before clipping; None
        if the norm is not limited."""
        if self.max_value is not None:
            nn.utils.clip_grad_value_(parameters, self.max_value)
        if self.max_norm is None:
            return None
        return float(nn.utils.clip_grad_norm_(parameters, self.max_norm, self.norm_type))


def average_over_processes(parameters: Sequence[Tensor], group: distributed.ProcessGroup) -> None:
    """Average the gradients of ``parameters`` over the processes of ``group``, in place, as ``DistributedDataParallel``
    does in a backward. If only other processes have a gradient, it counts as zeros here, and is created."""
    exists = torch.tensor(
        [each.grad is not None for each in parameters], dtype=torch.int32, device=parameters[0].device
    )
    distributed.all_reduce(exists, distributed.ReduceOp.MAX, group)
    for parameter, some in zip(parameters, exists.tolist(), strict=True):
        if some:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            distributed.all_reduce(parameter.grad, group=group)
            parameter.grad.div_(group.size())


def _sum_of_squares(x: Tensor) -> Tensor:
    return x.double().square().sum()


def _largest(x: Tensor) -> Tensor:
    return x.double().abs().max()


class GradientNorm:
    """Norm of several contiguous CPU tensors together: the largest magnitude if ``norm_type`` is infinite, else of
    order 2. Callers test :meth:`serves` first."""

    def __init__(self, norm_type: float) -> None:
        self._is_largest = math.isinf(norm_type)
        program = _largest if self._is_largest else _sum_of_squares
        self._kernel = TableKernel(script(program).inlined_graph, "gradient_norm", reduces=True)

    @staticmethod
    def serves(clipping: Clipping) -> bool:
        """Return whether the norm is limited, and there is a kernel for its order."""
        return clipping.max_norm is not None and clipping.norm_type in (2.0, math.inf)

    def __call__(self, gradients: Sequence[Tensor]) -> float:
        """Return the norm.

        Raises:
            Unsupported: there is no kernel for the dtype.
        """
        by_dtype: dict[torch.dtype, list[Tensor]] = {}
        for each in gradients:
            by_dtype.setdefault(each.dtype, []).append(each)
        parts = torch.zeros(len(gradients) or 1, dtype=torch.float64, device="cpu")
        first = parts.data_ptr()
        for dtype, tensors in by_dtype.items():
            table, end = KernelTable(self._kernel, dtype), first + len(tensors) * parts.itemsize
            table.extend(map(Tensor.numel, tensors), [addresses(tensors), range(first, end, parts.itemsize)])
            table.run()
            first = end
        return float(parts.max() if self._is_largest else parts.sum().sqrt())
