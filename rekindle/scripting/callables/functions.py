"""Records of Python functions (``GraphFunction``): created on first use, compiled when they are first called.

The record of a function is kept with the function itself, so that a function is compiled once and both die together.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch.nn.functional as F

from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import INT, ListType, Type, optional
from rekindle.program import torch_jit
from rekindle.program.names import qualified_name, unique_name
from rekindle.scripting.callables.dependencies import Dependencies
from rekindle.scripting.callables.overloads import Declaration, overloads_of
from rekindle.scripting.callables.stored_functions import StoredFunction
from rekindle.scripting.compilation import compile_function

_CACHE = "__rekindle_records__"


@dataclass(slots=True)
class _CachedRecords:
    """The compiled records cached on a Python function. ``function`` identifies it, since copies made by
    ``functools.wraps`` share its attributes."""

    function: types.FunctionType
    records: tuple[GraphFunction, ...]


def records_of(function: types.FunctionType) -> tuple[GraphFunction, ...]:
    """Return the records of a Python function: one, or one for each overload. They are created on the first call and
    cached on the function; each is compiled when it is first used."""
    cached = vars(function).get(_CACHE)
    if isinstance(cached, _CachedRecords) and cached.function is function:
        return cached.records
    declarations: list[Declaration] = list(overloads_of(function)) or [None]
    declarations += _FURTHER.get(function, ())
    records = tuple(_record(function, declaration, declarations) for declaration in declarations)
    setattr(function, _CACHE, _CachedRecords(function, records))
    return records


def record_of(function: types.FunctionType) -> GraphFunction:
    """Return the record of a function; if it has overloads, the record of the first one."""
    return records_of(function)[0]


def records_called(function: types.FunctionType) -> tuple[GraphFunction, ...]:
    """Return the records that a call of the function may run: those of two functions if a boolean argument selects one
    of them."""
    dispatch = boolean_dispatch_of(function)
    if dispatch is None:
        return records_of(function)
    return (*records_of(dispatch.if_true), *records_of(dispatch.if_false))


def _record(function: types.FunctionType, declaration: Declaration, overloads: Sequence[Declaration]) -> GraphFunction:
    def define(record: GraphFunction) -> None:
        stored = StoredFunction.of(function, record.basename, records_called, declaration, overloads)
        if stored is None:
            compile_function(record, function, declaration)
        elif not stored.load(record):
            dependencies = Dependencies(function)
            compile_function(record, function, declaration, observer=dependencies)
            stored.store(record, dependencies)

    return GraphFunction(unique_name(qualified_name(function)), function_creator=define, docstring=function.__doc__)


def underlying_function(obj: object) -> types.FunctionType | None:
    """Return the Python function of a result of ``torch.jit.script``, or of ``script_if_tracing`` of this package or
    ``torch.jit``; None for other objects."""
    if isinstance(obj, types.FunctionType):
        return _compiled_if_tracing(obj)
    if not isinstance(obj, torch_jit.SCRIPT_FUNCTION):
        return None
    found = getattr(obj, "_torchdynamo_inline", None)
    return found if isinstance(found, types.FunctionType) else None


_IF_TRACING: Final = "__script_if_tracing_wrapper"
_ORIGINAL: Final = "__original_fn"
"""The attributes that ``torch.jit`` sets on the functions returned by ``script_if_tracing``."""


def mark_as_compiled_if_tracing(wrapper: object, function: object) -> None:
    """Mark ``wrapper`` so that compilers, including ``torch.jit``, compile ``function`` in place of it."""
    setattr(wrapper, _IF_TRACING, True)
    setattr(wrapper, _ORIGINAL, function)


def _compiled_if_tracing(wrapper: types.FunctionType) -> types.FunctionType | None:
    held = vars(wrapper)
    if _IF_TRACING not in held:
        return None
    function = held.get(_ORIGINAL)
    behind = underlying_function(function)
    return function if behind is None and isinstance(function, types.FunctionType) else behind


# ------------------------------------------------------------------------------------------------------------ overloads

_POOLS_WITH_NONE: Final = (
    *("adaptive_avg_pool2d", "adaptive_avg_pool3d", "_adaptive_max_pool2d", "_adaptive_max_pool3d"),
    *("adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices"),
)
_SIZES_WITH_NONE: Final[Mapping[str, Type]] = {"output_size": ListType(optional(INT))}
_FURTHER: Final[dict[Any, tuple[Declaration, ...]]] = {
    getattr(F, name): (_SIZES_WITH_NONE,) for name in _POOLS_WITH_NONE
}
"""Overloads that PyTorch does not declare: these take ``(5, None)`` as well, but are annotated as if they took ints
only."""


@dataclass(slots=True)
class BooleanDispatch:
    """A function that is one of two, chosen by a boolean argument, as ``F.max_pool2d`` is by ``return_indices``."""

    argument: str
    index: int
    default: bool
    if_true: types.FunctionType
    if_false: types.FunctionType


def boolean_dispatch_of(function: object) -> BooleanDispatch | None:
    if not inspect.isfunction(function):
        return None
    found = torch_jit.boolean_dispatch(function)
    if found is None:
        return None
    return BooleanDispatch(found["arg_name"], found["arg_index"], found["default"], found["if_true"], found["if_false"])
