"""Convert loops that count and may also stop early to loops on a condition alone.

.. code-block:: text

    %y : int = prim::Loop(%n, %true, %x)
      block0(%i : int, %y.1 : int):
        …
        -> (%go, %y.2)

    becomes

    %start : bool = aten::gt(%n, %zero)
    %y : int, %count : int = prim::Loop(%max, %start, %x, %zero)
      block0(%unused : int, %y.1 : int, %i : int):
        …
        %next : int = aten::add(%i, %one)
        %more : bool = aten::lt(%next, %n)
        %again : bool = aten::__and__(%more, %go)
        -> (%again, %y.2, %next)

Each loop is then either a plain ``for`` (counts, condition always true) or a plain ``while`` (does not count).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.analysis.constants import constant_bool
from rekindle.ir.control_flow import MAX_TRIP_COUNT, LoopView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import BOOL, INT
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class CanonicalizeModifiedLoops:
    '''Convert loops that count and may stop early to loops on a condition alone. The docstring of the module shows the
    IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import CanonicalizeModifiedLoops, run_passes
        >>> graph = parse_graph("""
        ... graph(%n : int, %limit : int):
        ...   %zero : int = prim::Constant[value=0]()
        ...   %true : bool = prim::Constant[value=1]()
        ...   %total : int = prim::Loop(%n, %true, %zero)
        ...     block0(%i : int, %a : int):
        ...       %b : int = aten::add(%a, %i)
        ...       %more : bool = aten::lt(%b, %limit)
        ...       -> (%more, %b)
        ...   return (%total)
        ... """)
        >>> run_passes(graph, [CanonicalizeModifiedLoops()])
        True
        >>> loop = graph.find_node("prim::Loop")
        >>> loop.inputs[0].to_python() == 2**63 - 1, [node.kind for node in loop.blocks[0].nodes][2:]
        (True, ['aten::add', 'aten::lt', 'aten::__and__'])
    '''

    name: ClassVar[str] = "canonicalize_modified_loops"

    def run(self, graph: Graph) -> bool:
        loops = [
            node
            for node in graph.find_nodes("prim::Loop")
            if _is_modified(node) and may_change("count by hand in", node)
        ]
        for loop in loops:
            _canonicalize(loop)
        return bool(loops)


def _is_modified(loop: Node) -> bool:
    """Return whether the loop counts and has a condition that is not always true."""
    view = LoopView(loop)
    always = constant_bool(view.condition) is True and constant_bool(view.next_condition) is True
    return view.counts and not always


def _canonicalize(loop: Node) -> None:
    graph, view = loop.graph, LoopView(loop)
    body, trip_count = view.body, view.trip_count

    def insert(kind: str, a: Value, b: Value, result: type) -> Value:
        types = [BOOL if result is bool else INT]
        return graph.insert_node(graph.create(kind, [a, b], types=types, range=loop.range)).output

    with graph.inserting_before(loop):
        zero = graph.insert_constant(0, range=loop.range)
        one = graph.insert_constant(1, range=loop.range)
        start = insert("aten::gt", trip_count, zero, bool)
        if constant_bool(view.condition) is not True:
            start = insert("aten::__and__", start, view.condition, bool)
        loop.replace_input(0, graph.insert_constant(MAX_TRIP_COUNT, range=loop.range))
    loop.replace_input(1, start)
    loop.add_input(zero)
    loop.add_output(INT)
    counter = body.add_input(type=INT)
    view.iteration.replace_all_uses_with(counter)
    view.iteration.set_name("")
    with graph.inserting_at_end(body):
        following = insert("aten::add", counter, one, int)
        more = insert("aten::lt", following, trip_count, bool)
        again = insert("aten::__and__", more, body.outputs[0], bool)
    body.add_output(following)
    body.replace_output(0, again)
