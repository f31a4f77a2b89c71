"""The prelude of Python's library, written as programs: each function is compiled for the arguments of its calls.

They behave as Python's functions do, except that the operators they use may raise errors of other classes.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

from rekindle.errors import LIBRARY, InternalError, Source, SourceRange
from rekindle.frontend.calls.generic import GenericFunction
from rekindle.frontend.python.combinations import made_of_several
from rekindle.frontend.signatures import literal_value
from rekindle.frontend.sugared_values.base import EmptyResolver, Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue
from rekindle.ir.graph import Graph
from rekindle.ops.python.lists import NOT_IN_LIST
from rekindle.ops.python.scalars import EXTREMUM_OF_NOTHING
from rekindle.syntax.parser import parse_module
from rekindle.syntax.views import Def

PRELUDE: Final = files("rekindle.frontend.prelude")
"""The folder with the files of the prelude."""

_FILES: Final = ("containers", "iteration", "ordered_lists", "numbers", "operators", "indexing")

_OPERATORS: Final = {
    "put": "aten::_set_item",
    "drop": "aten::Delete",
    "members": "aten::keys",
    "removed": "aten::pop",
    "put_at": "aten::insert",
    "isinf": "aten::isinf",
    "isnan": "aten::isnan",
    "phase": "aten::angle",
    "norm": "python::norm",
    "nextafter": "python::nextafter",
    "exact_sum": "python::fsum",
    "float_power": "aten::pow",
    "scalar_tensor": "aten::scalar_tensor",
    "int_of_tensor": "aten::IntImplicit",
    "indexed": "aten::index",
    "put_indexed": "aten::index_put_",
}
"""Operators by their names in the prelude."""

_TEXTS: Final = {
    "MIN_OF_NOTHING": EXTREMUM_OF_NOTHING["min"],
    "MAX_OF_NOTHING": EXTREMUM_OF_NOTHING["max"],
    "NOT_IN_LIST": NOT_IN_LIST,
}
"""Constant strings by their names in the prelude."""


@lru_cache(maxsize=1)
def _sources() -> dict[str, str]:
    """Return the source of each prelude function by name, read when first needed."""
    found: dict[str, str] = {}
    for file in _FILES:
        text = PRELUDE.joinpath(f"{file}.py").read_text(encoding="utf-8")
        for part in re.split(r"^(?=def )", text, flags=re.MULTILINE):
            name = re.match(r"def (\w+)", part)
            if name is not None:
                found[name[1]] = part.rstrip() + "\n"
    return found


@cache
def _function(name: str) -> GenericFunction:
    source = _sources().get(name) or made_of_several(name)
    if source is None:
        raise InternalError(f"the library has no function '{name}'")
    (statement,) = parse_module(Source(source, LIBRARY))
    return GenericFunction(name, Def(statement.tree), _LibraryResolver(), library_name=name)


def library_function(name: str) -> LibraryFunction:
    return LibraryFunction(name)


class LibraryFunction(SugaredFunction, StaticValue):
    """A function of :mod:`rekindle.frontend.prelude`."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def function(self) -> GenericFunction:
        return _function(self.name)

    @property
    def description(self) -> str:
        return f"the function '{self.name}'"

    @property
    def identity(self) -> Hashable:
        return self.name

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        defaults: dict[str, SugaredValue] = {}
        for param in self.function.definition.params:
            if param.default is not None:
                constant = graph.insert_constant(literal_value(param.default), range=range)
                defaults[param.name.name] = SimpleValue(constant)
        bound = self.function.bind(range, graph, args, kwargs, defaults)
        return self.function.call_compiled(range, graph, bound)


class _LibraryResolver(EmptyResolver):
    """The resolver of names in the sources of the prelude, which may use each other."""

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        if name in _OPERATORS:
            return BuiltinFunction(_OPERATORS[name])
        if name in _TEXTS:
            return SimpleValue(graph.insert_constant(_TEXTS[name], range=range))
        return library_function(name) if name in _sources() else None
