"""The backend of ``torch.compile``: ``torch.compile(f, backend="rekindle")``.

Dynamo captures the tensor operations of Python code. There are two ways to compile a captured graph:

- It is lowered to operators (:mod:`rekindle.importing.lowering`), which become one function. The function is
  optimized, fused and differentiated like any other, at its first calls.
- AOTAutograd converts it to functional graphs: one for calls without gradients, or one for the forward and one for the
  backward. Each becomes a function.

The first is compiled two to five times sooner and costs less per call (docs/torch_compile.md has the numbers), so it is
used unless ``options={"ahead_of_time": True}``. Captures with autocast regions, tensor subclasses, checkpoints or
``autograd.Function`` always use the second.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._guards import CompileContext
from torch.utils._python_dispatch import _disable_current_modes

from rekindle.importing.compiled_graphs import CompiledGraph, new_graph
from rekindle.importing.decompositions import decompositions
from rekindle.importing.functions import function_of
from rekindle.importing.lowering import lowered
from rekindle.program.function import Function
from rekindle.runtime.executor import optimized_execution

Compiled = Callable[..., Any]

_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class BackendOptions:
    """Options of ``torch.compile(…, options={…})``."""

    optimize: bool = True
    """Whether functions are optimized. Without it, operators run one by one, which shows whether an optimization causes
    a wrong result."""
    ahead_of_time: bool = False
    """Whether AOTAutograd generates the graphs."""

    @classmethod
    def of(cls, given: Mapping[str, object]) -> BackendOptions:
        """Return the options in ``given``, with defaults for the others.

        Raises:
            TypeError: an option is unknown, or its value is not a bool.
        """
        known = [each.name for each in fields(cls)]
        for name, value in given.items():
            if name not in known:
                raise TypeError(f"the backend 'rekindle' has no option '{name}'; it has {', '.join(known)}")
            if not isinstance(value, bool):
                raise TypeError(f"the option '{name}' of the backend 'rekindle' is True or False, not {value!r}")
        return cls(**given)  # type: ignore[arg-type]


def backend(
    module: fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, object] | None = None
) -> Compiled:
    """Compile a graph that Dynamo has captured. ``torch.compile(f, backend="rekindle")`` calls it.

    Args:
        module: the captured graph.
        example_inputs: the arguments of the call that was captured.
        options: ``optimize`` and ``ahead_of_time``, both bool.

    Returns:
        A function that takes the inputs of the graph and returns a tuple of its outputs.

    Raises:
        TypeError: an option is unknown or is not a bool.

    Example:
        >>> @torch.compile(backend=rekindle.backend)
        ... def gate(x):
        ...     return torch.sigmoid(x) * x
        >>> gate(torch.zeros(2))
        tensor([0., 0.])
    """
    chosen = BackendOptions.of(options or {})
    number, graph = new_graph(str(CompileContext.current_compile_id()), module)
    if not chosen.ahead_of_time:
        try:
            function = function_of(lowered(module, example_inputs), f"graph_{number}", gradients=True)
        except Exception as why:
            _LOG.info("graph %s is compiled ahead of time: %s", graph.compile_id, why)
        else:
            graph.functions.append(function)
            return _plain(function, graph, chosen)
    return _ahead_of_time(module, example_inputs, number, graph, chosen)


def _plain(function: Function, graph: CompiledGraph, options: BackendOptions) -> Compiled:
    """Return a function that Dynamo can call in place of the captured graph: it calls ``function``, and Dynamo does not
    trace it."""

    def run(*args: Any) -> Any:
        return function(*args)

    def run_as_it_is(*args: Any) -> Any:
        with optimized_execution(False):
            return function(*args)

    found = run if options.optimize else run_as_it_is
    found._rekindle_graph = graph  # type: ignore[attr-defined]  # kept for as long as it can be called
    compiled: Compiled = torch._dynamo.disable(found, reason="it is compiled")
    return compiled


def _ahead_of_time(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    number: int,
    graph: CompiledGraph,
    chosen: BackendOptions,
) -> Compiled:
    def compiler(role: str) -> Callable[[fx.GraphModule, Sequence[Any]], Compiled]:
        def compile(traced: fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
            with _disable_current_modes():  # constants are compared by their numbers, which fake tensors have not
                function = function_of(traced, f"{role}_{number}")
            graph.functions.append(function)
            return _boxed(function, graph, chosen)

        return compile

    compiled: Compiled = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions(),
        keep_inference_input_mutations=True,
    )(module, example_inputs)
    return compiled


def _boxed(function: Function, graph: CompiledGraph, options: BackendOptions) -> Compiled:
    """Return ``function`` with the calling convention of AOTAutograd: the result takes a list of arguments, and empties
    the list."""
    held = graph  # for as long as it can be called

    def run(args: list[Any]) -> Any:
        given = tuple(args)
        args.clear()
        return function(*given)

    def run_as_it_is(args: list[Any]) -> Any:
        with optimized_execution(False):
            return run(args)

    found = run if options.optimize else run_as_it_is
    found._boxed_call = True  # type: ignore[attr-defined]
    found._rekindle_graph = held  # type: ignore[attr-defined]
    return found
