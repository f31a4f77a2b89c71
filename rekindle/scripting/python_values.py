"""What Python objects mean in a program: modules, functions, classes, constants."""

from __future__ import annotations

import builtins
import difflib
import enum
import functools
import inspect
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import torch
import torch.jit
import torch.overrides
from torch._ops import OpOverload, OpOverloadPacket

from rekindle.errors import NotScriptableError, SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.special_forms import ANNOTATE, GLOBALS, ISINSTANCE, ExceptionClass
from rekindle.frontend.sugared import Resolver, SugaredValue
from rekindle.frontend.values import BuiltinFunction, FunctionValue, SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.matching import CallArgument, match_schemas
from rekindle.ir.schema import MISSING, Argument, FunctionSchema
from rekindle.ir.types import BOOL, ListType, TupleType, Type, unify_all
from rekindle.ops.exceptions import EXCEPTION_CLASSES
from rekindle.program.function import Function, Overloaded
from rekindle.scripting import markers
from rekindle.scripting.annotations import enum_type, find_type, is_named_tuple, named_tuple_type, spell_annotation
from rekindle.scripting.builtin_table import builtin_kind
from rekindle.scripting.functions import BooleanDispatch, boolean_dispatch_of, compiled_by_torch, records_of
from rekindle.scripting.markers import is_left_to_python
from rekindle.scripting.python_calls import PythonFunctionValue

_jit: Any = torch.jit

SIMPLE_CONSTANTS: Final = (
    *(bool, int, float, complex, str, type(None)),
    *(torch.device, torch.dtype, torch.layout, torch.memory_format),
)
"""Classes of Python values that are constants of the IR as they are."""

ClassHook = Callable[[type, SourceRange], SugaredValue | None]
CLASS_VALUE_HOOKS: list[ClassHook] = []
"""Asked in turn what a Python class means as a value, after the classes that this file knows. Others add to it."""


def sugared_value(
    obj: Any, range: SourceRange, graph: Graph, resolver: Resolver, name: str | None = None
) -> SugaredValue:
    """What the Python object ``obj``, found under ``name``, means. What means nothing to a program is refused when it
    is used."""
    special = SPECIAL.get(id(obj))
    if special is not None:
        return special
    if isinstance(obj, (*SIMPLE_CONSTANTS, tuple, list, enum.Enum)):
        constant = constant_value(obj, range, graph)
        return UnusableValue(obj, name) if constant is None else SimpleValue(constant)
    if isinstance(obj, types.ModuleType):
        return PythonModuleValue(obj, resolver)
    if isinstance(obj, Function):
        return FunctionValue(obj._record)
    if isinstance(obj, Overloaded):
        return FunctionValue(*obj._records)
    if isinstance(obj, OpOverloadPacket):
        return PacketValue(obj)
    if isinstance(obj, OpOverload):
        return BuiltinFunction(obj._schema.name)
    original = compiled_by_torch(obj)
    if original is not None:
        return function_value(original, resolver)
    kind = builtin_kind(obj) if callable(obj) else None
    if kind is not None:
        return BuiltinFunction(kind)
    if inspect.isclass(obj):
        return _class_value(obj, range, resolver)
    if inspect.isfunction(obj):
        return function_value(obj, resolver)
    return UnusableValue(obj, name)


def function_value(function: types.FunctionType, resolver: Resolver) -> SugaredValue:
    """What a function written in Python means: a compiled function, one of two, or a call of Python."""
    if is_left_to_python(function):
        return PythonFunctionValue(function, resolver)
    dispatch = boolean_dispatch_of(function)
    if dispatch is not None:
        return BooleanDispatchValue(function.__name__, dispatch, resolver)
    return CompiledFunctionValue(function)


class CompiledFunctionValue(FunctionValue):
    """A Python function that is compiled when it is called."""

    def __init__(self, function: types.FunctionType) -> None:
        super().__init__(*records_of(function))


# ------------------------------------------------------------------------------------------------------------ constants


def constant_value(obj: Any, range: SourceRange, graph: Graph) -> Value | None:
    """The value of a constant: a number, a string, None, an enum member, or a tuple or list of constants. None for
    anything else."""
    if isinstance(obj, enum.Enum):
        return graph.insert_constant(obj, enum_type(type(obj), range), range)
    if isinstance(obj, SIMPLE_CONSTANTS):
        return graph.insert_constant(plain(obj), range=range)
    if not isinstance(obj, (tuple, list)):
        return None
    if not is_constant(obj):
        return None
    values = [constant_value(item, range, graph) for item in obj]
    known = [value for value in values if value is not None]
    if isinstance(obj, (torch.Size, list)):
        element = unify_all(value.type for value in known)
        if element is None:
            return None
        return _construct("prim::ListConstruct", known, ListType(element), range, graph)
    if is_named_tuple(type(obj)):
        return _construct("prim::TupleConstruct", known, named_tuple_type(type(obj), range), range, graph)
    return _construct("prim::TupleConstruct", known, TupleType(tuple(value.type for value in known)), range, graph)


def is_constant(obj: Any) -> bool:
    if isinstance(obj, (tuple, list)):
        return all(map(is_constant, obj))
    return isinstance(obj, (*SIMPLE_CONSTANTS, enum.Enum))


def plain(obj: Any) -> Any:
    """``obj`` as an object of the builtin class that it derives from: an ``IntFlag`` or a numpy float is a number like
    any."""
    if isinstance(obj, bool):
        return obj
    classes: tuple[type[Any], ...] = (int, float, complex, str)
    return next((cls(obj) for cls in classes if isinstance(obj, cls)), obj)


def _construct(kind: str, values: list[Value], type: Type, range: SourceRange, graph: Graph) -> Value:
    return graph.insert_node(graph.create(kind, values, types=[type], range=range)).output


# -------------------------------------------------------------------------------------------------------------- modules


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint for a name that does not exist: the one that looks most like it."""
    public = (item for item in known if not item.startswith("_") or name.startswith("_"))
    close = difflib.get_close_matches(name, public, n=1, cutoff=0.75)
    return f"did you mean '{close[0]}'?" if close else None


class PythonModuleValue(SugaredValue):
    """A module of Python, such as ``torch`` or ``math``."""

    def __init__(self, module: types.ModuleType, resolver: Resolver) -> None:
        self.module = module
        self.resolver = resolver

    @property
    def description(self) -> str:
        return f"the module '{self.module.__name__}'"

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        try:
            found = getattr(self.module, name)
        except AttributeError:
            hint = did_you_mean(name, dir(self.module))
            raise UndefinedNameError(f"{self.description} has no attribute '{name}'", range, hint=hint) from None
        return sugared_value(found, range, graph, self.resolver, f"{self.module.__name__}.{name}")

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        return hasattr(self.module, name)


# ------------------------------------------------------------------------------------------------------------ functions


class BooleanDispatchValue(SugaredValue):
    """A function that is one of two, by an argument that the compiler must know."""

    def __init__(self, name: str, dispatch: BooleanDispatch, resolver: Resolver) -> None:
        self.name = name
        self.dispatch = dispatch
        self.resolver = resolver

    @property
    def description(self) -> str:
        return f"the function '{self.name}'"

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        given = next((item for item in kwargs if item.name == self.dispatch.argument), None)
        if given is None and self.dispatch.index < len(args):
            given = args[self.dispatch.index]
        flag = self.dispatch.default if given is None else self._constant(range, graph, given)
        chosen = self.dispatch.if_true if flag else self.dispatch.if_false
        return function_value(chosen, self.resolver).call(range, graph, args, kwargs, targets)

    def _constant(self, range: SourceRange, graph: Graph, given: CallArgument) -> bool:
        value = given.materialise(graph)
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
        # Which one is meant, the arguments tell as well.
        return BuiltinFunction(self.kind)


class ConstantFunction(SugaredValue):
    """A function of which the result is known while compiling: ``torch.jit.is_scripting``."""

    def __init__(self, name: str, result: object) -> None:
        self.name = name
        self.result = result

    @property
    def description(self) -> str:
        return f"the function '{self.name}'"

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        return SimpleValue(graph.insert_constant(self.result, range=range))


class NotYet(SugaredValue):
    """What the language has and this compiler does not have yet."""

    def __init__(self, name: str, hint: str) -> None:
        self.name = name
        self.hint = hint

    @property
    def description(self) -> str:
        return f"'{self.name}'"

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        raise UnsupportedError(f"'{self.name}' is not supported yet", range, hint=self.hint)


# -------------------------------------------------------------------------------------------------------------- classes


def _class_value(cls: type, range: SourceRange, resolver: Resolver) -> SugaredValue:
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
    return class_value(cls, range) or ClassValue(cls, resolver)


def class_value(cls: type, range: SourceRange) -> SugaredValue | None:
    """What the hooks say that a class means."""
    for hook in CLASS_VALUE_HOOKS:
        found = hook(cls, range)
        if found is not None:
            return found
    return None


class ClassValue(SugaredValue):
    """A Python class that a program cannot make objects of. It may still be a type, and hold constants."""

    def __init__(self, cls: type, resolver: Resolver) -> None:
        self.cls = cls
        self.resolver = resolver

    @property
    def description(self) -> str:
        return f"the class '{self.cls.__name__}'"

    def as_type(self, range: SourceRange) -> Type | None:
        return find_type(self.cls, range, self.resolver)

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
        return sugared_value(found, range, graph, self.resolver, f"{self.cls.__name__}.{name}")

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        if issubclass(self.cls, torch.nn.Module):
            raise NotScriptableError(
                f"the module class '{self.cls.__name__}' cannot be instantiated in a program",
                range,
                hint="make the module in __init__ and call it here",
            )
        raise NotScriptableError(
            f"objects of the class '{self.cls.__name__}' cannot be made in a program: classes are not compiled yet",
            range,
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

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        """The members, as a list."""
        type = enum_type(self.enum, range)
        members = [graph.insert_constant(member, type, range) for member in self.enum]
        return SimpleValue(_construct("prim::ListConstruct", members, ListType(type), range, graph))

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        raise UnsupportedError(
            f"a member of {self.description} cannot be found by its value in a program",
            range,
            hint=f"name it: {self.cls.__name__}.{next(iter(self.enum.__members__))}",
        )


class NamedTupleClassValue(ClassValue):
    """A NamedTuple class. Called, it makes one."""

    @property
    def description(self) -> str:
        return f"the NamedTuple '{self.cls.__name__}'"

    def as_type(self, range: SourceRange) -> TupleType:
        return named_tuple_type(self.cls, range, self.resolver)

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        type = self.as_type(range)
        assert type.fields is not None
        missing = len(type.fields) - len(type.defaults)
        defaults = [MISSING] * missing + list(type.defaults)
        arguments = tuple(
            Argument(field, element, default)
            for field, element, default in zip(type.fields, type.elements, defaults, strict=True)
        )
        schema = FunctionSchema(self.cls.__name__, "", arguments, (Argument("", type),))
        _, plan = match_schemas(self.cls.__name__, [schema], range, args, kwargs)
        return SimpleValue(_construct("prim::TupleConstruct", plan.inputs(graph, range), type, range, graph))


# ------------------------------------------------------------------------------------------------------------- refusals


class UnusableValue(SugaredValue):
    """A Python object that means nothing to a program. Every use of it is refused, with what it is and what to do."""

    def __init__(self, obj: Any, name: str | None = None) -> None:
        self.obj = obj
        self.name = name

    @property
    def description(self) -> str:
        what = f"a Python object of class '{spell_annotation(type(self.obj))}'"
        return f"'{self.name}', {what}," if self.name else what

    def as_type(self, range: SourceRange) -> Type | None:
        return find_type(self.obj, range)

    def _refuse(self, range: SourceRange) -> NotScriptableError:
        message, hint = _refusal(self.obj, self.name)
        return NotScriptableError(message, range, hint=hint)

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise self._refuse(range)

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        raise self._refuse(range)

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        raise self._refuse(range)

    def set_attribute(self, range: SourceRange, graph: Graph, name: str, value: Value) -> None:
        raise self._refuse(range)

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        raise self._refuse(range)

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        raise self._refuse(range)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        raise self._refuse(range)

    def length(self, range: SourceRange, graph: Graph) -> Value:
        raise self._refuse(range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        raise self._refuse(range)


def _refusal(obj: Any, name: str | None) -> tuple[str, str]:
    """Why ``obj`` cannot be used, and what to do."""
    what = f"'{name}'" if name else "this"
    if isinstance(obj, torch.Tensor):
        return (
            f"{what} is a tensor from outside of the program",
            "pass it as an argument, or register it as a parameter or a buffer of a module",
        )
    if isinstance(obj, torch.nn.Module):
        return f"{what} is a module from outside of the program", "make it an attribute of the module that calls it"
    if isinstance(obj, dict):
        return (
            f"{what} is a dict from outside of the program",
            "pass it as an argument, or make it an attribute of a module",
        )
    if inspect.ismethod(obj):
        return f"{what} is a method of a Python object, which cannot be compiled", "write it as a function"
    if isinstance(obj, functools.partial):
        return f"{what} is a functools.partial, which cannot be compiled", "write a function that makes the call"
    if callable(obj):
        return (
            f"{what} is a '{spell_annotation(type(obj))}', which has no Python source to compile",
            "call it through a Python function marked with @ignore, or use what PyTorch offers instead",
        )
    return (
        f"{what} is a Python object of class '{spell_annotation(type(obj))}', which a program cannot use",
        "pass what it holds as arguments",
    )


# -------------------------------------------------------------------------------------------------------- special names


def _constant_functions() -> list[tuple[Any, object]]:
    """Functions with the answer that they give in compiled code."""
    answers: list[tuple[Any, object]] = [
        (_jit.is_scripting, True),
        (torch._jit_internal.is_scripting, True),
        (markers.is_scripting, True),
        (_jit.is_tracing, False),
        (markers.is_tracing, False),
        (torch.compiler.is_compiling, False),
        (torch.compiler.is_dynamo_compiling, False),
        (torch.compiler.is_exporting, False),
        (torch._C._get_tracing_state, False),
    ]
    names = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like")
    answers += [(getattr(torch.overrides, name), False) for name in names[:3]]
    return answers


def _special() -> dict[int, SugaredValue]:
    table: dict[int, SugaredValue] = {
        id(torch.jit.annotate): ANNOTATE,
        id(markers.annotate): ANNOTATE,
        id(torch.jit.isinstance): ISINSTANCE,
        id(markers.isinstance_): ISINSTANCE,
        id(_jit._unwrap_optional): BuiltinFunction("aten::_unwrap_optional"),
        id(_jit.fork): NotYet("fork", "call the function itself"),
        id(_jit.wait): BuiltinFunction("aten::wait"),
    }
    for function, answer in _constant_functions():
        table[id(function)] = ConstantFunction(function.__name__, answer)
    for name, value in GLOBALS.items():
        python = getattr(builtins, name, None)
        if python is not None and not inspect.isclass(python):
            table[id(python)] = value
    for name in ("list", "dict", "tuple", "range", "zip", "enumerate", "reversed"):
        table[id(getattr(builtins, name))] = GLOBALS[name]
    return table


SPECIAL: Final[dict[int, SugaredValue]] = _special()
"""Objects, by identity, that mean something of their own."""
