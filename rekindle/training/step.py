"""Training steps: forward, loss, backward, clipping, and the update of parameters and averages in one call."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from rekindle.program.modules.module import ScriptModule
from rekindle.training.forward import LossProgram
from rekindle.training.gradients import Clipping, average_over_processes
from rekindle.training.optimizer_update import OptimizerUpdate
from rekindle.training.weight_average import WeightAverage


def compile_step(
    model: nn.Module,
    loss: Callable[..., Tensor] | None,
    optimizer: Optimizer,
    *,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    max_value: float | None = None,
    accumulate: int = 1,
    autocast: torch.dtype | None = None,
    scaler: torch.amp.GradScaler | None = None,
    average: AveragedModel | None = None,
) -> TrainingStep:
    """Compile a training step: forward, loss, backward, clipping of gradients, update of the parameters, and of their
    averages.

    The model and the loss become one program. The optimizer keeps its state and hyperparameters: learning rates may be
    scheduled, state dicts saved and loaded, and steps of PyTorch's own loop and compiled ones may alternate. SGD, Adam,
    AdamW, RAdam, Adamax, RMSprop, Adagrad, Adadelta and Rprop have kernels, for parameters on the CPU. For others
    PyTorch's own update runs.

    Args:
        model: the model. A module that is not compiled yet is compiled, and follows the original's ``train()`` and
            ``eval()``; both have the same parameters and buffers. A module that wraps compiled ones, such as
            ``DistributedDataParallel``, is called as it is, and so is a model of ``torch.compile``.
        loss: takes the result of the model and the targets, and returns a tensor with one element. It is compiled. None
            if the model returns its loss.
        optimizer: an optimizer of ``torch.optim`` for the parameters of ``model``.
        max_norm: the largest norm that all gradients together may have, as for ``clip_grad_norm_``.
        norm_type: the order of that norm.
        max_value: the largest magnitude that an element of a gradient may have, as for ``clip_grad_value_``.
        accumulate: the number of calls whose gradients are averaged before an update.
        autocast: the dtype of autocasting in the forward; None for none.
        scaler: scales the loss, skips updates with infinite gradients, and adjusts its scale.
        average: exponential moving averages of the weights, which are updated with them.

    Returns:
        The step, which is called with the inputs and targets of a batch.

    Raises:
        CompileError: the model or the loss cannot be compiled.
        TypeError: the optimizer evaluates the loss several times in a step, as LBFGS does.
        ValueError: the optimizer has no parameter of the model, ``average`` has parameters of other shapes, both
            ``max_norm`` and ``max_value`` are given, or ``accumulate`` is less than 1.

    Example:
        >>> net = torch.nn.Linear(4, 1)
        >>> optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
        >>> step = rekindle.compile_step(net, torch.nn.functional.mse_loss, optimizer, max_norm=1.0)
        >>> x = torch.randn(64, 4)
        >>> losses = [float(step(x, x.sum(1, keepdim=True))) for _ in range(50)]
        >>> losses[-1] < losses[0] / 4
        True
    """
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise TypeError(
            f"{type(optimizer).__name__} evaluates the loss several times in a step: compile the model with script, "
            "and call optimizer.step(closure)"
        )
    if max_norm is not None and max_value is not None:
        raise ValueError("gradients are clipped by max_norm or by max_value, not by both")
    if accumulate < 1:
        raise ValueError(f"accumulate is the number of calls for an update, at least 1, not {accumulate}")
    program = LossProgram(model, loss)
    own = {id(each) for each in program.model.parameters()}
    if not any(id(each) in own for group in optimizer.param_groups for each in group["params"]):
        raise ValueError("the optimizer has no parameter of the model: create it from model.parameters()")
    if average is not None and not _has_parameters_of(average, program.model):
        raise ValueError("average has other parameters than the model: create it by AveragedModel(model)")
    clipping = Clipping(max_norm, norm_type, max_value)
    averaged = None if average is None else WeightAverage(average, program.model)
    return TrainingStep(program, OptimizerUpdate(optimizer, clipping, averaged), accumulate, autocast, scaler)


def _has_parameters_of(average: AveragedModel, model: nn.Module) -> bool:
    return [each.shape for each in average.parameters()] == [each.shape for each in model.parameters()]


class TrainingStep:
    """A compiled training step: see :func:`compile_step`, which makes it.

    Attributes:
        accumulated: the number of calls whose gradients wait for an update.

    Example:
        >>> net = torch.nn.Linear(4, 1)
        >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        >>> step = rekindle.compile_step(net, torch.nn.functional.mse_loss, optimizer, accumulate=2)
        >>> for x in torch.randn(3, 8, 4):
        ...     loss = step(x, x.sum(1, keepdim=True))
        >>> step.accumulated
        1
        >>> step.update()
        >>> step.accumulated, dict(step.fallbacks)
        (0, {})
    """

    def __init__(
        self,
        program: LossProgram,
        update: OptimizerUpdate,
        accumulate: int,
        autocast: torch.dtype | None,
        scaler: torch.amp.GradScaler | None,
    ) -> None:
        self.accumulated = 0
        self._program = program
        self._model = program.model
        self._update = update
        self._accumulate = accumulate
        self._autocast = autocast
        self._scaler = scaler
        self._last_gradients: list[Tensor] = []
        """The gradients of the last update on the CPU. The next call frees them before it needs as much memory again:
        if they were freed at once, the allocator would return their pages to the system, and each call would fault
        them in."""

    @property
    def model(self) -> nn.Module:
        """The compiled model; the given model if that is called as it is. Each call of the step, and each use of this
        property, gives it the training mode of the model that it was compiled from, if that has changed since."""
        self._program.follow_modes()
        return self._model

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer, which holds the state."""
        return self._update.optimizer

    @property
    def gradient_norm(self) -> float | None:
        """The norm of all gradients in the last update, before they were clipped; None before the first update, or
        without ``max_norm``."""
        return self._update.gradient_norm

    @property
    def fallbacks(self) -> Counter[str]:
        """The number of updates that PyTorch's own code did instead of kernels, by reason. The first update is one of
        them if the optimizer has state, which PyTorch creates."""
        return self._update.fallbacks

    def __call__(self, inputs: Any, *targets: Any) -> Tensor:
        """Run a step on a batch; return its loss, detached.

        Gradients that the optimizer's parameters have before the first of the accumulated calls are discarded. They are
        None after an update. Their memory on the CPU is freed in the next call.

        Args:
            inputs: the argument of the model, or a tuple of its arguments. A named tuple is one argument.
            targets: the further arguments of the loss.
        """
        updates = self.accumulated + 1 >= self._accumulate
        if self.accumulated == 0:
            self._clear()
            self._last_gradients = []
        with self._without_reduction() if not updates else nullcontext():
            with self._autocasting():
                loss = self._program(inputs if type(inputs) is tuple else (inputs,), targets)
            self._backward(loss)
        self.accumulated += 1
        if updates:
            self.update()
        return loss.detach()

    def update(self) -> None:
        """Update the parameters by the gradients that they have, then clear the gradients.

        Call it at the end of an epoch whose number of batches ``accumulate`` does not divide: the sum of the gradients
        is divided by ``accumulate`` then too. It has no effect if no parameter has a gradient and ``accumulated`` is 0.

        Raises:
            RuntimeError: the gradients of distributed processes were not reduced, and cannot be: the model has
                ``no_sync`` but is not a ``DistributedDataParallel``.
        """
        if self.accumulated == 0 and not self._has_gradients():
            return
        if 0 < self.accumulated < self._accumulate:
            self._reduce()
        # First, so that the call after an update that raises starts from no gradients.
        self.accumulated = 0
        if self._scaler is None:
            self._update.step()
        else:
            self._scaler.step(self._update)  # type: ignore[arg-type]  # it unscales the gradients first
            self._scaler.update()
        self._clear()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a training step cannot be copied or pickled: save the state dicts of its model and optimizer, or compile "
            "a step for copies of them"
        )

    def _has_gradients(self) -> bool:
        return any(each.grad is not None for group in self.optimizer.param_groups for each in group["params"])

    def _backward(self, loss: Tensor) -> None:
        part = loss if self._accumulate == 1 else loss / self._accumulate
        (part if self._scaler is None else self._scaler.scale(part)).backward()

    def _clear(self) -> None:
        cleared = []
        for group in self.optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_cpu:
                    cleared.append(parameter.grad)
                parameter.grad = None
        self._last_gradients = cleared

    def _autocasting(self) -> AbstractContextManager[Any]:
        if self._autocast is None:
            return nullcontext()
        device = next(self._model.parameters()).device.type
        return torch.autocast(device, self._autocast)

    def _reduce(self) -> None:
        """Average the gradients over processes, as calls in :meth:`_without_reduction` did not.

        Raises:
            RuntimeError: the model defers the reduction, but is not a ``DistributedDataParallel``.
        """
        if isinstance(self._model, DistributedDataParallel):
            trained = [each for each in self._model.parameters() if each.requires_grad]
            average_over_processes(trained, self._model.process_group)
        elif self._defers_reduction():
            raise RuntimeError(
                f"the gradients of the last {self.accumulated} calls were not reduced over processes, and cannot be "
                f"after their backward in a {type(self._model).__name__}: choose a number of batches that accumulate "
                "divides"
            )

    def _defers_reduction(self) -> bool:
        return callable(getattr(self._model, "no_sync", None)) and not isinstance(self._model, ScriptModule)

    def _without_reduction(self) -> AbstractContextManager[Any]:
        """Return a context in which ``DistributedDataParallel`` accumulates gradients without a reduction; one without
        effect for a model that has no ``no_sync``."""
        context: AbstractContextManager[Any] = self._model.no_sync() if self._defers_reduction() else nullcontext()  # type: ignore[operator]
        return context
