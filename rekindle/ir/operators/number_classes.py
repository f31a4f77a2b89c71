"""Classes of numbers: dtypes, layouts, memory formats and quantization schemes are ints in the IR, but not in Python.

``x.view(torch.int32)`` has an overload of its own, and ``x + torch.int32`` is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.ir.operators.named_value import NamedValue
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import FLOAT, NUMBER, DictType, IntType, TensorType, Type

_CLASSES: Final = {
    "ScalarType": "torch.dtype",
    "Layout": "torch.layout",
    "MemoryFormat": "torch.memory_format",
    "QScheme": "torch.qscheme",
}
"""The Python classes of arguments that are ints in the IR, by their type in schemas."""
_CLASSES_OF_NAMES: Final = {"dtype": "torch.dtype", "layout": "torch.layout", "format": "torch.memory_format"}
"""The same by the last word of their names, in schemas that write int."""
_TAKE_ANY_CLASS: Final = frozenset(
    f"aten::{name}" for name in ("eq", "ne", "__contains__", "index", "count", "remove", "hash", "str", "__getitem__")
)
"""Operators that take ints of any class of Python: comparisons, texts, and tables by the numbers of dtypes."""


def number_class_mismatch(
    schema: FunctionSchema, formal: Argument, actual: NamedValue, args: Sequence[NamedValue]
) -> str | None:
    """Return why ``actual``, one of ``args``, cannot be passed for ``formal``, because it is a dtype, a layout or a
    memory format, and the operator expects a number or another of these; None if it can be."""
    given = _class_of_number(actual.type)
    if given is None or not schema.name.startswith("aten::") or not _takes_number(formal.type):
        return None
    is_compared = schema.name in _TAKE_ANY_CLASS and not any(isinstance(each.type, TensorType) for each in args)
    if is_compared or isinstance(schema.arguments[0].type, DictType):
        return None
    wanted = _CLASSES.get((formal.spelling or "").rstrip("?")) or _CLASSES_OF_NAMES.get(formal.name.rpartition("_")[2])
    if given == wanted:
        return None
    return f"argument '{formal.name}': expected {wanted or formal.type.annotation}, got {given}"


def _class_of_number(type: Type) -> str | None:
    """Return the class that Python has for a number, or for numbers in a container; None if that is int."""
    if isinstance(type, IntType):
        return type.python_name or None
    return next((found for each in type.contained if (found := _class_of_number(each)) is not None), None)


def _takes_number(type: Type) -> bool:
    return isinstance(type, IntType) or type in (FLOAT, NUMBER) or any(map(_takes_number, type.contained))
