"""The backend of ``torch.compile``: ``torch.compile(f, backend="rekindle")``.

Dynamo captures what Python does to tensors, AOTAutograd makes of it graphs of ATen's operators that write to nothing:
one for calls without gradients, else one for the forward and one for the backward. Each becomes a function of ours,
which optimises and fuses it like any other, at its first calls.

AOTAutograd rather than our own derivatives: see docs/torch_compile.md, where both are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._guards import CompileContext

from rekindle.importing.compiled import CompiledGraph, new_graph
from rekindle.importing.decompositions import decompositions
from rekindle.importing.functions import function_of
from rekindle.program.function import Function
from rekindle.runtime.executor import optimized_execution

Compiled = Callable[..., Any]


@dataclass(slots=True, frozen=True)
class BackendOptions:
    """What ``torch.compile(…, options={…})`` may say.

    ``optimize``: whether functions are optimised; without it each operator runs by itself, which shows whether a
    wrong answer is a fault of an optimisation. ``decompose``: whether operators that kernels do not know are taken
    apart into such that they do.
    """

    optimize: bool = True
    decompose: bool = True

    @classmethod
    def of(cls, given: Mapping[str, object]) -> BackendOptions:
        """Those that were given, the others as they are by default.

        Raises:
            TypeError: one is unknown, or no bool.
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
    """Compile a graph that Dynamo has captured. It is what ``backend="rekindle"`` names.

    Raises:
        TypeError: an option is unknown.
    """
    chosen = BackendOptions.of(options or {})
    number, graph = new_graph(str(CompileContext.current_compile_id()), module)

    def compiler(role: str) -> Callable[[fx.GraphModule, Sequence[Any]], Compiled]:
        def compile(traced: fx.GraphModule, inputs: Sequence[Any]) -> Compiled:
            function = function_of(traced, f"{role}_{number}")
            graph.functions.append(function)
            return _boxed(function, graph, chosen)

        return compile

    compiled: Compiled = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        decompositions=decompositions() if chosen.decompose else {},
        keep_inference_input_mutations=True,
    )(module, example_inputs)
    return compiled


def _boxed(function: Function, graph: CompiledGraph, options: BackendOptions) -> Compiled:
    """``function`` as AOTAutograd calls functions: with a list of arguments, which it empties."""
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
