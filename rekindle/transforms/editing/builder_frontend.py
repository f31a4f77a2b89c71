"""Frontend services for builders (:mod:`rekindle.ir.building`): expressions have the semantics of programs."""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Mapping
from typing import Any, Final

from rekindle.errors import GraphError, SourceRange
from rekindle.frontend.calls.builtin_calls import insert_builtin_call
from rekindle.frontend.expressions.operator_kinds import BINARY_KINDS
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.special_forms import MagicMethod
from rekindle.frontend.sugared_values.values import BuiltinFunction, FunctionValue, SimpleValue
from rekindle.ir import building
from rekindle.ir.building import Arguments, Caller
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import NONE, TENSOR, TensorType, Type, optional
from rekindle.passes.canonicalization.inlining import inline_between
from rekindle.program.function import Function, Method, Overloaded
from rekindle.program.names import qualified_name, unique_name
from rekindle.program.sources.compilation_unit import caller_resolver, parse_definitions
from rekindle.program.sources.definition import define_function
from rekindle.scripting.callables.functions import underlying_function
from rekindle.scripting.callables.overloads import overloads_of
from rekindle.scripting.compilation import compile_function
from rekindle.scripting.python_values import sugared_value
from rekindle.scripting.resolver import PythonResolver
from rekindle.transforms.editing.from_graph import create_function


class _Emission:
    """The part of the frontend that compiles calls of Python functions for the graph builder."""

    def operator(self, graph: Graph, kind: str, args: Arguments, kwargs: Arguments, range: SourceRange) -> Value:
        return insert_builtin_call(range, graph, kind, args, kwargs)

    def binary(self, graph: Graph, symbol: str, args: Arguments, range: SourceRange) -> Value:
        kind, method = BINARY_KINDS[symbol]
        if symbol == "%" and args[0].type.kind == "StringType":
            kind = "aten::percentFormat"
        return MagicMethod(method, BuiltinFunction(kind)).call(CallSite(range, graph, args)).as_value(range, graph)

    def attribute(self, graph: Graph, value: Value, name: str, range: SourceRange) -> Value | Caller:
        found = SimpleValue(value).attribute(range, graph, name)
        if isinstance(found, SimpleValue):
            return found.value
        return lambda args, kwargs: found.call(CallSite(range, graph, args, kwargs)).as_value(range, graph)

    def function(
        self, graph: Graph, function: Any, args: Arguments, kwargs: Arguments, range: SourceRange, *, inline: bool
    ) -> Value:
        if isinstance(function, Graph):
            function = create_function(function, "graph")
        before = graph.insert_point.prev
        callee = callable_value(function, graph, range, args, kwargs)
        result = callee.call(CallSite(range, graph, args, kwargs)).as_value(range, graph)
        return inline_between(before, graph.insert_point, result) if inline else result

    def code(self, graph: Graph, text: str, names: Mapping[str, NamedValue], range: SourceRange, up: int) -> Value:
        (definition,) = parse_definitions(f"def code({', '.join(names)}):\n    return ({text}\n    )")
        record = GraphFunction("code")
        resolver = caller_resolver(up + 2)
        define_function(record, definition, resolver, parameter_types={name: item.type for name, item in names.items()})
        before = graph.insert_point.prev
        result = FunctionValue(record).call(CallSite(range, graph, kwargs=list(names.values()))).as_value(range, graph)
        return inline_between(before, graph.insert_point, result)


def callable_value(function: Any, graph: Graph, range: SourceRange, args: Arguments, kwargs: Arguments) -> SugaredValue:
    """Return the sugared value of ``function`` for a call with these arguments.

    Raises:
        GraphError: ``function`` cannot be called within a graph.
    """
    if isinstance(function, Method):
        raise GraphError(
            f"the method '{function.name}' needs its object in the graph: take the method of a value, "
            f"build(module).{function.name}(…)"
        )
    if isinstance(function, (Function, Overloaded)):
        return sugared_value(function, range, graph, PythonResolver())
    python = underlying_function(function) or function
    if isinstance(python, types.FunctionType) and not overloads_of(python):
        parameter_types = _types_from_arguments(python, args, kwargs)
        if parameter_types:
            return FunctionValue(_record_for(python, parameter_types))
    if not callable(function):
        hint = f"; build.op('{function}', …) inserts an operator by its kind" if isinstance(function, str) else ""
        raise GraphError(f"a {type(function).__qualname__} cannot be called{hint}")
    return sugared_value(function, range, graph, PythonResolver(), getattr(function, "__name__", None))


def _types_from_arguments(function: types.FunctionType, args: Arguments, kwargs: Arguments) -> dict[str, Type]:
    """Return the types of arguments other than Tensors, by the parameters that have neither an annotation nor a
    default. For None it is ``Optional[Tensor]``."""
    try:
        parameters = inspect.signature(function).parameters
        bound = inspect.signature(function).bind_partial(*args, **{item.name or "": item for item in kwargs})
    except (TypeError, ValueError):
        return {}  # matching reports the error
    return {
        name: optional(TENSOR) if item.type == NONE else item.type
        for name, item in bound.arguments.items()
        if isinstance(item, NamedValue)
        and parameters[name].annotation is inspect.Parameter.empty
        and parameters[name].default is inspect.Parameter.empty
        and not isinstance(item.type, TensorType)
    }


_RECORDS: Final[weakref.WeakKeyDictionary[types.FunctionType, dict[tuple[tuple[str, str], ...], GraphFunction]]] = (
    weakref.WeakKeyDictionary()
)
"""Functions compiled for the types of their arguments."""


def _record_for(function: types.FunctionType, parameter_types: dict[str, Type]) -> GraphFunction:
    known = _RECORDS.setdefault(function, {})
    key = tuple((name, str(type)) for name, type in parameter_types.items())
    if key not in known:
        record = GraphFunction(unique_name(qualified_name(function)), docstring=function.__doc__)
        compile_function(record, function, parameter_types)
        known[key] = record
    return known[key]


building.emission.provide(_Emission())
