"""Programs in a process of their own, and what comes of their calls in a file, so that processes can be compared.

    python -m tests.differential.processes FILE NAME...

Programs of files can be read from disk where an earlier process has compiled them: with the environment of the tests,
which verifies graphs, none are.
"""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from rekindle.scripting.callables import functions
from tests.differential.calls import Effects, call
from tests.differential.checks import answered, sequence
from tests.differential.subjects import of

KINDS = 4
"""Kinds of arguments for each sample."""


@dataclass(slots=True)
class Outcome:
    """What a process found: the effects of each call, by subject, and how many functions it compiled."""

    effects: dict[str, list[Effects]] = field(default_factory=dict)
    compiled: int = 0
    left_out: list[str] = field(default_factory=list)
    """Subjects whose results another process cannot have, such as objects of a class in the program."""


def run(names: Sequence[str], file: Path, environment: dict[str, str]) -> Outcome:
    """Call the programs in a new process whose environment has these variables besides those of this one."""
    command = [sys.executable, "-m", "tests.differential.processes", str(file), *names]
    subprocess.run(command, env={**os.environ, "REKINDLE_VERIFY": "0", **environment}, check=True)
    return Outcome(*torch.load(file, weights_only=False))


def evaluate(names: Sequence[str]) -> Outcome:
    """Compile and call each of the programs."""
    found = Outcome()
    compile_function = functions.compile_function

    def counting(*arguments: Any, **keywords: Any) -> None:
        found.compiled += 1
        compile_function(*arguments, **keywords)

    functions.compile_function = counting
    for name in names:
        for subject in of(name):
            torch.manual_seed(0)  # parameters
            compiled = subject.compiled()
            kinds = answered(compiled, sequence(subject, KINDS, subject.name))
            effects = [call(compiled, kind.make()) for kind in kinds]
            for each in effects:
                each.error, each.gradient_error = _portable(each.error), _portable(each.gradient_error)
            try:
                torch.save(effects, io.BytesIO())
            except (pickle.PicklingError, AttributeError, TypeError, RuntimeError, NotImplementedError):
                found.left_out.append(subject.name)
            else:
                found.effects[subject.name] = effects
    return found


def _portable(error: BaseException | None) -> BaseException | None:
    """Return an error that says the same of the other, whose class may belong to the program."""
    return None if error is None else RuntimeError(f"{type(error).__qualname__}: {error}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found = evaluate(sys.argv[2:])
    torch.save((found.effects, found.compiled, found.left_out), sys.argv[1])
