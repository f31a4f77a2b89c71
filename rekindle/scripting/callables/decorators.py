"""What a decorated function is: the object that the decorators have made of it.

A context manager of PyTorch (``@torch.no_grad()``) becomes a ``with`` statement around the body. The wrappers of
PyTorch, of Python's library and of this package leave what a call computes as it is, and are looked through. Any other
wrapper is what Python calls, and is compiled itself; it calls the function within it as its code says.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch.utils._contextlib

from rekindle.errors import NotScriptableError, SourceRange
from rekindle.frontend.sugared_values.base import CallSite, Keywords, StaticValue, SugaredValue
from rekindle.ir.graph import Graph
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.scripting import python_values
from rekindle.scripting.python_values import class_value
from rekindle.scripting.resolver import closure_of
from rekindle.syntax.python_ast import function_def
from rekindle.syntax.views import Apply, Attribute, Def, Expr, Ident, Return, Starred, Var, With, WithItem


def unwrapped(function: types.FunctionType) -> tuple[list[Any], types.FunctionType]:
    """The function that Python calls, and PyTorch's context managers around it (``@torch.no_grad()``), the outermost
    first. The wrappers of PyTorch, of Python's library and of this package change nothing that a call computes, and
    are looked through; any other wrapper is the function that is called."""
    managers: list[Any] = []
    found: Any = function
    while True:
        manager = _manager_of(found)
        if manager is not None:
            managers.append(manager)
        inner = vars(found).get("__wrapped__")
        if not isinstance(inner, types.FunctionType) or (manager is None and not _is_looked_through(found)):
            return managers, found
        found = inner


_LOOKED_THROUGH: Final = frozenset({"torch", "rekindle", "contextlib", "functools", "typing_extensions", "warnings"})
"""The packages whose decorators leave what a call computes as it is."""

_BOOKKEEPING: Final = frozenset({"transformers.utils.deprecation"})
"""Modules whose decorators rename old parameters and warn of them: a call by an old name is refused here."""


def _is_looked_through(wrapper: types.FunctionType) -> bool:
    module = str(wrapper.__globals__.get("__name__", ""))
    return module.partition(".")[0] in _LOOKED_THROUGH or module in _BOOKKEEPING


@dataclass(slots=True, frozen=True)
class Forwarding:
    """A wrapper that takes whatever it is given, ``wrapper(*args, **kwargs)``, around a function that says what."""

    wrapper: types.FunctionType
    function: types.FunctionType
    """The function within, whose parameters are meant."""

    def definition(self, name: str) -> Def:
        """``def name(parameters): return wrapper(parameters)``"""
        inner = function_def(self.function, name)
        range = inner.range
        args: list[Expr] = []
        named: list[Attribute] = []
        for param in inner.params:
            value = Var.create(param.range, param.name)
            if param.takes_positional:
                args.append(Starred.create(param.range, value))
            elif param.takes_keywords:
                named.append(Attribute.create(param.range, Ident.create(param.range, "**"), value))
            elif param.kwarg_only:
                named.append(Attribute.create(param.range, param.name, value))
            else:
                args.append(value)
        call = Apply.create(range, Var.create(range, Ident.create(range, _WRAPPER)), args, named)
        return Def.create(range, inner.name, inner.params, inner.return_type, [Return.create(range, call)])

    def names(self, forms: Mapping[str, SugaredValue] | None) -> dict[str, SugaredValue]:
        return {**(forms or {}), _WRAPPER: Wrapper(self.wrapper)}


_WRAPPER: Final = "$wrapper"


class Wrapper(StaticValue):
    """A wrapper, called with what the function within it takes."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function

    @property
    def description(self) -> str:
        return f"the wrapper of '{self.function.__name__}'"

    @property
    def accepts_sugared_args(self) -> bool:
        return True

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        assert python_values.generic is not None
        return python_values.generic.call(self.function, range, graph, args, kwargs)


def forwarding(function: types.FunctionType) -> Forwarding | None:
    """How ``function`` forwards, where it is a wrapper that takes any arguments; None for others."""
    inner: Any = vars(function).get("__wrapped__")
    if not isinstance(inner, types.FunctionType):
        return None
    code = function.__code__
    if not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return None
    while isinstance(vars(inner).get("__wrapped__"), types.FunctionType):
        inner = vars(inner)["__wrapped__"]
    return Forwarding(function, inner)


def _manager_of(function: types.FunctionType) -> Any:
    """The context manager that ``function`` wraps another in; None where it is no such wrapper."""
    code = function.__code__  # whose name newer PyTorch changes
    if function.__globals__.get("__name__") != torch.utils._contextlib.__name__ or code.co_flags & inspect.CO_GENERATOR:
        return None
    factory = closure_of(function).get("ctx_factory")
    return getattr(factory, "__self__", None)


def within_managers(
    definition: Def, managers: list[Any], forms: Mapping[str, SugaredValue]
) -> tuple[Def, dict[str, SugaredValue]]:
    """The definition with its body in ``with`` statements, and the names that these use."""
    range = definition.range
    names = {f"${index}": EnteredManager(manager) for index, manager in enumerate(managers)}
    calls = [Apply.create(range, Var.create(range, Ident.create(range, name)), []) for name in names]
    items = [WithItem.create(range, call, None) for call in calls]
    body = [With.create(range, items, definition.body)]
    wrapped = Def.create(range, definition.name, definition.params, definition.return_type, body)
    return wrapped, {**forms, **names}


class EnteredManager(SugaredValue):
    """Makes a context manager like the one that decorates the function."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def call(self, call: CallSite) -> SugaredValue:
        cls = type(self.manager)
        made = class_value(cls, call.range)
        if made is None:
            raise NotScriptableError(f"a function decorated with '{cls.__name__}' cannot be compiled", call.range)
        mode = getattr(self.manager, "mode", None)
        given = [] if mode is None else [NamedValue(constant=mode, range=call.range)]
        return made.call(CallSite(call.range, call.graph, given))
