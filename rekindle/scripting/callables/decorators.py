"""Decorated functions: the objects that decorators return.

A context manager of PyTorch (``@torch.no_grad()``, ``@sdpa_kernel(…)``) becomes a ``with`` statement around the body.
Wrappers that do not change the result of a call, such as those of ``torch._dynamo.disable`` and
``warnings.deprecated``, are skipped. Any other wrapper is compiled itself, and its code calls the wrapped function.
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Container, Mapping
from typing import Any, Final

import torch
import torch.amp.autocast_mode
import torch.utils._contextlib

from rekindle.errors import UNKNOWN_RANGE, NotScriptableError, SourceRange
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.scripting.class_values import class_value
from rekindle.scripting.library_values.context_functions import creator_of
from rekindle.scripting.resolver import closure_of
from rekindle.syntax.views import Apply, Def, Ident, Var, With, WithItem


def unwrapped(function: types.FunctionType) -> tuple[list[Any], types.FunctionType]:
    """Return the context managers that decorate a function (``@torch.no_grad()``), the outermost first, and the
    function to compile. Wrappers that do not change results (:data:`_LOOKED_THROUGH`) are skipped; any other wrapper is
    itself the function to compile."""
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


_LOOKED_THROUGH: Final = frozenset(
    {
        *("rekindle", "typing_extensions", "warnings", "transformers.utils.deprecation"),
        *("torch._compile", "torch._dynamo", "torch._jit_internal", "torch._tensor", "torch.jit", "torch.overrides"),
    }
)
"""The modules and packages whose decorators do not change what a call computes. Some rename old parameters, and
compiled code rejects a call by an old name."""

_REFUSED: Final = frozenset({"contextlib", "functools", "torch._functorch", "torch._vmap_internals"})
"""Those whose decorators do, by means that cannot be compiled: ``contextmanager`` (of functions other than PyTorch's),
``singledispatch``, ``vmap``."""


def _is_of(wrapper: types.FunctionType, modules: Container[str]) -> bool:
    """Return whether the code of ``wrapper`` is in one of the modules or packages."""
    parts = str(wrapper.__globals__.get("__name__", "")).split(".")
    return any(".".join(parts[:count]) in modules for count in range(1, len(parts) + 1))


def _is_looked_through(wrapper: types.FunctionType) -> bool:
    # record_function, as a decorator, changes the profile only.
    is_profiled = isinstance(closure_of(wrapper).get("self"), torch.autograd.profiler.record_function)
    return is_profiled or _is_of(wrapper, _LOOKED_THROUGH)


def check_decorators(function: types.FunctionType, range: SourceRange = UNKNOWN_RANGE) -> None:
    """Reject a function with a decorator of :data:`_REFUSED`.

    Raises:
        NotScriptableError: the function to compile is a wrapper that such a decorator returned.
    """
    _, found = unwrapped(function)
    if hasattr(found, "__wrapped__") and _is_of(found, _REFUSED):
        raise NotScriptableError(
            f"the function '{function.__name__}' has a decorator of {found.__globals__['__name__']}, which only Python "
            "can run",
            range,
            hint="compile the function without the decorator, or call it in a function marked with @ignore",
        )


def _manager_of(function: types.FunctionType) -> Any:
    """Return the context manager that ``function``, decorated with one of PyTorch, enters around each call; None for
    other functions."""
    module, closure = function.__globals__.get("__name__"), closure_of(function)
    if module == contextlib.__name__:
        manager = closure.get("self")
        return None if creator_of(manager) is None else manager
    if module == torch.amp.autocast_mode.__name__:
        return closure.get("autocast_instance")
    code = function.__code__  # whose name newer PyTorch changes
    if module != torch.utils._contextlib.__name__ or code.co_flags & inspect.CO_GENERATOR:
        return None
    factory = closure.get("ctx_factory")
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
    """A callable value that creates a context manager of the same class, and with the same arguments, as the one that
    decorates the function. The call raises NotScriptableError if programs do not support the class."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def call(self, call: CallSite) -> SugaredValue:
        creator = creator_of(self.manager)
        if creator is not None:
            return creator.call(call)
        cls = type(self.manager)
        made = class_value(cls, call.range)
        if made is None:
            raise NotScriptableError(f"a function decorated with '{cls.__name__}' cannot be compiled", call.range)
        given = [NamedValue(constant=value, range=call.range, name=name) for name, value in self._arguments().items()]
        return made.call(CallSite(call.range, call.graph, kwargs=given))

    def _arguments(self) -> dict[str, object]:
        """Return the arguments of the manager's class that make an equal manager."""
        manager = self.manager
        if isinstance(manager, torch.autocast):
            device = {"device_type": manager.device} if type(manager) is torch.autocast else {}
            return {**device, "dtype": manager.fast_dtype, "enabled": manager._enabled}
        mode = getattr(manager, "mode", None)
        return {} if mode is None else {"mode": mode}
