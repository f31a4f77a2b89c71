"""Blocks of parameters that one kernel updates.

A block is stored in columns: the list of its parameters, that of their gradients, and so on. The requirements of a
kernel are checked column by column, because a model may have hundreds of parameters, and Python iterates over a list
much faster than it calls a function for each element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import torch
from torch import Tensor
from torch.optim import Optimizer

from rekindle.training.update_rules import COUNTS_STEPS, Rule, Update, WeightDecay

_DTYPES: Final = frozenset({torch.float32, torch.float64, torch.bfloat16, torch.float16})
_PLAIN_TYPES: Final = frozenset({Tensor, torch.nn.Parameter})
_COUNTS: Final = frozenset({(torch.strided, True, dtype, ()) for dtype in (torch.float32, torch.float64)})
_KIND: Final = attrgetter("layout", "is_cpu", "dtype", "shape")
_DENSE: Final = frozenset({(torch.strided, True)})
_STORAGE: Final = attrgetter("layout", "is_cpu")
_DTYPE: Final = attrgetter("dtype")
_SHAPE: Final = attrgetter("shape")
_RECORDED: Final = ("capturable", "differentiable")
"""Options with which CUDA graphs or autograd record the updates of an optimizer."""


class NoKernel(Exception):
    """Raised if PyTorch's own update has to run, for the reason in the message."""


@dataclass(slots=True)
class ParameterBlock:
    """Parameters of one dtype with the same update, their gradients, the tensors of their state in columns, their
    counts of updates, and their weight averages. ``sign`` is -1 if the loss is maximized. Equal positions of the
    lists belong together; ``steps`` or ``averages`` is empty if there are none."""

    update: Update
    decay: WeightDecay | None
    sign: float
    dtype: torch.dtype
    parameters: list[Tensor]
    gradients: list[Tensor]
    state: list[list[Tensor]]
    steps: list[Tensor]
    averages: list[Tensor]

    @property
    def written(self) -> list[list[Tensor]]:
        """The columns that the kernel overwrites."""
        return [self.parameters, *self.state, *([self.averages] if self.averages else [])]

    @property
    def read(self) -> list[list[Tensor]]:
        """The columns that the kernel reads: the gradients after the parameters, then as in ``written``."""
        return [self.parameters, self.gradients, *self.state, *([self.averages] if self.averages else [])]


def blocks_of_group(
    optimizer: Optimizer, rule: Rule, group: Mapping[str, Any], averages: Mapping[int, Tensor]
) -> list[ParameterBlock]:
    """Return the parameters of ``group`` that have gradients, in blocks. Nothing is written. ``averages`` maps the id
    of a parameter to its weight average.

    Raises:
        NoKernel: kernels cannot update all of them.
    """
    for option in _RECORDED:
        if group.get(option):
            raise NoKernel(f"the optimizer has the option {option}")
    if any(isinstance(each, Tensor) and each.requires_grad for each in group.values()):
        raise NoKernel("a hyperparameter requires gradients")
    parameters = [each for each in group["params"] if each.grad is not None]
    states = [optimizer.state.get(each, {}) for each in parameters]
    steps = _steps(states) if type(optimizer) in COUNTS_STEPS else []
    numbers = [float(each) + 1 for each in steps] or [1.0] * len(parameters)
    of_parameters = [averages.get(id(each)) for each in parameters]
    has_average = [each is not None for each in of_parameters]
    positions: dict[tuple[float, torch.dtype, bool], list[int]] = {}
    for index, key in enumerate(zip(numbers, map(_DTYPE, parameters), has_average, strict=True)):
        positions.setdefault(key, []).append(index)
    sign = -1.0 if group["maximize"] else 1.0
    blocks = []
    for (number, dtype, _), chosen in positions.items():
        update = rule(group, number)
        state = [[states[index].get(name) for index in chosen] for name in update.state]
        if any(each is None for column in state for each in column):
            raise NoKernel("the optimizer has no state yet")
        block = ParameterBlock(
            update,
            WeightDecay.of_group(type(optimizer), group),
            sign,
            dtype,
            parameters=[parameters[index] for index in chosen],
            gradients=[parameters[index].grad for index in chosen],
            state=state,
            steps=[steps[index] for index in chosen] if steps else [],
            averages=[each for index in chosen if (each := of_parameters[index]) is not None],
        )
        _check_memory(block)
        blocks.append(block)
    return blocks


def _steps(states: Sequence[Mapping[str, Any]]) -> list[Tensor]:
    """Return the tensors that count the updates, one for each of ``states``.

    Raises:
        NoKernel: a state has no count, or one that is not a CPU tensor of one float.
    """
    steps = [each["step"] for each in states if "step" in each]
    if len(steps) < len(states):
        raise NoKernel("the optimizer has no state yet")
    if set(map(type, steps)) - {Tensor} or set(map(_KIND, steps)) - _COUNTS:
        raise NoKernel("the number of updates is not a tensor of one float on the CPU")
    return steps


def _check_memory(block: ParameterBlock) -> None:
    """Check that a kernel can walk the tensors at each position as contiguous memory in one order. Gradients for which
    this does not hold are replaced by copies in ``block``.

    Raises:
        NoKernel: parameters, state or averages are of a kind or layout that kernels do not support.
    """
    if block.dtype not in _DTYPES:
        raise NoKernel(f"there are no kernels for parameters of {block.dtype}")
    shapes = list(map(_SHAPE, block.parameters))
    for column in block.read:
        if not _PLAIN_TYPES.issuperset(map(type, column)) or not _DENSE.issuperset(map(_STORAGE, column)):
            raise NoKernel("a tensor is a subclass of Tensor, on another device than the CPU, or not dense")
        if set(map(_DTYPE, column)) != {block.dtype} or list(map(_SHAPE, column)) != shapes:
            raise NoKernel("gradients, state or averages are not of the dtype and shape of their parameter")
    if any(map(Tensor.is_neg, chain.from_iterable(block.written))):
        raise NoKernel("parameters, state or averages are negated lazily")
    orders = _memory_orders(block)
    if any(map(Tensor.is_neg, block.gradients)):
        block.gradients = [each.resolve_neg() for each in block.gradients]
    block.gradients = [
        each if each.is_contiguous(memory_format=order) else each.contiguous(memory_format=order)
        for each, order in zip(block.gradients, orders, strict=True)
    ]


def _memory_orders(block: ParameterBlock) -> list[torch.memory_format]:
    """Return for each position a memory format in which all tensors that the kernel overwrites are contiguous.

    Raises:
        NoKernel: some position has no such format.
    """
    if all(map(Tensor.is_contiguous, chain.from_iterable(block.written))):
        return [torch.contiguous_format] * len(block.parameters)
    orders = []
    for tensors in zip(*block.written, strict=True):
        possible = _ORDERS.get(tensors[0].dim(), (torch.contiguous_format,))
        order = next((one for one in possible if all(each.is_contiguous(memory_format=one) for each in tensors)), None)
        if order is None:
            raise NoKernel("parameters, state or averages are not contiguous in one order")
        orders.append(order)
    return orders


_ORDERS: Final[Mapping[int, tuple[torch.memory_format, ...]]] = {
    4: (torch.contiguous_format, torch.channels_last),
    5: (torch.contiguous_format, torch.channels_last_3d),
}
"""Memory formats by the number of dimensions. Other tensors may only be contiguous."""
