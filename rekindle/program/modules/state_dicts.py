"""Hooks of ``state_dict()`` and ``load_state_dict()`` on compiled modules.

A hook that is a method of the module that was compiled runs on an object of its class
(:mod:`rekindle.program.modules.overrides`). Archives hold neither the class nor the hooks.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.nn.modules.module import _WrappedHook

from rekindle.ir.types import ClassType
from rekindle.program.modules.overrides import (
    METHODS,
    STATE_DICT_METHODS,
    as_written,
    is_of_library,
    overridden_methods,
)

_HOOKS: Final = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class _HookOfModule:
    """A hook that is a method of the module that was compiled: it runs on an object that shares the compiled module's
    state."""

    def __init__(self, function: Callable[..., Any], python_class: type, module: Any) -> None:
        self.function = function
        self.python_class = python_class
        self.module = module
        self._from_public_api = getattr(function, "_from_public_api", False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with as_written(self.module, self.python_class, "state_dict") as view:
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
    """Warn if an archive of ``module`` loses overrides in its class, or hooks of ``state_dict()``.

    ``compiled`` is the type with the methods that were compiled, which are not lost. The overrides and hooks of
    PyTorch's own classes read checkpoints of earlier releases, and change nothing for others; those of
    :class:`~rekindle.ScriptModule` do what PyTorch's do.
    """
    if python_class is None:
        return
    replaced = [name for name in METHODS if name in vars(module)]
    others = [name for name in (*overridden_methods(python_class), *replaced) if name not in compiled.methods]
    if others:
        warnings.warn(
            f"the archive does not keep {', '.join(others)} of the class '{python_class.__name__}': what is loaded "
            "from it has those of nn.Module",
            stacklevel=3,
        )
    found = [
        name
        for name in STATE_DICT_METHODS
        if name not in compiled.methods and not is_of_library(getattr(python_class, name, torch.nn.Module))
    ]
    hooks = [hook for table in _HOOKS for hook in vars(module)[table].values()]
    if any(not is_of_library(getattr(hook, "hook", hook)) for hook in hooks):
        found.append("what its hooks do")
    if found:
        warnings.warn(
            f"the archive does not keep {', '.join(found)} of the class '{python_class.__name__}': state_dict() of "
            "what is loaded from it holds parameters and buffers alone. Methods that are marked with @export are kept",
            stacklevel=3,
        )
