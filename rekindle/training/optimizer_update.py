"""The update of an optimizer of ``torch.optim`` by kernels.

The state stays in the optimizer: kernels read and overwrite its tensors, so that ``optimizer.state_dict()`` is that of
PyTorch's own update. PyTorch's update runs where a kernel cannot: in a step that creates state, and for
what neither :data:`~rekindle.training.update_rules.RULES` nor the kernels serve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer, optimizer as torch_optimizer

from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.training.gradients import Clipping, GradientNorm
from rekindle.training.kernel_tables import KernelTable, addresses
from rekindle.training.parameter_blocks import NoKernel, ParameterBlock, blocks_of_group
from rekindle.training.update_kernels import count_kernel, update_kernel
from rekindle.training.update_rules import RULES
from rekindle.training.weight_average import WeightAverage


class OptimizerUpdate:
    """Update of the parameters of ``optimizer`` that have gradients: clipping by ``clipping``, the optimizer's rule,
    and then the weight ``average``.

    It has what ``torch.amp.GradScaler`` needs of an optimizer: ``param_groups`` and :meth:`step`.
    """

    def __init__(self, optimizer: Optimizer, clipping: Clipping, average: WeightAverage | None) -> None:
        self.optimizer = optimizer
        self.gradient_norm: float | None = None
        """The norm of all gradients in the last update, before they were clipped; None before the first update, or if
        no norm is limited."""
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
        """Update parameters, optimizer state and averages in place: by kernels, or by PyTorch's code if kernels cannot,
        which is counted in ``fallbacks``. Set ``gradient_norm``."""
        weight = None if self._average is None else self._average.weight
        try:
            blocks = self._blocks(weight)
            norm = self._total_norm(blocks)
            launches = [self._launch(block, self._clipping.factor(norm), weight) for block in blocks]
            launches += _counts([step for block in blocks for step in block.steps])
        except (NoKernel, Unsupported) as error:
            reason = str(error) if isinstance(error, NoKernel) else f"no kernel can be made: {error}"
            self.fallbacks[reason] += 1
            self._run_pytorch()
            return
        self.gradient_norm = None if self._clipping.max_norm is None else norm
        for table, numbers in launches:
            table.run(numbers)
        # Kernels write to memory that autograd does not see: without this, a backward might read new weights for old.
        torch.autograd.graph.increment_version(
            [each for block in blocks for column in block.written for each in column]
        )
        # Schedulers of learning rates set this in a wrapper of optimizer.step, and warn if it is missing.
        vars(self.optimizer)["_opt_called"] = True
        if self._average is not None:
            self._update_other_averages(self._average, blocks, weight)

    def _run_pytorch(self) -> None:
        """Clip the gradients, set ``gradient_norm``, and update the parameters and averages, by PyTorch's code."""
        parameters = [each for group in self.param_groups for each in group["params"] if each.grad is not None]
        self.gradient_norm = self._clipping.clip(parameters)
        self.optimizer.step()
        if self._average is not None:
            self._average.update()

    @staticmethod
    def _update_other_averages(average: WeightAverage, blocks: Sequence[ParameterBlock], weight: float | None) -> None:
        if weight is None:
            average.update()
        else:
            average.finish({id(each) for block in blocks for each in block.parameters})

    def _blocks(self, weight: float | None) -> list[ParameterBlock]:
        """Return the parameters that have gradients, in blocks that one kernel each can update. Nothing is written.

        Raises:
            NoKernel: kernels cannot update all of them.
        """
        rule = RULES.get(type(self.optimizer))
        if rule is None:
            raise NoKernel(f"{type(self.optimizer).__name__} has no update rule")
        if self._clipping.max_norm is not None and self._norm is None:
            raise NoKernel(f"there is no kernel for norms of order {self._clipping.norm_type}")
        _check_step_is_pytorchs(self.optimizer)
        averages: dict[int, Tensor] = {}
        if self._average is not None and weight is not None:
            averages = {id(parameter): average for parameter, average in self._average.pairs()}
        return [
            block for group in self.param_groups for block in blocks_of_group(self.optimizer, rule, group, averages)
        ]

    def _total_norm(self, blocks: Sequence[ParameterBlock]) -> float:
        """Return the norm of all gradients, or 0 if it is not limited."""
        if self._norm is None:
            return 0.0
        return self._norm([each for block in blocks for each in block.gradients if each.numel()])

    def _launch(
        self, block: ParameterBlock, factor: float, weight: float | None
    ) -> tuple[KernelTable, tuple[float, ...]]:
        """Return the compiled kernel that updates ``block``, as a table of its tensors, and the kernel's numbers.

        Raises:
            NoKernel: a hyperparameter is out of range.
            Unsupported: the kernel cannot be generated for the dtype.
        """
        limit = self._clipping.max_value
        numbers = (*block.update.numbers, factor * block.sign)
        if limit is not None:
            numbers = (*numbers, limit, -limit)
        if block.decay is not None:
            numbers = (*numbers, block.decay.number)
        if block.averages and weight is not None:
            numbers = (*numbers, weight)
        kernel = update_kernel(
            block.update.program,
            clamps=limit is not None,
            decoupled=None if block.decay is None else block.decay.decoupled,
            averages=bool(block.averages),
        )
        table = KernelTable(kernel, block.dtype)
        if not table.accepts(numbers):
            raise NoKernel("a hyperparameter is out of the range of float32")
        written = list(map(addresses, block.written))
        operands = [written[0], addresses(block.gradients), *written[1:]]
        table.extend(map(Tensor.numel, block.parameters), [*operands, *written])
        return table, numbers


def _counts(steps: Sequence[Tensor]) -> list[tuple[KernelTable, tuple[float, ...]]]:
    """Return tables, each with no numbers, whose kernels add 1 to each of ``steps``.

    Raises:
        Unsupported: the kernel cannot be generated for a dtype.
    """
    tables: list[tuple[KernelTable, tuple[float, ...]]] = []
    for dtype in {each.dtype for each in steps}:
        table = KernelTable(count_kernel(), dtype)
        counts = addresses(each for each in steps if each.dtype is dtype)
        table.extend([1] * len(counts), [counts, counts])
        tables.append((table, ()))
    return tables


def _check_step_is_pytorchs(optimizer: Optimizer) -> None:
    """Check that ``optimizer.step`` is the method of its class or wraps it, and that no hooks are registered.

    Raises:
        NoKernel: the method was replaced, or there are hooks.
    """
    replaced = vars(optimizer).get("step")
    # Schedulers of learning rates wrap the method.
    if replaced is not None and getattr(replaced, "__wrapped__", None) is not type(optimizer).step:
        raise NoKernel("the method step of the optimizer was replaced")
    hooks: list[Mapping[int, object]] = [
        optimizer._optimizer_step_pre_hooks,
        optimizer._optimizer_step_post_hooks,
        torch_optimizer._global_optimizer_pre_hooks,
        torch_optimizer._global_optimizer_post_hooks,
    ]
    if any(hooks):
        raise NoKernel("the optimizer has hooks")
