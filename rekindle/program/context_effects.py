"""Effects of PyTorch's context managers that archives do not spell out.

Archives contain the classes of ``torch.autocast`` and ``record_function`` as PyTorch compiled them: their ``__enter__``
returns ``self``, or calls the profiler on a C++ object. The runtime is expected to recognize them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, TypeAlias

import torch
from torch.autograd import profiler

from rekindle.ir.mangling import demangled
from rekindle.ir.scalar_types import DTYPES
from rekindle.ir.types import ClassType

_Manager: TypeAlias = AbstractContextManager[Any]


def _autocast(made: Any) -> _Manager:
    return torch.autocast(made.device, DTYPES[made.fast_dtype], made._enabled)


def _record_function(made: Any) -> _Manager:
    return profiler.record_function(made.name, made.args)


_EFFECTS: Final[dict[str, tuple[Callable[[Any], _Manager], tuple[str, ...]]]] = {
    "__torch__.torch.amp.autocast_mode.autocast": (_autocast, ("device", "fast_dtype", "_enabled")),
    "__torch__.torch.cpu.amp.autocast_mode.autocast": (_autocast, ("device", "fast_dtype", "_enabled")),
    "__torch__.torch.cuda.amp.autocast_mode.autocast": (_autocast, ("device", "fast_dtype", "_enabled")),
    "__torch__.torch.autograd.profiler.record_function": (_record_function, ("name", "args")),
}
"""By class name: a function that makes PyTorch's context manager of an object, and the attributes that it reads."""


def give_effect(owner: ClassType) -> None:
    """Add ``__enter__`` and ``__exit__`` to the Python class of ``owner``, a class read from program text, if
    ``_EFFECTS`` has its name and ``owner`` has the attributes listed there: a ``with`` statement then enters PyTorch's
    context manager. Other classes are unchanged."""
    make, needed = _EFFECTS.get(demangled(owner.name), (None, ()))
    if make is None or owner.python_class is None or not set(needed) <= set(owner.attributes):
        return

    def enter(self: Any) -> Any:
        manager = make(self)
        manager.__enter__()
        vars(self).setdefault("_entered", []).append(manager)
        return self

    def leave(self: Any, *error: Any) -> None:
        vars(self)["_entered"].pop().__exit__(*error)

    owner.python_class.__enter__ = enter  # type: ignore[attr-defined]
    owner.python_class.__exit__ = leave  # type: ignore[attr-defined]
