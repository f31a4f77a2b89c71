"""Replace guards with bailouts: if a guard fails, a continuation runs without the assumptions.

.. code-block:: text

    graph(%x : Tensor, %y : Tensor):                graph(%x : Tensor, %y : Tensor):
      %1 : Float(2) = prim::Guard(%x)                 %t : int = prim::BailoutTemplate_0()
      %z : Tensor = aten::add(%1, %y)    becomes      %1 : Float(2) = prim::BailOut[index=0](%x, %t, %y)
      return (%z)                                     %z : Tensor = aten::add(%1, %y)
                                                      return (%z)
                                                    with prim::BailoutTemplate_0 = graph(%x : Tensor, …

If ``%x`` is not a ``Float(2)``, the bailout leaves the graph: it returns the result of the rest of the program, the
continuation. :mod:`rekindle.passes.speculation.bailout_graphs` extracts it from the template when it is first needed.
The inputs after the template are the values that the continuation reads. The template is a copy of the graph before any
pass relies on the guards; bailouts in it guard nothing. As long as only guards have run, all arguments of the graph are
captured, so that the whole program can restart instead.

Guards between ``prim::Enter`` and ``prim::Exit`` are removed: a continuation would have to leave a context that it has
not entered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.errors import GraphError
from rekindle.ir.attributes import is_writable
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import INT, Type
from rekindle.passes.speculation.insert_guards import GUARD, put_in_place
from rekindle.rewriting.changes import may_change

BAILOUT: Final = "prim::BailOut"
TEMPLATE: Final = "prim::BailoutTemplate"
AT_ENTRY: Final = "at_entry"
"""The attribute of bailouts that receive all arguments of the graph, and precede every node that must not run again."""
_PURE_READS: Final = frozenset({"prim::Constant", "prim::GetAttr", GUARD, BAILOUT, TEMPLATE})
"""Kinds that may run again without an observable difference."""


@dataclass(slots=True)
class InsertBailOuts:
    '''Replace guards with bailouts: if a guard fails, a continuation runs without the assumptions. The docstring of the
    module shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import InsertBailOuts, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Float(2) = prim::Guard(%x)
        ...   %2 : Tensor = aten::relu(%1)
        ...   return (%2)
        ... """)
        >>> run_passes(graph, [InsertBailOuts()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %5 : int = prim::BailoutTemplate_0()
          %4 : Float(2) = prim::BailOut[index=0, at_entry=1](%x, %5)
          %2 : Tensor = aten::relu(%4)
          return (%2)
        with prim::BailoutTemplate_0 = graph(%x : Tensor):
          %1 : Tensor = prim::BailOut[index=0, at_entry=1](%x)
          %2 : Tensor = aten::relu(%1)
          return (%2)
    '''

    name: ClassVar[str] = "insert_bailouts"

    def run(self, graph: Graph) -> bool:
        if not graph.find_nodes(GUARD) or not may_change("insert bailouts into", graph.return_node):
            return False
        for guard in _within_with(graph.block, 0):
            put_in_place(guard, guard.input)
        captured = _Captures(graph).found
        if captured:
            _insert(graph, captured)
        return True


def template_of(bailout: Node) -> Graph:
    """Return the graph from which the continuation of a ``prim::BailOut`` is extracted."""
    _, template, *_ = bailout.inputs
    return template.node.get_graph("Subgraph")


def is_rest_of(block: Block) -> bool:
    """Return whether the rest of the program after a node of ``block`` can be extracted: it is only enclosed by
    branches and loops."""
    owner = block.owning_node
    while owner is not None:
        if owner.kind not in ("prim::If", "prim::Loop") or len(owner.outputs) != _result_count(owner):
            return False
        assert owner.owning_block is not None
        owner = owner.owning_block.owning_node
    return True


def _result_count(owner: Node) -> int:
    return len(owner.outputs) if owner.kind == "prim::If" else len(owner.inputs) - 2


def _within_with(block: Block, depth: int) -> list[Node]:
    """Return the guards that cannot become bailouts: those within ``with`` blocks, or in blocks whose rest cannot be
    extracted (:func:`is_rest_of`)."""
    found: list[Node] = []
    is_open = not is_rest_of(block)
    for node in block.nodes:
        depth += (node.kind == "prim::Enter") - (node.kind == "prim::Exit")
        if node.kind == GUARD and (depth or is_open):
            found.append(node)
        for inner in node.blocks:
            found += _within_with(inner, depth)
    return found


# ---------------------------------------------------------------------------------------------------------- what lives


class _Captures:
    """The values that the continuation of each guard needs, found in one walk from the end to the start."""

    def __init__(self, graph: Graph) -> None:
        self.found: dict[Node, list[Value]] = {}
        self._free: dict[Block, set[Value]] = {}
        self._walk(graph.block, set())
        for node in graph.nodes:
            if node.kind not in _PURE_READS:
                break
            if node.kind == GUARD:
                wanted = {*self.found[node], *graph.inputs} - {node.input}
                self.found[node] = sorted(wanted, key=lambda value: value.unique)

    def _walk(self, block: Block, after: Iterable[Value]) -> set[Value]:
        """Return the values that are live at the start of ``block``, given those that are read ``after`` it. Add what
        the guards in ``block`` capture to ``found``."""
        live = set(after)
        live.update(block.outputs)
        for node in block.nodes_reversed:
            if node.kind == GUARD:
                rest = live - {node.output, node.input}
                self.found[node] = sorted(filter(is_captured, rest), key=lambda value: value.unique)
            live.difference_update(node.outputs)
            around = live | self._next_iteration(node) if node.kind == "prim::Loop" else live
            for inner in node.blocks:
                self._walk(inner, around)
            for inner in node.blocks:
                live |= self._read_from_outside(inner)
            live.update(node.inputs)
        return live.difference(block.inputs)

    def _next_iteration(self, loop: Node) -> set[Value]:
        """Return the values that a continuation within an iteration of a loop needs: the inputs of the next iteration,
        and the trip count."""
        view = LoopView(loop)
        found = self._read_from_outside(view.body)
        return found | {view.trip_count, view.iteration} if view.counts else found

    def _read_from_outside(self, block: Block) -> set[Value]:
        found = self._free.get(block)
        if found is None:
            found = set(block.outputs)
            for node in block.nodes_reversed:
                found.difference_update(node.outputs)
                found.update(node.inputs)
                for inner in node.blocks:
                    found |= self._read_from_outside(inner)
            found.difference_update(block.inputs)
            self._free[block] = found
        return found


def is_captured(value: Value) -> bool:
    """Return whether a continuation captures ``value``. It recreates constants, except those that the program may
    have written to."""
    node = value.node
    if node.kind != "prim::Constant":
        return node.kind != TEMPLATE
    if "value" not in node.attributes:
        return False
    try:
        return is_writable(value.to_python())
    except GraphError:
        return False  # an invalid text


# ------------------------------------------------------------------------------------------------------------ inserting


def _insert(graph: Graph, captured: dict[Node, list[Value]]) -> None:
    guarded_types: dict[Node, Type] = {}
    replaced: dict[Value, Value] = {}
    for guard in graph.find_nodes(GUARD):
        inputs = [guard.input, *(replaced.get(value, value) for value in captured[guard])]
        bailout = graph.create(BAILOUT, inputs, types=[guard.input.type], attributes={"index": len(guarded_types)})
        if _is_at_entry(graph, guard):
            bailout.set_attribute(AT_ENTRY, 1)
        bailout.set_range(guard.range)
        bailout.callstack, bailout.scope = guard.callstack, guard.scope
        bailout.insert_before(guard)
        guarded_types[bailout] = guard.output.type
        replaced[guard.output] = bailout.output
        put_in_place(guard, bailout.output)
    subgraph = graph.copy()
    template = graph.block.prepend(graph.create(TEMPLATE, types=[INT], attributes={"Subgraph": subgraph}))
    for bailout, type in guarded_types.items():
        bailout.insert_input(1, template.output)
        bailout.output.set_type(type)


def _is_at_entry(graph: Graph, guard: Node) -> bool:
    """Return whether the guard is at the entry of the graph: only nodes of :data:`_PURE_READS` precede it. They have
    no effects, so the call can be restarted."""
    at = guard
    while guard.owning_block is graph.block and at.kind in _PURE_READS:
        at = at.prev
    return at is graph.return_node
