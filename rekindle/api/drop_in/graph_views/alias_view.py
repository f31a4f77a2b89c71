"""View of an alias database: ``torch._C.AliasDb``'s methods on an :class:`AliasDb`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.errors import GraphError
from rekindle.ir.graph import Graph, Value
from rekindle.passes import inline


class AliasDbView:
    """The result of ``graph.alias_db()``: the aliases of the graph as it was then. It is not updated when the graph
    changes."""

    __slots__ = ("_inlined", "ir")

    def __init__(self, alias_db: AliasDb, inlined: Mapping[Value, Value] | None = None) -> None:
        self.ir = alias_db
        """The database that this is a view of."""
        self._inlined = inlined

    @classmethod
    def descending(cls, graph: Graph, is_frozen: bool) -> AliasDbView:
        """Return the view of an inlined copy of ``graph``, so that the effects of called functions are known.

        Queries accept only values of the outermost block of ``graph``, and raise GraphError for others. Nodes cannot be
        moved through this view.
        """
        copied = Graph()
        copies = copied.block.clone_from(graph.block, _no_value)
        # A node that is in no block, and uses all: inlining replaces its inputs as it does others.
        keep = copied.create("prim::Return", copies.values())
        inline(copied)
        inlined = dict(zip(copies, list(keep.inputs), strict=True))
        keep.destroy()
        return cls(AliasDb(copied, is_frozen=is_frozen), inlined)

    def may_alias(self, a: Any, b: Any) -> bool:
        return self.ir.may_alias(self._values(a), self._values(b))

    def may_contain_alias(self, a: Any, b: Any) -> bool:
        return self.ir.may_contain_alias(self._values(a), self._values(b))

    def has_writers(self, subject: Any) -> bool:
        """Return whether some node may write to a value; for a node: to an input or output, or, unless the view
        descends into calls, to other memory that it reads.

        Raises:
            GraphError: the view descends into calls, and a value is not of the outermost block.
        """
        if self._inlined is None:
            return self.ir.has_writers(subject.ir)
        if isinstance(subject.ir, Value):
            return self.ir.has_writers(self._value(subject.ir))
        return any(self.ir.has_writers(self._value(each)) for each in (*subject.ir.inputs, *subject.ir.outputs))

    def move_after_topologically_valid(self, node: Any, place: Any) -> bool:
        self._check_own_graph()
        return self.ir.move_after_topologically_valid(node.ir, place.ir)

    def move_before_topologically_valid(self, node: Any, place: Any) -> bool:
        self._check_own_graph()
        return self.ir.move_before_topologically_valid(node.ir, place.ir)

    def __str__(self) -> str:
        """Return a line for each pair of values that may alias, for each value in the wildcard set, which may alias
        values outside of the graph, and for each value that is written to."""
        lines = [f"%{a.name} may alias %{b.name}\n" for a, b in self._pairs()]
        for value in self._with_memory():
            if self.ir.memory(value) & self.ir.wildcard_memory:
                lines.append(f"%{value.name} is in the WILDCARD set\n")
            if self.ir.has_writers(value):
                lines.append(f"%{value.name} is written to\n")
        return "".join(lines)

    def to_graphviz_str(self) -> str:
        """Return a graph in the DOT language, whose edges connect values that may alias."""
        nodes = [f'  "%{value.name}"\n' for value in self._with_memory()]
        edges = [f'  "%{a.name}" -> "%{b.name}" [dir=none]\n' for a, b in self._pairs()]
        return f"digraph alias_db {{\n{''.join(nodes + edges)}}}\n"

    def _with_memory(self) -> list[Value]:
        return [value for value in self.ir.graph.block.all_values() if self.ir.memory(value)]

    def _pairs(self) -> list[tuple[Value, Value]]:
        return [(a, b) for a, b in combinations(self._with_memory(), 2) if self.ir.may_alias(a, b)]

    def dump(self) -> None:
        sys.stdout.write(str(self))

    def _values(self, given: Any) -> Value | list[Value]:
        if isinstance(given, (list, tuple)):
            return [self._value(each.ir) for each in given]
        return self._value(given.ir)

    def _value(self, value: Value) -> Value:
        if self._inlined is None:
            return value
        if value not in self._inlined:
            raise GraphError(f"%{value.name} is not a value of the outermost block: ask without descend_function_calls")
        return self._inlined[value]

    def _check_own_graph(self) -> None:
        if self._inlined is not None:
            raise GraphError("an alias database that descends into calls cannot move nodes")


def _no_value(value: Value) -> Value:
    raise GraphError(f"%{value.name} is used outside of its scope")
