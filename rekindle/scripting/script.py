"""``script``: compile Python functions, modules and classes."""

from __future__ import annotations

import enum
import functools
import inspect
import sys
import types
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar, overload

import torch

from rekindle.errors import UNKNOWN_RANGE, CompileError, Diagnostics, NotScriptableError, compiling
from rekindle.errors.gc_pause import gc_paused
from rekindle.program.function import Function, Method, Overloaded
from rekindle.program.modules.module import ScriptModule
from rekindle.runtime.calls.tracebacks import KEEP_INTERNAL_FRAMES
from rekindle.scripting.annotations import enum_type, is_named_tuple, named_tuple_type, spell_annotation
from rekindle.scripting.callables.functions import (
    boolean_dispatch_of,
    mark_as_compiled_if_tracing,
    records_of,
    underlying_function,
)
from rekindle.scripting.callables.modifiers import is_left_to_python, is_tracing
from rekindle.scripting.classes.interfaces import interface_type, is_interface
from rekindle.scripting.classes.script_classes import compile_class
from rekindle.scripting.modules.script_modules import SCRIPTING, script_module
from rekindle.scripting.resolver import note_neighbors
from rekindle.scripting.typed_containers import ScriptDict, ScriptList, typed_container

P = ParamSpec("P")
T = TypeVar("T")


@overload
def script(obj: ScriptModule) -> ScriptModule: ...
@overload
def script(obj: torch.nn.Module) -> ScriptModule: ...
@overload
def script(obj: type) -> type: ...
@overload
def script(obj: Any) -> Any: ...
def script(obj: Any) -> Any:
    """Compile a Python function or a module. Also a decorator of functions.

    A function becomes a :class:`~rekindle.program.function.Function`. So does every function that it calls, when it is
    called. A module becomes a :class:`~rekindle.program.modules.module.ScriptModule`, which shares its parameters and
    buffers; ``forward``, the methods marked with :func:`export`, and what they call are compiled. Parameters without an
    annotation are tensors, or take the types of the first call. An object that is compiled is returned unchanged; so
    are NamedTuples, enums and interfaces, which programs use as types, and objects whose class can be compiled. A list
    or a dict becomes one that rejects items of other types.

    Args:
        obj: a function, a module, a class of values, an object of such a class, a list or a dict.

    Returns:
        The compiled program, which is called as ``obj`` is; the value for objects, lists and dicts.

    Raises:
        NotScriptableError: ``obj`` is not something that can be compiled.
        CompileError: it cannot be compiled. The message names the line and the cause.

    Example:
        >>> @rekindle.script
        ... def halve_until_below(x: torch.Tensor, limit: float):
        ...     while bool(x.max() > limit):
        ...         x = x / 2
        ...     return x
        >>> halve_until_below(torch.tensor([1.0, 6.0]), 2.0)
        tensor([0.2500, 1.5000])
    """
    try:
        return _compiled(obj)
    except CompileError as error:
        # The compiler's frames are not lines of the user; those are in the message.
        if KEEP_INTERNAL_FRAMES:
            raise
        raise error.with_traceback(None) from error.__cause__


@gc_paused()
def _compiled(obj: Any) -> Any:
    if isinstance(obj, (Function, Method, Overloaded, ScriptModule, ScriptList, ScriptDict)):
        return obj
    original = underlying_function(obj)
    if original is not None:
        return _script_function(original)
    if isinstance(obj, torch.nn.Module):
        with SCRIPTING, compiling(type(obj).__name__):
            return script_module(obj)
    if inspect.isclass(obj):
        return _script_class(obj)
    if isinstance(obj, types.FunctionType):
        return _script_function(obj)
    if type(obj) in (list, dict):
        return typed_container(obj)
    if _is_of_script_class(obj):
        _script_class(type(obj))
        return obj
    raise NotScriptableError(
        f"a Python object of class '{spell_annotation(type(obj))}' cannot be compiled", hint=_hint(obj)
    )


def _is_of_script_class(obj: object) -> bool:
    """Return whether an object may be an instance of a script class: its class has a method written in Python, and the
    object is neither callable nor a tensor."""
    cls = type(obj)
    own = (vars(base) for base in cls.__mro__ if base is not object)
    return (
        not callable(obj)
        and not isinstance(obj, torch.Tensor)
        and any(isinstance(value, types.FunctionType) for members in own for value in members.values())
    )


def script_if_tracing(fn: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that is compiled only while a trace is recorded, so that the trace keeps its control flow.

    Called from Python otherwise, the function stays Python. A compiled program that calls it compiles it as any
    function.

    Args:
        fn: a function.

    Returns:
        The decorated function.

    Example:
        >>> @rekindle.script_if_tracing
        ... def clip(x: torch.Tensor):
        ...     if bool(x.sum() > 1):
        ...         x = x / x.sum()
        ...     return x
        >>> traced = rekindle.trace(lambda x: clip(x) + 1, torch.zeros(2))
        >>> traced(torch.ones(2))
        tensor([1.5000, 1.5000])
    """

    @functools.wraps(fn)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        function = script(fn) if is_tracing() else fn
        result: T = function(*args, **kwargs)
        return result

    mark_as_compiled_if_tracing(wrapper, fn)
    return wrapper


def _script_function(function: types.FunctionType) -> Any:
    if is_left_to_python(function):
        raise NotScriptableError(
            f"the function '{function.__name__}' is marked to be left to Python",
            hint="remove @ignore or @unused to compile it",
        )
    if boolean_dispatch_of(function) is not None:
        raise NotScriptableError(
            f"the function '{function.__name__}' is one of two, chosen by an argument",
            hint="compile a function that calls it",
        )
    diagnostics = Diagnostics()
    with SCRIPTING, diagnostics.reporting():
        records = records_of(function)
        for record in records:
            with diagnostics.recovering():
                record.ensure_defined()
    return Function(records[0], function) if len(records) == 1 else Overloaded(records)


def _script_class(cls: type) -> type:
    if issubclass(cls, enum.Enum):
        enum_type(cls)
        return cls
    if is_named_tuple(cls):
        named_tuple_type(cls)
        return cls
    if is_interface(cls):
        interface_type(cls, UNKNOWN_RANGE)
        return cls
    if issubclass(cls, torch.nn.Module):
        raise NotScriptableError(
            f"'{cls.__name__}' is a module class; modules are compiled, not their classes",
            hint=f"make one first: script({cls.__name__}(…))",
        )
    if "<locals>" in cls.__qualname__:
        _note_neighbors(cls)
    with SCRIPTING, compiling(cls.__name__):
        compile_class(cls)
    return cls


def _note_neighbors(cls: type) -> None:
    """Record, for a class that is local to a function, the classes among the local variables of that function. The
    function is found by its name on the call stack."""
    name = cls.__qualname__.rpartition(".<locals>.")[0].rpartition(".")[2]
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_code.co_name != name or frame.f_globals.get("__name__") != cls.__module__):
        frame = frame.f_back
    if frame is not None:
        note_neighbors(cls, frame.f_locals)


def _hint(obj: object) -> str:
    if inspect.ismethod(obj):
        return "compile the object that the method belongs to, or a function"
    if callable(obj):
        return "compile a function, written with def, or a module"
    return "compile a function or a module"
