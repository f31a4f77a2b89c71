"""Functions compiled with and without native regions."""

from __future__ import annotations

import copy
import importlib.util
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import rekindle
import rekindle.runtime.executor
from rekindle.codegen.native import FormNativeRegions, NativeRegion
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.verifier import verify
from rekindle.passes import run_passes
from rekindle.runtime.pipelines import OPTIMIZATION

_numbers = itertools.count()


@dataclass
class Compiled:
    """``native`` runs regions, ``plan`` none; ``regions`` are the graphs of the former."""

    native: Callable[..., Any]
    plan: Callable[..., Any]
    graph: Graph
    regions: list[Graph]


def compiled(function: Callable[..., Any]) -> Compiled:
    graph = rekindle.script(function).graph.copy()
    run_passes(graph, OPTIMIZATION)
    plan = graph.copy()
    FormNativeRegions().run(graph)
    verify(graph)
    regions = [node.get_graph("Subgraph") for node in graph.all_nodes() if node.kind == "prim::NativeRegion"]
    return Compiled(callable_of(graph, function.__name__), callable_of(plan, function.__name__), graph, regions)


@dataclass
class Outcome:
    """What a call did: its result or error, what its arguments are like afterwards, and which lists among all these are
    the same."""

    result: Any
    error: str | None
    arguments: tuple[Any, ...]
    sharing: list[int] = field(init=False)

    def __post_init__(self) -> None:
        numbers: dict[int, int] = {}
        self.sharing = [numbers.setdefault(id(each), len(numbers)) for each in _lists_in((self.result, self.arguments))]


def _lists_in(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield value
    if isinstance(value, list | tuple):
        for each in value:
            yield from _lists_in(each)


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    taken = copy.deepcopy(arguments)
    try:
        return Outcome(function(*taken), None, taken)
    except Exception as error:
        return Outcome(None, f"{type(error).__name__}: {error}", taken)


def assert_same_outcome(ours: Outcome, theirs: Outcome) -> None:
    """Equal to the last bit: ``repr`` distinguishes -0.0, NaN, 1 and True."""
    assert repr(ours) == repr(theirs)


def left_to_the_plan(monkeypatch: Any) -> list[tuple[Any, ...]]:
    """The inputs of the regions that code leaves to the plan from now on."""
    left: list[tuple[Any, ...]] = []
    by_plan = NativeRegion.by_plan

    def noting(self: NativeRegion, *inputs: Any) -> Any:
        left.append(inputs)
        return by_plan(self, *inputs)

    monkeypatch.setattr(NativeRegion, "by_plan", noting)
    return left


def function_of(text: str, folder: Path) -> Callable[..., Any]:
    """The function ``f`` that a text of Python defines."""
    path = folder / f"scalar_program_{next(_numbers)}.py"
    path.write_text(f"import math\nfrom typing import List, Tuple, Union\n\n\n{text}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., Any] = module.f
    return function
