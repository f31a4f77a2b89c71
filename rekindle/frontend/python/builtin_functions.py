"""Python's builtins as values: ``map(sum, rows)``, ``f = round``.

A call by name, ``round(x)``, is emitted by :mod:`rekindle.frontend.python.builtins`. A call of the value is a call of a
prelude function whose body is the call by name, so that both have the same result. A generator that is passed to the
value is a list, though: ``f = any; f(1 // n > 0 for n in ns)`` computes all items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.python.library import library_function
from rekindle.frontend.sugared_values import special_forms
from rekindle.frontend.sugared_values.base import Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.special_forms import GLOBALS
from rekindle.ir.graph import Graph

_NAMES: Final = {
    id(GLOBALS[name]): name for name in ("all", "any", "divmod", "max", "min", "pow", "round", "sorted", "sum")
}
"""Builtins whose calls by name are more than one operator, by the identity of their sugared values."""


class BuiltinAsFunction(SugaredFunction, StaticValue):
    """A builtin of Python that is called as a value, under another name than its own."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def description(self) -> str:
        return f"the function '{self.name}'"

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        called = library_function("_".join(["builtin", self.name, str(len(args)), *kwargs]))
        return called.call_with(range, graph, args, kwargs, targets)


def as_function(value: SugaredValue, graph: Graph) -> SugaredValue:
    """Return ``value``, which is about to be called and was not looked up by its builtin name, as a function with the
    semantics of Python's builtin if it is one; ``value`` itself otherwise, and in programs of TorchScript."""
    name = _NAMES.get(id(value)) if graph.follows_python else None
    return value if name is None else BuiltinAsFunction(name)


special_forms.as_function = as_function
