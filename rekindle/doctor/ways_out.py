"""How fast a program is beside eager, and where it can leave to: Export IR, a native library, ONNX."""

from __future__ import annotations

import importlib
import importlib.util
import io
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from rekindle.building.comparison import comparable
from rekindle.building.library import build
from rekindle.building.native_library import NativeLibrary
from rekindle.doctor.comparison import copied, difference
from rekindle.doctor.problems import first_line
from rekindle.exporting.program import to_exported

_SECONDS: Final = 0.2
"""Duration of the measurement of one program, in seconds."""
_WARM_UP: Final = 5


def measured(
    compiled: Callable[..., Any], eager: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[float, float] | None:
    """Return the median seconds of a call of the program and of eager, which are called alternately; None if a call
    raises. Calls get copies of the arguments.

    One thread computes: with several, small tensors measure how busy the machine is.
    """
    taken: tuple[list[float], list[float]] = ([], [])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for call in (compiled, eager):
            for _ in range(_WARM_UP):
                call(*copied(args), **copied(kwargs))
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end or not taken[0]:
            for times, call in zip(taken, (compiled, eager), strict=True):
                given, named = copied(args), copied(kwargs)
                start = time.perf_counter()
                call(*given, **named)
                times.append(time.perf_counter() - start)
    except Exception:  # a program may raise anything
        return None
    finally:
        torch.set_num_threads(threads)
    return statistics.median(taken[0]), statistics.median(taken[1])


def portable_program(
    program: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[torch.export.ExportedProgram | None, str]:
    """Export a program, save and load it as a ``.pt2`` file, and call it. Return the exported program and ``agrees``,
    or None and the reason of the failure."""
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            exported = to_exported(program, copied(args), copied(kwargs))
            buffer = io.BytesIO()
            torch.export.save(exported, buffer)
            buffer.seek(0)
            loaded = torch.export.load(buffer).module()
            text = difference(program(*copied(args), **copied(kwargs)), loaded(*copied(args), **copied(kwargs)))
    except Exception as error:  # exporters raise anything
        return None, f"refused: {first_line(error)}"
    return (exported, "agrees") if text is None else (None, f"differs: {text}")


def native_library(program: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Build a native library for a program, load and call it. Return ``agrees``, or a text that begins with ``not
    tried``, ``refused`` or ``differs`` and has the reason."""
    if kwargs:
        return "not tried: arguments are given by name"
    try:
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            build(program, folder, [copied(args)])
            found = NativeLibrary(folder)(*copied(args))
            text = difference(*comparable(program(*copied(args)), found))
    except Exception as error:  # a program may raise anything
        return f"refused: {first_line(error)}"
    return "agrees" if text is None else f"differs: {text}"


def onnx(exported: torch.export.ExportedProgram | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Convert an exported program to ONNX, if the packages for it are installed. Return ``agrees``, or a text
    that begins with ``not tried``, ``refused`` or ``differs`` and has the reason."""
    if exported is None:
        return "not tried: it needs the exported program"
    missing = [name for name in ("onnxscript", "onnxruntime") if importlib.util.find_spec(name) is None]
    if missing:
        return f"not tried: {missing[0]} is not installed"
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            expected = pytree.tree_leaves(exported.module()(*copied(args), **copied(kwargs)))
            converted = torch.onnx.export(
                exported, copied(args), kwargs=copied(dict(kwargs)), dynamo=True, verbose=False
            )
            assert converted is not None
            text = difference(expected, list(converted(*copied(args), **copied(kwargs))))
    except Exception as error:  # exporters raise anything
        return f"refused: {first_line(error)}"
    return "agrees" if text is None else f"differs: {text}"
