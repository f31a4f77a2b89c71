"""Record a run as one graph, for tools that read graphs: the arguments are inputs, and so are the tensors of a module.

Calls of sub-modules leave nothing but their operators::

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
    """Run ``func`` on examples; returns the graph, whose inputs are the arguments and then the parameters and buffers
    of ``func`` if it is a module, and what ``func`` returned.

    The graph returns the tensors in the result: one, or a tuple of them.

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
    """Yield the tensors that a module keeps, each once."""
    if isinstance(func, torch.nn.Module):
        seen: set[int] = set()
        for name, tensor in func.state_dict(keep_vars=True).items():
            if isinstance(tensor, torch.Tensor) and id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested tuples, lists and dicts."""
    if isinstance(result, (tuple, list)):
        for item in result:
            yield from _tensors(item)
    elif isinstance(result, Mapping):
        for item in result.values():
            yield from _tensors(item)
    elif result is not None:
        yield result
