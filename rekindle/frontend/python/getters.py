"""``operator.itemgetter``, ``attrgetter`` and ``methodcaller``, and ``functools.cmp_to_key``: functions with captured
arguments."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.values import SimpleValue, SugaredTuple
from rekindle.ir.graph import Graph
from rekindle.ir.types import TupleType


class Getter(SugaredFunction, StaticValue):
    """``operator.itemgetter`` or ``attrgetter`` with its arguments: a function that reads items or attributes of its
    argument."""

    def __init__(self, name: str, keys: Sequence[object]) -> None:
        self.name = name
        self.keys = tuple(keys)

    @property
    def description(self) -> str:
        return f"operator.{self.name}"

    @property
    def identity(self) -> Hashable:
        return self.name, self.keys

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        if len(args) != 1 or kwargs:
            raise TypeMismatchError(f"what {self.description} makes takes one argument", range)
        take = _item if self.name == "itemgetter" else _attribute
        found = [take(args[0], key, range, graph) for key in self.keys]
        return found[0] if len(found) == 1 else SugaredTuple(found)


def _item(value: SugaredValue, key: object, range: SourceRange, graph: Graph) -> SugaredValue:
    if isinstance(value, SimpleValue) and isinstance(value.value.type, TupleType) and isinstance(key, int):
        elements = value.as_tuple(range, graph)
        if not -len(elements) <= key < len(elements):
            raise TypeMismatchError(f"index {key} is out of range for {len(elements)} elements", range)
        return elements[key]
    return value.item(range, graph, graph.insert_constant(key, range=range))


def _attribute(value: SugaredValue, name: object, range: SourceRange, graph: Graph) -> SugaredValue:
    for part in str(name).split("."):
        value = value.attribute(range, graph, part)
    return value


class MethodCaller(Getter):
    """``operator.methodcaller(name, *args)``: a function that calls a method of its argument."""

    def __init__(self, method: str, args: Sequence[SugaredValue], kwargs: Keywords) -> None:
        super().__init__("methodcaller", (method,))
        self.args = list(args)
        self.kwargs = dict(kwargs)

    @property
    def identity(self) -> Hashable:
        return self

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        method = super().call_with(range, graph, args, kwargs, targets)
        return method.call_with(range, graph, self.args, self.kwargs, targets)


class ComparedBy(StaticValue):
    """``functools.cmp_to_key(f)``. It can only be the ``key`` of a sort."""

    description = "functools.cmp_to_key(…)"

    def __init__(self, function: SugaredValue) -> None:
        self.function = function

    def call(self, call: CallSite) -> SugaredValue:
        raise UnsupportedError(f"{self.description} can only be the key of 'sorted' or 'sort' here", call.range)
