"""Slice objects: ``rows = slice(1, n)``, for ``x[rows]`` and ``x[rows, 0]``.

A slice exists only while compiling; its bounds are values of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, FlattenedValue, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import INT, NONE, optional

PARTS: Final = ("start", "stop", "step")


class SliceValue(SugaredValue):
    """A slice object. ``bounds`` are its bounds by name, without those that are None."""

    def __init__(self, bounds: dict[str, Value]) -> None:
        self.bounds = bounds

    @property
    def description(self) -> str:
        return "a slice"

    @property
    def is_passed_sugared(self) -> bool:
        return True

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError(
            "a slice is not a value that a program can keep", range, hint="use it as an index: x[slice(1, 2)]"
        )

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name not in PARTS:
            return super().attribute(range, graph, name)
        bound = self.bounds.get(name)
        return SimpleValue(graph.insert_constant(None, range=range) if bound is None else bound)

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        names = tuple(self.bounds)

        def unflatten(values: Sequence[Value], emitter: object) -> SugaredValue:
            return SliceValue(dict(zip(names, values, strict=True)))

        return FlattenedValue((SliceValue, names), tuple(self.bounds.values()), unflatten)


class SliceClass(StaticValue):
    """Python's ``slice``."""

    @property
    def description(self) -> str:
        return "'slice'"

    def call(self, call: CallSite) -> SugaredValue:
        if call.kwargs or not 1 <= len(call.args) <= len(PARTS):
            raise TypeMismatchError("slice takes one to three arguments, and none by name", call.range)
        names = PARTS[1:2] if len(call.args) == 1 else PARTS
        bounds: dict[str, Value] = {}
        for name, given in zip(names, call.args, strict=False):
            bound = given.materialize(call.graph)
            if not bound.type.is_subtype_of(optional(INT)):
                raise TypeMismatchError(
                    f"the {name} of a slice must be an int, got {bound.type.annotation}", call.range
                )
            if bound.type != NONE:
                bounds[name] = bound
        return SliceValue(bounds)


def constant_slice(obj: slice, range: SourceRange, graph: Graph) -> SliceValue | None:
    """Return a Python slice as a sugared value, and insert its bounds as constants; None if a bound is neither an int
    nor None."""
    bounds = {name: getattr(obj, name) for name in PARTS if getattr(obj, name) is not None}
    if not all(type(bound) is int for bound in bounds.values()):
        return None
    return SliceValue({name: graph.insert_constant(bound, range=range) for name, bound in bounds.items()})
