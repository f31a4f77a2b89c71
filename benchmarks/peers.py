"""Executors of a program: eager Python, rekindle, ``torch.jit``, Inductor. A new peer is a function and a line in
``PEERS``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

import rekindle
from benchmarks.workloads import Case

Call = Callable[..., Any]


class Unavailable(Exception):
    """A peer cannot run here, or cannot run this program. The message has the reason."""


def eager(case: Case) -> Call:
    """Return the program of the case as it is."""
    return case.program  # type: ignore[no-any-return]


def ours(case: Case) -> Call:
    """Return the program, scripted or traced by rekindle, and optimized for inference if the case is frozen."""
    made: Any = rekindle.trace(case.program, case.arguments) if case.is_traced else rekindle.script(case.program)
    return rekindle.optimize_for_inference(made) if case.is_frozen else made  # type: ignore[no-any-return]


def torch_jit(case: Case) -> Call:
    """Return the program, scripted or traced by ``torch.jit``, and optimized for inference if the case is frozen. Calls
    from the third on are measured, since the first two compile. Raise Unavailable if it does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = torch.jit.trace(case.program, case.arguments) if case.is_traced else torch.jit.script(case.program)
            return torch.jit.optimize_for_inference(made) if case.is_frozen else made  # type: ignore[no-any-return]
        except Exception as error:
            raise Unavailable(f"does not compile it: {_first_line(error)}") from error


def inductor(case: Case) -> Call:
    """Return the program compiled by ``torch.compile`` with its defaults, after one call. It needs a C++ compiler.
    Dynamo's caches are reset. Raise Unavailable if it does not compile, or has no tensors."""
    if not any(isinstance(part, torch.Tensor) for part in tree_leaves(case.arguments)):
        raise Unavailable("compiles operators on tensors, and there are none here")
    torch._dynamo.reset()
    compiled: Call = torch.compile(case.program)
    try:
        with torch._inductor.config.patch(freezing=case.is_frozen):
            compiled(*case.arguments)
    except Exception as error:
        raise Unavailable(f"does not compile it: {_first_line(error)}") from error
    return compiled


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


PEERS: dict[str, Callable[[Case], Call]] = {
    "eager": eager,
    "rekindle": ours,
    "torch.jit": torch_jit,
    "inductor": inductor,
}
"""By name. Eager and rekindle always run; the others by option."""
