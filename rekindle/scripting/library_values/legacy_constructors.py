"""Constructors of tensors from before dtypes: ``torch.FloatTensor([1, 2])``, ``torch.LongTensor(2, 3)``.

Data become ``torch.tensor(data, dtype=…)``. Sizes become ``torch.empty(sizes, dtype=…)``, none ``torch.empty(0)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import BuiltinFunction
from rekindle.ir.operators.named_value import NamedValue
from rekindle.ir.scalar_types import DTYPE_NUMBERS
from rekindle.ir.types import INT, ListType, TensorType, TupleType, Type
from rekindle.scripting.class_values import CLASS_VALUE_HOOKS
from rekindle.scripting.python_values import ClassValue
from rekindle.scripting.resolver import PythonResolver

_DTYPES: Final = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "CharTensor": torch.int8,
    "ShortTensor": torch.int16,
    "IntTensor": torch.int32,
    "LongTensor": torch.int64,
    "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}


class LegacyConstructor(ClassValue):
    """``torch.Tensor``, or a class of tensors of one dtype."""

    def call(self, call: CallSite) -> SugaredValue:
        if call.kwargs:
            raise UnsupportedError(f"{self.description} takes no arguments by name in a program", call.range)
        types = [item.type for item in call.args]
        dtype = _DTYPES.get(self.cls.__name__, torch.get_default_dtype())
        keywords = [NamedValue(constant=DTYPE_NUMBERS[dtype], range=call.range, name="dtype")]
        if all(type == INT for type in types):
            sizes = [item.materialize(call.graph) for item in call.args] or [call.graph.insert_constant(0)]
            made = call.graph.create("prim::ListConstruct", sizes, types=[ListType(INT)], range=call.range)
            arguments = [NamedValue(call.graph.insert_node(made).output, range=call.range)]
            return _call("aten::empty", call, arguments, keywords)
        if len(types) == 1 and types[0] == ListType(INT, "Size"):
            return _call("aten::empty", call, call.args, keywords)
        if len(types) == 1 and _is_data(types[0]):
            return _call("aten::tensor", call, call.args, keywords)
        given = ", ".join(type.annotation for type in types)
        raise UnsupportedError(
            f"{self.description} takes sizes, or a list of numbers, and is given ({given})",
            call.range,
            hint=f"write torch.tensor(…, dtype={dtype}), or x.to({dtype})",
        )


def _is_data(type: Type) -> bool:
    if isinstance(type, ListType):
        return not isinstance(type.element, TensorType)
    return isinstance(type, TupleType)


def _call(kind: str, call: CallSite, args: Sequence[NamedValue], keywords: Sequence[NamedValue]) -> SugaredValue:
    return BuiltinFunction(kind).call(CallSite(call.range, call.graph, args, keywords))


def _value_of_class(cls: type, range: SourceRange) -> SugaredValue | None:
    is_legacy = cls is torch.Tensor or (getattr(torch, cls.__name__, None) is cls and cls.__name__ in _DTYPES)
    return LegacyConstructor(cls, PythonResolver()) if is_legacy else None


CLASS_VALUE_HOOKS.append(_value_of_class)
