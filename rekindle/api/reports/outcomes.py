"""Outcome of a call (result, exception, mutated arguments), and comparison of two outcomes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call: a result, or an error; and its arguments after the call."""

    result: Any = None
    error: Exception | None = None
    arguments: Sequence[Any] = ()

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}" if self.error is not None else repr(self.result)


def outcome_of(function: Callable[[Sequence[Any]], Any], arguments: Sequence[Any]) -> Outcome:
    """Call ``function`` with copies of ``arguments``, and return the outcome; an exception is recorded, not raised. The
    random seed is 0, and the state of the CPU's generator is restored."""
    copies = copy.deepcopy([as_leaf(value) for value in arguments])
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        try:
            return Outcome(function(copies), None, copies)
        except Exception as error:  # whatever the program raises is its answer
            return Outcome(None, error, copies)


def as_leaf(value: Any) -> Any:
    """Return ``value``, or a detached alias that requires a gradient if it is a tensor with a gradient function: such a
    tensor cannot be deep-copied."""
    if isinstance(value, torch.Tensor) and not value.is_leaf:
        return value.detach().requires_grad_()
    return value


def same_outcome(a: Outcome, b: Outcome) -> bool:
    """Return whether both raised an error of the same class, or returned the same and wrote the same to their
    arguments. Floats may differ as much as ``torch.testing`` allows, and NaN is NaN."""
    if a.error is not None or b.error is not None:
        return type(a.error) is type(b.error)
    return same_value(a.result, b.result) and same_value(a.arguments, b.arguments)


def same_value(a: Any, b: Any) -> bool:
    """Return whether two values are equal and of the same class: tensors by dtype, device, ``requires_grad`` and
    elements, containers by their elements, modules by their state, objects without an ``==`` of their own by their
    attributes. Floats are compared with the tolerance of ``torch.testing``, and NaN equals NaN."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and _are_close(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, dict):
        return same_value(list(a), list(b)) and same_value(list(a.values()), list(b.values()))
    if isinstance(a, (float, complex)):
        return _are_close(torch.tensor(a), torch.tensor(b))
    if isinstance(a, torch.nn.Module):
        return same_value(a.state_dict(), b.state_dict())
    equality: Any = type(a).__eq__
    if equality is object.__eq__ and hasattr(a, "__dict__"):
        return same_value(vars(a), vars(b))
    return bool(a == b)


def _are_close(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.requires_grad != b.requires_grad:
        return False
    try:
        torch.testing.assert_close(a, b, equal_nan=True)
    except AssertionError:
        return False
    return True
