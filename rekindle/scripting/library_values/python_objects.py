"""Python objects that are known at compile time and are not values of programs: a configuration, a table of functions,
an object with methods.

Their attributes and items are read at compile time, and become constants; their methods are compiled, with the object
as a compile-time value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final

import torch

from rekindle.errors import CompileError, SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.runtime_dispatch import RuntimeDispatch
from rekindle.frontend.sugared_values.values import SugaredTuple
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import STRING, ListType, Type
from rekindle.scripting.annotations import spell_annotation
from rekindle.scripting.callables.modifiers import is_left_to_python
from rekindle.scripting.callables.python_calls import PythonFunctionValue
from rekindle.scripting.library_values.loggers import LoggerMethod, is_method
from rekindle.scripting.library_values.unusable_values import UnusableValue, did_you_mean
from rekindle.scripting.resolver import PythonResolver

_ABSENT: Final = object()


class IdentityKey:
    """A key that is equal only for the same object, which it keeps alive."""

    __slots__ = ("obj",)

    def __init__(self, obj: object) -> None:
        self.obj = obj

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and self.obj is other.obj

    def __hash__(self) -> int:
        return id(self.obj)


def is_known(obj: object) -> bool:
    """Return whether a Python object may be used as a compile-time value. Tensors, modules, lists, tuples and sets may
    not: tensors and modules are mutable, and the types of items must be declared."""
    return not isinstance(obj, (torch.Tensor, torch.nn.Module, list, tuple, set, frozenset))


class PythonObject(StaticValue):
    """A Python object known at compile time. A program cannot use it as a run-time value: such a use raises
    ``refusal``, by default an error that names the object's class."""

    def __init__(
        self,
        obj: Any,
        name: str | None,
        resolver: PythonResolver,
        refusal: Callable[[], CompileError] | None = None,
    ) -> None:
        self.obj = obj
        self.name = name
        self.resolver = resolver
        self.unusable = UnusableValue(obj, name)
        self.refusal = refusal

    @property
    def description(self) -> str:
        return f"a Python object of class '{spell_annotation(type(self.obj))}'"

    @property
    def identity(self) -> IdentityKey:
        return IdentityKey(self.obj)

    @property
    def class_of_module(self) -> type | None:
        return type(self.obj)

    def as_type(self, range: SourceRange) -> Type | None:
        return self.unusable.as_type(range)

    def _refuse(self, range: SourceRange) -> CompileError:
        return self.refusal() if self.refusal is not None else self.unusable.refuse(range)

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise self._refuse(range)

    # ------------------------------------------------------------------------------------------------------ attributes

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if is_method(self.obj, name):
            return LoggerMethod(self.obj, name)
        cls = type(self.obj)
        defined = inspect.getattr_static(cls, name, _ABSENT)
        if isinstance(defined, FunctionType) and name not in getattr(self.obj, "__dict__", {}):
            if is_left_to_python(defined):
                return PythonFunctionValue(defined, self.resolver.of_function(defined), owner=self.obj)
            return BoundFunction(self.resolver.sugared(defined, range, graph, name), self)
        if name == "__class__":
            return self.resolver.sugared(cls, range, graph, name)
        try:
            found = getattr(self.obj, name)
        except AttributeError:
            hint = did_you_mean(name, dir(self.obj))
            raise UndefinedNameError(f"{self.description} has no attribute '{name}'", range, hint=hint) from None
        if isinstance(found, MethodType) and isinstance(found.__func__, FunctionType):
            owner = PythonObject(found.__self__, None, self.resolver)
            return BoundFunction(self.resolver.sugared(found.__func__, range, graph, name), owner)
        return self.resolver.sugared(found, range, graph, name)

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        return hasattr(self.obj, name)

    def set_attribute(self, range: SourceRange, graph: Graph, name: str, value: Value) -> None:
        raise UnsupportedError(
            f"'{name}' of {self.description} cannot be assigned: the object is known only while compiling", range
        )

    # --------------------------------------------------------------------------------------------------------- calling

    @property
    def is_callable(self) -> bool:
        return callable(self.obj)

    @property
    def accepts_sugared_args(self) -> bool:
        return isinstance(inspect.getattr_static(type(self.obj), "__call__", None), FunctionType)

    def _callable(self, range: SourceRange, graph: Graph) -> SugaredValue:
        if not self.accepts_sugared_args:
            raise self._refuse(range)
        return self.attribute(range, graph, "__call__")

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        return self._callable(range, graph).call_with(range, graph, args, kwargs, targets)

    def call(self, call: CallSite) -> SugaredValue:
        return self._callable(call.range, call.graph).call(call)

    # ------------------------------------------------------------------------------------------------------ containers

    @property
    def keys_are_known(self) -> bool:
        return isinstance(self.obj, Mapping)

    def contains(self, key: object) -> bool:
        return key in self.obj

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        if not isinstance(self.obj, Mapping):
            raise self._refuse(range)
        if index.node.kind != "prim::Constant":
            return self._choice(range, graph, index)
        key = index.node.attributes.get("value")
        try:
            found = self.obj[key]
        except KeyError:
            known = ", ".join(map(repr, list(self.obj)[:8]))
            raise UndefinedNameError(
                f"'{self.name or 'the table'}' has no item {key!r}", range, hint=f"its items are {known}"
            ) from None
        return self.resolver.sugared(found, range, graph, f"{self.name}[{key!r}]" if self.name else None)

    def _choice(self, range: SourceRange, graph: Graph, index: Value) -> SugaredValue:
        """Return the item for a string that is known only at run time; all items of the table are compiled.

        Raises:
            CompileError: ``index`` is not a string, or the table is empty or has keys other than strings.
        """
        if index.type != STRING or not self.obj or not all(type(key) is str for key in self.obj):
            raise self._refuse(range)
        what = f"'{self.name}'" if self.name else "a table"
        makes = [partial(self.resolver.sugared, found, range, graph, None) for found in self.obj.values()]
        return RuntimeDispatch(what, index, list(self.obj), makes)

    def emit_contains(self, key: Value, range: SourceRange, graph: Graph) -> Value | None:
        """Emit the query whether the table has a key that is known only at run time; return None if that is
        unsupported."""
        if key.type != STRING or not isinstance(self.obj, Mapping) or not all(type(name) is str for name in self.obj):
            return None
        names = [graph.insert_constant(name, range=range) for name in self.obj]
        known = graph.create("prim::ListConstruct", names, types=[ListType(STRING)], range=range)
        return graph.insert("aten::__contains__", [graph.insert_node(known).output, key], range=range)

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        if not isinstance(self.obj, Mapping):
            raise self._refuse(range)
        return [self.resolver.sugared(key, range, graph, None) for key in self.obj]

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        return SugaredTuple(self.as_tuple(range, graph))

    def length(self, range: SourceRange, graph: Graph) -> Value:
        return graph.insert_constant(len(self.as_tuple(range, graph)), range=range)


class BoundFunction(SugaredFunction, StaticValue):
    """A function with a bound first argument that is not a value of the graph."""

    def __init__(self, function: SugaredValue, first: SugaredValue) -> None:
        self.function = function
        self.first = first

    @property
    def description(self) -> str:
        return self.function.description

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        return self.function.call_with(range, graph, [self.first, *args], kwargs, targets)
