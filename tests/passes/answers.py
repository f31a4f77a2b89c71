"""Results of programs whose graphs were changed by passes, compared with the results without them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

import torch

import rekindle
from rekindle.analysis.type_propagation import propagate_types, refine_types
from rekindle.ir.graph import Graph
from rekindle.ir.types import TensorType, Type
from rekindle.passes import Inlining, LowerSimpleTuples, Pass, PassManager
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from tests.language.running import assert_same_outcome, outcome

INPUTS = tuple((torch.linspace(-1, 1, length), n) for length, n in itertools.product((1, 3, 4, 6), (-1, 1, 2, 3, 4)))
"""What the programs of :mod:`tests.passes.programs` are called with."""


def disagreements(
    program: Callable[..., object],
    passes: Sequence[Pass],
    inputs: Iterable[tuple[Any, ...]] = INPUTS,
    *,
    specialized: bool = False,
) -> list[str]:
    """How the answers of ``program``, run by Python, differ from those of its graph after ``passes``: a line for each
    of ``inputs`` where they do. ``specialized`` graphs know dtypes, devices, ranks and what needs a gradient."""
    record = rekindle.script(_again(program))._record
    found = []
    for each in inputs:
        function = optimized_function(record.graph, passes, each if specialized else None)
        where = f"{program.__name__}{each}"
        try:
            assert_same_outcome(outcome(function, each), outcome(program, each), where)
        except AssertionError as why:
            found.append(str(why).partition("\n")[0])
    return found


def _again(program: Callable[..., object]) -> Callable[..., object]:
    """The same function as another object, which was not compiled before."""
    assert isinstance(program, FunctionType)
    copy = FunctionType(program.__code__, program.__globals__, program.__name__)
    copy.__annotations__ = dict(program.__annotations__)
    return copy


def optimized_function(
    graph: Graph, passes: Sequence[Pass], inputs: Sequence[object] | None = None
) -> Callable[..., Any]:
    """Return a function that runs a copy of ``graph`` after ``passes``; it is specialized to ``inputs`` before, if
    given."""
    graph = graph.copy()
    PassManager().run(graph, (Inlining(), LowerSimpleTuples()))
    if inputs is not None:
        specialize(graph, inputs)
    PassManager().run(graph, passes)
    code = Code(graph, "f")
    return lambda *arguments: InterpreterState(code).run(arguments)


def specialize(graph: Graph, inputs: Sequence[object]) -> None:
    """Write what is known of ``inputs``, but their sizes, into ``graph``, and what follows from it."""
    types: list[Type | None] = [
        TensorType.of(each).with_rank_only() if isinstance(each, torch.Tensor) else None for each in inputs
    ]
    for value, type in zip(graph.inputs, types, strict=True):
        if type is not None:
            value.set_type(type)
    refine_types(graph, propagate_types(graph, types))
