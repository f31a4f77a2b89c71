"""Operator fusion: outline adjacent elementwise operators into a ``prim::FusionGroup`` with a graph of its own, which
is compiled to one kernel.

.. code-block:: text

    %a : Tensor = aten::mul(%x, %y)                  %c : Tensor = prim::FusionGroup_0(%x, %y)
    %b : Tensor = aten::mm(%x, %y)                   %b : Tensor = aten::mm(%x, %y)
    %c : Tensor = aten::tanh(%a)            becomes  return (%b, %c)
    return (%b, %c)
                                                     with prim::FusionGroup_0 = graph(%0 : Tensor,
                                                           %1 : Tensor):
                                                       %2 : Tensor = aten::mul(%0, %1)
                                                       %3 : Tensor = aten::tanh(%2)
                                                       return (%3)

A group starts with one operator, and grows by the producers of its inputs and the users of its results, wherever the
alias database allows to move them there. A view joins if all its users are in the group, since the outputs of a group
are new tensors, not views. Whether a kernel supports the dtypes and sizes is determined when the group runs. If not, it
runs operator by operator. So the pass assumes nothing about tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final
from weakref import WeakKeyDictionary

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import is_constant, value_of
from rekindle.codegen.fusible import (
    is_computed,
    is_join,
    is_literal,
    is_lookup,
    is_ordered,
    is_product,
    is_row_operator,
    may_alias_input,
    refusal,
    rule_of,
)
from rekindle.codegen.operators import POOLS
from rekindle.errors import SourceRange
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import ListType, TensorType
from rekindle.rewriting.changes import may_change

KIND: Final = "prim::FusionGroup"
MAX_PRODUCTS: Final = 4
"""Maximum number of matrix products in a group: each has loops of its own, which have to be compiled."""
MAX_PRODUCTS_READ: Final = 4
"""Maximum number of matrix products that a group reads the results of; one if they are gradients of large weights. The
sum of the gradients of a weight that is used many times takes several groups, so that not all summands are in memory
together."""
LARGE_GRADIENT: Final = 1 << 16
"""Number of elements from which the gradient of a weight is a kernel of its own. All results of a kernel, and its
temporaries, are in memory together with its operands; the launch takes little of the time of so large a product."""


@dataclass(slots=True, frozen=True)
class Blocker:
    """A node on tensors that is in no group, and the reason."""

    kind: str
    range: SourceRange
    reason: str


_BLOCKERS: Final[WeakKeyDictionary[Graph, Sequence[Blocker]]] = WeakKeyDictionary()


def blockers_of(graph: Graph) -> Sequence[Blocker]:
    """Return the nodes with tensors as results that the pass left unfused when it last ran on ``graph``, with the
    reasons, in graph order; none if it has not run."""
    return _BLOCKERS.get(graph, ())


def was_fused(graph: Graph) -> bool:
    """Return whether the pass has run on ``graph``, or on the graph that it was loaded from (:func:`note_blockers`)."""
    return graph in _BLOCKERS


def note_blockers(graph: Graph, blockers: Sequence[Blocker]) -> None:
    """Record the nodes of ``graph`` that the pass excluded from groups, with the reasons."""
    _BLOCKERS[graph] = blockers


@dataclass(slots=True)
class FuseGraph:
    """Outline adjacent operators into fused groups (``prim::FusionGroup``), each of which kernels compute.

    Groups have at least ``least`` operators that compute something, and at most ``most`` of any kind. Without
    ``products``, groups have no matrix products. Without ``ordered``, they have no scans and no index of an extreme,
    for which GPUs have no kernels. With ``alone``, an operator that kernels compute
    (:func:`~rekindle.codegen.fusible.is_computed`), or a product, becomes a group of its own if nothing fuses with it,
    unless PyTorch computes it faster (:attr:`~rekindle.codegen.operators.pooling.Pool.pays_alone`).
    """

    least: int = 2
    most: int = 100
    products: bool = True
    ordered: bool = True
    alone: bool = False

    name: ClassVar[str] = "fuse_graph"

    def run(self, graph: Graph) -> bool:
        fusion = _Fusion(graph, self)
        fusion.collect(graph.block)
        for members in fusion.groups:
            _make_group(graph, members)
        _BLOCKERS[graph] = [
            Blocker(node.kind, node.range, fusion.reasons[node])
            for node in graph.all_nodes()
            if node in fusion.reasons and any(_is_tensor_result(output) for output in node.outputs)
        ]
        return fusion.changed


class _Fusion:
    def __init__(self, graph: Graph, options: FuseGraph) -> None:
        self.graph = graph
        self.options = options
        self.most = options.most
        self.most_products = MAX_PRODUCTS if options.products else 0
        self.groups: list[list[Node]] = []
        self.taken: set[Node] = set()
        self.reasons: dict[Node, str] = {}
        """Why a node is not in a group."""
        self.changed = False

    @cached_property
    def aliases(self) -> AliasDb:
        """The alias database of the graph, created when first needed."""
        return AliasDb(self.graph)

    def collect(self, block: Block) -> None:
        """Find the groups of ``block`` and its nested blocks, and move the members of each group together. The groups
        are added to ``groups``, the reasons for other nodes to ``reasons``."""
        for node in list(block.nodes_reversed):
            for inner in node.blocks:
                self.collect(inner)
            if node in self.taken or not self._may_be_last(node):
                continue
            members = self._grow(node)
            if _operators_in(members) >= self.options.least or any(map(self._pays_alone, members)):
                self.taken.update(members)
                self.groups.append(members)
                self.changed = True
                for member in members:
                    self.reasons.pop(member, None)
            else:
                self.reasons[node] = "no operator beside it fuses with it"

    def _refusal(self, node: Node) -> str | None:
        if node.kind in ("prim::Constant", KIND):
            return "it is none"
        if is_product(node) and not self.most_products:
            reason: str | None = "BLAS runs it"
        elif is_ordered(node) and not self.options.ordered:
            reason = "GPUs have no kernels for it"
        else:
            reason = refusal(node)
        if reason is not None:
            self.reasons[node] = reason
        return reason

    def _may_be_last(self, node: Node) -> bool:
        if self._refusal(node) is not None:
            return False
        if may_alias_input(node):
            self.reasons[node] = "its result may share memory with a value outside of the kernel"
            return False
        if not self._pays_alone(node) and not any(self._is_candidate(value) for value in node.inputs):
            self.reasons[node] = "no operator beside it fuses with it"
            return False
        # Changes are counted here: the moves below only serve this group.
        return may_change("fuse", node)

    def _pays_alone(self, node: Node) -> bool:
        rule, pool = rule_of(node), POOLS.get(node.kind)
        if (rule is not None and rule.optional) or (pool is not None and not pool.pays_alone):
            return False
        return self.options.alone and (is_computed(node) or (is_product(node) and self.most_products > 0))

    def _is_candidate(self, value: Value) -> bool:
        return value.node.in_block and value.node not in self.taken and self._refusal(value.node) is None

    def _grow(self, last: Node) -> list[Node]:
        members = [last]
        refused: set[Node] = set()
        self._take_makers(members, refused)
        while len(members) < self.most:
            user = self._next_user(members, refused)
            if user is None:
                break
            self.changed = True
            self.aliases.move_after_topologically_valid(user, members[-1])
            members.append(user)
            self._take_makers(members, refused)
        return members

    def _take_makers(self, members: list[Node], refused: set[Node]) -> None:
        while len(members) < self.most:
            candidate = self._next_candidate(members, refused)
            if candidate is None:
                break
            if not self._may_join(candidate, members):
                refused.add(candidate)

    def _next_user(self, members: list[Node], refused: set[Node]) -> Node | None:
        """Return a node that uses a result of the group and can move to its end; None if there is none. Nodes that
        cannot move are added to ``refused``."""
        inside = set(members)
        for member in members:
            for output in member.outputs:
                for use in output.uses:
                    node = use.user
                    if node in inside or node in refused or not self._is_free(node, members):
                        continue
                    if self.aliases.nodes_to_move_after(node, members[-1]) in ([node], []):
                        return node
                    refused.add(node)
        return None

    def _is_free(self, node: Node, members: list[Node]) -> bool:
        """Return whether ``node`` itself may be a member of the group: it is in the same block, in no other group,
        fusible, and not an alias of its input."""
        return (
            node.owning_block is members[0].owning_block
            and node not in self.taken
            and self._refusal(node) is None
            and not may_alias_input(node)
            and not self._is_one_too_many(node, members)
        )

    def _is_one_too_many(self, node: Node, members: list[Node]) -> bool:
        """Return whether ``node`` is a matrix product, and the group contains the maximum number of them already; or
        whether it, or the first member of the group, is the gradient of a large weight, which is always alone."""
        if is_product(node) and sum(map(is_product, members)) >= self.most_products:
            return True
        return _is_large_gradient(node) or _is_large_gradient(members[0])

    def _next_candidate(self, members: list[Node], refused: set[Node]) -> Node | None:
        """Return the last of the nodes that compute inputs of the group and may join it; None if there is none."""
        found: Node | None = None
        for value in _inputs(members):
            node = value.node
            if node.owning_block is not members[0].owning_block or self._is_one_too_many(node, members):
                continue
            if node not in refused and self._is_candidate(value) and not self._reads_too_many(node, members):
                if found is None or found.is_before(node):
                    found = node
        return found

    def _reads_too_many(self, node: Node, members: list[Node]) -> bool:
        """Return whether the group would read too many results of products with ``node``: those of a long sum."""
        read = {value.node for value in node.inputs if is_product(value.node)} - set(members)
        if not read:
            return False
        read.update(value.node for value in _inputs(members) if is_product(value.node))
        return len(read) > (1 if any(map(_is_large_gradient, read)) else MAX_PRODUCTS_READ)

    def _may_join(self, node: Node, members: list[Node]) -> bool:
        """Move ``node``, with the nodes that must move with it, to the front of the group, and add them to ``members``.
        Return whether that was done; if it is not legal, record the reason."""
        if may_alias_input(node) and not all(use.user in members for output in node.outputs for use in output.uses):
            self.reasons[node] = "its result may share memory with a value outside of the kernel"
            return False
        moving = self.aliases.nodes_to_move_before(node, members[0])
        if moving is not None and len(moving) > 1 and not self._may_all_join(moving, members):
            moving = self._without_dependents(moving, members)
        if moving is None:
            self.reasons[node] = "it cannot move to the operators that use it"
            return False
        if moving and moving[-1].next is not members[0]:
            self.changed = True
        self.aliases.move_before_topologically_valid(node, members[0])
        members[:0] = moving
        return True

    def _may_all_join(self, moving: list[Node], members: list[Node]) -> bool:
        """Return whether the nodes that have to move with a node may join the group as well."""
        return len(moving) + len(members) <= self.most and all(self._is_free(each, members) for each in moving[1:])

    def _without_dependents(self, moving: list[Node], members: list[Node]) -> list[Node] | None:
        """Move the dependents in ``moving``, all but its first node, after the group rather than before it. Return the
        nodes that still move before the group: the first one. Return None if some move is illegal."""
        node, *others = moving
        for each in reversed(others):
            along = self.aliases.nodes_to_move_after(each, members[-1])
            if along is None or any(one in self.taken or one in members for one in along):
                return None
            self.changed = True
            self.aliases.move_after_topologically_valid(each, members[-1])
        return [node] if self.aliases.nodes_to_move_before(node, members[0]) == [node] else None


def _is_large_gradient(node: Node) -> bool:
    """Return whether ``node`` computes the gradient of a large weight."""
    if node.kind != "autodiff::linear_weight":
        return False
    size = value_of(node.inputs[2].node) if is_constant(node.inputs[2]) else None
    return isinstance(size, list) and math.prod(size) >= LARGE_GRADIENT


def _is_tensor_result(value: Value) -> bool:
    """Return whether ``value`` is a tensor, or a list of tensors that an operator returns."""
    is_made = isinstance(value.type, ListType) and value.node.kind != "prim::ListConstruct"
    type = value.type.element if is_made and isinstance(value.type, ListType) else value.type
    return isinstance(type, TensorType)


def _operators_in(members: Sequence[Node]) -> int:
    """Return how many of the members compute something. Composite operators without matrix products do not count."""
    rules = [rule_of(node) for node in members]
    kinds = (is_row_operator, is_join, is_lookup, is_product)
    folded = sum(any(is_kind(node) for is_kind in kinds) for node in members)
    return folded + sum(rule is not None and not rule.may_be_self for rule in rules)


def _inputs(members: Sequence[Node]) -> Iterator[Value]:
    """Yield the values from outside that the members use, each once, other than literals (:func:`is_literal`)."""
    inside = set(members)
    seen: set[Value] = set()
    for node in members:
        for value in node.inputs:
            if value not in seen and value.node not in inside and not is_literal(value):
                seen.add(value)
                yield value


def _copy_literal(subgraph: Graph, value: Value, inside: dict[Value, Value]) -> None:
    """Copy a constant, or a list of constants, into the graph of a group."""
    for item in value.node.inputs:
        if item not in inside:
            _copy_literal(subgraph, item, inside)
    node = subgraph.append_node(subgraph.create_clone(value.node, inside.__getitem__))
    inside[value] = node.output.set_name("")


def _make_group(graph: Graph, members: Sequence[Node]) -> None:
    """Replace the adjacent nodes ``members`` with one node."""
    subgraph = Graph()
    inputs = list(_inputs(members))
    inside: dict[Value, Value] = {}
    for value in inputs:
        inside[value] = subgraph.add_input().set_type(value.type)
    for node in members:
        for value in node.inputs:
            if value not in inside:
                _copy_literal(subgraph, value, inside)
        subgraph.insert_clone(node, inside)
    last = members[-1]
    within = set(members)
    leaving = [
        output for node in members for output in node.outputs if any(use.user not in within for use in output.uses)
    ]
    group = graph.create(
        KIND, inputs, types=[value.type for value in leaving], attributes={"Subgraph": subgraph}, range=last.range
    )
    group.callstack, group.scope = last.callstack, last.scope
    group.insert_after(last)
    for value, output in zip(leaving, group.outputs, strict=True):
        subgraph.add_output(inside[value])
        name = value.base_name if value.has_name else ""
        value.replace_all_uses_with(output)
        for use in output.uses:
            if use.user in within:
                use.user.replace_input(use.offset, value)
        if name:
            output.set_name(name)
    for node in reversed(members):
        node.destroy()
