"""Sugared values: what names and expressions can mean while a program is compiled.

Most are values of the graph (:class:`SimpleValue`). Others exist in the compiler only: a module, a builtin function,
``range(n)``. The emitter
asks a sugared value to take an attribute, to be called, to be iterated; each answers by emitting nodes, or refuses
with an
error at the place of the request.

The files beside this one hold the kinds: :mod:`values` (of the graph), :mod:`builtins_` (operators, casts, special
forms),
:mod:`iterables`. Those that know Python objects are in :mod:`rekindle.scripting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from rekindle.errors import SourceRange, UndefinedNameError, UnsupportedError
from rekindle.ir.graph import Graph, Value
from rekindle.ir.matching import CallArgument
from rekindle.ir.types import Type


class SugaredValue:
    """What an expression means to the compiler. Every request that a kind does not answer is refused by name."""

    @property
    def description(self) -> str:
        """What the value is, for messages: ``a module``, ``the function 'f'``."""
        return type(self).__name__

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        """The value of the graph that this stands for."""
        raise UnsupportedError(f"{self.description} cannot be used as a value", range)

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        """``self.name``"""
        raise UndefinedNameError(f"{self.description} has no attribute '{name}'", range)

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        raise UnsupportedError(f"hasattr cannot be asked of {self.description}", range)

    def set_attribute(self, range: SourceRange, graph: Graph, name: str, value: Value) -> None:
        """``self.name = value``"""
        raise UnsupportedError(f"an attribute of {self.description} cannot be assigned", range)

    def attribute_type(self, name: str) -> Type | None:
        """The type of the slot ``name``, which types literals that are assigned to it."""
        return None

    def declare_attribute(self, range: SourceRange, name: str, type: Type) -> None:
        """``self.name: type = …`` declares the slot, where it can be declared at all."""

    def as_type(self, range: SourceRange) -> Type | None:
        """The type that this names, where it names one."""
        return None

    def python_class(self, range: SourceRange) -> type | None:
        """The Python class that this names, where it names one."""
        return None

    @property
    def class_of_module(self) -> type | None:
        """The Python class of the module that this is, where it is one whose class is known while compiling."""
        return None

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        """``self(args, kwargs)``; ``targets`` is the number of names that the result is unpacked to, 1 where it is
        not."""
        raise UnsupportedError(f"{self.description} cannot be called", range)

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        """The elements, for unpacking to ``size_hint`` targets or for a loop that is unrolled."""
        raise UnsupportedError(f"{self.description} cannot be unpacked", range)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        """What a loop over this goes over: something with a length and items, or with a static length."""
        raise UnsupportedError(f"{self.description} cannot be iterated over", range)

    @property
    def static_length(self) -> int | None:
        """The number of elements where the compiler knows it and the loop over them is to be unrolled."""
        return None

    @property
    def must_unroll(self) -> bool:
        """Whether a loop over this is unrolled: the elements are of different types."""
        return False

    def length(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError(f"{self.description} has no length", range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        """``self[index]``"""
        raise UnsupportedError(f"{self.description} cannot be indexed", range)


GIVEN_UP: Final = SugaredValue()
"""What a name means after the statement that assigns it could not be compiled. Whoever asks for it is given up too."""


class Resolver(Protocol):
    """Where names are looked up that no assignment in the program defines: Python's globals and closures, or an
    archive."""

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        """What ``name`` means, or None."""

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        """The type that ``name`` (it may be dotted) means, or None."""


class EmptyResolver:
    """Knows no names."""

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        return None

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return None


class ChainResolver:
    """Asks several resolvers in turn."""

    def __init__(self, *resolvers: Resolver) -> None:
        self.resolvers = resolvers

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        for resolver in self.resolvers:
            found = resolver.resolve_value(name, range, graph)
            if found is not None:
                return found
        return None

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        for resolver in self.resolvers:
            found = resolver.resolve_type(name, range)
            if found is not None:
                return found
        return None
