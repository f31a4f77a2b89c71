"""Report of the loops over examples in a batched program, read from the program itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rekindle.errors import SourceRange
from rekindle.ir.graph import Graph

EXAMPLES_OF: Final = "examples_of"
REASON: Final = "reason"
"""Attributes of a loop over the examples: which kind of node it computes one by one, and why."""


@dataclass(slots=True, frozen=True)
class LoopFallback:
    """A part of a program that is computed example by example: the kind of node, its source location, and the
    reason."""

    kind: str
    range: SourceRange
    reason: str


def loops_over_examples(graph: Graph) -> list[LoopFallback]:
    """Return the operators that ``graph`` computes in loops over examples, including nested batches, each once."""
    found: list[LoopFallback] = []
    for node in graph.all_nodes():
        if node.kind == "prim::Loop" and EXAMPLES_OF in node.attributes:
            looped = LoopFallback(node.get_string(EXAMPLES_OF), node.range, node.get_string(REASON))
            if looped not in found:
                found.append(looped)
    return found
