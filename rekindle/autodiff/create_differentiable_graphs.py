"""Outline adjacent differentiable operators into ``prim::DifferentiableGraph`` nodes.

.. code-block:: text

    %3 : Tensor = aten::mul(%x, %w)                         %3 : Tensor = prim::DifferentiableGraph_0(%w, %x)
    %4 : Tensor = aten::tanh(%3)                            return (%3)
    return (%4)                                  becomes    with prim::DifferentiableGraph_0 = graph(%w : Tensor,
                                                                  %x : Tensor):
                                                              %3 : Tensor = aten::mul(%x, %w)
                                                              %4 : Tensor = aten::tanh(%3)
                                                              return (%4)

A loop over such operators, whose intermediate values do not escape, is one of them: the subgraph then contains the
loop, and its backward graph a loop over the iterations in reverse.

A value with respect to which code outside may differentiate is a result of a group, but not used in it: autograd has to
know what is computed from it. Code outside may also go back from several values, one after the other (two losses): what
only one of them goes through is not in a group with what only another one goes through, since a group releases what it
saved after it ran once.

Nodes between two of them are moved out of the way if the alias database permits it. A view of an input or output of the
group that is used outside is recomputed there, so that PyTorch's autograd knows it as a view.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cmp_to_key, reduce
from itertools import pairwise
from operator import or_
from typing import ClassVar, Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.effects import has_side_effects
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.formula import formula_of, is_constant_operator, operators_recorded
from rekindle.autodiff.hoisted_checks import is_check, move_check, operands_within
from rekindle.autodiff.observed_values import observed_dependents, observed_values
from rekindle.autodiff.requires_grad import may_require_grad
from rekindle.autodiff.reverse_mode.collected_lists import collected_lists, gather_unit
from rekindle.autodiff.reverse_mode.differentiable_loops import (
    free_values,
    hoist_attribute_reads,
    is_differentiable_loop,
    is_opaque_to_autograd as _has_no_place,
)
from rekindle.autodiff.reverse_mode.tape import is_constant_for_gradients, is_recomputable, may_be_identity_dropout
from rekindle.ir.graph import AttributeValue, Block, Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import COMPLEX, TENSOR, ListType, TensorType
from rekindle.rewriting.changes import may_change

KIND: Final = "prim::DifferentiableGraph"
SEPARABLE: Final = "separable"
"""Attribute of a differentiable graph whose results code outside may go back from one after the other, by ways that may
meet in inputs alone: where inputs that all of them depend on require no gradient, it has to be :func:`separated`."""


@dataclass(slots=True)
class CreateDifferentiableGraphs:
    """Outline adjacent differentiable operators into ``prim::DifferentiableGraph`` nodes. The docstring of the module
    shows the IR before and after.

    A group has at least ``threshold`` operators with derivative formulas, those that PyTorch's autograd records for a
    recurrent cell among them. ``counts`` returns, for each operator that autograd records where a node runs, how many
    it counts for; nodes that count for none stay with PyTorch's autograd at the borders of a group. ``pays`` decides
    whether a group is formed of nodes, some of which need gradients. What ``excludes`` is true for stays with PyTorch's
    autograd; so do the nodes that ``splits`` is true for, if a group with them does not pay. With ``loops``, a loop of
    at least so many operators with formulas, of any kind, becomes part of a group as a whole if one of them counts.

    Example:
        >>> from rekindle.autodiff import CreateDifferentiableGraphs
        >>> graph = rekindle.script(lambda x: x.exp().sin()).graph
        >>> CreateDifferentiableGraphs().run(graph)
        True
        >>> graph.find_node("prim::DifferentiableGraph") is not None
        True
    """

    name: ClassVar[str] = "create_differentiable_graphs"
    threshold: int = 2
    counts: Callable[[Node], Sequence[int]] | None = None
    pays: Callable[[Sequence[Node], Set[Node]], bool] | None = None
    excludes: Callable[[Node], bool] | None = None
    splits: Callable[[Node], bool] | None = None
    loops: bool = False

    def run(self, graph: Graph) -> bool:
        if not self._may_make_one(graph):
            return False
        moved = self.loops and hoist_attribute_reads(graph)
        return _SubgraphPartitioner(graph, self).run() or moved

    def _may_make_one(self, graph: Graph) -> bool:
        """Return whether ``graph`` has enough differentiable operators for a group, wherever they are. The test is
        cheap, since most graphs have few."""
        found = 0
        counts = False
        for node in graph.all_nodes():
            if formula_of(node) is not None:
                counted = self.counted(node)
                found += max(sum(counted), len(counted), 1)
                counts = counts or any(counted)
                if counts and found >= self.threshold:
                    return True
        return False

    def counted(self, node: Node) -> Sequence[int]:
        """Return what the operators that autograd records for ``node`` count for."""
        if self.counts is not None:
            return self.counts(node)
        return [1 for each in operators_recorded(node) if not _makes_views(each)]


def separated(graph: Graph, requires_grad: Sequence[bool]) -> Graph | None:
    """Return a copy of the subgraph of a differentiable graph with smaller ones in it, if code outside can go back from
    its results one after the other, given which inputs require gradients. Return None if it may remain one graph."""
    copy = graph.copy()
    for value, wants in zip(copy.inputs, requires_grad, strict=True):
        if isinstance(value.type, TensorType) and not wants:
            value.set_type(replace(value.type, requires_grad=False))
    partitioner = _SubgraphPartitioner(copy, CreateDifferentiableGraphs(threshold=1, loops=True))
    whole = _Partition()
    if partitioner.goes_back_together(whole, [node for node in copy.nodes if node.kind != "prim::Constant"]):
        return None
    partitioner.run()
    return copy


_STRUCTURE: Final = frozenset({"prim::ListConstruct", "prim::ListUnpack", "prim::ConstantChunk"})
_MAX_PENDING: Final = 200
"""Number of following nodes outside of the group after which the group is closed."""
_LAYER: Final = 4
"""Number of nodes that may split a group in a layer, at least …"""
_MAX_SPLITS: Final = 32
"""… and at most."""


@dataclass(slots=True, eq=False)
class _Partition:
    """The nodes of a group, and the nodes that must remain after them."""

    nodes: list[Node] = field(default_factory=list)
    members: set[Node] = field(default_factory=set)
    pending: list[Node] = field(default_factory=list)
    splits: int = 0
    """Number of nodes at which the group may be split."""
    end: int = 0
    """Number of nodes up to the end of a layer."""
    dependents: int = 0
    """The observed tensors that depend on the nodes, as a set of bits."""
    released: int = 0
    """Those that depend on the same node that saves tensors, at most."""

    def add(self, node: Node) -> None:
        self.nodes.append(node)
        self.members.add(node)

    def cut(self) -> list[Node]:
        """Remove the nodes after the end of the layer from the group, and return them."""
        later = self.nodes[self.end :] if self.end else []
        del self.nodes[len(self.nodes) - len(later) :]
        self.members.difference_update(later)
        return later

    def feeds(self, node: Node) -> bool:
        return any(value.node in self.members for value in node.inputs)


class _SubgraphPartitioner:
    def __init__(self, graph: Graph, options: CreateDifferentiableGraphs) -> None:
        self.graph = graph
        self.options = options
        self.aliases = AliasDb(graph)
        self.requires_grad = may_require_grad(graph)
        self.observed = observed_values(graph) & self.requires_grad
        self.dependents = observed_dependents(graph, self.requires_grad, self.aliases.memory)
        self.loops: dict[Node, bool] = {}
        self.formulas: dict[Node, bool] = {}
        """Whether nodes are differentiable by a formula."""
        self.units: dict[Node, list[Node]] = {}
        """Nodes that are in a group together, by the first of them: a loop and the lists that it fills."""
        self.inseparable: set[Node] = set()
        self.outside: set[Node] = set()
        """Nodes at which a group that did not pay was split."""
        self.closed: list[list[Node]] = []
        """The groups that were found. They are outlined at the end, so that the collected facts about nodes stay
        valid."""

    def run(self) -> bool:
        self.block(self.graph.block)
        for nodes in self.closed:
            _Outliner(nodes, self._is_literal_list).run(is_separable=self._is_separable(nodes))
        return bool(self.closed)

    def _is_literal_list(self, value: Value) -> bool:
        """Return whether ``value`` is a list of constants to which nothing writes: kernels are made for such."""
        node = value.node
        is_literal = node.kind == "prim::ListConstruct" and all(_is_plain_constant(item) for item in node.inputs)
        return is_literal and not self.aliases.has_writers(value)

    def block(self, block: Block) -> None:
        for node in list(block.nodes):
            if self._is_closed_loop(node):
                self._find_unit(node)
            else:
                for inner in node.blocks:
                    self.block(inner)
        group = _Partition()
        nodes = deque(block.nodes)
        while nodes or group.nodes:
            if not nodes or self._is_complete(group, nodes):
                later = group.cut() if nodes else []
                nodes.extendleft(reversed(_in_order([*later, *self._close(group)])))
                group = _Partition()
                continue
            node = nodes[0]
            unit = self.units.get(node, [node])
            for _ in unit:
                nodes.popleft()
            if self._may_all_join(group, unit):
                group.dependents, group.released = self._dependents_with(group, unit)
                for each in unit:
                    group.add(each)
                    group.splits += self._may_split(each)
                continue
            is_apart = not self.goes_back_together(group, unit)
            if group.nodes and (len(unit) > 1 or is_apart or not self._passes(group, node)):
                group.pending += unit
                if (not is_apart and (len(unit) > 1 or self._is_member(node))) or len(group.pending) > _MAX_PENDING:
                    nodes.extendleft(reversed(_in_order(self._close(group))))
                    group = _Partition()

    def _find_unit(self, loop: Node) -> None:
        lists = collected_lists(loop)
        if lists:
            unit = gather_unit(loop, lists)
            self.units[unit[0]] = unit
            self.inseparable.update(unit)

    # ---------------------------------------------------------------------------------------------------------- members

    def _has_formula(self, node: Node) -> bool:
        """Return whether ``node`` is to be differentiated by a formula of this package: it has one, the options do not
        exclude it, and one of its inputs may require a gradient."""
        if node.blocks:
            return self._is_closed_loop(node)
        found = self.formulas.get(node)
        if found is None:
            excludes = self.options.excludes
            found = self.formulas[node] = (
                formula_of(node) is not None
                and not (excludes is not None and excludes(node))
                and not is_constant_for_gradients(node)
                and any(value in self.requires_grad for value in node.inputs)
            )
        return found and node not in self.outside

    def _is_member(self, node: Node) -> bool:
        """Return whether ``node`` may be a member of a group."""
        if node.blocks:
            return self._is_closed_loop(node)
        if node.kind == "prim::Constant":
            return False
        if not _is_structure(node) and not self._has_formula(node) and not self._is_auxiliary(node):
            return False
        if any(_has_no_place(output.type) for output in node.outputs) and not _lists_views(node):
            return False
        if may_be_identity_dropout(node) and not self._is_read_only(node.output):
            return False  # it would be a copy of what it was given, where eager gives that itself
        if any(value.type == COMPLEX for value in node.inputs):
            return False
        lists = [value for value in node.inputs if _has_no_place(value.type)]
        if not all(_lists_views(value.node) for value in lists):
            return False
        tracked = [*node.outputs, *lists] if _makes_views(node) else lists
        return not any(self.aliases.has_writers(value) for value in tracked)

    def _is_read_only(self, value: Value) -> bool:
        """Return whether ``value`` could be copied without an observable difference: its users only compute new
        values."""
        users = [use.user for use in value.uses]
        return not self.aliases.has_writers(value) and all(
            self._has_formula(user) and not _makes_views(user) and not may_be_identity_dropout(user) for user in users
        )

    def _is_closed_loop(self, node: Node) -> bool:
        """Return whether ``node`` is a loop that is differentiated as a unit."""
        if node.kind != "prim::Loop" or not self.options.loops:
            return False
        found = self.loops.get(node)
        if found is None:
            found = self.loops[node] = is_differentiable_loop(node, self.aliases, self.requires_grad) and self._pays(
                node
            )
        return found

    def _pays(self, loop: Node) -> bool:
        """Return whether an iteration of ``loop`` has at least the threshold of operators that PyTorch's autograd would
        record, and one of them counts."""
        nodes = [node for node in loop.inner_nodes() if formula_of(node) is not None and not _makes_views(node)]
        recorded = [count for node in nodes for count in self.options.counted(node)]
        return len(recorded) >= self.options.threshold and any(recorded)

    def _is_auxiliary(self, node: Node) -> bool:
        """Return whether the results of ``node`` have no gradients, such as a comparison or a size, and it can be
        recomputed."""
        if has_side_effects(node) or not is_recomputable(node) or node.operator is None:
            return False
        if is_constant_operator(node):
            return True
        return node.schema is not None and not any(may_contain_tensor(output.type) for output in node.outputs)

    def _may_all_join(self, group: _Partition, unit: Sequence[Node]) -> bool:
        """Return whether nodes that follow each other may join ``group`` together."""
        if any(self._uses_observed(group, node) for node in unit) or not self.goes_back_together(group, unit):
            return False
        if len(unit) == 1:
            return self._may_join(group, unit[0])
        loops = [node for node in unit if node.blocks]
        others = group.pending
        return all(self._run_again_alike(group, node) for node in loops) and all(
            self.aliases.can_swap(other, node) for other in others for node in unit
        )

    def _uses_observed(self, group: _Partition, node: Node) -> bool:
        """Return whether ``node`` computes something from an observed value of ``group``: code outside may ask for its
        derivative with respect to that value."""
        if not self._has_formula(node) and not _makes_views(node):
            return False
        return any(
            value in self.observed and value.node in group.members for value in (*node.inputs, *free_values(node))
        )

    def goes_back_together(self, group: _Partition, unit: Sequence[Node]) -> bool:
        """Return whether a group with ``unit`` runs backward, and releases what it saved, when autograd would: of the
        observed values that depend on its nodes, all depend on one that saves tensors. What no observed value depends
        on never runs backward."""
        dependents, released = self._dependents_with(group, unit)
        if group.nodes and any(map(self._has_formula, unit)) and not (self._dependents_of(unit) and group.dependents):
            return dependents == 0
        return released in (0, dependents)

    def _is_separable(self, nodes: Sequence[Node]) -> bool:
        """Return whether code outside may go back through some of ``nodes`` alone, and then through others of them."""
        found = {self._dependents_of([node]) for node in nodes if self._has_formula(node)}
        return any(small & large != small for small, large in pairwise(sorted(found, key=int.bit_count)))

    def _dependents_with(self, group: _Partition, unit: Sequence[Node]) -> tuple[int, int]:
        """Return ``dependents`` and ``released`` of a group with ``unit``."""
        dependents, released = group.dependents, group.released
        for node in unit if self.dependents else ():
            bits = self._dependents_of([node])
            dependents |= bits
            if released | bits == bits and self._saves_tensors(node):
                released = bits
        return dependents, released

    def _dependents_of(self, nodes: Sequence[Node]) -> int:
        """Return the observed tensors that depend on ``nodes``, as a set of bits."""
        within = (each for node in nodes for each in (node, *node.inner_nodes()))
        return reduce(or_, (self.dependents.get(output, 0) for each in within for output in each.outputs), 0)

    def _saves_tensors(self, node: Node) -> bool:
        formula = formula_of(node)
        return bool(node.blocks) or (formula is not None and self._has_formula(node) and formula.saves_tensors)

    def _may_join(self, group: _Partition, node: Node) -> bool:
        if not self._is_member(node):
            return False
        if not self._has_formula(node) and not group.feeds(node):
            return False  # nothing is gained by having it within
        if not self._run_again_alike(group, node):
            return False
        for value in node.inputs:
            if _has_no_place(value.type) and value.node not in group.members:
                if value.node in group.pending or value.node.kind != "prim::ListConstruct":
                    return False
        return all(self.aliases.can_swap(other, node) for other in group.pending)

    def _run_again_alike(self, group: _Partition, node: Node) -> bool:
        """Return whether a group with ``node`` has no loop, or all its nodes are recomputable: second derivatives run
        them again."""
        nodes = [*group.nodes, node]
        return not any(each.blocks for each in nodes) or all(each.blocks or is_recomputable(each) for each in nodes)

    def _passes(self, group: _Partition, node: Node) -> bool:
        """Move ``node`` before the group if that is legal. Return whether it was moved."""
        if node.kind == "prim::Constant":
            node.move_before(group.nodes[0])
            return True
        if not all(self.aliases.can_swap(other, node) for other in (*group.nodes, *group.pending)):
            return self._passes_with_copies(group, node)
        node.move_before(group.nodes[0])
        return True

    def _passes_with_copies(self, group: _Partition, check: Node) -> bool:
        """Move ``check`` before the group, with copies of the views and sizes of the group that it depends on, if it is
        a check and that is legal. Return whether it was moved."""
        if not is_check(check):
            return False
        operands = operands_within(check, group.members, lambda node: not self._computes(node))
        if operands is None or not all(
            self.aliases.can_swap(other, check) for other in (*group.nodes, *group.pending) if other not in operands
        ):
            return False
        move_check(check, [node for node in group.nodes if node in operands], group.nodes[0])
        return True

    # ---------------------------------------------------------------------------------------------------------- closing

    def _is_complete(self, group: _Partition, following: Sequence[Node]) -> bool:
        """Return whether a group ends before the nodes ``following``: after a layer, whose result is the only value of
        the group that is used later. Equal layers are then equal graphs, which are compiled once, and what a layer
        saves is released before the gradients of the layers below are computed. The end of a layer is recorded in
        ``group.end``."""
        node = following[0]
        if group.splits < _LAYER or not self._computes(node):
            return False
        if group.splits >= _MAX_SPLITS or len(self._live_roots(group)) == 1:
            group.end = len(group.nodes)
        return group.end > 0 and self._may_split(node) and sum(map(self._may_split, following)) >= _LAYER

    def _live_roots(self, group: _Partition) -> set[Value]:
        """Return the values of a group that are used after it; of views, the values that they are views of."""
        found: set[Value] = set()
        for node in group.nodes:
            for output in node.outputs:
                if all(use.user in group.members for use in output.uses):
                    continue
                while output.node in group.members and _makes_views(output.node) and output.node.inputs:
                    output = output.node.inputs[0]
                if output.node in group.members and self._computes(output.node):
                    found.add(output)
        return found

    def _may_split(self, node: Node) -> bool:
        return self.options.splits is not None and self.options.splits(node)

    def _close(self, group: _Partition) -> list[Node]:
        """Close a group: make its nodes adjacent, before all that must remain after them, if outlining pays. Return the
        nodes that may be in the groups that follow."""
        before, nodes, following = self._trimmed(group)
        if self._is_to_outline(nodes):
            together = [*before, *nodes, *following]
            if together[0] is not group.nodes[0]:
                together[0].move_before(group.nodes[0])
            _make_adjacent(together)
            self.closed.append(nodes)
            return group.pending
        splits = set(filter(self._may_split, nodes)) - self.outside
        if splits and not self._is_worth_it(nodes):
            self.outside |= splits
            return [*group.nodes, *group.pending]
        if group.pending:
            _make_adjacent(group.nodes)  # none of them is between the nodes of the groups that follow
        return group.pending

    def _is_to_outline(self, nodes: Sequence[Node]) -> bool:
        """Return whether ``nodes`` become a differentiable graph: it pays, and gradients go back through it."""
        if not self._is_worth_it(nodes):
            return False
        members = set(nodes)
        outputs = (output for node in nodes for output in node.outputs)
        if not any(members.isdisjoint(use.user.ancestors()) for output in outputs for use in output.uses):
            return False  # it stays because it may raise
        return may_change("make one differentiable graph of", nodes[0])

    def _is_worth_it(self, nodes: Sequence[Node]) -> bool:
        """Return whether it is faster to run ``nodes`` as a graph with a backward graph of its own."""
        counted = [node for node in nodes if self._computes(node)]
        if any(node.blocks for node in counted):
            return True
        if sum(map(self._counts, counted)) < self.options.threshold:
            return False
        return self.options.pays is None or self.options.pays(nodes, set(counted))

    def _counts(self, node: Node) -> int:
        """Return how many operators count for the threshold where ``node`` runs."""
        return sum(self.options.counted(node))

    def _computes(self, node: Node) -> bool:
        """Return whether ``node`` is differentiable and computes new values, so that it is not just a view."""
        return self._has_formula(node) and not _makes_views(node)

    def _trimmed(self, group: _Partition) -> tuple[list[Node], list[Node], list[Node]]:
        """Return three lists of the nodes of a group: those that remain before it, those to outline, and those that
        remain after it.

        Nodes that no gradient in the group depends on remain outside: after it, nodes without uses in it; before it,
        nodes that select one of several parts of a tensor. The iterations of an unrolled loop differ in such
        selections; without them, they are equal. On both sides, cheap nodes remain outside too, since PyTorch's own
        derivative of them costs less.
        """
        members = set(group.nodes)
        following: list[Node] = []
        for node in reversed(group.nodes):
            if node in self.inseparable or not all(
                members.isdisjoint(use.user.ancestors()) for output in node.outputs for use in output.uses
            ):
                continue
            if not self._computes(node) or self._may_stay_after(node, members):
                members.discard(node)
                following.insert(0, node)
        first = self._first_that_stay_outside(group, members)
        for node in group.nodes:
            if node in members and not group.feeds(node) and _is_one_of_several_picked(node):
                first.add(node)
        members -= first
        before = [node for node in group.nodes if node in first]
        return before, [node for node in group.nodes if node in members], following

    def _first_that_stay_outside(self, group: _Partition, members: Set[Node]) -> set[Node]:
        """Return the nodes among ``members`` that may remain before the group: operators that gain nothing in it and
        use none of its results, with the views that they use; none if one of them cannot be moved there."""
        candidates: set[Node] = set()
        for node in group.nodes:
            if node in self.inseparable or node not in members:
                continue
            if not self._computes(node) or self._may_stay_outside(node):
                if all(value.node in candidates for value in node.inputs if value.node in members):
                    candidates.add(node)
        found: set[Node] = set()
        for node in reversed(group.nodes):
            is_used = any(use.user in found for output in node.outputs for use in output.uses)
            if node in candidates and (is_used or self._computes(node)):
                found.add(node)
        passed = members - found
        if not all(self._may_pass(node, (each for each in passed if each.is_before(node))) for node in found):
            return set()
        return found

    def _may_stay_outside(self, node: Node) -> bool:
        """Return whether the differentiable ``node`` gains nothing in a group."""
        return not node.blocks and not self._counts(node)

    def _may_stay_after(self, node: Node, members: Set[Node]) -> bool:
        later = (each for each in members if node.is_before(each))
        return self._may_stay_outside(node) and self._may_pass(node, later)

    def _may_pass(self, node: Node, others: Iterable[Node]) -> bool:
        return all(self.aliases.can_swap(node, other) for other in others)


def _make_adjacent(nodes: Sequence[Node]) -> None:
    """Move ``nodes`` after the first of them, in their order."""
    for first, second in pairwise(nodes):
        if first.next is not second:
            second.move_after(first)


def _in_order(nodes: Iterable[Node]) -> list[Node]:
    """Return ``nodes``, of one block, in its order."""

    def compare(a: Node, b: Node) -> int:
        return -1 if a.is_before(b) else 1

    return sorted(nodes, key=cmp_to_key(compare))


def _is_plain_constant(value: Value) -> bool:
    return value.node.kind == "prim::Constant" and not may_contain_tensor(value.type)


def _is_structure(node: Node) -> bool:
    """Return whether ``node`` only packs or unpacks tensors."""
    if node.kind == "aten::__getitem__":
        container, _ = node.inputs
        return isinstance(container.type, ListType) and isinstance(node.output.type, TensorType)
    return node.kind in _STRUCTURE


def _lists_views(node: Node) -> bool:
    """Return whether ``node`` makes a list of tensors. Lists do not enter or leave a group: they are recomputed."""
    if node.kind == "prim::ListConstruct":
        return True
    operator = node.operator
    if operator is None or not operator.traits & {Trait.VIEW, Trait.MOVES_DATA}:
        return False
    return any(result.type == ListType(TENSOR) for result in operator.schema.returns)


def _makes_views(node: Node) -> bool:
    """Return whether the outputs of ``node`` may share memory with its inputs, and can be recomputed from these. An
    unknown operator counts as one."""
    if _is_structure(node) or _lists_views(node):
        return True
    if node.blocks:
        return False
    operator = node.operator
    if operator is None or not is_recomputable(node):
        return operator is None  # what draws random numbers is never made again
    return operator.may_alias_inputs or any(result.alias is not None for result in operator.schema.returns)


def _is_one_of_several_picked(node: Node) -> bool:
    """Return whether ``node`` is one of several ``aten::select`` nodes of the same tensor."""
    return node.kind == "aten::select" and sum(use.user.kind == node.kind for use in node.inputs[0].uses) > 1


class _Outliner:
    """Outlines adjacent nodes into one node."""

    def __init__(self, nodes: list[Node], is_copied: Callable[[Value], bool]) -> None:
        """Prepare to outline ``nodes``. The group recomputes the values for which ``is_copied`` returns True."""
        self.nodes = nodes
        self.is_copied = is_copied
        self.members = set(nodes)
        self.subgraph = Graph()
        self.local: dict[Value, Value] = {}

    def run(self, *, is_separable: bool) -> None:
        """Replace the nodes with the group, at the position of the first of them."""
        inputs = self._inputs()
        place = self.nodes[0]
        graph = place.graph
        attributes: dict[str, AttributeValue] = {"Subgraph": self.subgraph}
        if is_separable:
            attributes[SEPARABLE] = 1
        group = graph.create(KIND, inputs, outputs=0, attributes=attributes, range=self.nodes[0].range)
        for value in inputs:
            self.local[value] = self.subgraph.add_input(type=value.type).copy_metadata(value)
        for node in self.nodes:
            self.subgraph.insert_clone(node, self.local, self._mapped)
        group.insert_before(place)
        self._outputs(group, place)
        for node in reversed(self.nodes):
            node.destroy()

    def _inputs(self) -> list[Value]:
        """Return the inputs of the group, in the order of their uses from the last node to the first."""
        found: dict[Value, None] = {}

        def look_at(node: Node) -> None:
            for value in (*node.inputs, *free_values(node)):
                if value.node in self.members or value.node.kind == "prim::Constant":
                    continue
                if _has_no_place(value.type) or self.is_copied(value):
                    look_at(value.node)
                else:
                    found[value] = None

        for node in reversed(self.nodes):
            look_at(node)
        return list(found)

    def _mapped(self, value: Value) -> Value:
        found = self.local.get(value)
        if found is None:
            self.subgraph.insert_clone(value.node, self.local, self._mapped)
            found = self.local[value]
        return found

    def _outputs(self, group: Node, place: Node) -> None:
        """Replace uses outside of the group: by outputs of the group, or by views that are recomputed from these before
        ``place``."""
        outside: dict[Value, Value] = {}

        def given(value: Value) -> Value:
            """Return the value that replaces ``value`` outside of the group."""
            if value.node not in self.members:
                return value
            found = outside.get(value)
            if found is None:
                if _makes_views(value.node):
                    clone = group.graph.create_clone(value.node, given).insert_before(place)
                    outside.update(zip(value.node.outputs, clone.outputs, strict=True))
                    return outside[value]
                found = outside[value] = group.add_output(value.type)
                self.subgraph.add_output(self.local[value])
            return found

        for node in reversed(self.nodes):
            for output in node.outputs:
                uses = [use for use in output.uses if self.members.isdisjoint(use.user.ancestors())]
                for use in uses:
                    use.user.replace_input(use.offset, given(output))
        for value, found in outside.items():
            if found.node is group:
                found.copy_metadata(value)
