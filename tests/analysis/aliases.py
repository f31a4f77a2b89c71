"""Reading graphs, and asking about their values by name."""

from __future__ import annotations

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.text.parser import parse_graph


class Named:
    """An :class:`AliasDb` that is asked with names of values."""

    def __init__(self, text: str | Graph, *, is_frozen: bool = False) -> None:
        self.graph = text if isinstance(text, Graph) else parse_graph(text.lstrip())
        self.db = AliasDb(self.graph, is_frozen=is_frozen)

    def value(self, name: str) -> Value:
        found = self.graph.find_value(name)
        if found is None:
            found = next((v for n in self.graph.all_nodes() for v in n.outputs if v.name == name), None)
        assert found is not None, f"there is no %{name}"
        return found

    def node(self, name: str) -> Node:
        """The node that makes %name; else the only one of that kind."""
        if "::" in name:
            (found,) = self.graph.find_nodes(name)
            return found
        return self.value(name).node

    def alias(self, a: str, b: str) -> bool:
        return self.db.may_alias(self.value(a), self.value(b))

    def contain(self, a: str, b: str) -> bool:
        return self.db.may_contain_alias(self.value(a), self.value(b))

    def relation(self, a: str, b: str) -> str:
        """``same`` memory, memory of one ``in`` the other (or in both), or ``apart``."""
        assert self.alias(a, b) == self.alias(b, a)
        assert self.contain(a, b) == self.contain(b, a)
        if self.alias(a, b):
            assert self.contain(a, b)
            return "same"
        return "in" if self.contain(a, b) else "apart"

    def written(self) -> list[str]:
        """The names of all values that have writers."""
        values = [*self.graph.inputs, *(v for n in self.graph.all_nodes() for v in n.outputs)]
        return sorted(v.name for v in values if self.db.has_writers(v))

    def writers_of(self, name: str) -> list[str]:
        """The kinds of the nodes that may write to %name or to something in it, blocks aside."""
        value = self.value(name)
        return [n.kind for n in self.graph.all_nodes() if not n.blocks and self.db.writes_to_alias(n, [value])]

    def order(self) -> list[str]:
        """The names of what the nodes of the top block make, or their kinds, in order."""
        return [n.outputs[0].name if n.outputs else n.kind for n in self.graph.nodes]
