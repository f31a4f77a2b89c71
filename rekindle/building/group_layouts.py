"""Recording of the layouts of the tensors that fused groups are called with.

The graph runs on examples, operator by operator. A node before each group records the layouts of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from torch import Tensor

from rekindle.codegen.fusion import KIND
from rekindle.codegen.layout import Layout
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.registry import REGISTRY, Operation, Operator
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.version import PythonFunction

GroupInputs = tuple[Layout | type, ...]
"""The layouts of the tensors among the inputs of a group, and the types of its numbers."""

_RECORD: Final = "rekindle::record_layouts"
_MAX_RECORDED: Final = 256
"""Maximum number of combinations of layouts that are recorded for a group."""

Recorded = dict[int, dict[GroupInputs, None]]
"""The recorded inputs of each group, in the order of the calls; keys are the positions of groups in the graph."""

_recorded: Final = ContextVar[Recorded]("rekindle.recorded_layouts")


class RecordedRuns:
    """Runner of ``graph`` that records the calls of its fused groups. The graph must not change afterwards."""

    def __init__(self, graph: Graph, name: str) -> None:
        self._groups = [node.get_graph("Subgraph") for node in graph.all_nodes() if node.kind == KIND]
        self._recorded: Recorded = {index: {} for index in range(len(self._groups))}
        self._function = _callable_of(_with_records(graph), name)

    @contextmanager
    def recording(self) -> Iterator[Callable[..., Any]]:
        """Yield a function that runs the graph, and record its calls within the ``with`` block."""
        token = _recorded.set(self._recorded)
        try:
            yield self._function
        finally:
            _recorded.reset(token)

    def inputs(self) -> dict[Graph, list[GroupInputs]]:
        """Return the distinct inputs of the recorded calls of each group, by subgraph."""
        return {group: list(self._recorded[index]) for index, group in enumerate(self._groups)}


def _callable_of(graph: Graph, name: str) -> Callable[..., Any]:
    """Return a function that runs a graph. A graph with loops gets a native plan; for others, compiling one takes
    longer than the runs."""
    if any(node.kind == "prim::Loop" for node in graph.all_nodes()):
        return callable_of(graph, name)
    return PythonFunction(Code(graph, name))


def _with_records(graph: Graph) -> Graph:
    """Return a copy of ``graph`` in which each group is replaced with a node that records its inputs, and the
    group's operators."""
    copy = graph.copy()
    groups = [node for node in copy.all_nodes() if node.kind == KIND]
    for index, node in enumerate(groups):
        with copy.inserting_before(node):
            record = copy.create(_RECORD, node.inputs, outputs=0, attributes={"group": index}, range=node.range)
            copy.insert_node(record)
            results = copy.insert_graph(node.get_graph("Subgraph"), node.inputs)
        node.replace_with(*results)
    return copy


def _recorder(node: Node) -> Operation:
    group = node["group"]
    assert isinstance(group, int)

    def record(*inputs: Any) -> None:
        found = _recorded.get()[group]
        if len(found) < _MAX_RECORDED:
            found.setdefault(tuple(map(_layout, inputs)))

    return record


def _layout(value: Any) -> Layout | type:
    return Layout(tuple(value.shape), value.stride(), value.dtype) if isinstance(value, Tensor) else type(value)


REGISTRY.register(Operator(parse_schema(f"{_RECORD}(...) -> ()"), operation_for_node=_recorder, has_side_effects=True))
