"""Methods and attributes of numbers, strings and tensors that are not operators: functions of the prelude.

They are looked up last, if a value has no other attribute of that name.
"""

from __future__ import annotations

import sys
from typing import Final

from rekindle.errors import SourceRange
from rekindle.frontend.python.library import library_function
from rekindle.frontend.sugared_values import values
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import BoundCall, BuiltinFunction
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import DTYPE, ListType, is_open_number

_INT: Final = {name: name for name in ("bit_length", "bit_count")}

_METHODS: Final[dict[str, dict[str, str]]] = {
    "IntType": {**_INT, "conjugate": "itself"},
    "BoolType": {},
    "FloatType": {"is_integer": "is_integer", "conjugate": "itself"},
    "NumberType": {
        **{name: f"number_{name}" for name in ("bit_length", "bit_count", "conjugate")},
        **({"is_integer": "number_is_integer"} if sys.version_info >= (3, 12) else {"is_integer": "float_is_integer"}),
    },
    "TupleType": {"index": "tuple_index", "count": "tuple_count"},
    "StringType": {
        **{name: name for name in ("removeprefix", "removesuffix", "isascii")},
        "rsplit": "rsplit_at_white_space",  # of a call without a separator; the others are an operator
    },
    "TensorType": {
        **{f"__{name}__": f"operator_{name}" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")},
        **{f"__{name}__": f"operator_{name}" for name in ("matmul", "lt", "le", "eq", "ne", "gt", "ge", "neg", "pos")},
        **{f"__{name}__": f"operator_{name}" for name in ("abs", "invert", "xor", "lshift", "rshift", "index")},
        **{f"__{name}__": f"operator_{name}" for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod")},
        "__and__": "operator_and_",
        "__or__": "operator_or_",
        "__contains__": "tensor_contains",
        "__getitem__": "operator_getitem",
        "__setitem__": "operator_setitem",
        "__rlshift__": "tensor_lshift_of",
        "__rrshift__": "tensor_rshift_of",
    },
}
"""Prelude functions of methods, by the kind of the value's type and the method's name. The value is their first
argument."""

_OPERATORS: Final[dict[str, dict[str, str]]] = {
    "StringType": {"casefold": "python::casefold"},
    "TensorType": {
        "__len__": "aten::len",
        "__int__": "aten::Int",
        "__float__": "aten::Float",
        "__bool__": "aten::Bool",
        "__complex__": "aten::Complex",
    },
}
"""Operators of methods, by the kind of the value's type and the method's name."""

_ATTRIBUTES: Final[dict[str, dict[str, str]]] = {
    "IntType": {"real": "itself", "imag": "zero", "numerator": "itself", "denominator": "one"},
    "FloatType": {"real": "itself", "imag": "zero_float"},
    "NumberType": {f: f"number_{f}" for f in ("real", "imag", "numerator", "denominator")},
}


_OF_DTYPES: Final = {name: f"dtype_{name}" for name in ("is_floating_point", "is_complex", "is_signed", "itemsize")}


def _find(range: SourceRange, graph: Graph, value: Value, name: str) -> SugaredValue | None:
    kind = "NumberType" if is_open_number(value.type) else value.type.kind
    itself = NamedValue(value, range=range)
    if value.type == DTYPE:
        about = _OF_DTYPES.get(name)
        return None if about is None else library_function(about).call(CallSite(range, graph, [itself]))
    if name == "numel" and isinstance(value.type, ListType) and value.type.python == "Size":
        return BoundCall(library_function("numel_of_size"), itself)
    method = _METHODS.get(kind, {}).get(name)
    if method is not None:
        return BoundCall(library_function(method), itself)
    operator = _OPERATORS.get(kind, {}).get(name)
    if operator is not None:
        return BoundCall(BuiltinFunction(operator), itself)
    attribute = _ATTRIBUTES.get(kind, {}).get(name)
    return None if attribute is None else library_function(attribute).call(CallSite(range, graph, [itself]))


values.python_attribute = _find
