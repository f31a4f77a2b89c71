"""Functions with ``functools.lru_cache``: a program calls the function itself, without the cache.

That is unobservable where arguments and results are immutable, and the function has no effects. For other functions the
cache shows: a second call returns the same tensor, prints nothing, and draws no random number. These are rejected. A
cache does not distinguish 1, 1.0 and True, or 0.0 and -0.0, and programs do.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any, Final

from rekindle.analysis.effects import has_side_effects, is_nondeterministic
from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.sugared_values.base import Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import FunctionType, TupleType, Type, UnionBase, union_members

CACHED: Final = type(functools.lru_cache(lambda: None))
"""The class of functions with a cache."""

_IMMUTABLE: Final = frozenset(
    f"{name}Type" for name in ("Int", "Float", "Bool", "Complex", "String", "None", "Number", "Device", "Enum")
)
"""Kinds of types whose values are immutable."""


class CachedFunction(SugaredFunction, StaticValue):
    """A function with ``functools.lru_cache``, or ``functools.cache``; ``function`` is the function within."""

    def __init__(self, wrapper: Any, function: SugaredValue) -> None:
        self.wrapper = wrapper
        self.function = function

    @property
    def description(self) -> str:
        return f"the cached function '{self.wrapper.__name__}'"

    @property
    def identity(self) -> Hashable:
        return id(self.wrapper)

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        if self.wrapper in _IN_PROGRESS:
            raise self._refuse("it calls itself, which without the cache may take very long", range)
        for item in (*args, *kwargs.values()):
            if not isinstance(item, SimpleValue) or not _is_immutable(item.value.type):
                raise self._refuse("an argument is mutable", range)
        before = graph.insert_point.prev
        _IN_PROGRESS.add(self.wrapper)
        try:
            found = self.function.call_with(range, graph, args, kwargs, targets)
        finally:
            _IN_PROGRESS.discard(self.wrapper)
        result = found.as_value(range, graph)
        if not _is_immutable(result.type):
            raise self._refuse(f"its result, a {result.type.annotation}, is mutable, and calls share it", range)
        node = before.next
        while node is not graph.insert_point:
            if _has_effects(node, set()):
                raise self._refuse("it does more than compute a result", range)
            node = node.next
        return found

    def _refuse(self, reason: str, range: SourceRange) -> UnsupportedError:
        return UnsupportedError(
            f"{self.description} cannot be compiled without its cache: {reason}",
            range,
            hint="compute it before the program is compiled, or call it in a function marked with @ignore",
        )


_IN_PROGRESS: Final[set[Any]] = set()
"""The functions whose bodies are being compiled."""


def _is_immutable(type: Type) -> bool:
    if isinstance(type, TupleType):
        return all(map(_is_immutable, type.elements))
    if isinstance(type, UnionBase):
        return all(map(_is_immutable, union_members(type)))
    return type.kind in _IMMUTABLE


def _has_effects(node: Node, seen: set[GraphFunction]) -> bool:
    """Return whether a node, the nodes in its blocks and the functions that it calls have effects, or results that the
    arguments do not determine. Errors are not effects: Python does not cache them."""
    if node.kind == "prim::CallFunction":
        callee = node.inputs[0].type
        assert isinstance(callee, FunctionType)
        if callee.function in seen:
            return False
        seen.add(callee.function)
        return any(_has_effects(inner, seen) for inner in callee.function.graph.all_nodes())
    if node.kind == "prim::RaiseException":
        return False
    if node.kind in ("prim::If", "prim::Loop"):
        return any(_has_effects(inner, seen) for block in node.blocks for inner in block.nodes)
    return has_side_effects(node) or is_nondeterministic(node)
