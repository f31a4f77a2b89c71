"""Calls of compiled functions under ``torch.compile``: Dynamo traces neither into them nor into this package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

_F = TypeVar("_F", bound=Callable[..., Any])


def skipped_by_dynamo(function: _F) -> _F:
    """Make ``torch.compile`` break its graph at calls of ``function``, and run it, with all that it calls, as Python
    does. Return ``function`` itself.

    That is what ``torch.compiler.disable`` does by a wrapper, which takes a microsecond of each call, and imports
    Dynamo. Here the function is marked as such a wrapper is, for callers that are traced, and its code is marked for
    CPython's frame evaluation hook, which Dynamo installs.
    """
    marks = {"_torchdynamo_disable": True, "_torchdynamo_disable_msg": "rekindle has compiled what it calls"}
    vars(function).update(marks)
    hook: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(hook, "set_code_exec_strategy"):
        skip = hook._FrameAction.SKIP
        hook.set_code_exec_strategy(function.__code__, hook._FrameExecStrategy(skip, skip))
    return function
