"""Methods by which a Python class changes what ``state_dict()`` holds, and that a compiled module does not call."""

from __future__ import annotations

import warnings
from typing import Final

import torch

from rekindle.ir.types import ClassType

_METHODS: Final = (
    "state_dict",
    "load_state_dict",
    "_save_to_state_dict",
    "_load_from_state_dict",
    "get_extra_state",
    "set_extra_state",
)


def warn_of_lost_overrides(module: torch.nn.Module, python_class: type | None, compiled: ClassType) -> None:
    """Warn where the class that ``module`` was compiled from overrides a method of ``state_dict()``, and has not
    exported it. ``compiled`` is the type with the methods that were compiled.

    The overrides of PyTorch's own classes read checkpoints of earlier releases, and change nothing for others.
    """
    if python_class is None or isinstance(module, python_class):
        return
    found = [
        name
        for name in _METHODS
        if name not in compiled.methods
        and not getattr(getattr(python_class, name, None), "__module__", "torch.").startswith("torch.")
    ]
    if found:
        warnings.warn(
            f"the class '{python_class.__name__}' overrides {', '.join(found)}, which the compiled module does not "
            "call: its state_dict() holds parameters and buffers alone. Mark _save_to_state_dict and "
            "_load_from_state_dict with @export, or call state_dict() on the module that was compiled",
            stacklevel=3,
        )
