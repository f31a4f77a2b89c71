"""Hoist loop-invariant code: compute it once, before the loop.

.. code-block:: text

    %y : int = prim::Loop(%n, %true, %zero)               %d : int = aten::dim(%x)
      block0(%i : int, %a : int):                         %e : int = aten::mul(%d, %n)
        %d : int = aten::dim(%x)                 becomes  %y : int = prim::Loop(%n, %true, %zero)
        %e : int = aten::mul(%d, %n)                        block0(%i : int, %a : int):
        %b : int = aten::add(%a, %e)                          %b : int = aten::add(%a, %e)
        -> (%true, %b)                                        -> (%true, %b)

A loop may run zero times, or have effects before it reaches the node. So only operators that never raise are hoisted:
arithmetic of ints, comparisons, queries of a tensor or list that nothing writes to. A matrix product is not hoisted: it
may raise, and each iteration must get a tensor of its own. Operators on values that may be uninitialized remain after
the guards of the loop's body. Attributes are read before the loop if nothing in it may set them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.effects import DEFERRED_SUBGRAPH_KINDS, WAITS, is_immutable, writes_modes
from rekindle.analysis.uninitialized import may_be_uninitialized
from rekindle.ir.graph import Block, Graph, Node, Value, subgraphs_of
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import BOOL, FLOAT, INT, TensorType
from rekindle.ops.python.objects import module_table
from rekindle.ops.registration.traits import kinds_with
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class LoopInvariantMotion:
    '''Hoist loop-invariant nodes out of loops. The docstring of the module shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import LoopInvariantMotion, run_passes
        >>> graph = parse_graph("""
        ... graph(%n : int):
        ...   %1 : bool = prim::Constant[value=1]()
        ...   %m : int = prim::Loop(%n, %1, %n)
        ...     block0(%i : int, %k : int):
        ...       %2 : int = aten::mul(%n, %n)
        ...       %3 : int = aten::add(%k, %2)
        ...       -> (%1, %3)
        ...   return (%m)
        ... """)
        >>> run_passes(graph, [LoopInvariantMotion()])
        True
        >>> print(graph)
        graph(%n : int):
          %1 : bool = prim::Constant[value=1]()
          %2 : int = aten::mul(%n, %n)
          %m : int = prim::Loop(%n, %1, %n)
            block0(%i : int, %k : int):
              %3 : int = aten::add(%k, %2)
              -> (%1, %3)
          return (%m)
    '''

    name: ClassVar[str] = "loop_invariant_motion"

    def run(self, graph: Graph) -> bool:
        return _Motion(graph).block(graph.block)


_ON_NUMBERS: Final = {
    **dict.fromkeys(("add", "sub", "mul", "neg"), (INT,)),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), (INT, FLOAT)),
    **dict.fromkeys(("__not__", "__and__", "__or__", "__xor__"), (BOOL,)),
}
"""Operators that never fail where all their arguments are of one of these types."""

_ON_ANYTHING: Final = kinds_with(Trait.TOTAL) | {"aten::len", "prim::Constant", "prim::TupleConstruct"}
"""Kinds that never raise; their results for a mutable operand remain valid until something writes to it."""


class _Motion:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._aliases: AliasDb | None = None
        self._uninitialized: set[Value] | None = None

    def block(self, block: Block) -> bool:
        changed = False
        for node in block.nodes:
            for inner in node.blocks:
                changed |= self.block(inner)
            if node.kind == "prim::Loop":
                changed |= self._loop(node)
        return changed

    def _loop(self, loop: Node) -> bool:
        changed = False
        body = loop.blocks[0]
        for node in body.nodes:
            is_same = not any(value.node.owning_block is body for value in node.inputs)
            may_move = self._may_read_before(node, loop) if node.kind == "prim::GetAttr" else self._may_move(node)
            if is_same and may_move and may_change("move", node):
                node.move_before(loop)
                changed = True
        return changed

    def _may_move(self, node: Node) -> bool:
        if node.blocks or not all(is_immutable(output.type) for output in node.outputs):
            return False
        types = _ON_NUMBERS.get(node.kind.removeprefix("aten::"))
        if types is not None:
            return all(value.type in types and not self._is_uninitialized(value) for value in node.inputs)
        if node.kind == "aten::len" and isinstance(node.input.type, TensorType):
            return False  # a tensor without dimensions has none
        return node.kind in _ON_ANYTHING and not any(
            self._is_uninitialized(value) or self._is_written(node, i) for i, value in enumerate(node.inputs)
        )

    def _may_read_before(self, node: Node, loop: Node) -> bool:
        """Return whether an attribute that exists can be read before ``loop`` instead of in it, since the loop does not
        change it."""
        owner, name = node.input, node.get_string("name")
        if module_table(owner.type, name) is None or self._is_uninitialized(owner):
            return False
        return not any(_may_set(inner, name) for inner in loop.inner_nodes())

    def _is_uninitialized(self, value: Value) -> bool:
        if self._uninitialized is None:
            self._uninitialized = may_be_uninitialized(self.graph)
        return value in self._uninitialized

    def _is_written(self, node: Node, index: int) -> bool:
        value = node.inputs[index]
        if is_immutable(value.type):
            return False
        if self._aliases is None:
            self._aliases = AliasDb(self.graph)
        return self._aliases.has_writers(value) or self._aliases.escapes(value)


def _may_set(node: Node, name: str) -> bool:
    """Return whether a node of a loop may set an attribute ``name``: itself, by code that it runs or starts, or in
    another thread that it waits for."""
    if writes_modes(node) or node.kind in DEFERRED_SUBGRAPH_KINDS or node.kind in WAITS:
        return True
    if node.kind == "prim::SetAttr":
        return node.get_string("name") == name
    return any(_may_set(inner, name) for graph in subgraphs_of(node) for inner in graph.all_nodes())
