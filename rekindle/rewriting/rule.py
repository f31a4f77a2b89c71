"""Pattern rewrites: replace every match of a pattern where that is legal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rekindle.errors import RuleError
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import TensorType
from rekindle.ir.verifier import verify
from rekindle.rewriting.changes import may_change
from rekindle.rewriting.legality import (
    GraphFacts,
    Relations,
    RewriteBlocker,
    aliasing_refusal,
    insertion_point_for,
    is_effect_free,
    relations_of,
)
from rekindle.rewriting.match_diagnosis import Explanation, explain
from rekindle.rewriting.matching import Match, Matcher
from rekindle.rewriting.pattern import Pattern, named_inputs, packing_of

MatchCondition = Callable[[Match], "bool | str | None"]
"""Decides whether a match is accepted: False, or a string with the reason, rejects it; True and None accept it."""

BuildReplacement = Callable[[Match, Graph, dict[str, Value]], None]
"""Inserts a replacement into a graph, given the values there for the inputs of the pattern, and adds the outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """Replacement of a match: its outputs replace the pattern's results, in their order."""

    graph: Graph
    relations: Relations
    is_effect_free: bool


@dataclass(frozen=True, slots=True, eq=False)
class PatternRewrite:
    """A pass (:class:`~rekindle.passes.Pass`) that replaces matches of its patterns. The patterns are alternatives."""

    name: str
    patterns: tuple[Pattern, ...]
    replacement: Graph | BuildReplacement
    """A graph whose inputs are named as those of the patterns, or a function that builds one for each match."""
    when: MatchCondition | None = None
    shares_alike: bool = False
    """Whether results of the replacement share memory with its inputs exactly where those of the pattern do."""
    _relations: dict[Pattern, Relations] = field(default_factory=dict)
    _made: dict[Pattern, Replacement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check a replacement that is the same for all matches.

        Raises:
            RuleError: the replacement does not fit a pattern: its inputs, its number of results, or the inputs it
                writes to.
        """
        if isinstance(self.replacement, Graph):
            for pattern in self.patterns:
                self._made[pattern] = self._checked(pattern, self._fixed(pattern, self.replacement))

    def run(self, graph: Graph) -> bool:
        """Apply the rewrite to ``graph`` until it applies nowhere; return whether anything changed.

        Raises:
            RuleError: the rewrite does not terminate, as :func:`apply_to_fixpoint` decides, or a replacement does not
                fit the match.
        """
        return apply_to_fixpoint([self], graph) > 0

    def explain(self, graph: Graph) -> Explanation:
        """Return where the patterns match ``graph``, or the reason why they match nowhere."""
        return explain(self.name, self.patterns, graph, lambda match: self.refusal(match, GraphFacts(graph)))

    def matches_at(self, node: Node) -> Iterator[Match]:
        """Yield the matches of a pattern whose first result ``node`` computes, whether or not the rewrite is legal:
        see :meth:`refusal`."""
        for pattern in self.patterns:
            yield from Matcher(pattern).matches_at(node)

    def refusal(self, match: Match, facts: GraphFacts) -> RewriteBlocker | None:
        """Return the reason why this match is not replaced: the condition rejects it, or the replacement would be
        illegal. Return None if it may be replaced.

        Raises:
            RuleError: the replacement that is built for the match does not fit the pattern, or has an attribute that
                the pattern does not capture.
        """
        if self.when is not None:
            outcome = self.when(match)
            if isinstance(outcome, str):
                return RewriteBlocker(f"the condition says: {outcome}")
            if outcome is False:
                return RewriteBlocker("the condition is not met")
        place = insertion_point_for(match, facts)
        if isinstance(place, RewriteBlocker):
            return place
        made = self._replacement_for(match)
        before = self._relations_of(match.pattern)
        return _type_refusal(match, made) or aliasing_refusal(
            match, before, made.relations, facts, shares_alike=self.shares_alike
        )

    def _rewrite_at(self, node: Node, facts: GraphFacts) -> bool:
        for match in self.matches_at(node):
            if self.refusal(match, facts) is None and may_change("rewrite", node):
                place = insertion_point_for(match, facts)
                assert isinstance(place, Node)
                made = self._replacement_for(match)
                _replace(match, made, place)
                facts.forget(made.is_effect_free)
                return True
        return False

    def _relations_of(self, pattern: Pattern) -> Relations:
        if pattern not in self._relations:
            self._relations[pattern] = relations_of(pattern.graph, pattern.roots)
        return self._relations[pattern]

    def _replacement_for(self, match: Match) -> Replacement:
        made = self._made.get(match.pattern)
        if made is None:
            assert not isinstance(self.replacement, Graph)
            graph, given = _with_inputs(match.pattern)
            for key, value in given.items():
                value.type = match[key].type
            self.replacement(match, graph, given)
            made = self._checked(match.pattern, graph)
        return _with_attributes(made, match) if match.attributes else made

    def _fixed(self, pattern: Pattern, replacement: Graph) -> Graph:
        """Return a copy of the replacement with the inputs of ``pattern``, in their order.

        Raises:
            RuleError: the replacement takes an input that ``pattern`` lacks, or takes it as a type that does not fit.
        """
        inputs = named_inputs(replacement)
        for key, value in inputs.items():
            wanted = pattern.inputs.get(key)
            if wanted is None:
                known = ", ".join(f"'{each}'" for each in pattern.inputs)
                raise RuleError(
                    f"the replacement '{self.name}' takes '{key}', which no pattern gives; there are {known}"
                )
            if not wanted.type.is_subtype_of(value.type):
                raise RuleError(
                    f"the replacement '{self.name}' takes '{key}' as a {value.type}; "
                    f"in the pattern it is a {wanted.type}"
                )
        new, given = _with_inputs(pattern)
        for result in new.insert_graph(replacement, [given[key] for key in inputs]):
            new.add_output(result)
        return new

    def _checked(self, pattern: Pattern, graph: Graph) -> Replacement:
        verify(graph)
        packing = packing_of(graph) if len(pattern.roots) > 1 else None
        if packing is not None:
            graph.return_node.remove_all_inputs()
            for result in packing.inputs:
                graph.add_output(result)
            packing.destroy()
        results = graph.outputs
        if len(results) != len(pattern.roots):
            raise RuleError(
                f"the replacement of '{self.name}' gives {_count(len(results))}, the pattern '{pattern.name}' "
                f"{_count(len(pattern.roots))}"
            )
        ours, theirs = self._relations_of(pattern), relations_of(graph, results)
        for index in ours.written ^ theirs.written:
            name = list(pattern.inputs)[index]
            does, does_not = ("pattern", "replacement") if index in ours.written else ("replacement", "pattern")
            raise RuleError(f"the {does} of '{self.name}' writes to '{name}', the {does_not} does not")
        return Replacement(graph, theirs, is_effect_free(graph))


def _with_inputs(pattern: Pattern) -> tuple[Graph, dict[str, Value]]:
    """Return a new graph with the inputs of ``pattern``, and these inputs by name."""
    new = Graph()
    return new, {key: new.add_input("" if key.isdigit() else key, value.type) for key, value in pattern.inputs.items()}


def _count(number: int) -> str:
    return "one result" if number == 1 else f"{number} results"


def _type_refusal(match: Match, made: Replacement) -> RewriteBlocker | None:
    for root, result in zip(match.roots, made.graph.outputs, strict=True):
        if isinstance(result.type, TensorType) and isinstance(root.type, TensorType):
            continue
        if not result.type.is_subtype_of(root.type):
            return RewriteBlocker(
                f"%{root.name} is a {root.type}, but the replacement gives a {result.type}", root.node
            )
    return None


def _with_attributes(made: Replacement, match: Match) -> Replacement:
    """Return a copy of the replacement in which attributes ``"$name"`` are those that the match has captured.

    Raises:
        RuleError: the match has not captured such an attribute.
    """
    graph = made.graph.copy()
    for node in graph.all_nodes():
        for name, value in node.attributes.items():
            if isinstance(value, str) and value.startswith("$"):
                if value[1:] not in match.attributes:
                    raise RuleError(f"no pattern captures the attribute '{value}'")
                node.attributes[name] = match.attributes[value[1:]]
    return Replacement(graph, made.relations, made.is_effect_free)


def _replace(match: Match, made: Replacement, place: Node) -> None:
    graph, roots = match.graph, match.roots
    values: dict[Value, Value] = {}
    for name, value in match.pattern.inputs.items():
        new_input = made.graph.inputs[list(match.pattern.inputs).index(name)]
        if value in match.values:
            values[new_input] = match.values[value]
        elif new_input.has_uses:
            raise RuleError(f"the pattern '{match.pattern.name}' does not use '{name}', but the replacement does")
    with graph.inserting_before(place, like=match.node):
        for node in made.graph.nodes:
            copy = graph.insert_node(graph.create_clone(node, values.__getitem__))
            for each in (copy, *copy.inner_nodes()):  # errors are reported at the place of what it replaces
                each.range, each.callstack, each.scope = match.node.range, match.node.callstack, match.node.scope
            values.update(zip(node.outputs, copy.outputs, strict=True))
    for root, result in zip(roots, made.graph.outputs, strict=True):
        new = values[result]
        is_made = result.node.kind not in ("prim::Param", "prim::Constant")
        if is_made and isinstance(root.type, TensorType) and root.type.is_subtype_of(new.type):
            new.type = root.type
        name = root.base_name
        root.replace_all_uses_with(new)
        if name and is_made and not new.has_name:
            new.set_name(name)
    for node in sorted(set(match.nodes.values()), key=lambda node: node._position, reverse=True):
        if not node.has_uses:
            node.destroy()


def apply_to_fixpoint(rules: Sequence[PatternRewrite], graph: Graph) -> int:
    """Apply ``rules`` until none applies; return the number of replacements.

    Raises:
        RuleError: there were more than 100 replacements plus 20 for each node of the original graph, so that the rules
            are taken not to terminate; or a replacement does not fit its match.
    """
    total = 0
    limit = 100 + 20 * sum(1 for _ in graph.all_nodes())
    while True:
        count = sum(_times(rule, graph) for rule in rules)
        total += count
        if count == 0:
            return total
        if total > limit:
            names = ", ".join(f"'{rule.name}'" for rule in rules)
            raise RuleError(f"the rules {names} do not terminate: what one makes, one of them rewrites again")


def _times(rule: PatternRewrite, graph: Graph) -> int:
    facts = GraphFacts(graph)
    return sum(1 for node in graph.all_nodes() if node.in_block and rule._rewrite_at(node, facts))
