"""The classes of Tensors, which types do not have: ``isinstance(x, nn.Parameter)``."""

from __future__ import annotations

from typing import Any, Final

import torch

from rekindle.ops.registration.declare import implements

PARAMETER: Final = f"{torch.nn.Parameter.__module__}.{torch.nn.Parameter.__qualname__}"
"""The name of the class of parameters."""


@implements("python::is_instance(Any value, str cls) -> bool")
def is_instance(value: Any, cls: str) -> bool:
    """Return whether ``value`` is an instance of the class with the qualified name ``cls``. Tensors may be marked as
    parameters without being of the class."""
    if cls == PARAMETER:
        return isinstance(value, torch.nn.Parameter)
    return any(_name(base) == cls for base in type(value).__mro__)


@implements("python::is_exactly(Any value, str cls) -> bool")
def is_exactly(value: Any, cls: str) -> bool:
    """Return whether the qualified name of the class of ``value`` is ``cls``."""
    return _name(type(value)) == cls


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
