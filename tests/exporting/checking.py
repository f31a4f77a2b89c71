"""Exports a probe and holds the exported program beside the compiled one, call by call."""

from __future__ import annotations

import copy
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

import rekindle
from tests.exporting.probes import Probe


@dataclass(frozen=True)
class Outcome:
    """What came of a probe: "agrees", "refused"; "raises" or "wrong" where a call does; and the details."""

    verdict: str
    detail: str = ""


def calls_of(probe: Probe) -> list[Sequence[Any]]:
    """The example, the other calls, and the example twice more: state is kept from call to call."""
    return [probe.args, *probe.others, probe.args, probe.args]


def equal(ours: Any, theirs: Any) -> bool:
    """Whether two results are of the same structure and hold the same."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, torch.Tensor) or ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return False
        return torch.allclose(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)
    if isinstance(theirs, (list, tuple)):
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(map(equal, ours, theirs))
    if isinstance(theirs, dict):
        return list(ours) == list(theirs) and all(equal(ours[key], theirs[key]) for key in theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


def result_of(program: Any, args: Sequence[Any]) -> Any:
    """The result of a call and what became of its arguments; an error as itself."""
    own = copy.deepcopy(tuple(args))
    try:
        return program(*own), own
    except Exception as error:
        return error


def compared(ours: Any, theirs: Any, probe: Probe) -> Outcome:
    """``ours``, an exported program, and ``theirs`` over all calls."""
    for number, args in enumerate(calls_of(probe)):
        wanted, found = result_of(theirs, args), result_of(ours, args)
        if isinstance(wanted, Exception) and isinstance(found, Exception):
            continue
        if isinstance(found, Exception):
            return Outcome("raises", f"call {number}: {str(found).splitlines()[0] if str(found) else type(found)}")
        if isinstance(wanted, Exception) or not equal(found, wanted):
            return Outcome("wrong", f"call {number}: {found} instead of {wanted}")
    return Outcome("agrees")


def exported(probe: Probe) -> torch.export.ExportedProgram:
    """The probe as an ExportedProgram."""
    args = copy.deepcopy(tuple(probe.args))
    return rekindle.to_exported(rekindle.script(probe.make()), args, dynamic_shapes=probe.dynamic)


def saved_and_loaded(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """The program after a way through a file."""
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


def checked(probe: Probe) -> Outcome:
    """Export, verify, run beside the compiled program; save, load, decompose, and run these too."""
    try:
        program = exported(probe)
    except rekindle.errors.ExportError as error:
        return Outcome("refused", str(error).split("\n", 1)[0])
    program.validate()
    outcome = compared(program.module(), rekindle.script(probe.make()), probe)
    if outcome.verdict != "agrees":
        return outcome
    for made in (saved_and_loaded(exported(probe)), exported(probe).run_decompositions()):
        outcome = compared(made.module(), rekindle.script(probe.make()), probe)
        if outcome.verdict != "agrees":
            return outcome
    return Outcome("agrees")
