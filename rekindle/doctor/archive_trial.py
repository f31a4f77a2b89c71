"""Trials of archives: they are loaded, and called in the sandbox that loading uses."""

from __future__ import annotations

import dataclasses
import warnings
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
"""What a call in the sandbox may take: about a hundred seconds, and 8 GiB in all."""


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
        found |= _trusted(module, called, answer)
    return found, {"inputs": called, "answer": answer}


def _first_answer(
    method: Method, module: ScriptModule, inputs: list[Any] | None, size: int
) -> tuple[list[Any] | None, Any, str]:
    reason = "there are no inputs"
    try:
        for arguments in [inputs] if inputs is not None else generated(method.schema.bound):
            sandbox = SetStateSandbox(LIMITS, True, size)
            try:
                with torch.no_grad():
                    given = [module, *copied(arguments)]
                    given += [argument.default for argument in method.schema.arguments[len(given) :]]
                    return arguments, sandbox.call(method._record, given), ""
            except RekindleError as error:
                reason = f"it raises on {'the' if inputs else 'all generated'} inputs: {first_line(error)}"
    except NotGenerated as error:
        reason = str(error)
    return None, None, reason


def _trusted(module: ScriptModule, arguments: list[Any], answer: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    args = tuple(arguments)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = [module(*copied(args)) for _ in range(3)]
    except Exception as error:  # a program may raise anything
        return {"difference": f"{type(error).__name__} where the interpreter answers: {first_line(error)}"}
    texts = [difference(answer, result) for result in results]
    found["difference"] = next((text for text in texts if text is not None), None)
    times = measured(module, module, args, {})
    if times is not None:
        found["seconds"] = times[0]
    exported, found["pt2"] = portable_program(module, args, {})
    found["native"] = native_library(module, args, {})
    found["onnx"] = onnx(exported, args, {})
    return found


def _described(arguments: list[Any]) -> str:
    return ", ".join(
        f"{str(each.dtype).removeprefix('torch.')}{list(each.shape)}" if isinstance(each, torch.Tensor) else repr(each)
        for each in arguments
    )
