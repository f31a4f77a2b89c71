"""``script``: a Python function or module becomes a compiled one."""

from __future__ import annotations

import inspect
from typing import Any

import rekindle.scripting.compilation  # noqa: F401  (fills the slot of rekindle.scripting.functions)
from rekindle.errors import NotScriptableError
from rekindle.program.function import Function
from rekindle.scripting.functions import record_of


def script(obj: Any) -> Any:
    if isinstance(obj, Function):
        return obj
    if inspect.isfunction(obj):
        record = record_of(obj)
        record.ensure_defined()
        return Function(record, obj)
    raise NotScriptableError("x")
