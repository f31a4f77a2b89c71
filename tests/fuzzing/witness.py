"""Whether the derivative that a finding misses is well defined: it is not where PyTorch's other mode of
differentiation, or the same mode with other last bits, disagrees with it too.

Zero times infinity, and the normalization of nearly constant values, have derivatives that depend on the order of
operations.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch.autograd import forward_ad

from tests.fuzzing.comparison import difference, snapshot, tensors_in, tolerance_of
from tests.fuzzing.noise import Noise, ZerosAnnihilate

Run = Callable[[], Any]


FAILURES: Final[Counter[str]] = Counter()
"""How often a witness could not speak, by the first line of its error: PyTorch has no derivative of an operator, or
the program raises where its numbers have other last bits."""


def is_undefined(actual: Any, expected: Any, witnesses: Iterable[Run]) -> bool:
    """Whether ``actual`` differs from ``expected`` only in elements in which a witness differs from it too.

    Raises:
        WitnessError: a witness fails in its own code, neither in PyTorch's nor in that of the program.
    """
    for witness in witnesses:
        try:
            torch.manual_seed(0)
            found = witness()
        except Exception as error:
            if not isinstance(error, NoDerivative) and _is_of_this_package(error):
                raise WitnessError(f"a witness fails: {type(error).__name__}: {error}") from error
            FAILURES[f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"] += 1
            continue
        expected = _agreed(actual, expected, found)
    return difference(actual, expected, exact=False) is None


class WitnessError(RuntimeError):
    """A fault of the oracle."""


class NoDerivative(TypeError):
    """The program returns something that has no derivative."""


def _is_of_this_package(error: Exception) -> bool:
    """Whether Python code of the fuzzer raised ``error`` itself, by the innermost frame."""
    *_, innermost = traceback.walk_tb(error.__traceback__)
    module = innermost[0].f_globals.get("__name__", "")
    return isinstance(error, _FAULTS) and module.startswith("tests.fuzzing.")


_FAULTS: Final = (AttributeError, NameError, TypeError, KeyError, AssertionError)
"""Errors that a fault in the code of a witness raises; PyTorch raises others from the same lines."""


def with_noise(run: Run) -> list[Run]:
    """``run`` with other last bits, several times."""

    def noisy(seed: int) -> Any:
        with Noise(seed):
            return run()

    return [lambda seed=seed: noisy(seed) for seed in range(4)]  # type: ignore[misc]


def _agreed(actual: Any, expected: Any, found: Any) -> Any:
    """``expected``, with the elements of ``actual`` where ``found`` is another number."""
    if isinstance(expected, (tuple, list)) and isinstance(actual, (tuple, list)) and isinstance(found, (tuple, list)):
        parts = [_agreed(*each) for each in zip(actual, expected, found, strict=False)]
        return expected if len(parts) != len(expected) else type(expected)(parts)
    if not all(isinstance(each, torch.Tensor) for each in (actual, expected, found)):
        return expected
    if actual.dtype != expected.dtype or not actual.shape == expected.shape == found.shape:
        return expected
    # findings differ by the tolerance or more: half of it is for the other side
    tolerance = tolerance_of(expected.dtype) / 2
    other = found.detach().to(expected.dtype)
    same = torch.isclose(other, expected.detach(), rtol=tolerance, atol=tolerance / 10, equal_nan=True)
    return torch.where(same, expected.detach(), actual.detach())


# ---------------------------------------------------------------------------------------------------- the other mode


def forward_gradients(run: Callable[[tuple[torch.Tensor, ...]], Any], at: tuple[torch.Tensor, ...], of: Any) -> Any:
    """The gradients of ``run(arguments)``, weighted by ``of(result)``, by forward mode along each basis vector."""
    gradients = []
    for number, argument in enumerate(at):
        gradient = torch.zeros_like(argument)
        for index in range(argument.numel()):
            basis = torch.zeros_like(argument)
            basis.view(-1)[index] = 1
            tangents = [basis if each == number else torch.zeros_like(other) for each, other in enumerate(at)]
            gradient.view(-1)[index] = _along(run, at, tangents, of)
        gradients.append(gradient)
    return tuple(gradients)


def _along(run: Any, at: tuple[torch.Tensor, ...], tangents: list[torch.Tensor], of: Any) -> torch.Tensor:
    with forward_ad.dual_level():
        duals = tuple(forward_ad.make_dual(a.clone(), b) for a, b in zip(at, tangents, strict=True))
        total = torch.zeros((), dtype=torch.float64)
        result = run(duals)
        for dual, weight in zip(tensors_in(result), tensors_in(of(result)), strict=True):
            tangent = forward_ad.unpack_dual(dual).tangent
            if tangent is not None:
                moved = tangent != 0  # what does not move has no part in it, whatever its weight
                total = total + (tangent[moved] * weight[moved]).sum().double()
        return total


def without_zeros(run: Run) -> Run:
    """``run``, in whose backward passes missing gradients are zeros."""

    def witness() -> Any:
        with ZerosAnnihilate():
            return run()

    return witness


def gradients_of_call(subject: Any, arguments: tuple[Any, ...]) -> list[torch.Tensor | None]:
    """The gradients of half the sum of the results, for the arguments that require one."""
    leaves = [each for each in tensors_in(list(arguments)) if each.requires_grad]
    roots = [each for each in tensors_in(subject(*arguments)) if each.requires_grad]
    return list(torch.autograd.grad(roots, leaves, [torch.full_like(each, 0.5) for each in roots], allow_unused=True))


def gradients_of_call_by_forward(subject: Any, arguments: tuple[Any, ...]) -> list[torch.Tensor]:
    """The same by forward mode."""
    leaves = [each for each in tensors_in(list(arguments)) if each.requires_grad]

    def run(given: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        places = dict(zip(map(id, leaves), given, strict=True))
        return list(tensors_in(subject(*_replaced(arguments, places))))

    at = tuple(each.detach() for each in leaves)
    return list(forward_gradients(run, at, lambda results: [torch.full_like(each, 0.5) for each in results]))


def _replaced(value: Any, places: dict[int, torch.Tensor]) -> Any:
    if type(value) in (list, tuple):
        return type(value)(_replaced(each, places) for each in value)
    if type(value) is dict:
        return {key: _replaced(each, places) for key, each in value.items()}
    return places.get(id(value), snapshot(value))


def reverse_tangents(run: Callable[[tuple[torch.Tensor, ...]], Any], at: Any, tangents: list[torch.Tensor]) -> Any:
    """``run(arguments)`` with its Tensors replaced by their tangents, by the gradient of each element. A program may
    write to what a gradient needs: forward mode allows it."""
    leaves = [each.detach().clone().requires_grad_() for each in at]

    def tangent_of(result: torch.Tensor) -> torch.Tensor:
        tangent = torch.zeros_like(result).detach()
        for index in range(result.numel() if result.requires_grad else 0):
            gradients = torch.autograd.grad(result.reshape(-1)[index], leaves, retain_graph=True, allow_unused=True)
            pairs = [(g, t) for g, t in zip(gradients, tangents, strict=True) if g is not None]
            tangent.view(-1)[index] = sum((g[t != 0] * t[t != 0]).sum() for g, t in pairs)
        return tangent

    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        return mapped(run(tuple(each * 1 for each in leaves)), tangent_of)


def mapped(value: Any, part: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    """``value``, a Tensor or tuples and lists of them, with ``part`` of each.

    Raises:
        NoDerivative: there is something else in it.
    """
    if isinstance(value, torch.Tensor):
        return part(value)
    if isinstance(value, (tuple, list)):
        return tuple(mapped(each, part) for each in value)
    raise NoDerivative(f"no derivative of {value!r}")
