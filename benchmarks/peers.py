"""Who runs a program: eager Python, rekindle, torch.jit, Inductor.

A new peer is one function and a line in ``PEERS``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

import rekindle
from benchmarks.workloads import Case

Call = Callable[..., Any]


class Unavailable(Exception):
    """A peer does not run here, or not this program; the message says why."""


def eager(case: Case) -> Call:
    """The program as Python runs it."""
    return case.program  # type: ignore[no-any-return]


def ours(case: Case) -> Call:
    """Scripted, or traced, here."""
    made: Call = rekindle.trace(case.program, case.arguments) if case.is_traced else rekindle.script(case.program)
    return made


def torch_jit(case: Case) -> Call:
    """Scripted, or traced, there. Its results are those of its third call on: the first two compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if case.is_traced:
                return torch.jit.trace(case.program, case.arguments)
            return torch.jit.script(case.program)
        except Exception as error:
            raise Unavailable(f"does not compile it: {str(error).strip().splitlines()[0]}") from error


def inductor(case: Case) -> Call:
    """``torch.compile``, which needs a C++ compiler."""
    compiled: Call = torch.compile(case.program)
    try:
        compiled(*case.arguments)
    except Exception as error:
        raise Unavailable(f"does not compile it: {str(error).strip().splitlines()[0]}") from error
    finally:
        torch._dynamo.reset()
    return compiled


PEERS: dict[str, Callable[[Case], Call]] = {
    "eager": eager,
    "rekindle": ours,
    "torch.jit": torch_jit,
    "inductor": inductor,
}
"""By name. Eager and rekindle always run; the others are asked for."""
