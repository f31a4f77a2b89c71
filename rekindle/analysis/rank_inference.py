"""Rank inference: the number of dimensions of each tensor, as far as the graph determines it.

.. code-block:: text

    %a : Tensor = aten::flatten(%x, %1, %-1)                  2
    %b : Tensor = aten::relu(%a)                              as %a
    %c : Tensor = aten::conv2d(%b, %w, …)                     3 or 4, and as %b

A range is the minimum and the maximum rank; the maximum is None if there is no bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from rekindle.analysis.effects import DEFERRED_SUBGRAPH_KINDS, INLINE_SUBGRAPH_KINDS, may_write
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import TensorType

Range: TypeAlias = tuple[int, int | None]

ANY_RANK: Final[Range] = (0, None)

CONVOLUTIONS: Final = {
    **{f"aten::conv{n}d": n for n in (1, 2, 3)},
    **{f"aten::conv_transpose{n}d": n for n in (1, 2, 3)},
}
"""Convolutions by the number of dimensions that they go along; there is one of channels besides, and mostly a batch."""


_KEEPS_RANK: Final = frozenset({"aten::append", "aten::_set_item", "prim::SetAttr"})
"""Kinds that write to lists and objects, but not to tensors."""


def operand_of_same_rank(value: Value) -> Value | None:
    """Return the operand that ``value`` is computed from and has as many dimensions as; None if there is none."""
    node = value.node
    if len(node.outputs) != 1 or not node.inputs:
        return None
    operand, *others = node.inputs
    if node.kind == "aten::linear":
        weight, *_ = others
        keeps_rank = isinstance(weight.type, TensorType) and weight.type.rank == 2
    else:
        keeps_rank = isinstance(operand.type, TensorType) and node.has_trait(Trait.SAME_RANK)
    return operand if keeps_rank else None


def ranks_are_fixed(graph: Graph) -> bool:
    """Return whether no node of ``graph`` may change how many dimensions a tensor has, as ``unsqueeze_`` does."""
    for node in graph.all_nodes():
        if node.kind in DEFERRED_SUBGRAPH_KINDS or node.kind in INLINE_SUBGRAPH_KINDS or node.operator is None:
            if node.kind not in ("prim::If", "prim::Loop", "prim::Constant"):
                return False
        elif may_write(node) and node.kind not in _KEEPS_RANK and not node.has_trait(Trait.SAME_RANK):
            return False
    return True


class Ranks:
    """The known ranks of the values of a graph, at the node that :func:`in_order` has reached. :func:`ranks_are_fixed`
    must hold for the graph."""

    def __init__(self) -> None:
        self._facts: dict[Value, int] = {}
        """Ranks that checks before the current node have established."""
        self._known: dict[Value, Range] = {}

    def learn(self, value: Value, rank: int) -> None:
        """Record that ``value`` has ``rank`` dimensions at all later nodes."""
        while (operand := operand_of_same_rank(value)) is not None:
            value = operand
        self._facts[value] = rank
        self._known.clear()

    def of(self, value: Value) -> Range:
        """Return the range of the rank of a tensor."""
        chain: list[Value] = []
        while value not in self._known and (operand := operand_of_same_rank(value)) is not None:
            chain.append(value)
            value = operand
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._compute(value)
        for each in reversed(chain):
            found = self._known[each] = _narrowed(found, each)
        return found

    def exactly(self, value: Value) -> int | None:
        """Return the number of dimensions; None if it is not known."""
        fewest, most = self.of(value)
        return fewest if fewest == most else None

    def _compute(self, value: Value) -> Range:
        type, node = value.type, value.node
        if value in self._facts:
            return self._facts[value], self._facts[value]
        if isinstance(type, TensorType) and type.rank is not None:
            return type.rank, type.rank
        if node.has_trait(Trait.POINTWISE):
            return self._broadcast(node)
        if node.kind == "aten::flatten":
            return _flattened(node)
        if node.kind in ("aten::view", "aten::reshape"):
            _, size = node.inputs
            return (len(size.node.inputs),) * 2 if size.node.kind == "prim::ListConstruct" else ANY_RANK
        if node.kind == "aten::cat":
            tensors, _ = node.inputs
            parts = tensors.node.inputs if tensors.node.kind == "prim::ListConstruct" else ()
            return max((self.of(item)[0] for item in parts), default=0), None
        if node.kind == "aten::mm" or node.kind == "aten::addmm":
            return 2, 2
        return ANY_RANK

    def _broadcast(self, node: Node) -> Range:
        ranges = [self.of(value) for value in node.inputs if isinstance(value.type, TensorType)]
        bounds = [most for _, most in ranges]
        known = [most for most in bounds if most is not None]
        most = max(known, default=0) if len(known) == len(bounds) else None
        return max((fewest for fewest, _ in ranges), default=0), most


def in_order(graph: Graph, ranks: Ranks | None) -> Iterator[Node]:
    """Yield the nodes in execution order, while ``ranks`` holds what checks before the current node have
    established: ``if x.dim() != 4: raise …``. The current node may be destroyed, and nodes may be inserted before
    it."""
    yield from _block_in_order(graph.block, ranks)


def _block_in_order(block: Block, ranks: Ranks | None) -> Iterator[Node]:
    before = None if ranks is None else dict(ranks._facts)
    for node in list(block.nodes):
        yield node
        if not node.in_block:
            continue
        for inner in node.blocks:
            yield from _block_in_order(inner, ranks)
        if ranks is not None and node.kind == "prim::If":
            _learn_from(node, ranks)
    if ranks is not None and before is not None and block.owning_node is not None:
        ranks._facts = before
        ranks._known.clear()


def _learn_from(check: Node, ranks: Ranks) -> None:
    """Record the rank that holds after an ``if`` that raises an error for all others."""
    condition = check.input.node
    raising = {"aten::ne": 0, "aten::eq": 1}.get(condition.kind)
    if raising is None:
        return
    queried, number = condition.inputs
    if queried.node.kind != "aten::dim":
        return
    rank = number.to_python()
    if isinstance(rank, int) and any(node.kind == "prim::RaiseException" for node in check.blocks[raising].nodes):
        ranks.learn(queried.node.input, rank)


def _narrowed(found: Range, value: Value) -> Range:
    """Return ``found``, the range of a rank, narrowed by what the producer of ``value`` requires of its argument."""
    fewest, most = found
    if value.node.kind == "aten::batch_norm":
        return max(fewest, 2), most
    spatial = CONVOLUTIONS.get(value.node.kind)
    if spatial is None:
        return found
    return max(fewest, spatial + 1), spatial + 2 if most is None else min(most, spatial + 2)


def _flattened(node: Node) -> Range:
    """Return rank 2, if all dimensions from the second to the last are flattened."""
    ends = [value.to_python() for value in node.inputs[1:]]
    return (2, 2) if ends == [1, -1] else ANY_RANK
