"""Rules: where one of these patterns stands, put that in its place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rekindle.errors import GraphError, RuleError
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.node import value_of
from rekindle.ir.types import TensorType
from rekindle.ir.verifier import verify
from rekindle.passes.changes import may_change
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination
from rekindle.program.function import Function, Method
from rekindle.program.module import ScriptModule
from rekindle.transforms.rewriting.legality import (
    GraphFacts,
    Relations,
    RewriteBlocker,
    aliasing_refusal,
    insertion_point_for,
    is_effect_free,
    relations_of,
)
from rekindle.transforms.rewriting.match_diagnosis import Explanation, explain
from rekindle.transforms.rewriting.matching import Match, Matcher
from rekindle.transforms.rewriting.pattern import Pattern, graph_of, named_inputs, normalise, packing_of, pattern_of

MatchCondition = Callable[[Match], "bool | str | None"]
"""Whether a match counts: False, or a text that says why not, refuses it."""

Rewritable = Graph | Function | Method | ScriptModule


@dataclass(frozen=True, slots=True, eq=False)
class Replacement:
    """What goes in the place of a match: its outputs stand for the pattern's results, in their order."""

    graph: Graph
    relations: Relations
    is_effect_free: bool


@dataclass(frozen=True, slots=True, eq=False)
class RewriteRule:
    """Made by :func:`rewrite`. It is a pass too (:class:`~rekindle.passes.Pass`), of the name ``name``."""

    name: str
    patterns: tuple[Pattern, ...]
    replacement: Any
    """A function, IR text, or a function that builds."""
    builds: bool
    when: MatchCondition | None
    shares_alike: bool
    _relations: dict[Pattern, Relations]
    _made: dict[Pattern, Replacement]

    def apply(self, target: Rewritable, *, prepare: bool = True) -> int:
        """Rewrite ``target`` in place wherever the rule fits; returns how often it did.

        Of functions, methods and modules the graph is rewritten (of a module that of ``forward``), and the next call
        runs what it is then. Unless ``prepare`` is False, calls are inlined and constants folded first, which brings
        the program into the form of the patterns.

        Raises:
            RuleError: the replacement does not fit a match, or does something else than the pattern.
        """
        return apply_rules(target, [self], prepare=prepare)

    def explain(self, target: Rewritable, *, prepare: bool = True) -> Explanation:
        """Where the rule fits ``target``, which stays as it is, and if nowhere why not: the first difference where it
        comes closest, or what would make the rewrite wrong."""
        graph = underlying_graph(target).copy()
        if prepare:
            normalise(graph)
        return explain(self.name, self.patterns, graph, lambda match: self.refusal(match, GraphFacts(graph)))

    def run(self, graph: Graph) -> bool:
        """See :class:`~rekindle.passes.Pass`."""
        return apply_to_fixpoint([self], graph) > 0

    # -------------------------------------------------------------------------------------------------------- one place

    def matches_at(self, node: Node) -> Iterator[Match]:
        """The ways in which a pattern stands with ``node`` for its first result; whether it may be replaced is
        another question: see :meth:`refusal`."""
        for pattern in self.patterns:
            yield from Matcher(pattern).matches_at(node)

    def refusal(self, match: Match, facts: GraphFacts) -> RewriteBlocker | None:
        """Why this match stays."""
        if self.when is not None:
            told = self.when(match)
            if isinstance(told, str):
                return RewriteBlocker(f"the condition says: {told}")
            if told is False:
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
        pattern = match.pattern
        if self.builds:
            made = self._checked(pattern, self._built(match))
        else:
            if pattern not in self._made:
                self._made[pattern] = self._checked(pattern, self._compiled(pattern))
            made = self._made[pattern]
        return _with_attributes(made, match) if match.attributes else made

    def _compiled(self, pattern: Pattern) -> Graph:
        """The replacement with the inputs of ``pattern`` in their order."""
        name, graph = graph_of(self.replacement)
        inputs = named_inputs(graph)
        for key, value in inputs.items():
            wanted = pattern.inputs.get(key)
            if wanted is None:
                known = ", ".join(f"'{each}'" for each in pattern.inputs)
                raise RuleError(f"the replacement '{name}' takes '{key}', which no pattern gives; there are {known}")
            if not wanted.type.is_subtype_of(value.type):
                raise RuleError(
                    f"the replacement '{name}' takes '{key}' as a {value.type}; in the pattern it is a {wanted.type}"
                )
        new, given = _with_inputs(pattern)
        for result in new.insert_graph(graph, [given[key] for key in inputs]):
            new.add_output(result)
        return new

    def _built(self, match: Match) -> Graph:
        new, given = _with_inputs(match.pattern)
        for key, value in given.items():
            value.type = match[key].type
        with new.inserting_at_end(new.block, like=match.node) as build:
            results = self.replacement(build, match, **{key: build(value) for key, value in given.items()})
            for result in results if isinstance(results, tuple) else (results,):
                new.add_output(value_of(result))
        normalise(new)
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
    """A graph that takes what ``pattern`` takes, and its inputs by name."""
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
    """The replacement with what the match has captured for ``"$name"``."""
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
            _stand_for(copy, match.node)
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


def _stand_for(node: Node, original: Node) -> None:
    """Errors of ``node`` are told at the place of what it replaces."""
    node.range, node.callstack, node.scope = original.range, original.callstack, original.scope
    for block in node.blocks:
        for inner in block.nodes:
            _stand_for(inner, original)


# -------------------------------------------------------------------------------------------------------- for users


def rewrite(
    *patterns: Any,
    when: MatchCondition | None = None,
    name: str | None = None,
    builds: bool = False,
    shares_alike: bool = False,
) -> Callable[[Any], RewriteRule]:
    """Make a rule of a replacement; as a decorator, of a function::

        def halved_twice(x):
            return x / 2 / 2

        @rekindle.rewrite(halved_twice)
        def quartered(x):
            return x / 4

    A pattern is a Python function, or IR text. Its parameters stand for any values of their types (Tensors, without an
    annotation); ``Optional[Tensor]`` takes what is there or None. Where there are several patterns, each is an
    alternative. The parameters of the replacement are those of the patterns, by name. A pattern that returns a tuple
    has several results, and so has the replacement. In IR text, an attribute ``"$name"`` stands for any.

    ``when`` is asked about each match (:class:`~rekindle.transforms.rewriting.matching.Match`): False refuses it, and
    so does a text that says why. With ``builds``, the replacement is run for each match rather than compiled: it takes
    a builder (:class:`~rekindle.ir.building.Builder`), the match, and the parameters of the pattern by name.

    A match is only replaced where nobody can tell the difference: its inner values are not used elsewhere, nothing
    between its nodes writes to what they read, and where results share memory with something before or afterwards,
    nobody writes to it. ``shares_alike`` says that they do so alike: that a result of the replacement is the same
    tensor, or a view of the same memory, exactly where that of the pattern is.

    Raises:
        RuleError: the patterns cannot be patterns.
        CompileError: one of them cannot be compiled.
    """
    if not patterns:
        raise RuleError("a rule needs a pattern: rewrite(pattern)")

    def make(replacement: Any) -> RewriteRule:
        found = tuple(pattern_of(pattern) for pattern in patterns)
        title = name or getattr(replacement, "__name__", None) or found[0].name
        rule = RewriteRule(title, found, replacement, builds, when, shares_alike, {}, {})
        if builds:
            _check_builds(replacement, found[0])
        else:
            for pattern in found:
                rule._made[pattern] = rule._checked(pattern, rule._compiled(pattern))
        return rule

    return make


def _check_builds(replacement: Any, pattern: Pattern) -> None:
    try:
        inspect.signature(replacement).bind(None, None, **dict.fromkeys(pattern.inputs))
    except TypeError as error:
        wanted = ", ".join(["build", "match", *pattern.inputs])
        raise RuleError(f"the function that builds the replacement is called with ({wanted}): {error}") from None


def apply_rules(target: Rewritable, rules: Sequence[RewriteRule], *, prepare: bool = True) -> int:
    """Rewrite ``target`` in place by all ``rules``, in this order, until none of them fits; returns how often one did.
    See :meth:`RewriteRule.apply`.

    Raises:
        RuleError: they go on for ever, because one undoes what another does.
    """
    graph = underlying_graph(target)
    if prepare:
        normalise(graph)
    count = apply_to_fixpoint(rules, graph)
    if count:
        DeadCodeElimination().run(graph)
    return count


def apply_to_fixpoint(rules: Sequence[RewriteRule], graph: Graph) -> int:
    """Apply ``rules`` until none fits; returns how often one did."""
    total = 0
    limit = 100 + 20 * sum(1 for _ in graph.all_nodes())
    while True:
        count = sum(_times(rule, graph) for rule in rules)
        total += count
        if count == 0:
            return total
        if total > limit:
            names = ", ".join(f"'{rule.name}'" for rule in rules)
            raise RuleError(f"the rules {names} go on for ever: what one makes, one of them rewrites again")


def _times(rule: RewriteRule, graph: Graph) -> int:
    facts = GraphFacts(graph)
    return sum(1 for node in graph.all_nodes() if node.in_block and rule._rewrite_at(node, facts))


def underlying_graph(target: Any) -> Graph:
    """The graph of a function, of a method, of a module's ``forward``; a graph itself.

    Raises:
        GraphError: ``target`` has none.
    """
    if isinstance(target, Graph):
        return target
    if isinstance(target, (Function, Method)):
        return target.graph
    if isinstance(target, ScriptModule):
        found: Graph = target.forward.graph
        return found
    raise GraphError(f"a {type(target).__qualname__} has no graph; compile it first: rekindle.script(…)")
