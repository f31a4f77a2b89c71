"""Peel the first iteration of a loop in which a number becomes a Tensor.

.. code-block:: text

    %t : Union[Tensor, int] = prim::Loop(%n, %true, %zero)        %t = prim::If(%n > 0)
      block0(%i : int, %a : Union[Tensor, int]):                    block0():
        %is_tensor : bool = prim::isinstance(%a)                      %first : Tensor = aten::add(%x, %zero)
        %b : Tensor = prim::If(%is_tensor)               becomes      %b : Tensor = prim::Loop(%n - 1, %true, %first)
          …                                                             …
        -> (%true, %b)                                                -> (%b)
                                                                    block1():
                                                                      -> (%zero)

The remaining loop accumulates Tensors only. It needs no type test, so that its operators can be fused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rekindle.analysis.constants import constant_bool, constant_int
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import TENSOR, TensorType, number_beside_tensor
from rekindle.passes.loops.loop_unrolling import size_of
from rekindle.passes.pass_manager import run_nested
from rekindle.passes.simplification.constant_propagation import ConstantPropagation
from rekindle.passes.simplification.peephole import Peephole
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class LoopPeeling:
    '''Peel the first iteration of loops in which a number becomes a Tensor, if their body has at most ``most_nodes``
    nodes, not counting constants. The docstring of the module shows the IR before and after.

    Example:
        >>> from rekindle.passes import LoopPeeling, run_passes
        >>> program = rekindle.CompilationUnit("""
        ... def total(xs: List[Tensor]):
        ...     result = 0
        ...     for x in xs:
        ...         result = result + x
        ...     return result
        ... """)
        >>> graph = program.total.graph.copy()
        >>> str(graph.find_node("prim::Loop").output.type)
        'Union(Tensor, int)'
        >>> run_passes(graph, [LoopPeeling()]), str(graph.find_node("prim::Loop").output.type)
        (True, 'Tensor')
    '''

    name: ClassVar[str] = "loop_peeling"
    most_nodes: int = 128

    def run(self, graph: Graph) -> bool:
        if not self._visit(graph.block):
            return False
        for fold in (Peephole(with_aliases=False), ConstantPropagation()):
            run_nested(fold, graph)
        return True

    def _visit(self, block: Block) -> bool:
        changed = False
        for node in list(block.nodes):
            for inner in node.blocks:
                changed |= self._visit(inner)
            if node.kind != "prim::Loop":
                continue
            settled = _settled(node)
            if settled and size_of(node.blocks[0]) <= self.most_nodes and may_change("peel", node):
                _peel(node, settled)
                changed = True
        return changed


def _settled(loop: Node) -> list[int]:
    """Return the indices of loop-carried values that are Tensors after an iteration, and may be numbers before."""
    return [
        at
        for at, variable in enumerate(LoopView(loop).carried)
        if number_beside_tensor(variable.result.type) is not None
        and number_beside_tensor(variable.parameter.type) is not None
        and isinstance(variable.following.type, TensorType)
    ]


def _peel(loop: Node, settled: list[int]) -> None:
    graph, range, view = loop.graph, loop.range, LoopView(loop)
    with graph.inserting_before(loop):
        count, condition = view.trip_count, view.condition
        zero, one = graph.insert_constant(0, range=range), graph.insert_constant(1, range=range)
        known = constant_int(count)
        test = graph.insert("aten::gt", [count, zero], range=range) if known is None else None
        runs = test or graph.insert_constant((known or 0) > 0, range=range)
        if constant_bool(condition) is not True:
            runs = graph.insert("aten::__and__", [runs, condition], range=range)
        choice = graph.insert_node(graph.create("prim::If", [runs], outputs=0, range=range))
    taken, other = choice.add_block(), choice.add_block()
    for value in view.initial:
        other.add_output(value)
    body = view.body
    again, *carried = _copy_body(body, taken, [zero, *view.initial])
    with graph.inserting_at_end(taken):
        left = graph.insert("aten::sub", [count, one], range=range)
        rest = graph.insert_node(graph.create("prim::Loop", [left, again, *carried], outputs=0, range=range))
    block = rest.add_block()
    counter = block.add_input(type=view.iteration.type)
    inputs = [block.add_input(type=TENSOR if at in settled else value.type) for at, value in enumerate(view.parameters)]
    with graph.inserting_at_end(block):
        number = graph.insert("aten::add", [counter, one], range=range)
    for value in _copy_body(body, block, [number, *inputs]):
        block.add_output(value)
    for at, output in enumerate(loop.outputs):
        taken.add_output(rest.add_output(TENSOR if at in settled else output.type))
        output.replace_all_uses_with(choice.add_output(output.type).copy_metadata(output))
    loop.destroy()


def _copy_body(body: Block, block: Block, inputs: list[Value]) -> list[Value]:
    """Copy the nodes of a loop's body to the end of ``block``, with ``inputs`` in place of the body's inputs. Return
    the copies of its outputs: the condition and the loop-carried values."""
    local: dict[Value, Value] = dict(zip(body.inputs, inputs, strict=True))

    def mapped(value: Value) -> Value:
        return local.get(value, value)

    for node in body.nodes:
        copy = block.append(block.graph.create_clone(node, mapped))
        local.update(zip(node.outputs, copy.outputs, strict=True))
    return list(map(mapped, body.outputs))
