"""Decorated functions: the objects that decorators return.

A context manager of PyTorch (``@torch.no_grad()``) becomes a ``with`` statement around the body. The wrappers of
PyTorch, of Python's library and of this package do not change the result of a call, and are skipped. Any other wrapper
is compiled itself, and its code calls the wrapped function.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from typing import Any, Final

import torch.utils._contextlib

from rekindle.errors import NotScriptableError
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.scripting.class_values import class_value
from rekindle.scripting.resolver import closure_of
from rekindle.syntax.views import Apply, Def, Ident, Var, With, WithItem


def unwrapped(function: types.FunctionType) -> tuple[list[Any], types.FunctionType]:
    """Return the context managers that decorate a function (``@torch.no_grad()``), the outermost first, and the
    function to compile. Wrappers of PyTorch, of Python's library, of this package and of a few others, which do not
    change results, are skipped; any other wrapper is itself the function to compile."""
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
"""The packages whose decorators do not change what a call computes."""

_BOOKKEEPING: Final = frozenset({"transformers.utils.deprecation"})
"""Modules whose decorators rename old parameters and warn of them. Compiled code rejects a call by an old name."""


def _is_looked_through(wrapper: types.FunctionType) -> bool:
    module = str(wrapper.__globals__.get("__name__", ""))
    return module.partition(".")[0] in _LOOKED_THROUGH or module in _BOOKKEEPING


def _manager_of(function: types.FunctionType) -> Any:
    """Return the context manager that ``function``, a decorated function, enters around each call; None for other
    functions."""
    code = function.__code__  # whose name newer PyTorch changes
    if function.__globals__.get("__name__") != torch.utils._contextlib.__name__ or code.co_flags & inspect.CO_GENERATOR:
        return None
    factory = closure_of(function).get("ctx_factory")
    return getattr(factory, "__self__", None)


def within_managers(
    definition: Def, managers: list[Any], forms: Mapping[str, SugaredValue]
) -> tuple[Def, dict[str, SugaredValue]]:
    """Return the definition with its body wrapped in ``with`` statements, one manager each, and ``forms`` with the
    names of the managers in these statements added."""
    range = definition.range
    names = {f"${index}": EnteredManager(manager) for index, manager in enumerate(managers)}
    calls = [Apply.create(range, Var.create(range, Ident.create(range, name)), []) for name in names]
    items = [WithItem.create(range, call, None) for call in calls]
    body = [With.create(range, items, definition.body)]
    wrapped = Def.create(range, definition.name, definition.params, definition.return_type, body)
    return wrapped, {**forms, **names}


class EnteredManager(SugaredValue):
    """A callable value that creates a context manager of the same class, and with the same ``mode``, as the one that
    decorates the function. The call raises NotScriptableError if programs do not support the class."""

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
