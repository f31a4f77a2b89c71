"""Overrides of ``state_dict()`` and ``load_state_dict()`` in a Python class, and their hooks, on compiled modules.

An override may call ``super()``, other methods of its class and attributes of its object. So it runs on an object of
the class that shares all that the compiled module holds: parameters, buffers, submodules, hooks and attributes. What it
assigns is assigned to the compiled module afterwards. Archives hold neither the class nor the hooks.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch.nn.modules.module import _WrappedHook

from rekindle.ir.types import ClassType

_METHODS: Final = (
    "state_dict",
    "load_state_dict",
    "_save_to_state_dict",
    "_load_from_state_dict",
    "get_extra_state",
    "set_extra_state",
)
_HOOKS: Final = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def has_overrides(python_class: type | None) -> bool:
    """Return whether a class overrides ``state_dict()``, ``load_state_dict()`` or a method that one of them calls;
    False for None."""
    if python_class is None:
        return False
    return any(getattr(python_class, name, None) is not getattr(torch.nn.Module, name) for name in _METHODS)


@contextmanager
def as_written(module: torch.nn.Module, python_class: type, constants: dict[str, object]) -> Iterator[torch.nn.Module]:
    """Yield an object of ``python_class`` with the state of the compiled ``module``. Attributes that the ``with`` block
    assigns to it are assigned to ``module`` afterwards, unless the block raises.

    Raises:
        AttributeError: the block reads an attribute that the compiled module does not have.
    """
    view: torch.nn.Module = object.__new__(python_class)
    own, before = vars(view), {**constants, **vars(module), **_python_values(module)}
    own.update(before)
    try:
        yield view
    except AttributeError as error:
        missing = f"'{python_class.__name__}' object has no attribute "
        if not str(error).startswith(missing):
            raise
        raise AttributeError(
            f"{error}: its methods for state_dict() need it, and the compiled module has the attributes that programs "
            "can hold, and no others. Call state_dict() on the module that was compiled"
        ) from error
    for name, value in own.items():
        if name not in before or value is not before[name]:
            setattr(module, name, value)


def _python_values(module: torch.nn.Module) -> dict[str, object]:
    """Return the Python values, such as ``torch.float32``, of attributes that are ints in programs and that were not
    assigned since."""
    held: dict[str, tuple[int, object]] = vars(module).get("_rekindle_python_values", {})
    return {name: value for name, (number, value) in held.items() if vars(module).get(name) == number}


class _HookOfModule:
    """A hook that is a method of the module that was compiled: it runs on an object that shares the compiled module's
    state."""

    def __init__(self, function: Callable[..., Any], python_class: type, module: Any) -> None:
        self.function = function
        self.python_class = python_class
        self.module = module
        self._from_public_api = getattr(function, "_from_public_api", False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        constants = self.module._rekindle_type.constants
        with as_written(self.module, self.python_class, constants) as view:
            return self.function(view, *args, **kwargs)


def take_hooks(compiled: torch.nn.Module, module: torch.nn.Module) -> None:
    """Register the ``state_dict()`` and ``load_state_dict()`` hooks of ``module`` on ``compiled``, and copy the version
    of its class, which the metadata of a state dict contains."""
    if module._version != compiled._version:
        vars(compiled)["_version"] = module._version
    for table in _HOOKS:
        hooks = vars(module).get(table, {})
        vars(compiled)[table].update({key: _for(compiled, module, hook) for key, hook in hooks.items()})


def _for(compiled: torch.nn.Module, module: torch.nn.Module, hook: Any) -> Any:
    if isinstance(hook, _WrappedHook):
        inner = _for(compiled, module, hook.hook)
        return _WrappedHook(inner, compiled if hook.with_module else None)
    if isinstance(hook, types.MethodType) and hook.__self__ is module:
        return _HookOfModule(hook.__func__, type(module), compiled)
    return hook


def warn_of_lost_overrides(module: torch.nn.Module, python_class: type | None, compiled: ClassType) -> None:
    """Warn if an archive of ``module`` loses the overrides of ``state_dict()`` in its class or hooks.

    ``compiled`` is the type with the methods that were compiled, which are not lost. The overrides and hooks of
    PyTorch's own classes read checkpoints of earlier releases, and change nothing for others; those of
    :class:`~rekindle.ScriptModule` do what PyTorch's do.
    """
    if python_class is None:
        return
    found = [
        name
        for name in _METHODS
        if name not in compiled.methods and not _is_of_library(getattr(python_class, name, torch.nn.Module))
    ]
    hooks = [hook for table in _HOOKS for hook in vars(module)[table].values()]
    if any(not _is_of_library(getattr(hook, "hook", hook)) for hook in hooks):
        found.append("what its hooks do")
    if found:
        warnings.warn(
            f"the archive does not keep {', '.join(found)} of the class '{python_class.__name__}': state_dict() of "
            "what is loaded from it holds parameters and buffers alone. Methods that are marked with @export are kept",
            stacklevel=3,
        )


def _is_of_library(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith(("torch.", "rekindle."))
