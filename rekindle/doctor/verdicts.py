"""What is reported of each use: that it works, that it works with a change, that it does not work, or that it was not
tried, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from rekindle.doctor.names import NameInfo, Status, classify
from rekindle.doctor.uses import Use


class Verdict(Enum):
    """The verdict on a use. The values are the texts that reports show."""

    WORKS = "works as it is"
    CHANGE = "works with a change"
    FAILS = "does not work"
    NOT_TRIED = "not tried"


@dataclass(slots=True)
class Evidence:
    """A program that was compiled at a use, or whose compilation failed. ``subject`` is its name, ``problems`` are its
    compile errors."""

    subject: str
    kind: str
    """``function``, ``class``, ``object`` (a module, for the most part) or ``archive``."""
    ok: bool
    problems: list[dict[str, Any]] = field(default_factory=list)
    calls: dict[str, Any] | None = None
    """The recorded event of its calls: how many were compared with eager, a difference, times, and conversions; None if
    there is no such event."""


@dataclass(slots=True)
class Finding:
    """A use, the verdict on it with the reason, and the programs that were compiled there. ``diff`` is the unified diff
    of the change, if there is one."""

    use: Use
    verdict: Verdict
    reason: str
    evidence: list[Evidence] = field(default_factory=list)
    diff: str = ""


_COMPILING_FORMS: Final = ("call", "decorator")

REFERENCE: Final = "refers to rekindle while the drop-in is installed"


def judged(use: Use, evidence: Sequence[Evidence], why_not: str) -> Finding:
    """Return the verdict on a use, from its name and form and from the programs that were compiled there.

    ``why_not`` is the reason to report if ``evidence`` is empty, and the use should have compiled a program.
    """
    known = classify(use.name)
    if known is None:
        reason = "an internal of PyTorch's TorchScript, which stays what it is and may not know what rekindle compiles"
        return Finding(use, Verdict.NOT_TRIED, reason)
    name, info = known
    if use.form in ("import", "annotation"):
        return _of_mere_name(use, info)
    if info.status is Status.COMPILES and use.form in _COMPILING_FORMS:
        return _of_programs(use, evidence, why_not)
    if info.status is Status.SWITCH:
        reason = "a switch of PyTorch's executor, without effect on what rekindle compiles; its result is used here"
        return Finding(use, Verdict.NOT_TRIED, reason)
    if info.status is Status.PYTORCH:
        return Finding(use, Verdict.FAILS, info.remark)
    if (use.form == "base class" and name.endswith("ScriptModule")) or name == "torch.jit.script_method":
        of_method = "the method is compiled when an object of a class of torch.jit.ScriptModule is made, and none was"
        of_class = "the class is compiled when an object is made, and none was"
        return _of_programs(use, evidence, of_class if use.form == "base class" else of_method)
    if info.status is Status.SAME:
        return Finding(use, Verdict.WORKS, info.remark or "the same to either compiler")
    return Finding(use, Verdict.WORKS, info.remark or REFERENCE)


def _of_mere_name(use: Use, info: NameInfo) -> Finding:
    if info.status is Status.PYTORCH and use.form == "import":
        return Finding(use, Verdict.FAILS, info.remark)
    if info.status in (Status.PYTORCH, Status.SWITCH, Status.SAME):
        return Finding(use, Verdict.WORKS, "stays PyTorch's")
    return Finding(use, Verdict.WORKS, REFERENCE)


def _of_programs(use: Use, evidence: Sequence[Evidence], why_not: str) -> Finding:
    found = list(evidence)
    failed = [each for each in found if not each.ok]
    if failed:
        return Finding(use, Verdict.FAILS, _failure(failed), found)
    differing = [each for each in found if each.calls is not None and each.calls["difference"]]
    if differing:
        text = "; ".join(f"{each.subject}: {each.calls['difference']}" for each in differing if each.calls is not None)
        return Finding(use, Verdict.FAILS, f"results differ from eager's: {text}", found)
    if not found:
        return Finding(use, Verdict.NOT_TRIED, why_not)
    return Finding(use, Verdict.WORKS, _success(found), found)


def _failure(failed: Sequence[Evidence]) -> str:
    subjects = ", ".join(dict.fromkeys(each.subject for each in failed))
    return f"{subjects} cannot be compiled"


def _success(found: Sequence[Evidence]) -> str:
    subjects = list(dict.fromkeys(each.subject for each in found))
    shown = ", ".join(subjects[:3]) + (f" and {len(subjects) - 3} more" if len(subjects) > 3 else "")
    compared = [each.calls for each in found if each.calls is not None and each.calls["calls"]]
    calls = sum(each["calls"] for each in compared)
    inputs = " and ".join(sorted({each["inputs"] for each in compared}))
    verb = "load" if all(each.kind == "archive" for each in found) else "compile"
    compiles = f"{shown} {verb}s" if len(subjects) == 1 else f"{shown} {verb}"
    if calls:
        agree = "call agrees" if calls == 1 else "calls agree"
        return f"{compiles}; {calls} {agree} with eager, on {inputs} inputs"
    reasons = {each.calls["not_compared"] for each in found if each.calls is not None and each.calls["not_compared"]}
    of_classes = all(each.kind == "class" for each in found)
    why = min(reasons) if reasons else "objects of a class are not compared" if of_classes else "nothing called it"
    return f"{compiles}; results were not compared: {why}"


def why_not_tried(use: Use, module_failure: str | None, was_imported: bool, command: Mapping[str, Any] | None) -> str:
    """Return the reason why nothing was compiled at a use.

    Args:
        use: The use.
        module_failure: Why the import of its module failed; None if it did not.
        was_imported: Whether the module was imported.
        command: The event of the command that was run; None if there was none.
    """
    if command is not None:
        recorded = "no process of the command that imports PyTorch could be recorded"
        return "the command did not reach it" if command["processes"] else recorded
    if use.at_import:
        if module_failure is not None:
            return module_failure
        return "importing the module did not reach it" if was_imported else "its module was not imported"
    where = f"'{use.scope}' runs" if use.scope else "the module runs as a program"
    return f"it is reached when {where}: --run COMMAND tries it"
