"""Static checks before the export: the constants of a program, and constructs that can never be exported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from torch import Tensor

from rekindle.errors import ExportProblem, SourceRange
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.types import ClassType


def reachable(nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield ``nodes``, the nodes in their blocks and subgraphs, and the nodes of the functions that they call, if these
    are known. Each function is visited once."""
    seen: set[int] = set()
    waiting: list[Iterable[Node]] = [nodes]
    while waiting:
        for node in waiting.pop():
            yield node
            waiting += [block.nodes for block in node.blocks]
            called = called_function(node)
            for graph in (None if called is None else called.graph, node.attributes.get("Subgraph")):
                if isinstance(graph, Graph) and id(graph) not in seen:
                    seen.add(id(graph))
                    waiting.append(graph.block.nodes)


def constants_of(records: Iterable[GraphFunction]) -> list[Tensor]:
    """Return the constant tensors of the program, each once."""
    found: dict[int, Tensor] = {}
    for node in reachable(node for record in records for node in record.graph.block.nodes):
        if node.kind == "prim::Constant":
            held = node.attributes.get("value")
            value = held.value if isinstance(held, ConstantObject) else held
            if isinstance(value, Tensor):
                found[id(value)] = value
    return list(found.values())


def static_problems(nodes: Iterable[Node]) -> list[ExportProblem]:
    """Return the problems of ``nodes``, and of the nodes that they reach, that prevent an export for all inputs."""
    return [problem for node in reachable(nodes) if (problem := static_problem(node)) is not None]


def static_problem(node: Node, callers: Sequence[tuple[str, SourceRange]] = ()) -> ExportProblem | None:
    """Return the reason why nodes of this kind can never be exported; None if they can. ``callers`` are the calls that
    lead to the node, for the error."""
    kind = node.kind
    if kind == "prim::CreateObject":
        type = node.output.type
        if not isinstance(type, ClassType) or not type.is_torchbind_class:
            return None
    entry = _NEVER.get(kind)
    if entry is None:
        return None
    message, hint, in_draft = entry
    return ExportProblem(message, node.range, hint=hint, callers=callers, in_draft=in_draft)


_NO_GRADIENTS: Final = (
    "this computes gradients while the program runs, and an exported program cannot",
    "take the loss out of the program and differentiate there, or make a program of the gradients with rekindle.grad",
    None,
)

_PRINTS: Final = ("this prints, and an exported program cannot", "remove the call", "nothing is printed")
_SEEDS: Final = (
    "this seeds a generator of random numbers, and an exported program cannot",
    "seed it before the program is called",
    "nothing is seeded",
)

_NEVER: Final[dict[str, tuple[str, str, str | None]]] = {
    "prim::Print": _PRINTS,
    "archive::Print": _PRINTS,
    "aten::manual_seed": _SEEDS,
    "aten::seed": _SEEDS,
    "aten::save": ("this writes a file, and an exported program cannot", "remove the call", "no file is written"),
    "prim::PythonOp": (
        "this calls Python, and an exported program cannot",
        "compile the function too: take the @ignore off it; or register it as an operator with torch.library",
        None,
    ),
    "prim::CreateObject": (
        "this makes an object of a class that is written in C++",
        "make it outside of the program, and pass in the tensors that it holds",
        None,
    ),
    "prim::Try": (
        "Export IR has no form for 'try'",
        "ask for what would raise before, with an 'if'",
        "what is tried runs as if nothing could be caught",
    ),
    "aten::backward": _NO_GRADIENTS,
    "aten::grad": _NO_GRADIENTS,
}
"""For each kind that cannot be exported: the problem, what to write instead, and the behaviour of a draft."""
