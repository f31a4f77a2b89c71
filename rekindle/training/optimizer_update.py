"""The update of an optimizer of ``torch.optim`` by kernels.

The state stays in the optimizer: kernels read and overwrite its tensors, so that ``optimizer.state_dict()`` is that of
PyTorch's own update. PyTorch's update runs where a kernel cannot: in the first step, which creates the state, and for
what neither :data:`~rekindle.training.update_rules.RULES` nor the kernels serve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.optim import Optimizer, optimizer as torch_optimizer

from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.training.gradients import Clipping, GradientNorm
from rekindle.training.kernel_tables import KernelTable
from rekindle.training.update_kernels import update_kernel
from rekindle.training.update_rules import COUNTS_STEPS, RULES, Rule, Update
from rekindle.training.weight_average import WeightAverage

_DTYPES: Final = frozenset({torch.float32, torch.float64, torch.bfloat16, torch.float16})
_PLAIN_TYPES: Final = frozenset({Tensor, torch.nn.Parameter})
_RECORDED: Final = ("capturable", "differentiable")
"""Options of optimizers whose updates CUDA graphs or autograd record."""


class _NoKernel(Exception):
    """PyTorch's own update has to run, for the reason that the message gives."""


@dataclass(slots=True)
class _Row:
    """A parameter that is updated, with its gradient, state and weight average. ``sign`` is -1 if the loss is
    maximized."""

    update: Update
    sign: float
    parameter: Tensor
    gradient: Tensor
    state: list[Tensor]
    step: Tensor | None
    average: Tensor | None

    @property
    def written(self) -> list[Tensor]:
        """The tensors that the kernel overwrites."""
        return [self.parameter, *self.state, *([] if self.average is None else [self.average])]

    @property
    def read(self) -> list[Tensor]:
        """The tensors that the kernel reads, in its order."""
        return [self.parameter, self.gradient, *self.state, *([] if self.average is None else [self.average])]


class OptimizerUpdate:
    """Updates the parameters of ``optimizer`` that have gradients, clipped by ``clipping``, and then ``average``.

    It has what ``torch.amp.GradScaler`` needs of an optimizer: ``param_groups`` and :meth:`step`.
    """

    def __init__(self, optimizer: Optimizer, clipping: Clipping, average: WeightAverage | None) -> None:
        self.optimizer = optimizer
        self.gradient_norm: float | None = None
        """The norm of all gradients in the last update, before they were clipped; None if no norm is limited."""
        self.fallbacks: Counter[str] = Counter()
        """The number of updates that PyTorch's own code did, by reason."""
        self._clipping = clipping
        self._average = average
        self._norm = GradientNorm(clipping.norm_type) if GradientNorm.serves(clipping) else None

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return self.optimizer.param_groups

    @torch.no_grad()
    def step(self) -> None:
        """Update the parameters."""
        weight = None if self._average is None else self._average.weight
        try:
            rows = self._rows(weight)
            norm = self._total_norm(rows)
            tables = self._tables(rows, self._clipping.factor(norm), weight)
        except _NoKernel as reason:
            self.fallbacks[str(reason)] += 1
            self._run_pytorch()
            return
        self.gradient_norm = None if self._clipping.max_norm is None else norm
        steps = [row.step for row in rows if row.step is not None]
        if steps:
            torch._foreach_add_(steps, 1)
        for table, numbers in tables:
            table.run(numbers)
        # Kernels write to memory that autograd does not see: without this, a backward might read new weights for old.
        torch.autograd.graph.increment_version([each for row in rows for each in row.written])
        # Schedulers of learning rates set this in a wrapper of optimizer.step, and warn if it is missing.
        vars(self.optimizer)["_opt_called"] = True
        if self._average is not None:
            self._update_other_averages(self._average, rows, weight)

    def _run_pytorch(self) -> None:
        """Clip the gradients and update the parameters and averages by PyTorch's code."""
        parameters = [each for group in self.param_groups for each in group["params"] if each.grad is not None]
        self.gradient_norm = self._clipping.clip(parameters)
        self.optimizer.step()
        if self._average is not None:
            self._average.update()

    @staticmethod
    def _update_other_averages(average: WeightAverage, rows: Sequence[_Row], weight: float | None) -> None:
        if weight is None:
            average.update()
        else:
            average.finish({id(row.parameter) for row in rows})

    # ------------------------------------------------------------------------------------------------------------ rows

    def _rows(self, weight: float | None) -> list[_Row]:
        """Return the parameters that have gradients. Nothing is written.

        Raises:
            _NoKernel: kernels cannot update all of them.
        """
        rule = RULES.get(type(self.optimizer))
        if rule is None:
            raise _NoKernel(f"{type(self.optimizer).__name__} has no update rule")
        if self._clipping.max_norm is not None and self._norm is None:
            raise _NoKernel(f"there is no kernel for norms of order {self._clipping.norm_type}")
        _check_step_is_pytorchs(self.optimizer)
        averages: dict[int, Tensor] = {}
        if self._average is not None and weight is not None:
            averages = {id(parameter): average for parameter, average in self._average.pairs()}
        rows: list[_Row] = []
        for group in self.param_groups:
            rows += _rows_of_group(self.optimizer, rule, group, averages)
        return rows

    def _total_norm(self, rows: Sequence[_Row]) -> float:
        """Return the norm of all gradients, or 0 if it is not limited."""
        if self._norm is None:
            return 0.0
        try:
            return self._norm([row.gradient for row in rows if row.gradient.numel()])
        except Unsupported as error:
            raise _NoKernel(f"no kernel can be made: {error}") from error

    def _tables(
        self, rows: Sequence[_Row], factor: float, weight: float | None
    ) -> list[tuple[KernelTable, tuple[float, ...]]]:
        """Return the kernels that update ``rows``, compiled, each with its numbers."""
        limit = self._clipping.max_value
        limits = () if limit is None else (limit, -limit)
        tables: dict[object, tuple[KernelTable, tuple[float, ...]]] = {}
        for row in rows:
            if not row.parameter.numel():
                continue
            update, averages, dtype = row.update, row.average is not None, row.parameter.dtype
            # Rows of a group share their update, which is compared by identity, because that is faster.
            key = (id(update), averages, dtype)
            found = tables.get(key)
            if found is None:
                kernel = update_kernel(update.program, clamps=limit is not None, averages=averages)
                numbers = (*update.numbers, factor * row.sign, *limits)
                found = KernelTable(kernel, dtype), (*numbers, weight) if averages and weight is not None else numbers
                tables[key] = found
                if not found[0].accepts(found[1]):
                    raise _NoKernel("a hyperparameter is out of the range of float32")
            try:
                found[0].add(row.parameter.numel(), [each.data_ptr() for each in (*row.read, *row.written)])
            except Unsupported as error:
                raise _NoKernel(f"no kernel can be made: {error}") from error
        return list(tables.values())


def _check_step_is_pytorchs(optimizer: Optimizer) -> None:
    """Check that ``optimizer.step`` is what PyTorch defines, without hooks.

    Raises:
        _NoKernel: it is not.
    """
    replaced = vars(optimizer).get("step")
    # Schedulers of learning rates wrap the method.
    if replaced is not None and getattr(replaced, "__wrapped__", None) is not type(optimizer).step:
        raise _NoKernel("the method step of the optimizer was replaced")
    hooks: list[Mapping[int, object]] = [
        optimizer._optimizer_step_pre_hooks,
        optimizer._optimizer_step_post_hooks,
        torch_optimizer._global_optimizer_pre_hooks,
        torch_optimizer._global_optimizer_post_hooks,
    ]
    if any(hooks):
        raise _NoKernel("the optimizer has hooks")


def _rows_of_group(
    optimizer: Optimizer, rule: Rule, group: Mapping[str, Any], averages: Mapping[int, Tensor]
) -> list[_Row]:
    for option in _RECORDED:
        if group.get(option):
            raise _NoKernel(f"the optimizer has the option {option}")
    if any(isinstance(each, Tensor) and each.requires_grad for each in group.values()):
        raise _NoKernel("a hyperparameter requires gradients")
    counts_steps = type(optimizer) in COUNTS_STEPS
    sign = -1.0 if group["maximize"] else 1.0
    updates: dict[float, Update] = {}
    rows = []
    for parameter in group["params"]:
        gradient = parameter.grad
        if gradient is None:
            continue
        state = optimizer.state.get(parameter, {})
        step = state.get("step") if counts_steps else None
        number = 1.0
        if counts_steps:
            if step is None:
                raise _NoKernel("the optimizer has no state yet")
            if not isinstance(step, Tensor) or not step.is_cpu:
                raise _NoKernel("the number of updates is not a tensor on the CPU")
            number = float(step) + 1
        update = updates.get(number)
        if update is None:
            update = updates[number] = rule(group, number)
        tensors = [state[name] for name in update.state if state.get(name) is not None]
        if len(tensors) < len(update.state):
            raise _NoKernel("the optimizer has no state yet")
        row = _Row(update, sign, parameter, gradient, tensors, step, averages.get(id(parameter)))
        _check_memory(row)
        rows.append(row)
    return rows


def _check_memory(row: _Row) -> None:
    """Check that a kernel can walk the tensors of ``row`` as contiguous memory in one order. A gradient that it cannot
    walk is copied.

    Raises:
        _NoKernel: it cannot.
    """
    parameter = row.parameter
    dtype, shape = parameter.dtype, parameter.shape
    if dtype not in _DTYPES:
        raise _NoKernel(f"there are no kernels for parameters of {dtype}")
    for each in row.read:
        if type(each) not in _PLAIN_TYPES or not each.is_cpu or each.layout is not torch.strided:
            raise _NoKernel("a tensor is a subclass of Tensor, on another device than the CPU, or not dense")
        if each.dtype is not dtype or each.shape != shape:
            raise _NoKernel("gradients, state or averages are not of the dtype and shape of their parameter")
    order = next((each for each in _orders(parameter.dim()) if parameter.is_contiguous(memory_format=each)), None)
    if order is None or not all(each.is_contiguous(memory_format=order) for each in row.written):
        raise _NoKernel("parameters, state or averages are not contiguous in one order")
    if row.gradient.is_neg():
        row.gradient = row.gradient.resolve_neg()
    if not row.gradient.is_contiguous(memory_format=order):
        row.gradient = row.gradient.contiguous(memory_format=order)


def _orders(rank: int) -> tuple[torch.memory_format, ...]:
    match rank:
        case 4:
            return (torch.contiguous_format, torch.channels_last)
        case 5:
            return (torch.contiguous_format, torch.channels_last_3d)
        case _:
            return (torch.contiguous_format,)
