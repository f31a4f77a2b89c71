"""Legality of rewrites: whether replacing a match is unobservable, given other uses of its values, nodes in between,
and later writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.effects import FORWARDING_KINDS, has_side_effects, is_nondeterministic, may_write, writes_modes
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.rewriting.matching import Match


@dataclass(slots=True, frozen=True)
class RewriteBlocker:
    """The reason why a match may not be replaced; ``node`` is the node that prevents it, None for other reasons."""

    why: str
    node: Node | None = None


class GraphFacts:
    """Facts about a graph, computed when first needed. They are valid until the graph changes: see :meth:`forget`."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._aliases: AliasDb | None = None
        self._is_calm: bool | None = None

    @property
    def aliases(self) -> AliasDb:
        if self._aliases is None:
            self._aliases = AliasDb(self.graph)
        return self._aliases

    @property
    def is_effect_free(self) -> bool:
        """Whether no node writes, has side effects, draws random numbers or changes modes, so that their order does not
        matter."""
        if self._is_calm is None:
            self._is_calm = not any(map(_has_effects, self.graph.all_nodes()))
        return self._is_calm

    def forget(self, is_effect_free: bool) -> None:
        """Discard the cached alias analysis, since nodes were inserted. Unless these are effect-free
        (``is_effect_free``), discard :attr:`is_effect_free` too."""
        self._aliases = None
        if not is_effect_free:
            self._is_calm = None


def is_effect_free(graph: Graph) -> bool:
    return not any(map(_has_effects, graph.all_nodes()))


def _has_effects(node: Node) -> bool:
    if node.kind in ("prim::If", "prim::Loop"):
        return False  # the nodes in their blocks are tested themselves
    return may_write(node) or has_side_effects(node) or writes_modes(node) or is_nondeterministic(node)


# -------------------------------------------------------------------------------------------------- insertion points


def insertion_point_for(match: Match, facts: GraphFacts) -> Node | RewriteBlocker:
    """Return the node before which the replacement of ``match`` can be inserted, or the reason why the match
    cannot be replaced: for example, its nodes are in several blocks, have other users, or cannot be moved to one
    place."""
    nodes = sorted(set(match.nodes.values()), key=lambda node: node._position)
    block = nodes[0].owning_block
    assert block is not None
    for node in nodes:
        if node.owning_block is not block:
            return RewriteBlocker(f"{node.kind} is in another block than the rest", node)
    inner = _shared(match, nodes, facts)
    if inner is not None:
        return inner
    twice = _twice(match)
    if twice is not None:
        return twice
    place = _first_user(match, nodes, block)
    for value in match.pattern.inputs.values():
        given = match.values.get(value)
        if given is None:
            continue
        if given in match.roots:
            return RewriteBlocker(f"%{given.name} is a result, and another result is made of it", given.node)
        if _is_after(given, place, block):
            return RewriteBlocker(f"%{given.name} is defined after the place where a result is used", given.node)
    return _crossing(match, nodes, place, facts) or place


def _shared(match: Match, nodes: Sequence[Node], facts: GraphFacts) -> RewriteBlocker | None:
    """Return a blocker if a value within the match has users outside of it, since it would be computed twice; None
    otherwise. Values of immutable types and unwritten views may have such users, unless their node has no inputs or has
    effects."""
    roots, own = set(match.roots), set(nodes)
    for node in nodes:
        for output in node.outputs:
            if output in roots:
                continue
            for use in output.uses:
                if use.user not in own and not _is_cheap(node, output, facts):
                    user = "it is returned" if use.user.kind == "prim::Return" else f"{use.user.kind} uses it too"
                    return RewriteBlocker(f"%{output.name} is needed elsewhere: {user}", use.user)
    return None


def _is_cheap(node: Node, output: Value, facts: GraphFacts) -> bool:
    if not node.inputs or may_write(node) or has_side_effects(node):
        return False
    if not AliasDb.is_mutable_type(output.type):
        return True
    if facts.aliases.has_writers(output):
        return False
    return node.kind in FORWARDING_KINDS or facts.aliases.may_alias(output, node.inputs[0])


def _twice(match: Match) -> RewriteBlocker | None:
    """Return a blocker if two nodes of the pattern match one node that writes or is nondeterministic; None
    otherwise."""
    found: dict[Node, Node] = {}
    for wanted, node in match.nodes.items():
        if found.setdefault(node, wanted) is not wanted and (is_nondeterministic(node) or may_write(node)):
            return RewriteBlocker(f"{node.kind} runs once, but twice in the pattern", node)
    return None


def _first_user(match: Match, nodes: Sequence[Node], block: Block) -> Node:
    """Return the last node of the match, or the first user of one of its results if that comes earlier in ``block``."""
    own, place = set(nodes), nodes[-1]
    for root in match.roots:
        for use in root.uses:
            user = block.ancestor_of(use.user)
            if use.user not in own and user is not None and user.kind != "prim::Return":
                if user._position < place._position:
                    place = user
    return place


def _is_after(value: Value, place: Node, block: Block) -> bool:
    node = value.node
    return node.kind != "prim::Param" and node.owning_block is block and node._position >= place._position


def _crossing(match: Match, nodes: Sequence[Node], place: Node, facts: GraphFacts) -> RewriteBlocker | None:
    """Return a blocker if moving the nodes of the match to ``place`` reorders conflicting effects, with a node in
    between or among themselves as the pattern orders them; None otherwise."""
    if facts.is_effect_free or len(nodes) == 1:
        return None
    effects_of = facts.aliases.effects_of
    own = set(nodes)
    order = {node: index for index, node in enumerate(match.pattern.graph.nodes)}
    written = sorted(((order[wanted], node) for wanted, node in match.nodes.items()), key=lambda pair: pair[0])
    for index, (_, first) in enumerate(written):
        for _, second in written[index + 1 :]:
            if first._position > second._position and effects_of(first).conflicts_with(effects_of(second)):
                return RewriteBlocker(f"{second.kind} comes before {first.kind}, but after it in the pattern", second)
    node = nodes[0]
    while node is not nodes[-1]:
        node = node.next
        if node in own:
            continue
        for mine in nodes:
            down = mine._position < node._position < place._position
            up = place._position <= node._position < mine._position
            if (down or up) and effects_of(mine).conflicts_with(effects_of(node)):
                return RewriteBlocker(f"{node.kind} is in between, and {mine.kind} cannot be moved across it", node)
    return None


# ------------------------------------------------------------------------------------------------------------- aliasing


@dataclass(slots=True, frozen=True)
class Relations:
    """The aliasing behavior of a graph, all by index: pairs of a result and an input that may share memory, pairs of
    results that may, and the inputs that are written to."""

    with_inputs: frozenset[tuple[int, int]]
    with_results: frozenset[tuple[int, int]]
    written: frozenset[int]


def relations_of(graph: Graph, results: Sequence[Value]) -> Relations:
    """Return the aliasing behavior of ``graph`` for ``results``, any of its values. Results share memory with inputs
    only as far as the nodes make them: that inputs may alias each other is disregarded."""
    aliases = AliasDb(graph)
    # Inputs may alias each other: that a result shares memory with one implies nothing for the other. Follow the nodes
    # that compute it, as if every input were the only one.
    with_inputs = set()
    for place, result in enumerate(results):
        for index in _sources(graph, result):
            with_inputs.add((place, index))
    with_results = {
        (i, j)
        for i, one in enumerate(results)
        for j, other in enumerate(results)
        if i < j and aliases.may_contain_alias(one, other)
    }
    written = {
        index
        for index, value in enumerate(graph.inputs)
        if any(aliases.writes_to_alias(node, [value]) for node in graph.nodes)
    }
    return Relations(frozenset(with_inputs), frozenset(with_results), frozenset(written))


def _sources(graph: Graph, result: Value) -> set[int]:
    """Return the indices of the inputs with which ``result`` may share memory. Each is tested alone, with the others as
    new values."""
    found = set()
    for index in range(len(graph.inputs)):
        copy = Graph()
        values = {old: copy.add_input(type=old.type) for old in graph.inputs}
        for position, value in enumerate(values.values()):
            if position != index:
                made = copy.append_node(copy.create("prim::Uninitialized", types=[value.type])).output
                value.replace_all_uses_with(made)
                values[graph.inputs[position]] = made
        for node in graph.nodes:
            copy.insert_clone(node, values)
        if AliasDb(copy).may_contain_alias(values[result], values[graph.inputs[index]]):
            found.add(index)
    return found


def aliasing_refusal(
    match: Match, before: Relations, after: Relations, facts: GraphFacts, *, shares_alike: bool
) -> RewriteBlocker | None:
    """Return a blocker if the program could observe that results share memory with other values after the replacement
    than before; None otherwise.

    A pair that may share memory both before and after may still differ: a reshape may copy or not. With
    ``shares_alike`` such pairs are taken to share memory in the same cases.
    """
    inputs = [match.values.get(value) for value in match.pattern.graph.inputs]
    roots = match.roots
    pairs = [
        (roots[place], inputs[index], (place, index) in before.with_inputs, (place, index) in after.with_inputs)
        for place, index in sorted(before.with_inputs | after.with_inputs)
    ] + [
        (roots[place], roots[other], (place, other) in before.with_results, (place, other) in after.with_results)
        for place, other in sorted(before.with_results | after.with_results)
    ]
    for result, other_value, was, will in pairs:
        if other_value is not None and not (shares_alike and was and will):
            refusal = _noticed(result, other_value, was, will, facts)
            if refusal is not None:
                return refusal
    return None


def _noticed(result: Value, other: Value, was: bool, will: bool, facts: GraphFacts) -> RewriteBlocker | None:
    aliases = facts.aliases
    if not AliasDb.is_mutable_type(result.type) or not AliasDb.is_mutable_type(other.type):
        return None
    how = "may share memory otherwise with" if was and will else f"{'would share' if will else 'shares'} memory with"
    for value in (result, other):
        if aliases.has_writers(value):
            writer = _writer(value, facts)
            return RewriteBlocker(f"%{result.name} {how} %{other.name}, and %{value.name} is written to", writer)
        if aliases.escapes(value):
            return RewriteBlocker(
                f"%{result.name} {how} %{other.name}, and %{value.name} is handed to what is not known"
            )
    if _leaves(result, facts) and (aliases.outlives_call(other) or _leaves(other, facts)):
        return RewriteBlocker(f"%{result.name} {how} %{other.name}, and the caller of the program knows both")
    return None


def _writer(value: Value, facts: GraphFacts) -> Node | None:
    memory = facts.aliases.reachable(value)
    return next((node for node in facts.graph.all_nodes() if facts.aliases.writes_to(node) & memory), None)


def _leaves(value: Value, facts: GraphFacts) -> bool:
    """Return whether ``value`` itself, a view of it, or a container with it is returned from the graph, or used by a
    node that writes or has side effects."""
    aliases = facts.aliases
    pending, seen = [value], {value}

    def follow(values: Sequence[Value], source: Value) -> None:
        for each in values:
            if each not in seen and aliases.may_contain_alias(each, source):
                seen.add(each)
                pending.append(each)

    while pending:
        at = pending.pop()
        for user, _ in at.uses:
            if user.kind == "prim::Return":
                owner = None if user.owning_block is None else user.owning_block.owning_node
                if owner is None:
                    return True
                user = owner
            if user.blocks:
                follow([*user.outputs, *(given for block in user.blocks for given in block.inputs)], at)
            elif has_side_effects(user) or may_write(user):
                return True
            else:
                follow(user.outputs, at)
    return False
