"""Calls that stay in Python: functions marked to be ignored, and those marked as unused, which raise."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from rekindle.errors import CompileError, SourceRange, UnsupportedError
from rekindle.frontend.signatures import declare_schema
from rekindle.frontend.sugared_values.base import CallSite, Resolver, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.operators.schema_matching import NamedValue, match_schemas
from rekindle.ir.scalar_types import PYTHON_OBJECTS
from rekindle.ir.types import (
    ANY,
    TENSOR,
    IntType,
    ListType,
    OptionalType,
    TupleType,
    Type,
    differs_in_python,
    holds_set,
)
from rekindle.scripting.callables.modifiers import Modifier, modifier_of
from rekindle.syntax.python_ast import function_def


class PythonFunctionValue(SugaredValue):
    """A Python function that programs call without compiling it. With ``self_value`` it is a method of that object;
    with ``owner`` it is a method of a Python object that is not a value of programs. A call of a function marked as
    unused raises NotImplementedError at run time."""

    def __init__(
        self, function: Any, resolver: Resolver, self_value: Value | None = None, owner: object = None
    ) -> None:
        self.function = function
        self.resolver = resolver
        self.self_value = self_value
        self.owner = owner

    @property
    def description(self) -> str:
        return f"the Python function '{self.function.__name__}'"

    def call(self, call: CallSite) -> SugaredValue:
        if modifier_of(self.function) is Modifier.UNUSED:
            return SimpleValue(self._raise(call.range, call.graph, self._declared_result()))
        is_method = self.self_value is not None or self.owner is not None
        schema = signature_schema(self.function, self.resolver, is_method=is_method)
        if self.owner is not None:
            schema = replace(schema, arguments=schema.arguments[1:])
        result = schema.returns[0].type if schema.returns else TENSOR
        args = call.args
        if self.self_value is not None:
            args = [NamedValue(self.self_value, range=call.range), *args]
        named: list[tuple[str, Value]] = []
        if schema.is_vararg and not call.kwargs:
            inputs = [item.materialize(call.graph) for item in args]
        else:
            _, plan = match_schemas(self.function.__name__, [schema], call.range, args, call.kwargs)
            inputs = plan.inputs(call.graph, call.range)
            pairs = list(zip(schema.arguments, inputs, strict=False))
            named = [(formal.name, value) for formal, value in pairs if formal.kwarg_only]
            rest = inputs[len(pairs) :]
            inputs = [value for formal, value in pairs if not formal.kwarg_only] + rest
            inputs += [value for _, value in named]
        if call.targets == 0 and function_def(self.function, signature_only=True).return_type is None:
            result = ANY  # nothing reads it, and functions that are called for their effects return None
        return insert_call(self.description, self._called(), call, inputs, [name for name, _ in named], result)

    def _called(self) -> Callable[..., Any]:
        return self.function if self.owner is None else types.MethodType(self.function, self.owner)

    def _declared_result(self) -> Type:
        """Return the declared return type of an unused function; Tensor if there is none, or it is not a type of
        programs. The parameters are not examined."""
        expr = function_def(self.function, signature_only=True).return_type
        try:
            return TENSOR if expr is None else parse_type_expression(expr, self.resolver)
        except CompileError:
            return TENSOR

    def _raise(self, range: SourceRange, graph: Graph, result: Type) -> Value:
        message = f"the function '{self.function.__name__}' is marked as unused, but was called"
        inputs = [
            graph.insert_constant(message, range=range),
            graph.insert_constant("NotImplementedError", range=range),
        ]
        graph.insert_node(graph.create("prim::RaiseException", inputs, outputs=0, range=range))
        return graph.insert_node(graph.create("prim::Uninitialized", types=[result], range=range)).output


def insert_call(
    description: str,
    function: Callable[..., Any],
    call: CallSite,
    inputs: Sequence[Value],
    names: Sequence[str],
    result: Type,
) -> SugaredValue:
    """Insert a call of a Python function, with its last arguments passed by ``names``; return its result.

    Raises:
        UnsupportedError: an argument is a set, for which a program has a dict.
    """
    if (found := next((value.type for value in inputs if holds_set(value.type)), None)) is not None:
        raise UnsupportedError(
            f"{description} would be given a dict in place of the {found.annotation}",
            call.range,
            hint="pass sorted(s)",
        )
    node = call.graph.create("prim::PythonOp", inputs, types=[result], range=call.range)
    called = _as_python_calls(function, inputs, names)
    node.attributes["name"] = called.__name__
    node.attributes["function"] = ConstantObject(called)
    return SimpleValue(call.graph.insert_node(node).output)


def _as_python_calls(function: Callable[..., Any], inputs: Sequence[Value], names: Sequence[str]) -> Callable[..., Any]:
    """Return a function that passes its last arguments to ``function`` by these names, and arguments of other classes
    in Python than in the IR, such as dtypes, as objects of these classes; ``function`` itself if there are none."""
    types = [value.type for value in inputs]
    if not names and not any(map(differs_in_python, types)):
        return function
    return _PythonCall(function, types, names)


class _PythonCall:
    """A Python function, called with arguments as a program represents them."""

    def __init__(self, function: Callable[..., Any], types: Sequence[Type], names: Sequence[str]) -> None:
        self.function = function
        self.types = types
        self.names = names
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        way_out = getattr(function, "way_out", None)
        if way_out is not None:
            self.way_out = way_out

    def __call__(self, *args: Any) -> Any:
        given = list(map(_in_python, args, self.types))
        count = len(given) - len(self.names)
        return self.function(*given[:count], **dict(zip(self.names, given[count:], strict=True)))


def _in_python(value: Any, type: Type) -> Any:
    """Return an argument as Python has it: a dtype in place of its number, a tuple or a ``torch.Size`` in place of a
    list. Lists and dicts that are such in Python are passed themselves, since the function may write to them."""
    if isinstance(type, OptionalType):
        return value if value is None else _in_python(value, type.element)
    if isinstance(type, IntType) and type.python_name and isinstance(value, int):
        return PYTHON_OBJECTS[type.python_name][value]
    if isinstance(type, ListType) and type.is_tuple and isinstance(value, list):
        items = [_in_python(item, type.element) for item in value]
        return torch.Size(items) if type.python == "Size" else tuple(items)
    if isinstance(type, TupleType) and type.fields is None and isinstance(value, tuple):
        return tuple(map(_in_python, value, type.elements))
    return value


class PythonModuleCall(PythonFunctionValue):
    """A module that is not part of the program: Python calls it, with its hooks, as in ``torch.jit``. The types are the
    annotations of ``forward``; a parameter or result without an annotation is a tensor."""

    def __init__(self, module: torch.nn.Module, resolver: Resolver) -> None:
        super().__init__(type(module).forward, resolver, owner=module)
        self.module = module

    @property
    def description(self) -> str:
        return f"the module '{type(self.module).__name__}', which Python calls,"

    def _called(self) -> Callable[..., Any]:
        return _CallOfModule(self.module)


class _CallOfModule:
    """The object by which a program calls a module that is not part of it."""

    way_out = "make the module an attribute of the module that calls it"

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self.__name__ = type(module).__name__
        self.__qualname__ = type(module).__qualname__

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.module(*args, **named)


def signature_schema(function: types.FunctionType, resolver: Resolver, *, is_method: bool) -> FunctionSchema:
    """Return the schema of a Python function, from its annotations and defaults; a missing annotation is Tensor. The
    ``self`` of a method has the type Any.

    Raises:
        CompileError: an annotation is not a type.
    """
    definition = function_def(function, signature_only=True)
    signature = inspect.signature(function)
    defaults = {
        name: parameter.default
        for name, parameter in signature.parameters.items()
        if parameter.default is not inspect.Parameter.empty
    }
    first = definition.params[0].name.name if is_method and definition.params else None
    types_of_self: dict[str, Type] = {} if first is None else {first: ANY}
    declared = declare_schema(definition, resolver, defaults=defaults, parameter_types=types_of_self)
    variable = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in signature.parameters.values())
    return FunctionSchema(declared.name, "", declared.arguments, declared.returns or (Argument("", TENSOR),), variable)
