"""The ways in which a sweep compiles its cases: from their source, or by running them once."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

import rekindle
from tests.support.oracle import script_with_torch
from tests.sweeps import report
from tests.sweeps.outcomes import Compiler


@dataclass(slots=True, frozen=True)
class Way:
    """``ours`` and ``theirs`` compile a case here and with torch.jit; ``stages`` are the outcomes by which torch.jit
    takes a case. Without ``theirs``, every case counts that eager runs, whatever torch.jit does with it. With
    ``other_sizes``, what was compiled is called on inputs of other sizes too."""

    suffix: str
    peer: str
    ours: Compiler
    theirs: Compiler | None
    stages: tuple[str, ...]
    other_sizes: bool = False

    def record(self, stem: str) -> Path:
        """The file that lists what torch.jit takes."""
        return report.DATA / f"{stem}{self.suffix}_torchscript.json"

    def known_failures(self, stem: str) -> Path:
        return report.known_failures_path(stem + self.suffix)


def _scripted(subject: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    return rekindle.script(subject)


def _scripted_by_torch(subject: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    return script_with_torch(subject)


def _traced(subject: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    return rekindle.trace(
        subject, tuple(arguments), check_trace=False, strict=False, example_kwarg_inputs=keywords or None
    )


def _traced_by_torch(subject: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
    assert not keywords
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(subject, tuple(arguments), check_trace=False, strict=False)


def _without_a_trace(compiler: Compiler) -> Compiler:
    """A trace is a run: what it does to the arguments and to a module is undone."""

    def compile(subject: Any, arguments: Sequence[Any], keywords: dict[str, Any]) -> Any:
        state = copy.deepcopy(subject.state_dict()) if isinstance(subject, torch.nn.Module) else None
        compiled = compiler(subject, *copy.deepcopy((arguments, keywords)))
        if state is not None:
            subject.load_state_dict(state)
        return compiled

    return compile


SCRIPT: Final = Way(
    suffix="",
    peer="torch.jit.script compiles and runs",
    ours=_scripted,
    theirs=_scripted_by_torch,
    # What torch.jit.script answers differently than eager is taken too: the answer that counts is eager's.
    stages=("passed", "compare"),
)
EVERY: Final = Way(
    suffix="_all", peer="eager runs, where a program can say it,", ours=_scripted, theirs=None, stages=()
)
TRACE: Final = Way(
    suffix="_traces",
    peer="torch.jit.trace traces, with eager's answer,",
    ours=_without_a_trace(_traced),
    theirs=_without_a_trace(_traced_by_torch),
    stages=("passed",),
    other_sizes=True,
)
