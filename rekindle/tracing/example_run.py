"""Run code on examples while it is recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from rekindle.errors import UNKNOWN_RANGE, TracingError
from rekindle.ir.graph import Value
from rekindle.tracing.module_state import ModuleState
from rekindle.tracing.recording import autocasting
from rekindle.tracing.recording.creation import settle_constants
from rekindle.tracing.recording.interception import watching
from rekindle.tracing.recording.lent_tensors import LentTensors
from rekindle.tracing.recording.pytrees import enter, leave, type_of_example
from rekindle.tracing.recording.recorder import Recorder
from rekindle.tracing.report import Baked

Examples = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of a run by position and by name."""


def examples_of(inputs: Any, kwargs: Mapping[str, Any] | None) -> Examples:
    """Return the example arguments that a caller of ``trace`` passed, by position and by name.

    Raises:
        TracingError: both are None.
    """
    if inputs is None and kwargs is None:
        raise TracingError("a trace needs examples of the arguments", hint="trace(f, (x, y))")
    if inputs is None:
        args: tuple[Any, ...] = ()
    elif isinstance(inputs, (torch.Tensor, dict)):
        args = (inputs,)
    else:
        args = tuple(inputs)
    return args, dict(kwargs or {})


def record_run(
    recorder: Recorder,
    run: Callable[..., Any],
    function: Callable[..., Any],
    examples: Examples,
    strict: bool,
    state: ModuleState | None = None,
) -> tuple[list[str], list[Value]]:
    """Run the function on the examples while ``recorder`` records. Writes to their tensors are undone afterwards
    (:class:`LentTensors`). Return the names of the parameters and the graph values of the result. ``run`` is called;
    ``function`` has the signature from which the names are taken.

    Raises:
        TracingError: an argument, an operation or the result cannot be recorded.
        Exception: whatever ``run`` raises.
    """
    args, kwargs = examples
    names = parameter_names(function, len(args)) + list(kwargs)
    values = [
        recorder.graph.add_input(name, type_of_example(example, f"the argument '{name}'"))
        for name, example in zip(names, (*args, *kwargs.values()), strict=True)
    ]
    with LentTensors(recorder.is_of_module) as lent:
        given = [
            enter(recorder, value, example, lent)
            for value, example in zip(values, (*args, *kwargs.values()), strict=True)
        ]
        _note_state(recorder)
        with watching(recorder):
            result = run(*given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True)))
            outputs = [leave(recorder, result, strict)]
            if state is not None:
                state.record_all(recorder)
            recorder.grad_mode.finish(recorder.graph)
    settle_constants(recorder, outputs)
    return names, outputs


def parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """Return names for the first ``count`` arguments of a function."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
    names += [f"argument_{i}" for i in range(len(names), count)]
    return names[:count]


def _note_state(recorder: Recorder) -> None:
    """Record in the trace report that autocasting is enabled, since it becomes a part of the trace."""
    if autocasting.is_on():
        recorder.report.add(Baked.STATE, "autocasting", "on, and is part of the trace", UNKNOWN_RANGE)
