"""Trials of archives: they are loaded, and called in the sandbox that loading uses."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch

from rekindle.archive.inspect import inspect
from rekindle.archive.limits import DEFAULT_LIMITS
from rekindle.archive.load import load
from rekindle.archive.pickles.setstate_sandbox import SetStateSandbox
from rekindle.doctor.comparison import copied, difference
from rekindle.doctor.inputs import NotGenerated, generated
from rekindle.doctor.problems import first_line, problems_of
from rekindle.doctor.ways_out import measured, native_library, onnx, portable_program
from rekindle.errors import RekindleError
from rekindle.program.function import Method
from rekindle.program.modules.module import ScriptModule

LIMITS: Final = dataclasses.replace(DEFAULT_LIMITS, steps=50_000_000, setstate_bytes=8 << 30)
"""Limits of a call in the sandbox: steps for about a hundred seconds, and 8 GiB of memory in all."""


def try_archive(path: Path, inputs: list[Any] | None, trusted: bool) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Load an archive and call its ``forward`` with ``inputs``, or with generated ones.

    Calls run in the sandbox. With ``trusted``, the archive is called as usual too, measured, and exported.

    Returns:
        The event for the report, and the inputs and the result of the call, or None if there was none.
    """
    found: dict[str, Any] = {"event": "archive", "path": str(path), "ok": False, "problems": []}
    try:
        summary = inspect(path)
        missing = [(each.kind, each.package) for each in summary.missing_operators]
        missing += [(each.name, each.package) for each in summary.missing_classes]
        found["missing"] = [f"{name} (package '{package}')" if package else name for name, package in missing]
        module = load(path, map_location="cpu")
    except Exception as error:  # a report includes any error
        found["problems"] = problems_of(error)
        return found, None
    found |= {"ok": not missing, "methods": [each.name for each in summary.methods], "format": summary.version}
    record = module.script_type.methods.get("forward")
    if record is None or missing:
        found["not_called"] = "it has no forward" if record is None else "operators or classes are missing"
        return found, None
    method = Method(module, record)
    called, answer, reason = _first_answer(method, module, inputs, path.stat().st_size)
    if called is None:
        found["not_called"] = reason
        return found, None
    found |= {"called": "generated" if inputs is None else "given", "shapes": _described(called)}
    if trusted:
        found |= _trusted(path, called, answer, lambda: _sandboxed(method, module, called, path.stat().st_size))
    return found, {"inputs": called, "answer": answer}


def _first_answer(
    method: Method, module: ScriptModule, inputs: list[Any] | None, size: int
) -> tuple[list[Any] | None, Any, str]:
    reason = "there are no inputs"
    try:
        for arguments in [inputs] if inputs is not None else generated(method.schema.bound):
            try:
                return arguments, _sandboxed(method, module, arguments, size), ""
            except RekindleError as error:
                reason = f"it raises on {'all generated' if inputs is None else 'the'} inputs: {first_line(error)}"
    except NotGenerated as error:
        reason = str(error)
    return None, None, reason


def _sandboxed(method: Method, module: ScriptModule, arguments: list[Any], size: int) -> Any:
    given = [module, *copied(arguments)]
    given += [argument.default for argument in method.schema.arguments[len(given) :]]
    with torch.no_grad():
        return SetStateSandbox(LIMITS, True, size).call(method._record, given)


def _trusted(path: Path, arguments: list[Any], answer: Any, call_again: Callable[[], Any]) -> dict[str, Any]:
    """Compare compiled calls with the sandbox's. If they agree, measure them, and convert the program.

    Calls may change the module, so each conversion begins with the archive as it was saved.
    """
    found: dict[str, Any] = {}
    args = tuple(arguments)
    module = load(path, map_location="cpu")
    found["difference"] = _difference_of_calls(module, args, answer, call_again)
    if found["difference"] is not None:
        return found
    times = measured(module, module, args, {})
    if times is not None:
        found["seconds"] = times[0]
    exported, found["pt2"] = portable_program(load(path, map_location="cpu"), args, {})
    found["native"] = native_library(load(path, map_location="cpu"), args, {})
    found["onnx"] = onnx(exported, args, {})
    return found


def _difference_of_calls(
    module: ScriptModule, args: tuple[Any, ...], answer: Any, call_again: Callable[[], Any]
) -> str | None:
    """Describe how the first three compiled calls differ from those in the sandbox; None if they agree.

    The sandbox is slow. Its first result, ``answer``, is that of all calls, unless a later compiled call returns
    something else, as the calls of a module with state do: then ``call_again`` repeats the call in the sandbox.
    """
    repeated = 0
    for number in range(3):
        try:
            with torch.no_grad(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = module(*copied(args))
        except Exception as error:  # a program may raise anything
            return f"{type(error).__name__} where the interpreter answers: {first_line(error)}"
        text = difference(answer, result)
        if number and (repeated or text is not None):
            try:
                while repeated < number:
                    answer, repeated = call_again(), repeated + 1
            except RekindleError as error:
                return f"{text}; the sandbox cannot repeat the call: {first_line(error)}"
            text = difference(answer, result)
        if text is not None:
            return text
    return None


def _described(arguments: list[Any]) -> str:
    return ", ".join(
        f"{str(each.dtype).removeprefix('torch.')}{list(each.shape)}" if isinstance(each, torch.Tensor) else repr(each)
        for each in arguments
    )
