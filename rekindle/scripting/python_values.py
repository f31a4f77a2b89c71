"""Sugared values of Python objects: modules, functions, classes, constants."""

from __future__ import annotations

import builtins
import enum
import functools
import inspect
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import torch
from torch._ops import OpOverload, OpOverloadPacket

from rekindle.errors import NotScriptableError, SchemaError, SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.calls.generic import inherits
from rekindle.frontend.calls.python_signatures import fitted_to
from rekindle.frontend.python.higher_order import PartialValue
from rekindle.frontend.python.library import library_function
from rekindle.frontend.sugared_values.base import CallSite, Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.functions import sugared_arguments
from rekindle.frontend.sugared_values.slices import constant_slice
from rekindle.frontend.sugared_values.special_forms import GLOBALS, ExceptionClass
from rekindle.frontend.sugared_values.values import BuiltinFunction, FunctionValue, SimpleValue, SugaredTuple
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.operator_nodes import insert_operator_node, pack_outputs
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.operators.schema import MISSING, Argument, FunctionSchema
from rekindle.ir.operators.schema_matching import NamedValue, match_schemas
from rekindle.ir.types import BOOL, STRING, DictType, ListType, TupleType, Type
from rekindle.ops.python.exceptions import EXCEPTION_CLASSES
from rekindle.ops.tensor.torchbind_objects import WRAPPER, class_in_namespace
from rekindle.program.function import Function, Overloaded
from rekindle.scripting import resolver as _resolver
from rekindle.scripting.annotations import enum_type, find_type, is_named_tuple, named_tuple_type, spell_annotation
from rekindle.scripting.callables.autograd_functions import AppliedFunction, FunctionClass, function_class_of
from rekindle.scripting.callables.cached_functions import CACHED, CachedFunction
from rekindle.scripting.callables.decorators import check_decorators
from rekindle.scripting.callables.functions import BooleanDispatch, boolean_dispatch_of, records_of, underlying_function
from rekindle.scripting.callables.generic_functions import call_generic, may_be_generic, needs_call_types
from rekindle.scripting.callables.modifiers import BARE_ALIASES, is_left_to_python
from rekindle.scripting.callables.python_calls import PythonFunctionValue, PythonModuleCall
from rekindle.scripting.class_values import class_value
from rekindle.scripting.constants import SIMPLE_CONSTANTS, constant_value, construct
from rekindle.scripting.library_values.builtin_table import builtin_kind
from rekindle.scripting.library_values.python_objects import BoundFunction, IdentityKey, PythonObject, is_known
from rekindle.scripting.library_values.special_names import SPECIAL
from rekindle.scripting.library_values.torchbind_classes import TorchBindClass
from rekindle.scripting.library_values.unusable_values import UnusableValue, correction, did_you_mean
from rekindle.scripting.resolver import ABSENT, PythonResolver

REPLACED: Final = "_rekindle_replaced"
"""Name of an attribute of functions that replace a library's function for a time, as while a trace is recorded: the
function that they replace, which is compiled in their place."""


def sugared_value(
    obj: Any, range: SourceRange, graph: Graph, resolver: PythonResolver, name: str | None = None
) -> SugaredValue:
    """Return the sugared value of the Python object ``obj``, found under ``name``. Constants are inserted into
    ``graph``. For an unsupported object, the result raises when it is used."""
    if isinstance(obj, types.FunctionType):
        obj = vars(obj).get(REPLACED, obj)
    if resolver.observer is not None:
        resolver.observer.uses(obj)
    special = SPECIAL.get(id(obj))
    if special is not None:
        return special
    if isinstance(obj, tuple) and obj and all(map(_is_exception_class, obj)):
        return SugaredTuple([_class_value(cls, range, resolver) for cls in obj])
    if isinstance(obj, (*SIMPLE_CONSTANTS, tuple, list, enum.Enum)):
        constant = constant_value(obj, range, graph)
        return UnusableValue(obj, name) if constant is None else SimpleValue(constant)
    if isinstance(obj, WRAPPER):
        return TorchBindClass(obj)
    if isinstance(obj, slice):
        return constant_slice(obj, range, graph) or UnusableValue(obj, name)
    if isinstance(obj, types.ModuleType):
        return PythonModuleValue(obj, resolver)
    if isinstance(obj, Function):
        return FunctionValue(obj._record)
    if isinstance(obj, Overloaded):
        return FunctionValue(*obj._records)
    if isinstance(obj, OpOverloadPacket):
        return PacketValue(obj)
    if isinstance(obj, OpOverload):
        return OverloadFunction(obj)
    original = underlying_function(obj)
    if original is not None:
        return function_value(original, resolver)
    kind = builtin_kind(obj) if callable(obj) else None
    if kind is not None:
        return BuiltinFunction(kind)
    applied = function_class_of(obj)
    if applied is not None:
        return AppliedFunction(applied, resolver)
    if inspect.isclass(obj):
        return _class_value(obj, range, resolver)
    if inspect.isfunction(obj):
        return function_value(obj, resolver)
    if isinstance(obj, CACHED) and inspect.isfunction(obj.__wrapped__):
        return CachedFunction(obj, function_value(obj.__wrapped__, resolver))
    if isinstance(obj, BARE_ALIASES):
        return TypingAlias(obj)
    if isinstance(obj, functools.partial):
        return _partial(obj, range, graph, resolver)
    if isinstance(obj, (set, frozenset)):
        elements = _elements(obj, range, graph)
        if elements is not None:
            return elements
    if isinstance(obj, torch.nn.Module) and inspect.isfunction(type(obj).forward):
        return _OutsideModule(obj, name, resolver)
    return PythonObject(obj, name, resolver) if is_known(obj) else UnusableValue(obj, name)


class _OutsideModule(UnusableValue):
    """A module from outside of the program. A program can call it, which calls Python, and cannot use it otherwise."""

    def __init__(self, module: torch.nn.Module, name: str | None, resolver: PythonResolver) -> None:
        super().__init__(module, name)
        self._callee = PythonModuleCall(module, resolver)

    def call(self, call: CallSite) -> SugaredValue:
        return self._callee.call(call)


def _elements(obj: set[Any] | frozenset[Any], range: SourceRange, graph: Graph) -> SugaredValue | None:
    """Return a set from outside of the program as a frozenset, which the program cannot change; None for an empty set,
    and unless the elements are all ints, all floats, all bools or all strings."""
    kinds = {type(item) for item in obj}
    if len(kinds) != 1 or not kinds <= {int, float, bool, str}:
        return None
    key = find_type(kinds.pop())
    assert key is not None
    items = [graph.insert_constant(item, range=range) for item in sorted(obj)]
    yes = graph.insert_constant(True, range=range)
    pairs = [value for item in items for value in (item, yes)]
    return SimpleValue(construct("prim::DictConstruct", pairs, DictType(key, BOOL, "frozenset"), range, graph))


def _partial(obj: functools.partial[Any], range: SourceRange, graph: Graph, resolver: PythonResolver) -> SugaredValue:
    args = [sugared_value(item, range, graph, resolver) for item in obj.args]
    kwargs = {name: sugared_value(item, range, graph, resolver, name) for name, item in obj.keywords.items()}
    return PartialValue(sugared_value(obj.func, range, graph, resolver), args, kwargs)


_resolver.sugared_object = sugared_value


def function_value(function: types.FunctionType, resolver: PythonResolver) -> SugaredValue:
    """Return the sugared value of a Python function: a function to compile, one of two functions that a boolean
    argument selects, or a call of Python for a function that is left to it."""
    if is_left_to_python(function):
        return PythonFunctionValue(function, resolver)
    dispatch = boolean_dispatch_of(function)
    if dispatch is not None:
        return BooleanDispatchValue(function.__name__, dispatch, resolver)
    return CompiledFunctionValue(function)


def _works_on_programs(function: types.FunctionType) -> bool:
    """Return whether ``function`` is a public function of this package, such as ``rekindle.grad``."""
    package, _, _ = __name__.partition(".")
    return str(function.__module__).startswith(f"{package}.") and (
        vars(sys.modules[package]).get(function.__name__) is function
    )


def _check_function(function: types.FunctionType, range: SourceRange) -> None:
    """Reject a function whose decorators cannot be compiled, and one that :func:`_works_on_programs`.

    Raises:
        NotScriptableError: the function is one of these.
    """
    check_decorators(function, range)
    if _works_on_programs(function):
        raise NotScriptableError(
            f"'rekindle.{function.__name__}' cannot be called within a program",
            range,
            hint="call it outside of the program, which can call the function that it returns",
        )


class CompiledFunctionValue(FunctionValue):
    """A Python function that is compiled when it is called, for the types of the arguments if its signature does not
    specify them."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        self._records: tuple[GraphFunction, ...] | None = None

    @property
    def functions(self) -> tuple[GraphFunction, ...]:  # type: ignore[override]
        if self._records is None:
            self._records = records_of(self.function)
        return self._records

    @property
    def accepts_sugared_args(self) -> bool:
        return _works_on_programs(self.function) or may_be_generic(self.function)

    def call(self, call: CallSite) -> SugaredValue:
        _check_function(self.function, call.range)
        if self.accepts_sugared_args and needs_call_types(self.function, call.args, call.kwargs):
            return call_generic(self.function, call.range, call.graph, *sugared_arguments(call))
        try:
            return super().call(call)
        except SchemaError:
            if self._is_given_derived(call):
                return call_generic(self.function, call.range, call.graph, *sugared_arguments(call))
            if not self.function.__module__.startswith("torch."):
                raise  # what takes floats may show that it was given an int
            positional, keywords = fitted_to(call.graph, self.functions[0].schema.arguments, call.args, call.kwargs)
            if positional == list(call.args) and keywords == list(call.kwargs):
                raise
            return super().call(replace(call, args=positional, kwargs=keywords))

    def _is_given_derived(self, call: CallSite) -> bool:
        """Return whether an argument is an object of a class derived from the one that the parameter declares."""
        if len(self.functions) != 1:
            return False
        formals = {item.name: item.type for item in self.functions[0].schema.arguments}
        given = [*zip(formals.values(), call.args, strict=False)]
        given += [(formals[item.name], item) for item in call.kwargs if item.name in formals]
        return any(inherits(item.type, formal) for formal, item in given)

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        _check_function(self.function, range)
        if args and "__class__" in self.function.__code__.co_freevars:
            method = args[0].with_super(self.function)
            if method is not None:
                return method.call_with(range, graph, args[1:], kwargs, targets)
        if any(item.is_passed_sugared for item in (*args, *kwargs.values())):
            return call_generic(self.function, range, graph, args, kwargs)
        return super().call_with(range, graph, args, kwargs, targets)


# -------------------------------------------------------------------------------------------------------------- modules


class PythonModuleValue(StaticValue):
    """A module of Python, such as ``torch`` or ``math``."""

    def __init__(self, module: types.ModuleType, resolver: PythonResolver) -> None:
        self.module = module
        self.resolver = resolver

    @property
    def identity(self) -> types.ModuleType:
        return self.module

    @property
    def description(self) -> str:
        return f"the module '{self.module.__name__}'"

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        found = self._attribute(name)
        if found is ABSENT:
            hint = did_you_mean(name, dir(self.module))
            raise UndefinedNameError(
                f"{self.description} has no attribute '{name}'", range, hint=hint, edit=correction(range, name, hint)
            )
        library_class = class_in_namespace(self.module, name)
        if library_class is not None:
            return TorchBindClass(found, library_class)
        return sugared_value(found, range, graph, self.resolver, f"{self.module.__name__}.{name}")

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        return self._attribute(name) is not ABSENT

    def _attribute(self, name: str) -> Any:
        found = getattr(self.module, name, ABSENT)
        if self.resolver.observer is not None:
            self.resolver.observer.attribute_is(self.module, name, found)
        return found


# ------------------------------------------------------------------------------------------------------------ functions


class BooleanDispatchValue(StaticValue):
    """A function that calls one of two functions, selected by a boolean argument that must be constant."""

    def __init__(self, name: str, dispatch: BooleanDispatch, resolver: PythonResolver) -> None:
        self.name = name
        self.dispatch = dispatch
        self.resolver = resolver

    @property
    def description(self) -> str:
        return f"the function '{self.name}'"

    def call(self, call: CallSite) -> SugaredValue:
        given = next((item for item in call.kwargs if item.name == self.dispatch.argument), None)
        if given is None and self.dispatch.index < len(call.args):
            given = call.args[self.dispatch.index]
        flag = self.dispatch.default if given is None else self._constant(call.range, call.graph, given)
        chosen = self.dispatch.if_true if flag else self.dispatch.if_false
        return function_value(chosen, self.resolver).call(call)

    def _constant(self, range: SourceRange, graph: Graph, given: NamedValue) -> bool:
        value = given.materialize(graph)
        if value.node.kind != "prim::Constant" or value.type != BOOL:
            raise UnsupportedError(
                f"argument '{self.dispatch.argument}' of '{self.name}' must be True or False in the source, "
                "or a constant of the module: it decides what the function returns",
                range,
                hint=f"declare the attribute as Final[bool], or call '{self.name}' once for each case",
            )
        return bool(value.node.attributes["value"])


class PacketValue(BuiltinFunction):
    """``torch.ops.namespace.name``: all overloads of an operator; an attribute names one of them."""

    def __init__(self, packet: OpOverloadPacket) -> None:
        super().__init__(packet._qualified_op_name)
        self.packet = packet

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name not in self.packet.overloads():
            known = ", ".join(self.packet.overloads())
            raise UndefinedNameError(f"{self.description} has no overload '{name}'", range, hint=f"it has {known}")
        return OverloadFunction(getattr(self.packet, name))


class OverloadFunction(BuiltinFunction):
    """``torch.ops.namespace.name.overload``: one overload of an operator. Arguments that do not match an overload of
    ``aten`` are matched with all overloads."""

    def __init__(self, overload: OpOverload) -> None:
        super().__init__(overload._schema.name)
        self.overload = overload

    @property
    def description(self) -> str:
        return f"the operator '{self.overload.name()}'"

    def call(self, call: CallSite) -> SugaredValue:
        operator = REGISTRY.find(self.overload.name())
        if operator is None:
            return super().call(call)
        try:
            _, plan = match_schemas(self.overload.name(), [operator.schema], call.range, call.args, call.kwargs)
        except SchemaError:
            if self.overload.namespace != "aten":
                raise
            return super().call(call)  # numbers for tensors, and what else Python's calls take
        return SimpleValue(
            pack_outputs(call.graph, insert_operator_node(call.graph, operator, plan, call.range), plan.schema)
        )


# -------------------------------------------------------------------------------------------------------------- classes


def _class_value(cls: type, range: SourceRange, resolver: PythonResolver) -> SugaredValue:
    builtin = GLOBALS.get(cls.__name__)
    if builtin is not None and getattr(builtins, cls.__name__, None) is cls:
        return builtin
    if issubclass(cls, BaseException):
        name = cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
        EXCEPTION_CLASSES.setdefault(name, cls)
        return ExceptionClass(name)
    if issubclass(cls, enum.Enum):
        return EnumClassValue(cls)
    if is_named_tuple(cls):
        return NamedTupleClassValue(cls, resolver)
    if issubclass(cls, torch.autograd.Function):
        return FunctionClass(cls, resolver)
    return class_value(cls, range) or ClassValue(cls, resolver)


def _is_exception_class(obj: object) -> bool:
    return isinstance(obj, type) and issubclass(obj, BaseException)


class TypingAlias(StaticValue):
    """``typing.List`` and similar aliases, which ``isinstance`` treats as the class itself."""

    def __init__(self, alias: Any) -> None:
        self.alias = alias

    @property
    def identity(self) -> IdentityKey:
        return IdentityKey(self.alias)

    @property
    def description(self) -> str:
        return f"the annotation {spell_annotation(self.alias)}"

    def python_class(self, range: SourceRange) -> type | None:
        origin = typing.get_origin(self.alias)
        return origin if isinstance(origin, type) else None

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise NotScriptableError(f"{self.description} cannot be used as a value", range)


class ClassValue(StaticValue):
    """A Python class that a program cannot make objects of. It may still be a type, and hold constants. Subclasses
    represent classes of which it can make objects."""

    def __init__(self, cls: type, resolver: PythonResolver) -> None:
        self.cls = cls
        self.resolver = resolver

    @property
    def identity(self) -> type:
        return self.cls

    @property
    def description(self) -> str:
        return f"the class '{self.cls.__name__}'"

    def as_type(self, range: SourceRange) -> Type | None:
        return find_type(self.cls, range, self.resolver)

    def python_class(self, range: SourceRange) -> type | None:
        return self.cls

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise NotScriptableError(f"{self.description} cannot be used as a value", range)

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name in ("__name__", "__qualname__", "__module__"):
            return SimpleValue(graph.insert_constant(getattr(self.cls, name), range=range))
        found = inspect.getattr_static(self.cls, name, MISSING)
        if found is MISSING:
            raise UndefinedNameError(f"{self.description} has no attribute '{name}'", range)
        if isinstance(found, staticmethod):
            found = found.__func__
        if isinstance(found, classmethod) and inspect.isfunction(found.__func__):
            return BoundFunction(
                function_value(found.__func__, self.resolver), PythonObject(self.cls, None, self.resolver)
            )
        return sugared_value(found, range, graph, self.resolver, f"{self.cls.__name__}.{name}")

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        return hasattr(self.cls, name)

    def call(self, call: CallSite) -> SugaredValue:
        if issubclass(self.cls, torch.nn.Module):
            raise NotScriptableError(
                f"the module class '{self.cls.__name__}' cannot be instantiated in a program",
                call.range,
                hint="make the module in __init__ and call it here",
            )
        raise NotScriptableError(
            f"objects of the class '{self.cls.__name__}' cannot be made in a program: "
            "not all of it is written in Python",
            call.range,
            hint="use a NamedTuple, a Dict or a Tuple, or make the object outside and pass what it holds",
        )


class EnumClassValue(ClassValue):
    """An enum. Its attributes are its members."""

    def __init__(self, cls: type[enum.Enum]) -> None:
        self.enum = cls
        self.cls = cls

    @property
    def description(self) -> str:
        return f"the enum '{self.cls.__name__}'"

    def as_type(self, range: SourceRange) -> Type:
        return enum_type(self.enum, range)

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        member = self.enum.__members__.get(name)
        if member is None:
            raise UndefinedNameError(
                f"{self.description} has no member '{name}'",
                range,
                hint=f"its members are {', '.join(self.enum.__members__)}",
            )
        return SimpleValue(graph.insert_constant(member, enum_type(self.enum, range), range))

    @property
    def known_length(self) -> int:
        return len(self.enum)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        """Return a list of the members."""
        type = enum_type(self.enum, range)
        members = [graph.insert_constant(member, type, range) for member in self.enum]
        return SimpleValue(construct("prim::ListConstruct", members, ListType(type), range, graph))

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        """Return the member of a name: ``Color["RED"]``."""
        if index.type != STRING:
            return super().item(range, graph, index, type_hint)
        return self._member(range, graph, "member_of_name", index, dict(self.enum.__members__))

    def call(self, call: CallSite) -> SugaredValue:
        """Return the member of a value: ``Color("red")``.

        Raises:
            UnsupportedError: the argument has another type than the values, or the enum is a ``Flag`` or defines
                ``_missing_``.
        """
        type = enum_type(self.enum, call.range)
        has_missing = any("_missing_" in vars(base) for base in self.enum.__mro__ if base is not enum.Enum)
        is_plain = not issubclass(self.enum, enum.Flag) and not has_missing
        if is_plain and len(call.args) == 1 and not call.kwargs and call.args[0].type in (type, type.value_type):
            given = call.args[0].materialize(call.graph)
            if given.type == type:
                return SimpleValue(given)
            name = call.graph.insert_constant(self.enum.__qualname__, range=call.range)
            members = {member.value: member for member in self.enum}
            return self._member(call.range, call.graph, "member_of_value", given, members, name)
        raise UnsupportedError(
            f"a member of {self.description} cannot be found by its value in a program",
            call.range,
            hint=f"name it: {self.cls.__name__}.{next(iter(self.enum.__members__))}",
        )

    def _member(
        self,
        range: SourceRange,
        graph: Graph,
        function: str,
        given: Value,
        members: Mapping[Any, enum.Enum],
        *others: Value,
    ) -> SugaredValue:
        """Emit a call of a function of the prelude that finds ``given`` among the keys of ``members``."""
        type = enum_type(self.enum, range)
        keys = [graph.insert_constant(key, range=range) for key in members]
        values = [graph.insert_constant(member, type, range) for member in members.values()]
        lists = [
            construct("prim::ListConstruct", items, ListType(items[0].type), range, graph) for items in (keys, values)
        ]
        arguments = [SimpleValue(value) for value in (given, *lists, *others)]
        return library_function(function).call_with(range, graph, arguments, {})


class NamedTupleClassValue(ClassValue):
    """A NamedTuple class. Called, it makes one."""

    @property
    def description(self) -> str:
        return f"the NamedTuple '{self.cls.__name__}'"

    def as_type(self, range: SourceRange) -> TupleType:
        return named_tuple_type(self.cls, range, self.resolver)

    def call(self, call: CallSite) -> SugaredValue:
        type = self.as_type(call.range)
        assert type.fields is not None
        missing = len(type.fields) - len(type.defaults)
        defaults = [MISSING] * missing + list(type.defaults)
        arguments = tuple(
            Argument(field, element, default)
            for field, element, default in zip(type.fields, type.elements, defaults, strict=True)
        )
        schema = FunctionSchema(self.cls.__name__, "", arguments, (Argument("", type),))
        _, plan = match_schemas(self.cls.__name__, [schema], call.range, call.args, call.kwargs)
        return SimpleValue(
            construct("prim::TupleConstruct", plan.inputs(call.graph, call.range), type, call.range, call.graph)
        )
