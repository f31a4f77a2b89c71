"""Record a run as one graph, for tools that read graphs. The arguments and the tensors of a module are graph inputs.

The operators of submodules are recorded without their calls::

    graph(%x : Tensor, %weight : Tensor, %bias : Tensor):
      %4 : Tensor = aten::linear(%x, %weight, %bias)
      return (%4)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from rekindle.ir.graph import Graph
from rekindle.tracing.example_run import examples_of, record_run
from rekindle.tracing.fixup_trace_scopes import lower_to_function
from rekindle.tracing.module_state import state_kept
from rekindle.tracing.recording.compiled_calls import record_compiled_call
from rekindle.tracing.recording.recorder import Recorder, TracingScopes


def trace_graph(
    func: Callable[..., Any], args: Any = (), kwargs: Mapping[str, Any] | None = None, strict: bool = True
) -> tuple[Graph, Any]:
    """Run ``func`` on examples. Return the graph and what ``func`` returned.

    The graph's inputs are the arguments and then, if ``func`` is a module, the tensors of its state dict. Its output is
    the tensor in the result, or a tuple of all tensors in it. The state of a module and of random number generators is
    restored after the run.

    Raises:
        TracingError: the run cannot be recorded.
    """
    recorder = Recorder({}, {}, call_compiled=record_compiled_call)
    recorder.scopes = TracingScopes(recorder.graph)
    results: list[Any] = []

    def run(*args: Any, **kwargs: Any) -> Any:
        for name, tensor in _state(func):
            recorder.bind(tensor, recorder.graph.add_input(name.replace(".", "_")))
        results.append(func(*args, **kwargs))
        flat = tuple(_tensors(results[0]))
        return flat[0] if len(flat) == 1 else flat

    examples = examples_of(args, kwargs or {})
    modules = [func] if isinstance(func, torch.nn.Module) else []
    try:
        with state_kept(*modules):
            names, outputs = record_run(recorder, run, func, examples, strict)
        graph = lower_to_function(recorder, outputs, "trace", names).graph
    finally:
        recorder.close()
    return graph, results[0]


def _state(func: object) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the name and the tensor of each entry in the state dict of a module, each tensor once; nothing for other
    callables."""
    if isinstance(func, torch.nn.Module):
        seen: set[int] = set()
        for name, tensor in func.state_dict(keep_vars=True).items():
            if isinstance(tensor, torch.Tensor) and id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    """Yield the leaves of nested tuples, lists and dicts other than None."""
    if isinstance(result, (tuple, list)):
        for item in result:
            yield from _tensors(item)
    elif isinstance(result, Mapping):
        for item in result.values():
            yield from _tensors(item)
    elif result is not None:
        yield result
