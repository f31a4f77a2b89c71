"""Events of ``torch.profiler``: stages of compilation, and kernels.

An event is recorded in the thread that a profiler watches. Without an active profiler, a stage costs the question
whether there is one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import torch

PREFIX: Final = "rekindle::"
"""What the names of all events begin with."""

# The public class calls an operator, which modes and traces would see.
_RECORD: Final[Any] = getattr(torch._C._profiler, "_RecordFunctionFast", nullcontext)
_is_active: Final = torch._C._autograd._profiler_enabled
_NOTHING: Final = nullcontext()


def recorded(name: str) -> AbstractContextManager[Any]:
    """Return a context in which an active profiler records one event, ``name`` with the prefix."""
    return _RECORD(PREFIX + name) if _is_active() else _NOTHING
