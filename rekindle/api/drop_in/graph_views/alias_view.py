"""A view of an alias database."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.ir.graph import Value


class AliasDbView:
    """What ``graph.alias_db()`` gives. It knows the graph as it is then: after a change, ask again."""

    __slots__ = ("ir",)

    def __init__(self, alias_db: AliasDb) -> None:
        self.ir = alias_db
        """The database that this is a view of."""

    def may_alias(self, a: Any, b: Any) -> bool:
        return self.ir.may_alias(_values(a), _values(b))

    def may_contain_alias(self, a: Any, b: Any) -> bool:
        return self.ir.may_contain_alias(_values(a), _values(b))

    def has_writers(self, subject: Any) -> bool:
        """Whether some node may write to a value, or to what a node takes and makes."""
        return self.ir.has_writers(subject.ir)

    def move_after_topologically_valid(self, node: Any, place: Any) -> bool:
        return self.ir.move_after_topologically_valid(node.ir, place.ir)

    def move_before_topologically_valid(self, node: Any, place: Any) -> bool:
        return self.ir.move_before_topologically_valid(node.ir, place.ir)

    def __str__(self) -> str:
        """The pairs of values that may alias, one a line, and the values that are written to."""
        values = [value for value in self.ir.graph.block.all_values() if self.ir.memory(value)]
        pairs = [
            f"%{a.name} may alias %{b.name}\n"
            for index, a in enumerate(values)
            for b in values[index + 1 :]
            if self.ir.may_alias(a, b)
        ]
        return "".join(pairs + [f"%{value.name} is written to\n" for value in values if self.ir.has_writers(value)])

    def dump(self) -> None:
        sys.stdout.write(str(self))


def _values(given: Any) -> Value | Iterable[Value]:
    if isinstance(given, (list, tuple)):
        return [each.ir for each in given]
    value: Value = given.ir
    return value
