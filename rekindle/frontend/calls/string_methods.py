"""Arguments of methods of strings that the operators, which are TorchScript's, read in another way than Python.

An ``end`` of -1 is the end of the string to the operators, and -2 is before the last character; in Python -1 is before
the last character. A program compiled from Python passes an end that is not negative, which means the same in both.
Python's ``strip`` without characters strips all white space; that is what an operator does with its default, so that a
program which spells the default passes the same set of characters in another way. The default separator of the operator
``rsplit`` is a blank; in Python it is white space of any length::

    s.find(t, 0, end)          becomes      s.find(t, 0, max(len(s) + end, 0) if end < 0 else end)
    s.strip(chars)             becomes      s.strip(chars + chars)
    s.rsplit(None, n)          becomes      a call of the prelude
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rekindle.errors import SourceRange
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import INT, NONE, STRING, StringType
from rekindle.ops.python.strings import WHITE

_SEARCHES: Final = frozenset(
    f"aten::{name}" for name in ("find", "rfind", "index", "rindex", "count", "startswith", "endswith")
)
"""Kinds of operators that search a string; some of them search lists too."""
_STRIPS: Final = frozenset({"aten::strip", "aten::lstrip", "aten::rstrip"})
STRING_METHODS: Final = _SEARCHES | _STRIPS
"""Kinds for which :func:`as_string_method` converts arguments."""


def as_string_method(
    kind: str, itself: NamedValue | None, args: Sequence[NamedValue], graph: Graph, range: SourceRange
) -> Sequence[NamedValue]:
    """Return the arguments of a method of ``itself``, an operator in :data:`STRING_METHODS`, as the operator reads them
    so that it does what Python does, and emit their computation."""
    if itself is None or not isinstance(itself.type, StringType) or not args:
        return args
    *others, last = args
    if kind in _STRIPS and last.type == STRING:
        characters = last.materialize(graph)
        if characters.to_python(WHITE) != WHITE:
            return args
        return [replace(last, value=graph.insert("aten::add", [characters, characters], range=range))]
    if kind in _STRIPS or len(args) != 3 or last.type != INT:
        return args
    end = last.materialize(graph)
    known = end.to_python()
    if (isinstance(known, int) and known >= 0) or end.node.kind == "aten::len":
        return args
    return [*others, replace(last, value=_counted_from_the_start(itself.materialize(graph), end, graph, range))]


def limit_at_white_space(
    kind: str, args: Sequence[NamedValue], kwargs: Sequence[NamedValue]
) -> Sequence[NamedValue] | None:
    """Return the limit of a call of ``rsplit`` that splits at white space, in a sequence that is empty without a limit;
    None for a call with a separator, and for other kinds."""
    if kind != "aten::rsplit":
        return None
    named = {item.name: item for item in kwargs}
    given = dict(zip(("sep", "maxsplit"), args, strict=False)) | named
    separator = given.pop("sep", None) or given.pop("separator", None)
    if (separator is not None and separator.type != NONE) or len(given) > 1 or not given.keys() <= {"maxsplit", "max"}:
        return None
    return [replace(item, name=None) for item in given.values()]


def _counted_from_the_start(text: Value, end: Value, graph: Graph, range: SourceRange) -> Value:
    is_negative = graph.insert("aten::lt", [end, 0], range=range)
    node = graph.insert_node(graph.create("prim::If", [is_negative], outputs=0, range=range))
    with graph.inserting_at_end(node.add_block()):
        length = graph.insert("aten::len", [text], range=range)
        position = graph.insert("aten::add", [length, end], range=range)
        node.blocks[0].add_output(graph.insert("prim::max", [position, 0], range=range))
    node.add_block().add_output(end)
    return node.add_output(INT)
