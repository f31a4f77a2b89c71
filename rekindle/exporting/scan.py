"""What can be told of a program before it runs: its constants, and what can never be exported."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from rekindle.errors import ExportProblem
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph, Node
from rekindle.ir.records import FunctionRecord
from rekindle.ir.types import ClassType
from rekindle.passes.inlining import called_function


def reachable(record: FunctionRecord) -> Iterator[Node]:
    """Every node of a function and of those that it calls, where these are known; each function once."""
    seen: set[int] = set()
    graphs: list[Graph] = [record.graph]
    while graphs:
        graph = graphs.pop()
        if id(graph) in seen:
            continue
        seen.add(id(graph))
        for node in graph.all_nodes():
            yield node
            called = called_function(node)
            if called is not None:
                graphs.append(called.graph)
            subgraph = node.attributes.get("Subgraph")
            if isinstance(subgraph, Graph):
                graphs.append(subgraph)


def constants_of(record: FunctionRecord) -> list[Tensor]:
    """The tensors that stand in the program itself, each once."""
    found: dict[int, Tensor] = {}
    for node in reachable(record):
        if node.kind == "prim::Constant":
            held = node.attributes.get("value")
            value = held.value if isinstance(held, ConstantObject) else held
            if isinstance(value, Tensor):
                found[id(value)] = value
    return list(found.values())


def static_problems(record: FunctionRecord) -> list[ExportProblem]:
    """Reasons against an export that do not depend on how the program runs."""
    found: list[ExportProblem] = []
    for node in reachable(record):
        problem = _problem_of(node)
        if problem is not None:
            found.append(problem)
    return found


def _problem_of(node: Node) -> ExportProblem | None:
    if node.kind == "prim::PythonOp":
        return ExportProblem(
            "this calls Python, and an exported program cannot",
            node.range,
            hint="compile the function too: take the @ignore off it; or register it as an operator with torch.library",
        )
    if node.kind == "aten::save":
        return ExportProblem("this writes a file, and an exported program cannot", node.range, hint="remove the call")
    if node.kind == "prim::CreateObject":
        type = node.output.type
        if isinstance(type, ClassType) and type.is_library_class:
            return ExportProblem("this makes an object of a class that is written in C++", node.range)
    return None
