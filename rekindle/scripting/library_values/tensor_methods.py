"""Methods of tensors that are implemented in Python: they are compiled as the function of ``torch`` that they call.

The operator of the same name may do less (``aten::stft`` does not pad) or return more (``aten::unique_consecutive``
always returns three results).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from rekindle.errors import SchemaError
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.tensor_attributes import PYTHON_METHODS
from rekindle.frontend.sugared_values.values import BuiltinFunction
from rekindle.scripting.library_values.cuda import CudaMethod, RecordStream, ToMethod
from rekindle.scripting.python_values import function_value
from rekindle.scripting.resolver import PythonResolver

_NAMES = ("lu", "stft", "unique", "unique_consecutive")


class OperatorFirst(SugaredValue):
    """A callable value that calls an operator if the arguments match it, and otherwise a function that accepts more."""

    def __init__(self, operator: SugaredValue, function: SugaredValue) -> None:
        self.operator = operator
        self.function = function

    @property
    def description(self) -> str:
        return self.operator.description

    def call(self, call: CallSite) -> SugaredValue:
        try:
            return self.operator.call(call)
        except SchemaError as why:
            try:
                return self.function.call(call)
            except SchemaError:
                raise why from None


def _function(function: Any) -> SugaredValue:
    return function_value(function, PythonResolver.of_function(function))


def _norm() -> SugaredValue:
    return OperatorFirst(BuiltinFunction("aten::norm"), _function(torch.norm))


def _type(x, dtype: torch.dtype, non_blocking: bool = False):  # type: ignore[no-untyped-def]
    return x.to(dtype, non_blocking=non_blocking)


def _new_tensor(  # type: ignore[no-untyped-def]
    x, data, dtype: torch.dtype | None = None, device: torch.device | None = None, requires_grad: bool = False
):
    wanted = x.dtype if dtype is None else dtype
    return torch.tensor(data, dtype=wanted, device=x.device if device is None else device, requires_grad=requires_grad)


def _radd(x, other):  # type: ignore[no-untyped-def]
    return other + x


def _rsub(x, other):  # type: ignore[no-untyped-def]
    return other - x


def _rmul(x, other):  # type: ignore[no-untyped-def]
    return other * x


def _rdiv(x, other):  # type: ignore[no-untyped-def]
    return other / x


def _rfloordiv(x, other):  # type: ignore[no-untyped-def]
    return other // x


def _rmod(x, other):  # type: ignore[no-untyped-def]
    return torch.remainder(other, x)


def _rpow(x, other):  # type: ignore[no-untyped-def]
    return other**x


def _rmatmul(x, other):  # type: ignore[no-untyped-def]
    return other @ x


def _rand(x, other):  # type: ignore[no-untyped-def]
    return other & x


def _ror(x, other):  # type: ignore[no-untyped-def]
    return other | x


def _rxor(x, other):  # type: ignore[no-untyped-def]
    return other ^ x


_REFLECTED = {
    "__radd__": _radd,
    "__rsub__": _rsub,
    "__rmul__": _rmul,
    "__rdiv__": _rdiv,
    "__rtruediv__": _rdiv,
    "__rfloordiv__": _rfloordiv,
    "__rmod__": _rmod,
    "__rpow__": _rpow,
    "__rmatmul__": _rmatmul,
    "__rand__": _rand,
    "__ror__": _ror,
    "__rxor__": _rxor,
}
"""Implementations of Python's reflected operators, with the tensor as the right operand."""

PYTHON_METHODS.update({name: partial(_function, function) for name, function in _REFLECTED.items()})
PYTHON_METHODS.update({name: partial(_function, getattr(torch, name)) for name in _NAMES})
PYTHON_METHODS["norm"] = _norm
PYTHON_METHODS |= {"cuda": CudaMethod, "to": ToMethod, "record_stream": RecordStream}
PYTHON_METHODS["type"] = partial(_function, _type)
PYTHON_METHODS["new_tensor"] = partial(_function, _new_tensor)
PYTHON_METHODS["nelement"] = partial(BuiltinFunction, "aten::numel")
PYTHON_METHODS["ndimension"] = partial(BuiltinFunction, "aten::dim")
PYTHON_METHODS["to_sparse_coo"] = partial(BuiltinFunction, "aten::to_sparse")
