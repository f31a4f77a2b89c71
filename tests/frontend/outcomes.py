"""Outcomes of calls: what a call returns or raises, what it prints and does to its arguments."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Callable
from typing import Any

import torch

import rekindle


def shown(value: Any) -> Any:
    """Return a value as nested tuples that are equal for equal values of equal classes."""
    if isinstance(value, torch.Tensor):
        return "Tensor", str(value.dtype), tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, [(shown(key), shown(item)) for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(item) for item in value]
    return type(value).__name__, repr(value)


def outcome(call: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    given, said = copy.deepcopy(arguments), io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            result = shown(call(*given))
        except Exception as error:
            result = type(error).__name__, str(error)
    return result, shown(given), said.getvalue()


def agrees(program: Any, *calls: tuple[Any, ...]) -> None:
    """Check that a compiled program does what the program does in Python, in two rounds of the same calls."""
    compiled = rekindle.script(copy.deepcopy(program) if isinstance(program, torch.nn.Module) else program)
    for _ in range(2):
        for arguments in calls:
            assert outcome(compiled, arguments) == outcome(program, arguments)
