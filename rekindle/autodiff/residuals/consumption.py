"""Consume the residuals of loops: each iteration of the backward takes its residuals out of their lists.

.. code-block:: text

    %1 : int = aten::sub(%n, %one)
    %g : Tensor = prim::Loop(%n, %true, %grad)      %g : Tensor = prim::Loop(%n, %true, %grad)
      block0(%j : int, %a : Tensor):        becomes   block0(%j : int, %a : Tensor):
        %i : int = aten::sub(%1, %j)
        %x : Tensor = aten::__getitem__(%xs, %i)        %x : Tensor = aten::pop(%xs, %minus_one)

The residuals of an iteration are freed with it then, not with those of all iterations after the loop. The lists are
made for the call: the caller must not read them afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from rekindle.analysis.constants import constant_bool, constant_int
from rekindle.autodiff.reverse_mode.gradient_regions import constant
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import ListType


def consume_residuals(graph: Graph, residuals: Iterable[Value]) -> None:
    """Rewrite ``graph`` so that iterations pop elements from the lists among ``residuals``, its inputs, instead of
    reading them, if a loop reads each element once, from the last to the first."""
    pending = [value for value in residuals if isinstance(value.type, ListType)]
    while pending:
        value = pending.pop()
        if len(value.uses) != 1 or not _reads_last_to_first(value.uses[0].user, value):
            continue
        node = value.uses[0].user
        popped = graph.create("aten::pop", [value, constant(graph, -1)], types=[node.output.type], range=node.range)
        node.output.replace_all_uses_with(popped.insert_before(node).output)
        node.destroy()
        if isinstance(popped.output.type, ListType):
            pending.append(popped.output)


def _reads_last_to_first(node: Node, value: Value) -> bool:
    """Return whether iterations read with ``node`` all elements of ``value``, from the last to the first: a list with
    as many as there are iterations."""
    block = node.owning_block
    loop = None if block is None else block.owning_node
    if node.kind != "aten::__getitem__" or node.inputs[0] is not value or loop is None or loop.kind != "prim::Loop":
        return False
    view = LoopView(loop)
    if value.node.owning_block is not loop.owning_block:
        return False
    if constant_bool(loop.inputs[1]) is not True or constant_bool(loop.blocks[0].outputs[0]) is not True:
        return False
    index = node.inputs[1].node
    if index.kind != "aten::sub" or index.inputs[1] is not view.iteration:
        return False
    last, trip_count = index.inputs[0], constant_int(view.trip_count)
    if trip_count is not None:
        return constant_int(last) == trip_count - 1
    node = last.node
    return node.kind == "aten::sub" and node.inputs[0] is view.trip_count and constant_int(node.inputs[1]) == 1
