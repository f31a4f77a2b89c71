"""The arguments of a call that is being matched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from rekindle.errors import UNKNOWN_RANGE, SourceRange
from rekindle.ir.attributes import infer_type
from rekindle.ir.types.base import NONE, Type

if TYPE_CHECKING:
    from rekindle.ir.graph import Graph, Value

InputBuilder: TypeAlias = "Callable[[Graph, SourceRange], Value]"
"""Makes an input of a node at the graph's insertion point."""


@dataclass(slots=True)
class NamedValue:
    """An argument of a call: a value of the graph, or a Python constant that is inserted when it is needed.
    ``declared`` is the type of a constant whose class does not determine it, such as a default that is an enum."""

    value: Value | None = None
    constant: object = None
    range: SourceRange = UNKNOWN_RANGE
    name: str | None = None
    declared: Type | None = None

    @property
    def type(self) -> Type:
        if self.value is not None:
            return self.value.type
        return self.declared or infer_type(self.constant) or NONE

    def materialize(self, graph: Graph) -> Value:
        if self.value is None:
            self.value = graph.insert_constant(self.constant, self.declared, self.range)
        return self.value
