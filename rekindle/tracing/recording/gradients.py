"""Gradients that the code itself asks for: ``torch.autograd.grad`` and ``backward``.

What autograd runs is not recorded, for it would hold for the sizes of the example only. The program asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rekindle.errors import TracingError
from rekindle.tracing.recording.active import active_recorder
from rekindle.tracing.recording.recorder import Recorder
from rekindle.tracing.source_locations import users_place


def run_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function through which both go."""

    def function(outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        recorder = active_recorder()
        if recorder is None or recorder.within_calls or torch._C._functorch.maybe_current_level() is not None:
            return original(outputs, *args, **kwargs)
        return _record(recorder, original, outputs, args, kwargs)

    return function


def _record(
    recorder: Recorder,
    original: Callable[..., Any],
    outputs: Sequence[Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    grads, retain_graph, create_graph, inputs, *unused = args
    accumulates = kwargs["accumulate_grad"]
    if (accumulates and inputs) or not all(isinstance(item, torch.Tensor) for item in (*outputs, *inputs)):
        raise TracingError(
            "these arguments of a gradient cannot be recorded",
            users_place(),
            hint="torch.autograd.grad(outputs, inputs) of tensors can",
        )
    lists = [recorder.argument(list(items)) for items in (outputs, *([] if accumulates else [inputs]), grads)]
    flags = [retain_graph, create_graph, *([] if accumulates else unused)]
    with recorder.within_call():
        found = original(outputs, *args, **kwargs)
    value = recorder.insert("aten::backward" if accumulates else "aten::grad", [*lists, *flags])
    if accumulates:
        return found
    return tuple(recorder.bind_result(list(found), value))
