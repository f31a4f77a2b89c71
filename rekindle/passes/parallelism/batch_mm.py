"""Batch matrix products: sums of products, and products that share a factor.

.. code-block:: text

    %p : Tensor = aten::mm(%a, %b)
    %q : Tensor = aten::mm(%c, %d)               becomes    %s : Tensor = prim::MMTreeReduce(%a, %c, %b, %d)
    %s : Tensor = aten::add(%p, %q, %one)

    %p : Tensor = aten::mm(%a, %w)               becomes    %p : Tensor, %q : Tensor =
    %q : Tensor = aten::mm(%b, %w)                            prim::MMBatchSide[side=1](%w, %a, %b)

Both patterns come from unrolled loops. The operators inspect the tensors at run time: if joining them is wrong or does
not pay, they compute the products one by one. Nothing may write to a factor or a product. Products that share a factor
become views of one tensor; those that a caller can see are therefore not batched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_int
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ops.registration.traits import kinds_with
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class BatchMM:
    '''Batch at least ``fewest`` products; of those that share a factor, at most ``most`` at once. The docstring of the
    module shows the IR before and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import BatchMM, run_passes
        >>> graph = parse_graph("""
        ... graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
        ...   %one : int = prim::Constant[value=1]()
        ...   %p : Tensor = aten::mm(%a, %b)
        ...   %q : Tensor = aten::mm(%c, %d)
        ...   %s : Tensor = aten::add(%p, %q, %one)
        ...   return (%s)
        ... """)
        >>> run_passes(graph, [BatchMM(fewest=2)])
        True
        >>> print(graph.find_node("prim::MMTreeReduce"))
        %s : Tensor = prim::MMTreeReduce(%a, %c, %b, %d)
    '''

    name: ClassVar[str] = "batch_mm"
    fewest: int = 4
    most: int = 32

    def run(self, graph: Graph) -> bool:
        products = [node for node in graph.find_nodes("aten::mm") if len(node.inputs) == 2]
        if len(products) < self.fewest:
            return False
        changed = _Trees(graph, self.fewest).run(products)
        return _Sides(graph, self.fewest, self.most).run() or changed


def _blocks_of(graph: Graph) -> Iterator[Block]:
    pending = [graph.block]
    while pending:
        block = pending.pop()
        yield block
        for node in block.nodes:
            pending += node.blocks


# ----------------------------------------------------------------------------------------------------- sums of products


class _Trees:
    def __init__(self, graph: Graph, fewest: int) -> None:
        self.aliases = AliasDb(graph)
        self.fewest = fewest
        self.modes: dict[Node, int] = {}
        """By a product or a sum of products: how often the modes had changed before it."""

    def run(self, products: list[Node]) -> bool:
        changed = False
        for block in {product.owning_block: None for product in products}:
            assert block is not None
            changed |= self._block(block)
        return changed

    def _block(self, block: Block) -> bool:
        self._find_sums(block)
        changed = False
        sums = [node for node in block.nodes if node.kind == "aten::add" and node in self.modes]
        for root in [node for node in sums if not self._is_in_a_sum(node)]:
            leaves, inner = self._parts(root)
            if len(leaves) >= self.fewest and may_change("join the products of", root):
                self._join(root, leaves, inner)
                changed = True
        return changed

    def _find_sums(self, block: Block) -> None:
        modes = 0
        for node in block.nodes:
            modes += self.aliases.effects_of(node).sets_modes
            is_product = node.kind == "aten::mm" and len(node.inputs) == 2 and not self.aliases.has_writers(node)
            if is_product or (node.kind == "aten::add" and self._is_sum(node, modes)):
                self.modes[node] = modes

    def _is_sum(self, node: Node, modes: int) -> bool:
        """Return whether ``node`` adds two matrix products, or sums of them, that have no other use."""
        if len(node.inputs) != 3 or self.aliases.has_writers(node):
            return False
        left, right, alpha = node.inputs
        if constant_int(alpha) != 1:
            return False
        return all(
            self.modes.get(value.node) == modes
            and value.node.owning_block is node.owning_block
            and len(value.uses) == 1
            for value in (left, right)
        )

    def _is_in_a_sum(self, node: Node) -> bool:
        uses = node.output.uses
        return len(uses) == 1 and uses[0].user.kind == "aten::add" and uses[0].user in self.modes

    @staticmethod
    def _parts(root: Node) -> tuple[list[Node], list[Node]]:
        """Return the matrix products in the sum ``root`` from left to right, and the additions, each after its user."""
        leaves: list[Node] = []
        sums: list[Node] = []
        pending = [root]
        while pending:
            node = pending.pop()
            if node.kind == "aten::mm":
                leaves.append(node)
            else:
                sums.append(node)
                left, right, _ = node.inputs
                pending += (right.node, left.node)
        return leaves, sums

    def _join(self, root: Node, leaves: list[Node], sums: list[Node]) -> None:
        factors = [leaf.inputs[side] for side in (0, 1) for leaf in leaves]
        _replace(root, root.graph.create("prim::MMTreeReduce", factors, types=[root.output.type], range=root.range))
        for node in (*sums, *leaves):
            self.modes.pop(node)
            node.destroy()


def _replace(root: Node, new: Node) -> None:
    new.callstack, new.scope = root.callstack, root.scope
    new.insert_before(root)
    root.output.replace_all_uses_with(new.output.copy_metadata(root.output))


# ----------------------------------------------------------------------------------------- products that share a factor

_SIDES: Final = (1, 0)
"""Which factor is shared, the weight of a layer before what a weight is given to."""

_STORAGE_QUERIES: Final = kinds_with(Trait.ADDRESSES_STORAGE)
"""Kinds that distinguish a view of a tensor from a tensor with storage of its own."""


class _Sides:
    def __init__(self, graph: Graph, fewest: int, most: int) -> None:
        self.graph = graph
        self.fewest = fewest
        self.most = most
        self.aliases = AliasDb(graph)
        self.known_later = self.aliases.outliving_memory
        for value in graph.outputs:
            self.known_later |= self.aliases.reachable(value)

    def run(self) -> bool:
        if any(node.kind in _STORAGE_QUERIES for node in self.graph.all_nodes()):
            return False
        changed = False
        for block in _blocks_of(self.graph):
            for side in _SIDES:
                for shared, products in self._candidates(block, side).items():
                    while len(products) >= self.fewest:
                        group = self._movable(products[: self.most])
                        if len(group) < self.fewest:
                            products.pop(0)
                        elif may_change("join with others", group[0]):
                            products = [product for product in products if product not in group]
                            self._join(shared, group, side)
                            changed = True
                        else:
                            return changed
        return changed

    def _candidates(self, block: Block, side: int) -> dict[Value, list[Node]]:
        """Return the matrix products in ``block`` whose results do not escape, by the factor that they share."""
        found: dict[Value, list[Node]] = {}
        for node in block.nodes:
            if node.kind != "aten::mm" or len(set(node.inputs)) != 2:
                continue
            if not self.aliases.has_writers(node) and not self._is_known_later(node.output):
                found.setdefault(node.inputs[side], []).append(node)
        return found

    def _is_known_later(self, value: Value) -> bool:
        return bool(self.aliases.reachable(value) & self.known_later) or self.aliases.escapes(value)

    def _movable(self, products: list[Node]) -> list[Node]:
        """Return the first of ``products``, and those that can be moved to its position."""
        first, last = products[0], products[-1]
        wanted = set(products)
        group = [first]
        depending = {first}
        """Nodes that depend on the group, and the group itself."""
        node = first
        while node is not last:
            node = node.next
            if any(value.node in depending for value in node.used_values()):
                depending.add(node)
            elif node in wanted and self.aliases.could_move_before_topologically(node, first):
                group.append(node)
                depending.add(node)
        return group

    def _join(self, shared: Value, group: list[Node], side: int) -> None:
        first = group[0]
        for product in group[1:]:
            moved = self.aliases.move_before_topologically_valid(product, first)
            assert moved, "what can move alone can move with others"
        others = [product.inputs[1 - side] for product in group]
        types = [product.output.type for product in group]
        attributes = {"side": side}
        new = self.graph.create("prim::MMBatchSide", [shared, *others], types=types, attributes=attributes)
        new.range, new.callstack, new.scope = first.range, first.callstack, first.scope
        new.insert_before(first)
        self.aliases.add_node(new)
        for product, output in zip(group, new.outputs, strict=True):
            product.output.replace_all_uses_with(output.copy_metadata(product.output))
            self.aliases.remove_node(product)
            product.destroy()
