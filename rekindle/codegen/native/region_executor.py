"""Executor of ``prim::NativeRegion``: machine code, and an execution plan of its graph as the fallback.

Compiling a region takes some 20 ms, which a loop over the three sizes of a tensor never saves. So loops that are not
nested and have a trip count are run by the plan, until that has taken :data:`PATIENCE` seconds or trip counts show that
the next call would take longer. Other regions are compiled in the first call.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from rekindle.codegen.llvm.cpython_wrappers import capsule_of, function_at, object_class_offset
from rekindle.codegen.llvm.engine import NativeCode, compile_module
from rekindle.codegen.llvm.recording_ir import recording_text
from rekindle.codegen.native.arithmetic import DECLARATIONS
from rekindle.codegen.native.boxing_ir import objects_text
from rekindle.codegen.native.list_runtime_ir import lists_text
from rekindle.codegen.native.lists import NativeWriter
from rekindle.codegen.native.regions import REGION, has_loop
from rekindle.codegen.native.runtime_linking import library_module, region_module
from rekindle.codegen.native.string_runtime_ir import strings_text
from rekindle.codegen.native.wrapper import ENTRY, entry_text
from rekindle.codegen.native.writer import kinds_of
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.operators.registry import AliasAnalysisKind, Operation
from rekindle.ir.subgraph_execution import PatchableOperation, callable_of, is_settled_at_once
from rekindle.ir.types import INT
from rekindle.ops.registration.declare import implements_for_node

PATIENCE = 0.002
"""Seconds that the plan may spend on a simple loop before it is compiled."""

SECONDS_PER_NODE = 1e-8
"""Seconds that a plan takes for a node in the body of a loop, at the least."""

_NAME = "native region"


@implements_for_node(f"{REGION}(...) -> ...", effects=AliasAnalysisKind.SPECIAL)
def native_region(node: Node) -> Operation:
    """Return the operation of a native region: it runs the subgraph, whose values are numbers, strings and lists."""
    return NativeRegion(node.get_graph("Subgraph"))


def region_text(graph: Graph) -> str:
    """Return the LLVM IR of a native region."""
    region = NativeWriter().function(graph, "region")
    entry = entry_text("region", kinds_of(graph.inputs), kinds_of(graph.outputs))
    return region_module(_library_text(), region + entry)


@cache
def _library_text() -> str:
    offset = object_class_offset()
    assert offset is not None
    return "\n".join([lists_text(), objects_text(offset), strings_text(offset), recording_text(), DECLARATIONS])


class NativeRegion(PatchableOperation):
    """Callable that takes the inputs of ``graph``, and returns its output, or a tuple of several. ``code`` is its
    machine code, once compiled."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.code: NativeCode | None = None
        self._plan: Callable[..., Any] | None = None
        self._run: Callable[..., Any] | None = None
        self._patience = PATIENCE if all(map(_is_simple, graph.nodes)) and not is_settled_at_once() else 0.0
        self._estimate: Callable[[Sequence[Any]], float] | None = None

    def __call__(self, *inputs: Any) -> Any:
        if self._run is not None:
            return self._run(*inputs)
        if self._patience > 0:
            if self._estimate is None:
                self._estimate = duration_estimate(self.graph)
                self._plan = callable_of(self.graph, _NAME)
            started = time.perf_counter()
            if self._estimate(inputs) <= self._patience:
                try:
                    return self.by_plan(*inputs)
                finally:
                    self._patience -= time.perf_counter() - started
        self._run = self._compile()
        self.patch_call_sites(self._run)
        return self._run(*inputs)

    def _compile(self) -> Callable[..., Any]:
        if object_class_offset() is None:
            return self.by_plan
        library = compile_module(library_module(_library_text()))
        self.code = code = compile_module(region_text(self.graph), libraries=[library])
        by_plan = self.by_plan
        return function_at(code.address(ENTRY), _NAME, capsule_of(by_plan), (code, by_plan))

    def by_plan(self, *inputs: Any) -> Any:
        """Return the result of the plan. It runs where there is no native code yet or none is possible, and when the
        native code leaves the region: for ints of more than 64 bits, and errors."""
        if self._plan is None:
            self._plan = callable_of(self.graph, _NAME)
        return self._plan(*inputs)


def _is_simple(node: Node) -> bool:
    """Return whether a node is neither a loop within a loop nor an unbounded loop."""
    if node.kind != "prim::Loop":
        return all(_is_simple(inner) for block in node.blocks for inner in block.nodes)
    loop = LoopView(node)
    return not loop.is_endless and not any(has_loop(inner) for inner in loop.body.nodes)


def duration_estimate(graph: Graph) -> Callable[[Sequence[Any]], float]:
    """Return a function that returns for inputs how many seconds a plan of ``graph``, whose loops are not nested, takes
    at the least, by the trip counts of its loops. A loop counts only if its trip count can be computed before any loop
    runs."""
    trips: list[tuple[_Evaluation, int]] = []
    for node in graph.all_nodes():
        if node.kind == "prim::Loop":
            evaluation = _evaluation(LoopView(node).trip_count, graph)
            if evaluation is not None:
                trips.append((evaluation, sum(1 for _ in node.inner_nodes())))

    def estimate(inputs: Sequence[Any]) -> float:
        found = 0
        for evaluation, size in trips:
            try:
                found += max(evaluation(inputs), 0) * size
            except (ArithmeticError, ValueError, RuntimeError):
                continue  # the plan raises it
        return found * SECONDS_PER_NODE

    return estimate


_Evaluation = Callable[[Sequence[Any]], Any]
"""A function that computes a value of a graph from the graph's inputs."""


def _evaluation(value: Value, graph: Graph) -> _Evaluation | None:
    """Return the function that computes ``value``, if it is an input of ``graph``, is constant, or is computed from
    such values by operators on numbers and ``len``; return None otherwise."""
    if value in graph.inputs:
        return itemgetter(graph.inputs.index(value))
    node = value.node
    if node.kind == "prim::Constant":
        constant = value.to_python()
        return lambda inputs: constant
    is_computed = value.type == INT and len(node.outputs) == 1 and not node.blocks and node.inputs
    if not is_computed or not all(each.type == INT or node.kind == "aten::len" for each in node.inputs):
        return None
    arguments = [each for each in (_evaluation(each, graph) for each in node.inputs) if each is not None]
    if node.operator is None or len(arguments) < len(node.inputs):
        return None
    operation = node.operator.operation_of(node)
    return lambda inputs: operation(*[argument(inputs) for argument in arguments])
