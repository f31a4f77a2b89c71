"""Sugared values: compile-time values of names and expressions.

Most are values of the graph (:class:`SimpleValue`). Others exist in the compiler only: a module, a builtin function,
``range(n)``. The emitter requests an attribute, a call or an iteration of a sugared value. The sugared value emits
nodes, or raises an error with the location of the request.

Modules beside this one define the kinds: :mod:`values` (of the graph), :mod:`special_forms` (operators, casts, special
forms), :mod:`iterables`, and more. Those for Python objects are in :mod:`rekindle.scripting`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from rekindle.errors import SourceRange, UndefinedNameError, UnsupportedError
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import Type
from rekindle.syntax.views import LocalClass, LocalImport

Keywords: TypeAlias = "Mapping[str, SugaredValue]"


@dataclass(slots=True, frozen=True)
class FlattenedValue:
    """A sugared value flattened into values of the graph, which become parameters of another function, and static data.
    One compiled function serves all sugared values with equal keys. ``unflatten`` takes the parameters, and the emitter
    of the other function, and returns the sugared value there."""

    key: Hashable
    values: Sequence[Value]
    unflatten: Callable[[Sequence[Value], Any], SugaredValue]


@dataclass(slots=True, frozen=True)
class CallSite:
    """A call at compile time: its location, its arguments, and the number of targets to which its result is unpacked (1
    if it is not unpacked, 0 if it is unused)."""

    range: SourceRange
    graph: Graph
    args: Sequence[NamedValue] = ()
    kwargs: Sequence[NamedValue] = ()
    targets: int = 1


class SugaredValue:
    """The compile-time value of an expression: a value of the graph, or an object such as a function or a module. By
    default operations raise an error with the description of the value, and most queries return None or False."""

    @property
    def description(self) -> str:
        """Description of the value for messages: ``a module``, ``the function 'f'``."""
        return type(self).__name__

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        """Return this as a value of the graph, which may emit nodes.

        Raises:
            UnsupportedError: this exists only while compiling, as a module of Python does.
        """
        raise UnsupportedError(f"{self.description} cannot be used as a value", range)

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        """Emit a read of the attribute: ``self.name``.

        Raises:
            UndefinedNameError: there is no such attribute.
        """
        raise UndefinedNameError(f"{self.description} has no attribute '{name}'", range)

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        raise UnsupportedError(f"hasattr cannot be asked of {self.description}", range)

    def ask_attribute(self, range: SourceRange, graph: Graph, name: str) -> Value | None:
        """Emit a test at run time whether this has an attribute, and return its result; return None if that is known at
        compile time."""
        return None

    def set_attribute(self, range: SourceRange, graph: Graph, name: str, value: Value) -> None:
        """Emit an assignment to the attribute: ``self.name = value``.

        Raises:
            UnsupportedError: the attributes of this cannot be assigned to.
        """
        raise UnsupportedError(f"an attribute of {self.description} cannot be assigned", range)

    def attribute_type(self, name: str) -> Type | None:
        """Return the declared type of the attribute ``name``, which determines the type of literals that are assigned
        to it; None if unknown."""
        return None

    def may_widen_attribute(self, name: str) -> bool:
        """Return whether an assignment may widen the type of the attribute ``name``."""
        return False

    def declare_attribute(self, range: SourceRange, name: str, type: Type) -> None:
        """Declare an attribute with its type, for ``self.name: type = …``. A value whose attributes cannot be declared
        does nothing."""

    def as_type(self, range: SourceRange) -> Type | None:
        """Return the type to which this refers as an annotation; None if this is not a type."""
        return None

    def python_class(self, range: SourceRange) -> type | None:
        """Return the Python class to which this refers; None if this is not a class."""
        return None

    @property
    def keys_are_known(self) -> bool:
        """Whether this is a dict or module container with keys known at compile time, which :meth:`contains` tests."""
        return False

    def emit_contains(self, key: Value, range: SourceRange, graph: Graph) -> Value | None:
        """Emit ``key in self`` for a ``key`` that is known only at run time, if the keys of this are known at compile
        time. Return None if that is unsupported."""
        return None

    def contains(self, key: object) -> bool:
        """Return ``key in self`` for a ``key`` that is known at compile time.

        Raises:
            NotImplementedError: the keys of this are not known at compile time (:attr:`keys_are_known`).
        """
        raise NotImplementedError

    @property
    def class_of_module(self) -> type | None:
        """The Python class of the module, if this is a module whose class is known at compile time; else None."""
        return None

    def call(self, call: CallSite) -> SugaredValue:
        """Emit a call of this value: ``self(args, kwargs)``.

        Raises:
            UnsupportedError: this cannot be called.
        """
        raise UnsupportedError(f"{self.description} cannot be called", call.range)

    @property
    def is_callable(self) -> bool:
        """Whether Python's ``callable`` is true of this, which is not a value of the graph."""
        cls = type(self)
        return cls.call is not SugaredValue.call or cls.call_with is not SugaredValue.call_with

    @property
    def is_passed_sugared(self) -> bool:
        """Whether this is passed to functions as a sugared value rather than as a value of the graph."""
        return self.accepts_sugared_args

    @property
    def accepts_sugared_args(self) -> bool:
        """Whether calls of this accept arguments that are not values of the graph, such as functions; then
        :meth:`call_with` emits them."""
        return False

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        """Emit a call of this value with arguments that need not be values of the graph: ``self(args, kwargs)``."""
        values = [NamedValue(item.as_value(range, graph), range=range) for item in args]
        named = [NamedValue(item.as_value(range, graph), range=range, name=name) for name, item in kwargs.items()]
        return self.call(CallSite(range, graph, values, named, targets))

    def with_super(self, function: FunctionType) -> SugaredValue | None:
        """Return ``function``, which uses ``super()``, as a method of this object; None if it is not one."""
        return None

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        """Return this flattened, so that it can be passed to another function.

        Raises:
            UnsupportedError: this cannot be passed to a function.
        """
        raise UnsupportedError(f"{self.description} cannot be passed to a function", range)

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        """Return the elements of this, for an unpacking or an unrolled loop. ``size_hint`` is the number of targets of
        the unpacking, from which a list takes the number of its elements.

        Raises:
            UnsupportedError: this cannot be unpacked.
        """
        raise UnsupportedError(f"{self.description} cannot be unpacked", range)

    @property
    def gone_over(self) -> list[Value]:
        """The containers over whose elements a loop over this iterates, which its body may change."""
        return []

    def sliced(self, items: list[SugaredValue]) -> SugaredValue | None:
        """Return a slice of this with ``items``, if it is more than a tuple of them; else None."""
        return None

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        """Return the iterable for a loop over this: one with a length and items, or one that is unrolled.

        Raises:
            UnsupportedError: this cannot be iterated over.
        """
        raise UnsupportedError(f"{self.description} cannot be iterated over", range)

    @property
    def static_length(self) -> int | None:
        """The number of elements, if it is known at compile time and a loop over them is unrolled; else None."""
        return None

    @property
    def must_unroll(self) -> bool:
        """Whether a loop over this is unrolled, because the elements have different types."""
        return False

    @property
    def bounded_by(self) -> list[SugaredValue]:
        """Iterables that end an unrolled loop over this early if they are shorter: ``xs`` in ``zip(self.layers,
        xs)``."""
        return []

    @property
    def known_length(self) -> int | None:
        """The result of ``len``, if it is known at compile time and this is not a value of the graph; else None."""
        return None

    def length(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError(f"{self.description} has no length", range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        """Emit a subscript: ``self[index]``.

        Raises:
            UnsupportedError: this cannot be indexed.
        """
        raise UnsupportedError(f"{self.description} cannot be indexed", range)


class StaticValue(SugaredValue):
    """An object that is known at compile time and not a value of the graph: a function, a class, a Python module."""

    is_passed_sugared = True

    @property
    def identity(self) -> Hashable:
        """A key that is equal for sugared values of the same object."""
        return self

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        return FlattenedValue((type(self), self.identity), (), lambda values, emitter: self)


ERROR_VALUE: Final = SugaredValue()
"""Value of a name whose assignment could not be compiled. A read of the name raises CascadingError."""


_Answer = TypeVar("_Answer")


class Resolver(Protocol):
    """Lookup of what a function refers to and does not define itself: names in Python's globals and closures, or in an
    archive. It also executes imports and class definitions within the function."""

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        """Return the sugared value of ``name``; None if it is undefined."""

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        """Return the type to which ``name``, which may be dotted, refers; None if there is none."""

    def import_object(self, statement: LocalImport, graph: Graph) -> SugaredValue | None:
        """Return the sugared value of an import within a function; None if imports are unsupported."""

    def define_class(self, statement: LocalClass, graph: Graph) -> SugaredValue | None:
        """Return the sugared value of a class within a function; None if local classes are unsupported."""


class EmptyResolver:
    """Resolver that knows no names, and supports neither imports nor classes within functions."""

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        return None

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return None

    def import_object(self, statement: LocalImport, graph: Graph) -> SugaredValue | None:
        return None

    def define_class(self, statement: LocalClass, graph: Graph) -> SugaredValue | None:
        return None


class ChainResolver:
    """Resolver that asks several others in order, and returns the first result that is not None."""

    def __init__(self, *resolvers: Resolver) -> None:
        self.resolvers = resolvers

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        return self._first(lambda resolver: resolver.resolve_value(name, range, graph))

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self._first(lambda resolver: resolver.resolve_type(name, range))

    def import_object(self, statement: LocalImport, graph: Graph) -> SugaredValue | None:
        return self._first(lambda resolver: resolver.import_object(statement, graph))

    def define_class(self, statement: LocalClass, graph: Graph) -> SugaredValue | None:
        return self._first(lambda resolver: resolver.define_class(statement, graph))

    def _first(self, ask: Callable[[Resolver], _Answer | None]) -> _Answer | None:
        return next((found for found in map(ask, self.resolvers) if found is not None), None)
