"""Searches in a part of a string: ``s.find(t, start, end)`` and its like.

The operators are TorchScript's: an ``end`` of -1 is the end of the string, -2 is before the last character. In Python
-1 is before the last character. A program compiled from Python passes an end that is not negative, which means the same
in both::

    s.find(t, 0, end)      becomes      s.find(t, 0, max(len(s) + end, 0) if end < 0 else end)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rekindle.errors import SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import INT, StringType

SEARCHES: Final = frozenset(
    f"aten::{name}" for name in ("find", "rfind", "index", "rindex", "count", "startswith", "endswith")
)
"""Kinds of operators that search a string; some of them search lists too."""


def with_end_of_python(
    itself: NamedValue | None, args: Sequence[NamedValue], graph: Graph, range: SourceRange
) -> Sequence[NamedValue]:
    """Return the arguments of a method of ``itself``, an operator in :data:`SEARCHES`, with the end that Python means,
    and emit its computation."""
    if itself is None or not isinstance(itself.type, StringType) or len(args) != 3:
        return args
    *others, last = args
    if last.type != INT:
        return args
    end = last.materialize(graph)
    known = end.to_python()
    if isinstance(known, int) and known >= 0:
        return args
    return [*others, replace(last, value=_counted_from_the_start(itself.materialize(graph), end, graph, range))]


def _counted_from_the_start(text: Value, end: Value, graph: Graph, range: SourceRange) -> Value:
    is_negative = graph.insert("aten::lt", [end, 0], range=range)
    node = graph.insert_node(graph.create("prim::If", [is_negative], outputs=0, range=range))
    with graph.inserting_at_end(node.add_block()):
        length = graph.insert("aten::len", [text], range=range)
        position = graph.insert("aten::add", [length, end], range=range)
        node.blocks[0].add_output(graph.insert("prim::max", [position, 0], range=range))
    node.add_block().add_output(end)
    return node.add_output(INT)
