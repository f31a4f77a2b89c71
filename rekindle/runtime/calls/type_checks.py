"""Checks in machine code whether values have a type without conversion.

Most arguments need no conversion. Of a list of tuples, say, that is found out by a walk over all of it, which takes
Python a microsecond for each item, and machine code some nanoseconds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch

from rekindle.codegen.llvm.cpython_wrappers import capsule_of, function_at
from rekindle.codegen.plan_runtime.library import loaded_plan_library
from rekindle.codegen.plan_runtime.type_check_ir import TYPE_CHECK_ENTRY, Form
from rekindle.ir.types import (
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    IntType,
    ListType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
)

TypeCheck = Callable[[Any], bool]

_EXACT: Final[dict[str, type]] = {
    IntType.kind: int,
    FloatType.kind: float,
    BoolType.kind: bool,
    ComplexType.kind: complex,
    StringType.kind: str,
    DeviceType.kind: torch.device,
}


def exact_class(type: Type) -> Any:
    """Return the Python class whose direct instances always have ``type``; None if there is no such class."""
    if isinstance(type, TensorType):
        return None if type.is_refined else torch.Tensor
    return _EXACT.get(type.kind)


@cache
def is_checkable(type: Type) -> bool:
    """Return whether native code can check values of ``type``, once it is loaded."""
    try:
        _Description(type)
    except _NotDescribed:
        return False
    return True


def type_check(type: Type) -> TypeCheck | None:
    """Return a function that checks whether a value and its items are of a checkable ``type`` without conversion.

    None as long as no machine code has been loaded.
    """
    return None if loaded_plan_library() is None else _compiled(type)


@cache
def _compiled(type: Type) -> TypeCheck | None:
    library, description = loaded_plan_library(), _Description(type)
    if library is None:
        return None
    capsule = capsule_of(description.words)
    return function_at(library.address(TYPE_CHECK_ENTRY), TYPE_CHECK_ENTRY, capsule, (library, description))


class _NotDescribed(Exception):
    """A type has no description for native code."""


class _Description:
    """Description of a type for machine code; see :mod:`rekindle.codegen.plan_runtime.type_check_ir`."""

    words: ctypes.Array[ctypes.c_int64]

    def __init__(self, type: Type) -> None:
        form, operand, parts = _form_of(type)
        self.parts = [_Description(part) for part in parts]
        values = [form, operand, *(ctypes.addressof(part.words) for part in self.parts)]
        self.words = (ctypes.c_int64 * len(values))(*values)


def _form_of(type: Type) -> tuple[Form, int, tuple[Type, ...]]:
    """Return the form by which machine code checks a type (list, tuple, class …), the operand of that form, and the
    types of the parts.

    Raises:
        _NotDescribed: values of the type have no form of their own.
    """
    match type:
        case ListType():
            return Form.LIST, 0, (type.element,)
        case TupleType() if type.fields is None:
            return Form.TUPLE, len(type.elements), tuple(type.elements)
        case OptionalType():
            return Form.OPTIONAL, 0, (type.element,)
        case DictType() if not type.is_set:
            return Form.DICT, 0, (type.key, type.value)
    cls = exact_class(type)
    if cls is None:
        raise _NotDescribed
    return Form.CLASS, id(cls), ()
