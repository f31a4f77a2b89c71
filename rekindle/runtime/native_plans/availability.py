"""Native plans, where this process can have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from rekindle.codegen.llvm.engine import NativeCode
from rekindle.codegen.plan_runtime.library import plan_library
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.native_plans.native_plan import compiled_plan
from rekindle.runtime.native_plans.self_test import passes_self_test


def native_function(code: Code, fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a function that runs ``code`` without Python between its operators; None if there is none, or it is not
    expected to be faster than a plan in Python. Calls that it does not support are passed to ``fallback``."""
    library = _library()
    return None if library is None else compiled_plan(code, library, fallback)


@cache
def _library() -> NativeCode | None:
    """Return the machine code of native plans; None if it is not available or not used in this process."""
    library = plan_library()
    return library if library is not None and passes_self_test(library) else None
