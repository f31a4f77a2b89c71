"""Inline calls: replace each call with the body of its callee.

.. code-block:: text

    %f : Function = prim::Constant[name="double"]()
    %1 : Tensor = prim::CallFunction(%f, %x)               %2 : int = prim::Constant[value=2]()
    %3 : Tensor = aten::neg(%1)                  becomes   %1 : Tensor = aten::mul(%x, %2)
                                                           %3 : Tensor = aten::neg(%1)

``Node.callstack`` records the calls through which a node was inlined. Calls of interface methods are not inlined, since
the callee is known only at run time. Neither are recursive functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class Inlining:
    """Inline calls: replace each call with the body of its callee. The docstring of the module shows the IR before and
    after.

    Functions named in ``kept`` are not inlined.

    Example:
        >>> from rekindle.passes import Inlining, run_passes
        >>> negated = rekindle.script(lambda x: x.neg())
        >>> graph = rekindle.script(lambda x: negated(x)).graph
        >>> run_passes(graph, [Inlining()])
        True
        >>> [node.kind for node in graph.nodes]
        ['aten::neg']
    """

    name: ClassVar[str] = "inlining"
    kept: frozenset[str] = frozenset()
    """The functions of the frontend's library of which calls stay, by their names there."""

    def run(self, graph: Graph) -> bool:
        return _inline_block(graph.block, self.kept)


def inline(graph: Graph) -> bool:
    """Inline the calls in ``graph``, except of interface methods and recursive functions, and those in the inlined
    bodies. Return whether any was inlined.

    Args:
        graph: the graph, which is modified.

    Example:
        >>> from rekindle.passes import inline
        >>> negated = rekindle.script(lambda x: x.neg())
        >>> graph = rekindle.script(lambda x: negated(x)).graph
        >>> inline(graph), graph.find_node("aten::neg") is not None
        (True, True)
    """
    return Inlining().run(graph)


def _inline_block(block: Block, kept: frozenset[str] = frozenset()) -> bool:
    changed = False
    node = block.return_node.next
    while node is not block.return_node:
        record = called_function(node)
        stays = record is None or record.is_recursive or record.library_name in kept
        if record is None or stays or not may_change("inline", node):
            for inner in node.blocks:
                changed |= _inline_block(inner, kept)
            node = node.next
        else:
            node = replace_call(node, record, record.graph)
            changed = True
    return changed


def inline_between(before: Node, end: Node, result: Value) -> Value:
    """Inline the calls between two nodes of a block, and those in the inlined code, except of interface methods and
    recursive functions. Return the value that replaces ``result``, if an inlined call computed it; else ``result``."""
    keep = end.graph.create("prim::Return", [result])  # a use, which is carried along
    node = before.next
    while node is not end:
        record = called_function(node)
        if record is None or record.is_recursive:
            for inner in node.blocks:
                _inline_block(inner)
            node = node.next
        else:
            node = replace_call(node, record, record.graph)
    result = keep.input
    keep.destroy()
    return result


def replace_call(call: Node, record: GraphFunction, body: Graph) -> Node:
    """Replace ``call``, which calls ``record``, by a copy of the nodes of ``body``, an equivalent graph. Destroy the
    constant of the called function if it is unused then. Return the first copied node; the node after the call, if
    ``body`` has no nodes."""
    graph = call.graph
    callee, *_ = call.inputs
    before = call.prev
    with graph.inserting_before(call):
        results = graph.insert_graph(body, call_arguments(call))
    first = before.next if before.next is not call else call.next
    _note_call(before, call, record)
    for output, result in zip(call.outputs, results, strict=True):
        output.replace_all_uses_with(result)
        if output.has_name and not result.has_name:
            result.set_name(output.name)  # its type stays its own: it may be a constant that others share
    call.destroy()
    if call.kind == "prim::CallFunction" and not callee.has_uses and callee.node.kind == "prim::Constant":
        callee.node.destroy()
    return first


def call_arguments(call: Node) -> list[Value]:
    """Return the arguments of a call: the inputs after the function in ``prim::CallFunction``; all inputs of a method
    call, the object first."""
    callee, *arguments = call.inputs
    return arguments if call.kind == "prim::CallFunction" else [callee, *arguments]


def _note_call(before: Node, call: Node, record: GraphFunction) -> None:
    """Add the call to the call stacks of the nodes between ``before`` and ``call``, which were inlined from it."""
    prefix = (*call.callstack, (record.basename, call.range))
    node = before.next
    while node is not call:
        for each in (node, *node.inner_nodes()):
            each.callstack = (*prefix, *each.callstack)
        node = node.next
