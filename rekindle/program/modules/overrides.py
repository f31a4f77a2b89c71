"""Methods of ``nn.Module`` that a Python class overrides, on compiled modules.

An override may call ``super()``, other methods of its class and attributes of its object. So it runs on an object of
the class that shares all that the compiled module holds: parameters, buffers, hooks and attributes. What it assigns is
assigned to the compiled module afterwards. For methods that also concern the submodules, such as ``train()``, these are
objects of their classes too::

    class Backbone(nn.Module):
        def train(self, mode: bool = True) -> "Backbone":
            super().train(mode)
            for part in self.modules():
                if isinstance(part, nn.BatchNorm2d):      the compiled part is a ScriptModule
                    part.eval()
            return self
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from rekindle.ir.scalar_types import NUMBERED_CLASSES
from rekindle.program.calling import late_hooks

STATE_DICT_METHODS: Final = (
    "state_dict",
    "load_state_dict",
    "_save_to_state_dict",
    "_load_from_state_dict",
    "get_extra_state",
    "set_extra_state",
)
"""The methods for state dicts. Of a submodule, they are called by those of the module."""

METHODS: Final = (
    *("train", "eval", "requires_grad_", "zero_grad", "apply", "_apply", "share_memory"),
    *("parameters", "named_parameters", "buffers", "named_buffers"),
    *("to", "to_empty", "cpu", "cuda", "type", "float", "double", "half", "bfloat16"),
)
"""Other methods whose overrides run. Those of PyTorch's own classes do not: compiled modules do the same."""


def overrides_state_dict(python_class: type) -> bool:
    """Return whether a class overrides ``state_dict()``, ``load_state_dict()`` or a method that one of them calls."""
    return any(getattr(python_class, name, None) is not getattr(torch.nn.Module, name) for name in STATE_DICT_METHODS)


def overridden_methods(python_class: type) -> Sequence[str]:
    """Return those of ``METHODS`` that a class, or a base of it outside of PyTorch, overrides."""
    return [name for name in METHODS if is_overridden(python_class, name)]


def is_overridden(python_class: type, name: str) -> bool:
    """Return whether a class, or a base of it outside of PyTorch, overrides the method ``name``."""
    found = getattr(python_class, name, None)
    return found is not getattr(torch.nn.Module, name) and not is_of_library(found)


def is_of_library(function: Any) -> bool:
    """Return whether a function is PyTorch's, or of this package."""
    return str(getattr(function, "__module__", "")).startswith(("torch.", "rekindle."))


# -------------------------------------------------------------------------------------------------------------- views

_HOOK_TABLES: Final = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_COMPILED: Final = "_rekindle_compiled"
"""The attribute of a view that holds the compiled module."""
_FUNCTIONS: Final = "_rekindle_functions"
"""The attribute of a compiled module that holds the functions of the object that it was compiled from."""


@dataclass(slots=True)
class _View:
    """``view`` is an object of the Python class of a compiled ``module``, which shares its state. ``before`` are its
    attributes when it was made, ``parts`` its submodules, and ``hooks`` the keys of its hooks."""

    view: torch.nn.Module
    module: Any
    before: dict[str, object]
    parts: Mapping[str, torch.nn.Module | None] = field(default_factory=dict)
    hooks: Mapping[str, set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, module: Any, python_class: type) -> _View:
        """Return the view of a compiled module. Its submodules are those of the module."""
        view: torch.nn.Module = object.__new__(python_class)
        before = {**module._rekindle_type.constants, **vars(module), **_python_values(module), _COMPILED: module}
        for name, value in vars(module).get(_FUNCTIONS, {}).items():
            before[name] = types.MethodType(value.function, view) if isinstance(value, _Method) else value
        for name in module._rekindle_type.methods:
            if not hasattr(python_class, name):
                before[name] = getattr(module, name)
        vars(view).update(before, _modules=dict(module._modules))
        hooks = {table: set(vars(module)[table]) for table in _HOOK_TABLES}
        return cls(view, module, before, dict(module._modules), hooks)

    def see(self, parts: Mapping[str, torch.nn.Module | None]) -> None:
        """Replace the submodules of the view."""
        self.parts = parts
        vars(self.view)["_modules"].update(parts)

    def changes(self) -> Iterator[tuple[str, object]]:
        """Yield the names and values of what was assigned to the view."""
        own = vars(self.view)
        for before, now in ((self.before, own), (self.parts, own["_modules"])):
            for name, value in now.items():
                if name != "_modules" and (name not in before or value is not before[name]):
                    yield name, compiled_in(value)

    def note_hooks(self) -> None:
        """Record the hooks that were registered, which compiled code does not run."""
        for table, known in self.hooks.items():
            for key in vars(self.module)[table].keys() - known:
                vars(self.module).setdefault("_rekindle_late_hooks", []).append((table, key))
                late_hooks.add(self.module)


def _python_values(module: torch.nn.Module) -> dict[str, object]:
    """Return the Python values, such as ``torch.float32``, of attributes that are ints in programs and that were not
    assigned since."""
    held: dict[str, tuple[int, object]] = vars(module).get("_rekindle_python_values", {})
    return {name: value for name, (number, value) in held.items() if vars(module).get(name) == number}


def compiled_in(value: Any) -> Any:
    """Return ``value`` with compiled modules in place of their views, also in lists, tuples and dicts."""
    if isinstance(value, torch.nn.Module):
        return vars(value).get(_COMPILED, value)
    if type(value) in (list, tuple):
        return type(value)([compiled_in(item) for item in value]) if any(map(_has_view, value)) else value
    if type(value) is dict and any(map(_has_view, value.values())):
        return {key: compiled_in(item) for key, item in value.items()}
    return value


def _has_view(value: object) -> bool:
    return compiled_in(value) is not value


_current: Final[ContextVar[dict[int, _View]]] = ContextVar("rekindle.views", default={})  # noqa: B039 (never changed)
"""The views of the override that runs, by the identity of the compiled module."""


@contextmanager
def as_written(module: torch.nn.Module, python_class: type, method: str) -> Iterator[torch.nn.Module]:
    """Yield an object of ``python_class`` with the state of the compiled ``module``. Attributes that the ``with`` block
    assigns to it are assigned to ``module`` afterwards, unless the block raises. ``method`` is the method that is
    called. Unless it is for state dicts, the submodules of the object are such objects too. Within the block of a
    module that contains this one, it is the object that the block sees.

    Raises:
        AttributeError: the block reads an attribute that the compiled module does not have.
        TypeError: the block assigns a value that the compiled module cannot hold; nothing is assigned then.
    """
    known = _current.get().get(id(module))
    if known is not None and method not in STATE_DICT_METHODS:
        yield known.view
        return
    views: dict[int, _View] = {}
    if method in STATE_DICT_METHODS:
        views[id(module)] = _View.of(module, python_class)
    else:
        _add_views(module, views)
    token = _current.set(views)
    try:
        yield views[id(module)].view
    except AttributeError as error:
        if not any(str(error).startswith(f"'{type(each.view).__name__}' object has no") for each in views.values()):
            raise
        raise AttributeError(
            f"{error}: the method {method}() of its class needs it, and the compiled module has the attributes that "
            f"programs can hold, and no others. Call {method}() on the module that was compiled"
        ) from error
    finally:
        _current.reset(token)
    for each in views.values():
        each.note_hooks()
    _assign([(each.module, name, value) for each in views.values() for name, value in each.changes()])


def _assign(changes: Sequence[tuple[torch.nn.Module, str, object]]) -> None:
    """Assign attributes of compiled modules: all of them, or none if one cannot be assigned."""
    done: list[tuple[torch.nn.Module, str, object]] = []
    try:
        for module, name, value in changes:
            before = getattr(module, name, _ABSENT)
            setattr(module, name, value)
            done.append((module, name, before))
            if isinstance(value, NUMBERED_CLASSES):
                held = vars(module).setdefault("_rekindle_python_values", {})
                held[name] = vars(module)[name], value
    except BaseException:
        for module, name, before in reversed(done):
            delattr(module, name) if before is _ABSENT else setattr(module, name, before)
        raise


_ABSENT: Final = object()


def _add_views(module: torch.nn.Module, views: dict[int, _View]) -> torch.nn.Module:
    """Add the views of a module and its submodules to ``views``, by the identity of the module; return its own. Modules
    that were not compiled from Python are their own views."""
    python_class = python_class_of(module)
    if python_class is None:
        return module
    if id(module) not in views:
        view = views[id(module)] = _View.of(module, python_class)
        parts = module._modules.items()
        view.see({name: None if part is None else _add_views(part, views) for name, part in parts})
    return views[id(module)].view


def python_class_of(module: torch.nn.Module) -> type | None:
    """Return the class that a compiled module was compiled from; None if that is not known, if the module is an object
    of it, and for other modules."""
    python_class: type | None = vars(module).get("_rekindle_python_class")
    return None if python_class is None or isinstance(module, python_class) else python_class


# ------------------------------------------------------------------------------------------------------------ methods


def overridable(name: str, default: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of compiled modules: the override of the method ``name`` in the module's Python class, otherwise
    ``default``."""

    @functools.wraps(default)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        python_class = python_class_of(self)
        if python_class is None or not is_overridden(python_class, name):
            return default(self, *args, **kwargs)
        with self._as_written(name) as module:
            result = _completed(getattr(module, name)(*args, **kwargs))
        return compiled_in(result)

    method.__doc__ = f"Run ``{name}()`` of the module's Python class, or that of ``nn.Module``."
    return method


def _completed(result: Any) -> Any:
    """Return the result of an override. What a generator still has to do is done."""
    return iter(list(result)) if isinstance(result, types.GeneratorType) else result


@dataclass(slots=True, frozen=True)
class _Method:
    """A method that was assigned to a module: its function."""

    function: Callable[..., Any]


def bound_function(module: torch.nn.Module, value: object) -> types.FunctionType | None:
    """Return the function of a method that was assigned to ``module``: ``types.MethodType(function, module)``, or
    ``functools.partial(function, module)``. Return None for other values."""
    if isinstance(value, functools.partial) and not value.keywords:
        function, bound = value.func, value.args
    elif isinstance(value, types.MethodType):
        function, bound = value.__func__, (value.__self__,)
    else:
        return None
    return function if isinstance(function, types.FunctionType) and len(bound) == 1 and bound[0] is module else None


def take_functions(compiled: torch.nn.Module, module: torch.nn.Module) -> None:
    """Give ``compiled`` the functions that are attributes of ``module``, and those that replace methods of
    ``nn.Module`` on it: ``module.train = types.MethodType(keep_mode, module)``. Warn of a replacement that may change
    ``module`` instead: one that refers to modules, or another callable."""
    functions: dict[str, object] = {}
    for name, value in vars(module).items():
        function = bound_function(module, value)
        if function is not None:
            functions[name] = _Method(function)
        elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            functions[name] = value
        if name not in METHODS:
            continue
        if function is not None:
            vars(compiled)[name] = MethodOfModule(name, function, compiled)
        elif isinstance(value, types.FunctionType) and not _refers_to_modules(value):
            vars(compiled)[name] = value
        else:
            warnings.warn(
                f"the compiled module does not have the '{name}' that was assigned to the module "
                f"'{type(module).__name__}': assign a method, types.MethodType(function, module)",
                stacklevel=2,
            )
    if functions:
        vars(compiled)[_FUNCTIONS] = functions


def _refers_to_modules(function: types.FunctionType) -> bool:
    """Return whether a function has a closure, or uses a global module or method."""
    names = function.__globals__
    used = [names.get(name) for name in function.__code__.co_names]
    return function.__closure__ is not None or any(
        isinstance(each, (torch.nn.Module, types.MethodType)) for each in used
    )


@dataclass(slots=True)
class MethodOfModule:
    """A function that is the method ``name`` of the object that ``module`` was compiled from, on the compiled
    module."""

    name: str
    function: Callable[..., Any]
    module: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with as_written(self.module, self.module._rekindle_python_class, self.name) as view:
            result = _completed(self.function(view, *args, **kwargs))
        return compiled_in(result)
