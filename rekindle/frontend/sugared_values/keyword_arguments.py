"""The dict ``kwargs`` of a function with ``**kwargs``, and other dicts whose keys are known at compile time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from rekindle.errors import Cause, SourceRange, TypeMismatchError, UndefinedNameError, UnsupportedError
from rekindle.frontend.sugared_values.base import FlattenedValue, Keywords, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.runtime_dispatch import RuntimeDispatch
from rekindle.frontend.sugared_values.values import SimpleValue, SugaredTuple, parts_of_all
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import STRING, DictType, ListType, unify_all, unshaped
from rekindle.syntax.views import DictLiteral, Expr, Lambda, Select, StringLiteral, Var


class KeywordArguments(SugaredValue):
    """A dict with keys known at compile time, whose values may have different types, such as ``**kwargs``."""

    description = "a dict of keyword arguments"
    is_passed_sugared = True
    keys_are_known = True

    def __init__(self, items: Keywords) -> None:
        self.items = dict(items)

    def contains(self, key: object) -> bool:
        return key in self.items

    def emit_contains(self, key: Value, range: SourceRange, graph: Graph) -> Value | None:
        if key.type != STRING:
            return None
        names = [graph.insert_constant(name, range=range) for name in self.items]
        known = graph.create("prim::ListConstruct", names, types=[ListType(STRING)], range=range)
        return graph.insert("aten::__contains__", [graph.insert_node(known).output, key], range=range)

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        values = [value.as_value(range, graph) for value in self.items.values()]
        common = unify_all(unshaped(value.type) for value in values)
        if common is None:
            what = "is empty" if not values else "holds values of different types"
            raise UnsupportedError(f"{self.description} that {what} cannot be used as a value", range)
        keys = [graph.insert_constant(key, range=range) for key in self.items]
        inputs = [item for pair in zip(keys, values, strict=True) for item in pair]
        type = DictType(STRING, common)
        return graph.insert_node(graph.create("prim::DictConstruct", inputs, types=[type], range=range)).output

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        keys = tuple(self.items)
        return parts_of_all(
            KeywordArguments,
            range,
            graph,
            list(self.items.values()),
            lambda values: KeywordArguments(dict(zip(keys, values, strict=True))),
            keys,
        )

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        method = _METHODS.get(name)
        if method is None:
            raise UndefinedNameError(f"{self.description} has no attribute '{name}'", range)
        return _Method(self, name, method)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: object = None) -> SugaredValue:
        if index.node.kind != "prim::Constant" and index.type == STRING and self.items:
            makes = [partial(_same, value) for value in self.items.values()]
            return RuntimeDispatch(self.description, index, list(self.items), makes)
        key = _constant_key(index, range)
        if key not in self.items:
            raise TypeMismatchError(f"there is no keyword argument '{key}'", range)
        return self.items[key]

    def keys(self, range: SourceRange, graph: Graph) -> SugaredValue:
        return SugaredTuple([SimpleValue(graph.insert_constant(key, range=range)) for key in self.items])

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        return self.keys(range, graph).as_tuple(range, graph)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        return self.keys(range, graph)

    def length(self, range: SourceRange, graph: Graph) -> Value:
        return graph.insert_constant(len(self.items), range=range)


def _same(value: SugaredValue) -> SugaredValue:
    return value


class StaticDict(KeywordArguments):
    """A dict literal whose values are not values of the graph: functions, submodules."""

    description = "a dict of functions"


def table_of_functions(literal: DictLiteral, emit: Callable[[Expr], SugaredValue]) -> SugaredValue | None:
    """Return the value of a dict literal of functions, such as ``{"relu": F.relu, "none": lambda x: x}``, which are
    known at compile time. Return None for an empty literal, if the keys are not all string literals, or if the first
    value is not a lambda, a name or an attribute, or is a value of the graph."""
    if not literal.keys or any(key.tree.kind != StringLiteral.KIND for key in literal.keys):
        return None
    if literal.values[0].tree.kind not in (Lambda.KIND, Select.KIND, Var.KIND):
        return None
    first = emit(literal.values[0])
    if not first.is_passed_sugared:
        return None
    keys = [StringLiteral(key.tree).text for key in literal.keys]
    others = [emit(value) for value in literal.values[1:]]
    return StaticDict(dict(zip(keys, [first, *others], strict=True)))


def _constant_key(value: Value, range: SourceRange) -> str:
    found = value.node.attributes.get("value") if value.node.kind == "prim::Constant" else None
    if not isinstance(found, str):
        raise UnsupportedError(
            "the key of a keyword argument must be a string in the source", range, cause=Cause.DYNAMIC_BEHAVIOUR
        )
    return found


class _Method(SugaredFunction):
    """A method of a dict of keyword arguments, such as ``kwargs.get``."""

    def __init__(self, owner: KeywordArguments, name: str, method: _Emit) -> None:
        self.owner = owner
        self.name = name
        self.method = method

    @property
    def description(self) -> str:
        return f"the method '{self.name}' of keyword arguments"

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        if kwargs:
            raise TypeMismatchError(f"{self.description} takes no keyword arguments", range)
        return self.method(self.owner, range, graph, list(args))


_Emit = Callable[[KeywordArguments, SourceRange, Graph, list[SugaredValue]], SugaredValue]


def _keys(owner: KeywordArguments, range: SourceRange, graph: Graph, args: list[SugaredValue]) -> SugaredValue:
    return owner.keys(range, graph)


def _values(owner: KeywordArguments, range: SourceRange, graph: Graph, args: list[SugaredValue]) -> SugaredValue:
    return SugaredTuple(list(owner.items.values()))


def _items(owner: KeywordArguments, range: SourceRange, graph: Graph, args: list[SugaredValue]) -> SugaredValue:
    pairs = zip(owner.keys(range, graph).as_tuple(range, graph), owner.items.values(), strict=True)
    return SugaredTuple([SugaredTuple(pair) for pair in pairs])


def _copy(owner: KeywordArguments, range: SourceRange, graph: Graph, args: list[SugaredValue]) -> SugaredValue:
    return KeywordArguments(owner.items)


def _get(owner: KeywordArguments, range: SourceRange, graph: Graph, args: list[SugaredValue]) -> SugaredValue:
    if not 1 <= len(args) <= 2:
        raise TypeMismatchError(f"get takes 1 to 2 arguments, got {len(args)}", range)
    key = _constant_key(args[0].as_value(range, graph), range)
    if key in owner.items:
        return owner.items[key]
    return args[1] if len(args) == 2 else SimpleValue(graph.insert_constant(None, range=range))


_METHODS: Final[dict[str, _Emit]] = {"keys": _keys, "values": _values, "items": _items, "copy": _copy, "get": _get}
