"""Diagnosis of rules that do not match: the first mismatch of the best partial match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rekindle.errors import SourceRange
from rekindle.ir.graph import Graph
from rekindle.ir.text.printer import print_head
from rekindle.rewriting.legality import RewriteBlocker
from rekindle.rewriting.matching import Match, Matcher, PatternMismatch
from rekindle.rewriting.pattern import Pattern, place_of


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where the rule ``rule`` fits a program: ``matches`` are lines of the graph. ``text`` lists them, or explains why
    the rule fits nowhere.

    It is true if the rule fits; ``str`` of it is ``text``.
    """

    rule: str
    matches: tuple[str, ...]
    text: str

    def __bool__(self) -> bool:
        return bool(self.matches)

    def __str__(self) -> str:
        return self.text


def explain(
    name: str, patterns: Sequence[Pattern], graph: Graph, refusal: Callable[[Match], RewriteBlocker | None]
) -> Explanation:
    """Return where the rule ``name`` matches ``graph``. If it matches nowhere, explain why: the reason with which
    ``refusal`` rejected the first match, the first mismatch of the best partial match, or that there is no node of the
    kind to begin with."""
    fits: list[str] = []
    refused: list[tuple[Match, RewriteBlocker]] = []
    closest: tuple[Pattern, PatternMismatch] | None = None
    for pattern in patterns:
        matcher = Matcher(pattern)
        for node in graph.all_nodes():
            for match in matcher.matches_at(node):
                why = refusal(match)
                if why is None:
                    fits.append(print_head(node))
                    break
                refused.append((match, why))
        if matcher.closest is not None and (closest is None or matcher.closest.reached > closest[1].reached):
            closest = pattern, matcher.closest
    if fits:
        return Explanation(
            name, tuple(fits), "\n".join([f"the rule '{name}' fits at", *(f"  {each}" for each in fits)])
        )
    if refused:
        text = _refused(name, *refused[0])
    elif closest is not None:
        text = _differs(name, *closest)
    else:
        kinds = " or ".join(dict.fromkeys(pattern.roots[0].node.kind for pattern in patterns))
        text = f"the rule '{name}' does not fit: the program has no {kinds}"
    return Explanation(name, (), text)


def _refused(name: str, match: Match, why: RewriteBlocker) -> str:
    lines = [f"the rule '{name}' fits at", *_place(match.node.range, print_head(match.node))]
    lines.append(f"but is not applied: {why.why}")
    if why.node is not None and why.node is not match.node:
        lines += _place(why.node.range, print_head(why.node))
    return "\n".join(lines)


def _differs(name: str, pattern: Pattern, mismatch: PatternMismatch) -> str:
    reached, total = mismatch.reached, len(pattern.nodes)
    nodes = f"{reached} of {total} {'node' if total == 1 else 'nodes'} {'fits' if reached == 1 else 'fit'}"
    lines = [f"the rule '{name}' does not fit. Where it comes closest, {nodes}; then the program has {mismatch.why}"]
    if mismatch.found is not None:
        lines += _place(place_of(mismatch.found), f"%{getattr(mismatch.found, 'name', '')}")
    if mismatch.wanted is not None and place_of(mismatch.wanted).is_known:
        lines.append(f"and the pattern '{pattern.name}' has")
        lines += _place(place_of(mismatch.wanted), "")
    return "\n".join(lines)


def _place(range: SourceRange, otherwise: str) -> list[str]:
    """Return the source line of a location as a list; if it is unknown, ``otherwise``, or an empty list if that is
    empty."""
    shown = range.highlight(0).rstrip("\n") if range.is_known else ""
    return [shown] if shown else [f"  {otherwise}"] if otherwise else []
