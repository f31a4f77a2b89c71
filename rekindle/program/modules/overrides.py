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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch

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


@dataclass(slots=True, frozen=True)
class _View:
    """``view`` is an object of the Python class of a compiled ``module``, which shares its state. ``before`` are its
    attributes when it was made, ``parts`` its submodules."""

    view: torch.nn.Module
    module: torch.nn.Module
    before: dict[str, object]
    parts: Mapping[str, torch.nn.Module | None]

    def finish(self) -> None:
        """Assign to the compiled module what was assigned to the object."""
        own = vars(self.view)
        for name, value in own.items():
            if name != "_modules" and (name not in self.before or value is not self.before[name]):
                setattr(self.module, name, value)
        for name, part in own["_modules"].items():
            if name not in self.parts or part is not self.parts[name]:
                setattr(self.module, name, part)


def _view(module: Any, python_class: type, parts: Mapping[str, torch.nn.Module | None]) -> _View:
    view: torch.nn.Module = object.__new__(python_class)
    before = {**module._rekindle_type.constants, **vars(module), **_python_values(module)}
    vars(view).update(before, _modules=dict(parts))
    return _View(view, module, before, parts)


def _python_values(module: torch.nn.Module) -> dict[str, object]:
    """Return the Python values, such as ``torch.float32``, of attributes that are ints in programs and that were not
    assigned since."""
    held: dict[str, tuple[int, object]] = vars(module).get("_rekindle_python_values", {})
    return {name: value for name, (number, value) in held.items() if vars(module).get(name) == number}


@contextmanager
def as_written(module: torch.nn.Module, python_class: type, method: str) -> Iterator[torch.nn.Module]:
    """Yield an object of ``python_class`` with the state of the compiled ``module``. Attributes that the ``with`` block
    assigns to it are assigned to ``module`` afterwards, unless the block raises. ``method`` is the method that is
    called. Unless it is for state dicts, the submodules of the object are such objects too.

    Raises:
        AttributeError: the block reads an attribute that the compiled module does not have.
    """
    views: dict[int, _View] = {}
    if method in STATE_DICT_METHODS:
        views[id(module)] = _view(module, python_class, module._modules)
    else:
        _add_views(module, views)
    try:
        yield views[id(module)].view
    except AttributeError as error:
        if not any(str(error).startswith(f"'{type(each.view).__name__}' object has no") for each in views.values()):
            raise
        raise AttributeError(
            f"{error}: the method {method}() of its class needs it, and the compiled module has the attributes that "
            f"programs can hold, and no others. Call {method}() on the module that was compiled"
        ) from error
    for each in views.values():
        each.finish()


def _add_views(module: torch.nn.Module, views: dict[int, _View]) -> torch.nn.Module:
    """Add the views of a module and its submodules to ``views``, by the identity of the module; return its own. Modules
    that were not compiled from Python are their own views."""
    python_class = python_class_of(module)
    if python_class is None:
        return module
    if id(module) not in views:
        views[id(module)] = view = _view(module, python_class, {})
        parts = {name: part and _add_views(part, views) for name, part in module._modules.items()}
        vars(view.view)["_modules"].update(parts)
        views[id(module)] = _View(view.view, module, view.before, parts)
    return views[id(module)].view


def python_class_of(module: torch.nn.Module) -> type | None:
    """Return the class that a compiled module was compiled from; None if that is not known, if the module is an object
    of it, and for other modules."""
    python_class: type | None = vars(module).get("_rekindle_python_class")
    return None if python_class is None or isinstance(module, python_class) else python_class


def overridable(name: str, default: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of compiled modules: the override of the method ``name`` in the module's Python class, otherwise
    ``default``."""

    @functools.wraps(default)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        python_class = python_class_of(self)
        if python_class is None or not is_overridden(python_class, name):
            return default(self, *args, **kwargs)
        with self._as_written(name) as module:
            result = getattr(module, name)(*args, **kwargs)
        return self if result is module else result

    method.__doc__ = f"Run ``{name}()`` of the module's Python class, or that of ``nn.Module``."
    return method


def take_replaced(compiled: torch.nn.Module, module: torch.nn.Module) -> None:
    """Give ``compiled`` the functions that replace methods of ``module`` alone: ``module.train = keep_mode``."""
    for name in METHODS:
        found = vars(module).get(name)
        if isinstance(found, types.MethodType) and found.__self__ is module:
            found = MethodOfModule(name, found.__func__, compiled)
        if found is not None:
            vars(compiled)[name] = found


@dataclass(slots=True)
class MethodOfModule:
    """A function that is the method ``name`` of the object that ``module`` was compiled from, on the compiled
    module."""

    name: str
    function: Callable[..., Any]
    module: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with as_written(self.module, self.module._rekindle_python_class, self.name) as view:
            result = self.function(view, *args, **kwargs)
        return self.module if result is view else result
