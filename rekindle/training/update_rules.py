"""Update rules: how optimizers of ``torch.optim`` change a parameter, as pointwise programs.

A program takes a parameter, its gradient, tensors of the optimizer's state, and numbers. It returns the new parameter
and the new state. What is the same for all elements, such as a bias correction, is a number that Python computes.
Weight decay comes before the program, in the same way for all rules (:class:`WeightDecay`). Together they are compiled
to one kernel, which overwrites the tensors (:mod:`~rekindle.training.update_kernels`).

The operations are in the order of PyTorch's optimizers, so that results differ from theirs by rounding only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, optim

Program = Callable[..., tuple[Tensor, ...]]
Group = Mapping[str, Any]
"""Hyperparameters of a group of parameters, an entry of ``optimizer.param_groups``."""


@dataclass(slots=True, frozen=True)
class ProgramKey:
    """A program, which is ``make(*choices)``. Equal keys have equal programs."""

    make: Callable[..., Program]
    choices: tuple[bool, ...]


@dataclass(slots=True, frozen=True)
class Update:
    """An update of parameters with equal hyperparameters and an equal number of updates. The program takes the
    parameter, the gradient, the tensors ``state`` of the optimizer's state, and ``numbers``."""

    program: ProgramKey
    state: tuple[str, ...]
    numbers: tuple[float, ...]


@dataclass(slots=True, frozen=True)
class WeightDecay:
    """Weight decay before an update: the parameter times ``number`` is added to the gradient, or, if it is
    ``decoupled``, becomes the parameter."""

    number: float
    decoupled: bool

    @staticmethod
    def of_group(optimizer: type[optim.Optimizer], group: Group) -> WeightDecay | None:
        """Return the weight decay of a group of an optimizer of this class; None if there is none."""
        decay = float(group.get("weight_decay", 0.0))
        if decay == 0:
            return None
        decoupled = optimizer in _DECOUPLES and bool(group.get("decoupled_weight_decay", False))
        return WeightDecay(1 - float(group["lr"]) * decay if decoupled else decay, decoupled)


Rule = Callable[[Group, float], Update]
"""Function of the hyperparameters of a group and the step number, from 1, that returns the update without weight decay.
"""


# ------------------------------------------------------------------------------------------------------------------ SGD


def _sgd_program(has_momentum: bool, nesterov: bool) -> Program:
    def plain(p: Tensor, g: Tensor, size: float) -> tuple[Tensor]:
        return (p.add(g, alpha=size),)

    def with_momentum(
        p: Tensor, g: Tensor, buffer: Tensor, size: float, momentum: float, undamped: float
    ) -> tuple[Tensor, Tensor]:
        buffer = (buffer * momentum).add(g, alpha=undamped)
        g = g.add(buffer, alpha=momentum) if nesterov else buffer
        return p.add(g, alpha=size), buffer

    return with_momentum if has_momentum else plain


def _sgd(group: Group, step: float) -> Update:
    momentum, size = group["momentum"], -float(group["lr"])
    program = ProgramKey(_sgd_program, (momentum != 0, bool(group["nesterov"])))
    if momentum == 0:
        return Update(program, (), (size,))
    return Update(program, ("momentum_buffer",), (size, momentum, 1 - group["dampening"]))


# ------------------------------------------------------------------------------------------- Adam, AdamW, RAdam, Adamax


def _moments(
    g: Tensor, mean: Tensor, square: Tensor, to_mean: float, beta2: float, to_square: float
) -> tuple[Tensor, Tensor]:
    """Return the new moving averages of the gradient and of its square."""
    return mean.lerp(g, to_mean), (square * beta2).addcmul(g, g, value=to_square)


def _adam_program(amsgrad: bool) -> Program:
    def update(
        p: Tensor,
        g: Tensor,
        mean: Tensor,
        square: Tensor,
        to_mean: float,
        beta2: float,
        to_square: float,
        root: float,
        eps: float,
        size: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        mean, square = _moments(g, mean, square, to_mean, beta2, to_square)
        return p.addcdiv(mean, (square.sqrt() / root).add(eps), value=size), mean, square

    def with_maximum(
        p: Tensor,
        g: Tensor,
        mean: Tensor,
        square: Tensor,
        largest: Tensor,
        to_mean: float,
        beta2: float,
        to_square: float,
        root: float,
        eps: float,
        size: float,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        mean, square = _moments(g, mean, square, to_mean, beta2, to_square)
        largest = torch.maximum(largest, square)
        return p.addcdiv(mean, (largest.sqrt() / root).add(eps), value=size), mean, square, largest

    return with_maximum if amsgrad else update


def _adam(group: Group, step: float) -> Update:
    lr, (beta1, beta2) = float(group["lr"]), map(float, group["betas"])
    amsgrad = bool(group["amsgrad"])
    state = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if amsgrad else ("exp_avg", "exp_avg_sq")
    corrections = 1 - beta1**step, (1 - beta2**step) ** 0.5
    numbers = (1 - beta1, beta2, 1 - beta2, corrections[1], group["eps"], -lr / corrections[0])
    return Update(ProgramKey(_adam_program, (amsgrad,)), state, numbers)


def _radam_program(rectified: bool) -> Program:
    def update(
        p: Tensor,
        g: Tensor,
        mean: Tensor,
        square: Tensor,
        to_mean: float,
        beta2: float,
        to_square: float,
        correction: float,
        eps: float,
        lr: float,
        root: float,
        rectification: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        mean, square = _moments(g, mean, square, to_mean, beta2, to_square)
        change = mean / correction * lr
        if rectified:
            change = change * (root / square.sqrt().add(eps)) * rectification
        return p - change, mean, square

    return update


def _radam(group: Group, step: float) -> Update:
    lr, (beta1, beta2) = float(group["lr"]), map(float, group["betas"])
    correction = 1 - beta2**step
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / correction
    rectified = length > 5
    rectification = (
        ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5 if rectified else 1.0
    )
    return Update(
        ProgramKey(_radam_program, (rectified,)),
        ("exp_avg", "exp_avg_sq"),
        (1 - beta1, beta2, 1 - beta2, 1 - beta1**step, group["eps"], lr, correction**0.5, rectification),
    )


def _adamax_program() -> Program:
    def update(
        p: Tensor,
        g: Tensor,
        mean: Tensor,
        largest: Tensor,
        to_mean: float,
        beta2: float,
        eps: float,
        size: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        mean = mean.lerp(g, to_mean)
        largest = torch.maximum(largest * beta2, g.abs().add(eps))
        return p.addcdiv(mean, largest, value=size), mean, largest

    return update


def _adamax(group: Group, step: float) -> Update:
    beta1, beta2 = map(float, group["betas"])
    numbers = (1 - beta1, beta2, group["eps"], -float(group["lr"]) / (1 - beta1**step))
    return Update(ProgramKey(_adamax_program, ()), ("exp_avg", "exp_inf"), numbers)


# ------------------------------------------------------------------------------------ RMSprop, Adagrad, Adadelta, Rprop


def _rmsprop_program(centered: bool, has_momentum: bool) -> Program:
    # Four programs, because the tensors that a program takes are its parameters.
    def update(
        p: Tensor, g: Tensor, square: Tensor, alpha: float, rest: float, eps: float, size: float
    ) -> tuple[Tensor, Tensor]:
        square = (square * alpha).addcmul(g, g, value=rest)
        return p.addcdiv(g, square.sqrt().add(eps), value=size), square

    def with_mean(
        p: Tensor,
        g: Tensor,
        square: Tensor,
        mean: Tensor,
        alpha: float,
        rest: float,
        eps: float,
        size: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        square = (square * alpha).addcmul(g, g, value=rest)
        mean = mean.lerp(g, rest)
        return p.addcdiv(g, square.addcmul(mean, mean, value=-1).sqrt().add(eps), value=size), square, mean

    def with_momentum(
        p: Tensor,
        g: Tensor,
        square: Tensor,
        buffer: Tensor,
        alpha: float,
        rest: float,
        eps: float,
        size: float,
        momentum: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        square = (square * alpha).addcmul(g, g, value=rest)
        buffer = (buffer * momentum).addcdiv(g, square.sqrt().add(eps))
        return p.add(buffer, alpha=size), square, buffer

    def with_both(
        p: Tensor,
        g: Tensor,
        square: Tensor,
        mean: Tensor,
        buffer: Tensor,
        alpha: float,
        rest: float,
        eps: float,
        size: float,
        momentum: float,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        square = (square * alpha).addcmul(g, g, value=rest)
        mean = mean.lerp(g, rest)
        buffer = (buffer * momentum).addcdiv(g, square.addcmul(mean, mean, value=-1).sqrt().add(eps))
        return p.add(buffer, alpha=size), square, mean, buffer

    programs: dict[tuple[bool, bool], Program] = {
        (False, False): update,
        (True, False): with_mean,
        (False, True): with_momentum,
        (True, True): with_both,
    }
    return programs[centered, has_momentum]


def _rmsprop(group: Group, step: float) -> Update:
    alpha, momentum, centered = group["alpha"], group["momentum"], bool(group["centered"])
    state = ["square_avg"]
    numbers = [alpha, 1 - alpha, group["eps"], -float(group["lr"])]
    if centered:
        state.append("grad_avg")
    if momentum > 0:
        state.append("momentum_buffer")
        numbers.append(momentum)
    return Update(ProgramKey(_rmsprop_program, (centered, momentum > 0)), tuple(state), tuple(numbers))


def _adagrad_program() -> Program:
    def update(p: Tensor, g: Tensor, total: Tensor, eps: float, size: float) -> tuple[Tensor, Tensor]:
        total = total.addcmul(g, g)
        return p.addcdiv(g, total.sqrt().add(eps), value=size), total

    return update


def _adagrad(group: Group, step: float) -> Update:
    size = -float(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
    return Update(ProgramKey(_adagrad_program, ()), ("sum",), (group["eps"], size))


def _adadelta_program() -> Program:
    def update(
        p: Tensor,
        g: Tensor,
        square: Tensor,
        changes: Tensor,
        rho: float,
        rest: float,
        eps: float,
        size: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        square = (square * rho).addcmul(g, g, value=rest)
        change = changes.add(eps).sqrt() / square.add(eps).sqrt() * g
        changes = (changes * rho).addcmul(change, change, value=rest)
        return p.add(change, alpha=size), square, changes

    return update


def _adadelta(group: Group, step: float) -> Update:
    rho = group["rho"]
    numbers = (rho, 1 - rho, group["eps"], -float(group["lr"]))
    return Update(ProgramKey(_adadelta_program, ()), ("square_avg", "acc_delta"), numbers)


def _rprop_program() -> Program:
    def update(
        p: Tensor, g: Tensor, previous: Tensor, size: Tensor, against: float, grow: float, low: float, high: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        agreement = (g * previous).sign()
        factor = torch.where(
            agreement > 0, agreement * grow, torch.where(agreement < 0, agreement * against, agreement + 1)
        )
        size = (size * factor).clamp(low, high)
        g = g.masked_fill(agreement < 0, 0.0)
        return p.addcmul(g.sign(), size, value=-1), g, size

    return update


def _rprop(group: Group, step: float) -> Update:
    shrink, grow = group["etas"]
    return Update(ProgramKey(_rprop_program, ()), ("prev", "step_size"), (-shrink, grow, *group["step_sizes"]))


RULES: Final[Mapping[type[optim.Optimizer], Rule]] = {
    optim.SGD: _sgd,
    optim.Adam: _adam,
    optim.AdamW: _adam,
    optim.RAdam: _radam,
    optim.Adamax: _adamax,
    optim.RMSprop: _rmsprop,
    optim.Adagrad: _adagrad,
    optim.Adadelta: _adadelta,
    optim.Rprop: _rprop,
}
"""The optimizers with a rule. Others, and classes derived from these, run PyTorch's own update."""

_DECOUPLES: Final = frozenset({optim.Adam, optim.AdamW, optim.RAdam})
"""The optimizers whose weight decay may be decoupled. Others ignore the option."""

COUNTS_STEPS: Final = frozenset(RULES) - {optim.SGD}
"""The optimizers whose state counts the updates of each parameter in a tensor ``step``."""
