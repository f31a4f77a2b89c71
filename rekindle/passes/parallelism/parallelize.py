"""Run expensive independent parts on threads.

.. code-block:: text

    %a : Float(64, 512) = aten::linear(%x, %v, %none)        %f : Future(Float(64, 512)) = prim::fork_0(%x, %v, %none)
    %b : Float(64, 512) = aten::linear(%x, %w, %none)        %b : Float(64, 512) = aten::linear(%x, %w, %none)
    %c : Tensor = aten::mul(%a, %b)                 becomes  %a : Float(64, 512) = aten::wait(%f)
                                                             %c : Tensor = aten::mul(%a, %b)

A part consists of the nodes that contribute to one operand of a node only. It runs on another thread, in parallel with
the most expensive part of another operand. No node in it may write, be written to, draw random numbers or have an
effect, and no mode may change in between. If two parts raise, either error may be raised first. The cost is estimated
from the types: only matrix products and convolutions count, with 1 for each unknown size.

No pipeline has this pass: one operator uses all cores by itself when it is large, so that it pays only where operators
are given a core each (``torch.set_num_threads(1)``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.effects import is_conservative
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import FutureType, TensorType
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class Parallelize:
    '''Run expensive independent parts on threads. The docstring of the module shows the IR before and after.

    ``least`` is the number of multiplications and additions that is worth a thread.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import Parallelize, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Float(64, 512, device=cpu), %v : Float(512, 512, device=cpu), %w : Float(512, 512, device=cpu)):
        ...   %1 : Float(64, 512, device=cpu) = aten::mm(%x, %v)
        ...   %2 : Float(64, 512, device=cpu) = aten::mm(%x, %w)
        ...   %3 : Tensor = aten::mul(%1, %2)
        ...   return (%3)
        ... """)
        >>> run_passes(graph, [Parallelize()])
        True
        >>> print(graph)
        graph(%x : Float(64, 512, device=cpu),
              %v : Float(512, 512, device=cpu),
              %w : Float(512, 512, device=cpu)):
          %7 : Future[Float(64, 512, device=cpu)] = prim::fork_0(%x, %w)
          %1 : Float(64, 512, device=cpu) = aten::mm(%x, %v)
          %8 : Float(64, 512, device=cpu) = aten::wait(%7)
          %3 : Tensor = aten::mul(%1, %8)
          return (%3)
        with prim::fork_0 = graph(%0 : Float(64, 512, device=cpu),
              %1 : Float(512, 512, device=cpu)):
          %2 : Float(64, 512, device=cpu) = aten::mm(%0, %1)
          return (%2)
    '''

    name: ClassVar[str] = "parallelize"
    least: int = 10_000_000

    def run(self, graph: Graph) -> bool:
        if _work(list(graph.all_nodes())) < 2 * self.least:
            return False
        return _Parallelization(graph, max(self.least, 1)).block(graph.block)


_Part = list[Node]
"""The nodes that only lead to one value, in order."""
_MAX_LENGTH: Final = 1000
"""Maximum number of nodes of a part: without a limit, a chain of nodes would be walked from each of them."""


class _Parallelization:
    def __init__(self, graph: Graph, least: int) -> None:
        self.graph = graph
        self.least = least
        self.aliases = AliasDb(graph)
        self.modes: dict[Node, int] = {}

    def block(self, block: Block) -> bool:
        changed = False
        modes = 0
        for node in block.nodes:
            for inner in node.blocks:
                changed |= self.block(inner)
            self.modes[node] = modes
            modes += self.aliases.effects_of(node).sets_modes
        self.modes[block.return_node] = modes
        for join in [block.return_node, *block.nodes_reversed]:
            if join.kind == "prim::Return" or join.in_block:
                changed |= self._split(join)
        return changed

    def _split(self, join: Node) -> bool:
        """Fork the computation of operands of ``join``, as far as running them in parallel pays off. Return whether
        anything changed."""
        operands = [value for value in dict.fromkeys(join.inputs) if isinstance(value.type, TensorType)]
        parts = {value: part for value in operands if _work(part := self._part(value, join)) >= self.least}
        if len(parts) < 2:
            return False
        here = max(parts, key=lambda value: _work(parts[value]))
        changed = False
        for value, part in parts.items():
            if value is here:
                continue
            place = self._place(part, join)
            beside = [node for node in parts[here] if place is None or node.is_after(place)]
            if _work(beside) >= self.least and may_change("run beside another part", value.node):
                self._fork(value, part, place, join)
                changed = True
        return changed

    def _part(self, value: Value, join: Node) -> _Part:
        found: set[Node] = set()
        pending = [value.node]
        while pending and len(found) < _MAX_LENGTH:
            node = max(pending, key=lambda each: each._position)
            pending.remove(node)
            if node in found or not self._may_run_elsewhere(node, join):
                continue
            if any(use.user not in found and use.user is not join for output in node.outputs for use in output.uses):
                continue
            found.add(node)
            pending += [each.node for each in node.inputs if each.node.owning_block is join.owning_block]
        return sorted(found, key=lambda node: node._position)

    def _may_run_elsewhere(self, node: Node, join: Node) -> bool:
        if not node.in_block or node.blocks or self.modes[node] != self.modes[join] or is_conservative(node):
            return False
        effects = self.aliases.effects_of(node)
        has_effects = effects.writes or effects.has_side_effects or effects.uses_rng or effects.sets_modes
        return not has_effects and not self.aliases.has_writers(node)

    @staticmethod
    def _place(part: _Part, join: Node) -> Node | None:
        """Return the last node of the block that computes an input of ``part``, after which ``part`` can run. Return
        None if the block computes none of its inputs: ``part`` can run at the start of the block."""
        inner = set(part)
        makers = {value.node for node in part for value in node.inputs} - inner
        outer = [maker for maker in makers if maker.in_block and maker.owning_block is join.owning_block]
        return max(outer, key=lambda node: node._position, default=None)

    def _fork(self, value: Value, part: _Part, place: Node | None, join: Node) -> None:
        subgraph = Graph()
        local: dict[Value, Value] = {}
        for node in part:
            for each in node.inputs:
                if each not in local:
                    local[each] = subgraph.add_input(type=each.type)
            subgraph.insert_clone(node, local)
        subgraph.add_output(local[value])
        inner = {output for node in part for output in node.outputs}
        inputs = [each for each in local if each not in inner]
        maker = value.node
        types = [FutureType(value.type)]
        fork = self.graph.create(
            "prim::fork", inputs, types=types, attributes={"Subgraph": subgraph}, range=maker.range
        )
        wait = self.graph.create("aten::wait", [fork.output], types=[value.type], range=maker.range)
        fork.callstack = wait.callstack = maker.callstack
        fork.insert_after(place if place is not None else _start(join))
        wait.insert_before(join)
        value.replace_all_uses_with(wait.output.copy_metadata(value))
        for node in reversed(part):
            node.destroy()
        self.modes[fork] = self.modes[wait] = self.modes[join]


def _start(join: Node) -> Node:
    """Return the node after which to insert a node that is to be the first in the block of ``join``."""
    assert join.owning_block is not None
    return join.owning_block.return_node


# ----------------------------------------------------------------------------------------------------------------- work


def _work(nodes: Sequence[Node]) -> int:
    """Return a lower bound of the multiplications and additions of ``nodes``."""
    return sum(_WORK[node.kind](node) for node in nodes if node.kind in _WORK)


def _sizes(value: Value) -> list[int]:
    """Return the sizes of a tensor, with 1 for unknown sizes."""
    sizes = value.type.sizes if isinstance(value.type, TensorType) else None
    return [1 if size is None else size for size in sizes or ()]


def _product_of(left: int, right: int) -> Callable[[Node], int]:
    def work(node: Node) -> int:
        first, second = _sizes(node.inputs[left]), _sizes(node.inputs[right])
        if not first or not second:
            return 0
        inner = max(first[-1], second[-2] if len(second) > 1 else second[0])
        return 2 * math.prod(first[:-1]) * inner * (second[-1] if len(second) > 1 else 1)

    return work


def _linear(node: Node) -> int:
    x, weight, *_ = node.inputs
    return 2 * math.prod(_sizes(x)[:-1]) * math.prod(_sizes(weight) or [0])


def _convolution(node: Node) -> int:
    _, weight, *_ = node.inputs
    result = _sizes(node.output)
    places = math.prod(result[:1]) * math.prod(result[2:])
    return 2 * places * math.prod(_sizes(weight) or [0])


_WORK: Final[dict[str, Callable[[Node], int]]] = {
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::matmul"), _product_of(0, 1)),
    **dict.fromkeys(("aten::addmm", "aten::baddbmm"), _product_of(1, 2)),
    "aten::linear": _linear,
    **dict.fromkeys(("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution"), _convolution),
    "aten::_convolution": _convolution,
}
