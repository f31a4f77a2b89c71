"""Find the module attributes that programs write to; all others keep their values.

.. code-block:: text

    %w : Tensor = prim::GetAttr[name="weight"](%self)
    %n : Tensor = prim::GetAttr[name="count"](%self)
    %v : Tensor = aten::select(%n, %0, %0)
    %m : Tensor = aten::add_(%v, %1, %1)                     (Net, "count"): a view of it is written to
     = prim::SetAttr[name="last"](%self, %w)                 (Net, "last"): it is replaced

An attribute is identified by the class of its module. The result is exact for a single module only if each module has a
class of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.mutability import is_immutable
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import ClassType, TensorType, Type

AttributeKey: TypeAlias = tuple[Type, str]
"""An attribute: the class of its module, and its name."""


def written_attributes(graphs: Sequence[Graph]) -> set[AttributeKey]:
    """Return the attributes of modules that ``graphs``, called in any order, may assign or write to. Attributes whose
    values escape to unknown code are included, and so are lists and dicts that callers can reach.

    The first input of each graph is the module; all other modules are its parts.
    """
    whole = _in_one(graphs)
    aliases = AliasDb(whole, is_frozen=True)
    leaving = 0
    for value in whole.outputs:
        if not isinstance(value.type, TensorType):
            leaving |= aliases.reachable(value)
    found: set[AttributeKey] = set()
    for node in nodes_within(whole):
        if node.kind == "prim::SetAttr" and _is_of_module(node):
            found.add(slot_of(node))
        elif node.kind == "prim::GetAttr" and _is_of_module(node) and not is_immutable(node.output.type):
            value = node.output
            leaves = not isinstance(value.type, TensorType) and bool(aliases.memory(value) & leaving)
            if leaves or aliases.has_writers(value) or aliases.escapes(value):
                found.add(slot_of(node))
    return found


def _in_one(graphs: Iterable[Graph]) -> Graph:
    """Return a graph that runs all of ``graphs``, for a flow-insensitive analysis."""
    whole = Graph()
    modules: dict[Type, Value] = {}
    for graph in graphs:
        module, *others = graph.inputs
        if module.type not in modules:
            modules[module.type] = whole.add_input("", module.type)
        inputs = [modules[module.type], *(whole.add_input("", value.type) for value in others)]
        for output in whole.insert_graph(graph, inputs):
            whole.add_output(output)
    return whole


def slot_of(node: Node) -> AttributeKey:
    """Return the key of the attribute that a ``prim::GetAttr`` reads, or a ``prim::SetAttr`` writes: the class and the
    name."""
    receiver, *_ = node.inputs
    return receiver.type, node.get_string("name")


def _is_of_module(node: Node) -> bool:
    """Return whether the attribute is that of a module whose class is known."""
    owner, _ = slot_of(node)
    return isinstance(owner, ClassType) and owner.is_module


def nodes_within(graph: Graph) -> Iterator[Node]:
    """Yield every node of ``graph``, and of the graphs that are attributes of its nodes."""
    for node in graph.all_nodes():
        yield node
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                yield from nodes_within(inner)
