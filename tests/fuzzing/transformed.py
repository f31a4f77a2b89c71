"""Derivatives and batches of a program beside PyTorch's: ``jvp`` and forward mode, ``grad`` and autograd, ``vmap`` and
a loop over the examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.autograd import forward_ad

import rekindle
from rekindle.errors import CompileError
from tests.fuzzing.comparison import Difference, difference, snapshot, tensors_in
from tests.fuzzing.program import Loaded
from tests.fuzzing.witness import (
    Run,
    forward_gradients,
    is_undefined,
    mapped,
    reverse_tangents,
    with_noise,
    without_zeros,
)

Outcome = tuple[str, Difference, int]
"""The class of failure, what differs, the number of the call."""
Both = tuple[Callable[[], Any], Callable[[Any], Any]]


@dataclass(slots=True)
class Prepared:
    """A function and makers of arguments, in place of a program's; ``outcome`` says how far the last one came."""

    subject: Callable[..., Any]
    calls: list[Callable[[], Any]]
    outcome: str = "no reference"
    eager: Any = None


Cases = Loaded | Prepared


def jvp(loaded: Cases) -> Outcome | None:
    """Results and tangents."""
    return _compared(
        loaded,
        "tangent",
        lambda f, count: rekindle.jvp(f, tuple(range(count))),
        _with_tangents,
        _forward,
        _forward_by_reverse,
    )


def grad(loaded: Cases) -> Outcome | None:
    """Values and gradients of programs that return a number."""
    return _compared(
        loaded,
        "gradient",
        lambda f, count: rekindle.value_and_grad(f, tuple(range(count))),
        tuple,
        _backward,
        lambda subject, arguments: _backward_by_forward(subject, arguments, _ones),
    )


def vjp(loaded: Cases) -> Outcome | None:
    """Results and the product of a vector with the Jacobian."""
    return _compared(
        loaded,
        "cotangent",
        lambda f, count: rekindle.vjp(f, tuple(range(count))),
        _with_cotangents(loaded),
        _pulled_back,
        lambda subject, arguments: _backward_by_forward(subject, arguments, _cotangents),
    )


def vmap(loaded: Cases) -> Outcome | None:
    """Results of a batch."""
    return _compared(loaded, "batch", lambda f, count: rekindle.vmap(f), _batched, _one_by_one)


def _compared(
    loaded: Cases, what: str, transform: Any, prepare: Any, reference: Any, other: Any = None
) -> Outcome | None:
    """``reference`` computes with PyTorch what ``transform`` does, and ``other`` does so by another mode."""
    subject = loaded.subject
    compiled = None
    for number, arguments in _cases(loaded):
        try:
            torch.manual_seed(0)
            expected = reference(loaded.eager or subject, snapshot(arguments))
        except Exception:
            continue
        try:
            compiled = compiled or transform(subject, len(arguments))
        except CompileError:
            _note(loaded, "refused")
            return None
        except Exception as error:
            name = type(error).__name__
            return "internal error", Difference(f"{what}: {name}", f"{name}: {error}"), number
        try:
            prepared = prepare(snapshot(arguments))
            torch.manual_seed(0)
            actual = compiled(*prepared)
        except Exception as error:
            if str(error).startswith(_REFUSAL):
                _note(loaded, "refused")
                continue
            name = type(error).__name__
            return "error instead", Difference(f"{what}: {name}", f"{name}: {error}"), number
        actual, expected = _detached(actual), _detached(expected)
        found = difference(actual, expected, exact=False, where=what)
        if found is not None:
            defined = not is_undefined(actual, expected, _witnesses(subject, arguments, reference, other))
            return f"wrong {what}" if defined else UNSTABLE, found, number
        _note(loaded, "passed")
    return None


UNSTABLE: Final = "unstable"
"""The class of failure of a derivative that PyTorch's modes do not agree on either."""
_REFUSAL: Final = "vmap: "
"""How the errors begin with which a batch refuses what depends on the examples."""


def _witnesses(subject: Any, arguments: tuple[torch.Tensor, ...], reference: Any, other: Any) -> list[Run]:
    # PyTorch crashes where a dispatch mode, as the noise is one, works in forward mode
    backward = other if reference is _forward else reference

    def run() -> Any:
        return _detached(backward(subject, snapshot(arguments)))

    runs = [without_zeros(run), *with_noise(run)]
    return runs if other is None else [lambda: _detached(other(subject, snapshot(arguments))), *runs]


def _note(loaded: Cases, outcome: str) -> None:
    if isinstance(loaded, Prepared):
        loaded.outcome = outcome


def _cases(loaded: Cases) -> Iterator[tuple[int, tuple[torch.Tensor, ...]]]:
    """The calls whose arguments are Tensors of floats."""
    for number, make in enumerate(loaded.calls):
        arguments = tuple(make())
        if arguments and all(isinstance(each, torch.Tensor) and each.is_floating_point() for each in arguments):
            yield number, tuple(each.detach() for each in arguments)


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach()
    return tuple(_detached(each) for each in value) if isinstance(value, (tuple, list)) else value


def _tangent(tensor: torch.Tensor) -> torch.Tensor:
    return torch.linspace(-1.0, 1.5, max(tensor.numel(), 1))[: tensor.numel()].to(tensor.dtype).view(tensor.shape)


def _with_tangents(arguments: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
    return (*arguments, tuple(_tangent(each) for each in arguments))


def _forward(subject: Any, arguments: tuple[torch.Tensor, ...]) -> Any:
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(each, _tangent(each)) for each in arguments]
        result = subject(*duals)
        return mapped(result, lambda each: forward_ad.unpack_dual(each).primal.clone()), mapped(result, _tangent_of)


def _tangent_of(tensor: torch.Tensor) -> torch.Tensor:
    dual = forward_ad.unpack_dual(tensor)
    return torch.zeros_like(dual.primal) if dual.tangent is None else dual.tangent.clone()


def _forward_by_reverse(subject: Any, arguments: tuple[torch.Tensor, ...]) -> Any:
    tangents = [_tangent(each) for each in arguments]
    return subject(*snapshot(arguments)), reverse_tangents(lambda given: subject(*given), arguments, tangents)


def _backward_by_forward(subject: Any, arguments: tuple[torch.Tensor, ...], weights: Any) -> Any:
    gradients = forward_gradients(lambda given: subject(*given), arguments, weights)
    return subject(*snapshot(arguments)), gradients


def _ones(value: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(value)


def _backward(subject: Any, arguments: tuple[torch.Tensor, ...]) -> Any:
    leaves = [each.clone().requires_grad_() for each in arguments]
    # a program may write to its arguments, which autograd does not allow to leaves
    value = subject(*(each * 1 for each in leaves))
    if not isinstance(value, torch.Tensor) or value.dim() or not value.is_floating_point():
        raise ValueError("not a number")
    if not value.requires_grad:
        return value, tuple(torch.zeros_like(each) for each in leaves)
    found = torch.autograd.grad(value, leaves, allow_unused=True)
    gradients = (torch.zeros_like(a) if g is None else g for a, g in zip(leaves, found, strict=True))
    return value, tuple(gradients)


def _batched(arguments: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.stack([each, each * -0.5 + 0.25, each + 1]) for each in arguments)


def _one_by_one(subject: Any, arguments: tuple[torch.Tensor, ...]) -> Any:
    batch = _batched(arguments)
    return _stacked([subject(*(each[index].clone() for each in batch)) for index in range(3)])


def _stacked(results: list[Any]) -> Any:
    if isinstance(results[0], torch.Tensor):
        return torch.stack(results)
    if isinstance(results[0], (tuple, list)):
        return tuple(_stacked(list(each)) for each in zip(*results, strict=True))
    raise TypeError(f"no batch of {results[0]!r}")


def _cotangents(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _tangent(value.detach())
    if isinstance(value, list):
        return [_cotangents(each) for each in value]
    return tuple(_cotangents(each) for each in value)


def _with_cotangents(loaded: Cases) -> Any:
    def prepare(arguments: tuple[torch.Tensor, ...]) -> tuple[Any, ...]:
        return (*arguments, _cotangents(loaded.subject(*snapshot(arguments))))

    return prepare


def _pulled_back(subject: Any, arguments: tuple[torch.Tensor, ...]) -> Any:
    leaves = [each.clone().requires_grad_() for each in arguments]
    value = subject(*(each * 1 for each in leaves))
    pairs = [(a, b) for a, b in zip(tensors_in(value), tensors_in(_cotangents(value)), strict=True) if a.requires_grad]
    if not pairs:
        return value, tuple(torch.zeros_like(each) for each in leaves)
    roots, weights = zip(*pairs, strict=True)
    found = torch.autograd.grad(roots, leaves, weights, allow_unused=True)
    return value, tuple(torch.zeros_like(a) if g is None else g for a, g in zip(leaves, found, strict=True))


TRANSFORMED: Final = {"jvp": jvp, "grad": grad, "vjp": vjp, "vmap": vmap}
