"""Eliminate tuples that are unpacked in the graph that packs them.

.. code-block:: text

    %t : (Tensor, int) = prim::TupleConstruct(%x, %n)
    %a : Tensor, %b : int = prim::TupleUnpack(%t)        becomes    return (%x)
    return (%a)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.analysis.constants import constant_int
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import TupleType
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class LowerSimpleTuples:
    '''Replace elements of tuples that are constructed in the graph with the values. The docstring of the module shows
    the IR before and after.

    Dead code is eliminated too.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import LowerSimpleTuples, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor, %y : Tensor):
        ...   %1 : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
        ...   %2 : Tensor, %3 : Tensor = prim::TupleUnpack(%1)
        ...   return (%3)
        ... """)
        >>> run_passes(graph, [LowerSimpleTuples()])
        True
        >>> print(graph)
        graph(%x : Tensor,
              %y : Tensor):
          return (%y)
    '''

    name: ClassVar[str] = "lower_simple_tuples"

    def run(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.all_nodes()):
            changed |= lower_tuple(node)
        return run_nested(DeadCodeElimination(), graph) or changed


def lower_tuple(node: Node) -> bool:
    """Replace the outputs of ``node``, which reads a tuple constructed in the graph, by the original values; those of a
    slice by a new tuple of these. ``node`` stays, without uses. Return whether anything changed."""
    if node.kind not in ("prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice"):
        return False
    whole, *_ = node.inputs
    made = whole.node
    if made.kind != "prim::TupleConstruct" or not node.has_uses or not may_change("see through", node):
        return False
    elements = list(made.inputs)
    if node.kind == "prim::TupleUnpack":
        return _replace(node, elements)
    if node.kind == "prim::TupleIndex":
        index = constant_int(node.named_input("i"))
        if index is None or not -len(elements) <= index < len(elements):
            return False
        return _replace(node, [elements[index]])
    first, end = node["beg"], node["end"]
    assert isinstance(first, int), "an attribute of prim::TupleSlice is not an int"
    assert isinstance(end, int), "an attribute of prim::TupleSlice is not an int"
    part = elements[first:end]
    graph = node.graph
    type = TupleType(tuple(value.type for value in part))
    tuple_ = graph.create("prim::TupleConstruct", part, types=[type], range=node.range).insert_before(node)
    return _replace(node, [tuple_.output])


def _replace(node: Node, values: list[Value]) -> bool:
    changed = False
    for output, value in zip(node.outputs, values, strict=True):
        changed |= output.has_uses
        output.replace_all_uses_with(value)
    return changed
