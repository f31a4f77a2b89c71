"""Rewrite rules that users write: a pattern and a replacement as Python functions."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rekindle.errors import GraphError, RuleError
from rekindle.ir.graph import Graph, Value
from rekindle.ir.node import value_of
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.passes import run_passes
from rekindle.passes.simplification.dead_code_elimination import DeadCodeElimination
from rekindle.program.calling import inlined
from rekindle.program.function import Function, Method
from rekindle.program.modules.module import ScriptModule
from rekindle.rewriting.match_diagnosis import Explanation
from rekindle.rewriting.matching import Match
from rekindle.rewriting.pattern import Pattern, pattern_of
from rekindle.rewriting.rule import BuildReplacement, MatchCondition, PatternRewrite, apply_to_fixpoint
from rekindle.runtime.pipelines import NORMAL_FORM
from rekindle.scripting.callables.functions import underlying_function
from rekindle.scripting.script import script

Rewritable = Graph | Function | Method | ScriptModule


@dataclass(frozen=True, slots=True, eq=False)
class RewriteRule:
    """A rule that replaces a pattern in graphs, made by :func:`rewrite`. It is also a pass
    (:class:`~rekindle.passes.Pass`) named ``name``."""

    rewrite: PatternRewrite

    @property
    def name(self) -> str:
        """The name of the rule in messages and limits."""
        return self.rewrite.name

    def apply(self, target: Rewritable, *, prepare: bool = True) -> int:
        """Rewrite ``target`` in place wherever the rule matches; return the number of rewrites.

        For a function or a method, its graph is rewritten, for a module the graph of ``forward``; the next call runs
        the rewritten graph. Unless ``prepare`` is False, calls are inlined and constants folded first, so that the
        program has the form of the patterns.

        Raises:
            RuleError: the replacement does not fit a match, or does something else than the pattern.
        """
        return apply_rules(target, [self], prepare=prepare)

    def explain(self, target: Rewritable, *, prepare: bool = True) -> Explanation:
        """Return where the rule matches ``target``, which is not changed, or if nowhere why not: the first mismatch of
        the best partial match, or the reason why the rewrite would be incorrect. With ``prepare``, a copy of the graph
        is matched in which calls are inlined and constants folded, as for :meth:`apply`."""
        graph = underlying_graph(target).copy()
        if prepare:
            normalize(graph)
        return self.rewrite.explain(graph)

    def run(self, graph: Graph) -> bool:
        """Rewrite ``graph`` wherever the rule matches; return whether it changed."""
        return self.rewrite.run(graph)


def rewrite(
    *patterns: Any,
    when: MatchCondition | None = None,
    name: str | None = None,
    builds: bool = False,
    shares_alike: bool = False,
) -> Callable[[Any], RewriteRule]:
    """Make a rewrite rule of patterns and a replacement. Also a decorator of the replacement.

    A pattern is a Python function or IR text. Its parameters match any values of their types; without an annotation,
    any tensors. ``Optional[Tensor]`` matches a tensor or None. Several patterns are alternatives. The replacement has
    the parameters of the patterns, by name, and as many results. In IR text, an attribute ``"$name"`` matches any
    attribute.

    A match is replaced only if that is not observable: its inner values are not used elsewhere, no node between its
    nodes writes to what they read, and results that share memory with other values are not written to.

    Args:
        patterns: the patterns.
        when: called with each match (:class:`~rekindle.rewriting.matching.Match`). False rejects the match, and so does
            a text, which is the reason.
        name: the name of the rule in messages.
        builds: call the replacement for each match instead of compiling it. It takes a builder
            (:class:`~rekindle.ir.building.Builder`), the match, and the parameters of the pattern by name.
        shares_alike: promise that a result of the replacement is the same tensor, or a view of the same memory, exactly
            if that of the pattern is.

    Raises:
        RuleError: the patterns cannot be patterns.
        CompileError: one of them cannot be compiled.

    Example:
        >>> def halved_twice(x):
        ...     return x / 2 / 2
        >>> @rekindle.rewrite(halved_twice)
        ... def quartered(x):
        ...     return x / 4
        >>> f = rekindle.script(lambda x: (x + 1) / 2 / 2)
        >>> quartered.apply(f), f(torch.tensor([7.0]))
        (1, tensor([2.]))
    """
    if not patterns:
        raise RuleError("a rule needs a pattern: rewrite(pattern)")

    def make(replacement: Any) -> RewriteRule:
        found = tuple(pattern_of(*graph_of(pattern)) for pattern in patterns)
        title = name or getattr(replacement, "__name__", None) or found[0].name
        if builds:
            _check_builds(replacement, found[0])
            return RewriteRule(PatternRewrite(title, found, _built_by(replacement), when, shares_alike))
        return RewriteRule(PatternRewrite(title, found, graph_of(replacement)[1], when, shares_alike))

    return make


def _built_by(function: Any) -> BuildReplacement:
    """Return a replacement that ``function`` builds, in normal form."""

    def build_replacement(match: Match, graph: Graph, given: dict[str, Value]) -> None:
        with graph.inserting_at_end(graph.block, like=match.node) as build:
            results = function(build, match, **{key: build(value) for key, value in given.items()})
            for result in results if isinstance(results, tuple) else (results,):
                graph.add_output(value_of(result))
        normalize(graph)

    return build_replacement


def _check_builds(replacement: Any, pattern: Pattern) -> None:
    try:
        inspect.signature(replacement).bind(None, None, **dict.fromkeys(pattern.inputs))
    except TypeError as error:
        wanted = ", ".join(["build", "match", *pattern.inputs])
        raise RuleError(f"the function that builds the replacement is called with ({wanted}): {error}") from None


def apply_rules(target: Rewritable, rules: Sequence[RewriteRule], *, prepare: bool = True) -> int:
    """Rewrite ``target`` in place by ``rules``, in this order, until none matches. Return the number of rewrites.

    Args:
        target: a graph, a function, a method, or a module, whose ``forward`` is rewritten.
        rules: results of :func:`rewrite`.
        prepare: inline calls and fold constants first, as ``RewriteRule.apply`` does.

    Raises:
        RuleError: the rules do not terminate, because one undoes what another does. ``target`` is not changed then.

    Example:
        >>> def doubled(x):
        ...     return x + x
        >>> @rekindle.rewrite(doubled)
        ... def product(x):
        ...     return x * 2
        >>> f = rekindle.script(lambda x: torch.exp(x + x))
        >>> rekindle.apply_rules(f, [product])
        1
    """
    graph = underlying_graph(target)
    with graph.transaction():
        if prepare:
            normalize(graph)
        count = apply_to_fixpoint([rule.rewrite for rule in rules], graph)
        if count:
            DeadCodeElimination().run(graph)
    return count


def underlying_graph(target: Any) -> Graph:
    """Return the graph of a function, of a method, of a module's ``forward``; a graph itself.

    Raises:
        GraphError: ``target`` has none.
    """
    if isinstance(target, Graph):
        return target
    if isinstance(target, (Function, Method)):
        return target._record.graph
    if isinstance(target, ScriptModule):
        found: Graph = target.forward._record.graph
        return found
    raise GraphError(f"a {type(target).__qualname__} has no graph; compile it first: rekindle.script(…)")


# ------------------------------------------------------------------------------------------------------------- patterns


def graph_of(source: Any) -> tuple[str, Graph]:
    """Return the name and the graph of a Python function, compiled or not, of IR text, or of a graph; in normal form:
    calls inlined, constants folded. ``source`` is not changed.

    Raises:
        RuleError: ``source`` is of another class, or a function with overloads.
        CompileError: the function cannot be compiled.
        ParseError: the text is not a graph.
        VerificationError: the graph is invalid.
    """
    if isinstance(source, str):
        name, graph = "text", parse_graph(source.strip() + "\n")
    elif isinstance(source, Graph):
        name, graph = "graph", source.copy()
    else:
        function = source if isinstance(source, Function) else _compiled(source)
        name, graph = function.name, inlined(function._record)
    normalize(graph)
    verify(graph)
    return name, graph


def _compiled(source: Any) -> Function:
    if not isinstance(underlying_function(source) or source, types.FunctionType):
        raise RuleError(f"a {type(source).__qualname__} cannot be part of a rule; write a function, or IR text")
    found = script(source)
    if not isinstance(found, Function):
        raise RuleError(f"the function '{source.__name__}' has overloads and cannot be part of a rule")
    return found


def normalize(graph: Graph) -> bool:
    """Convert the graph to the normal form in which patterns and programs are compared; return whether it changed."""
    return run_passes(graph, NORMAL_FORM)
