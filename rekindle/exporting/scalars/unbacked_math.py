"""Functions of numbers that are known only when the exported program runs: computed on tensors without dimensions.

PyTorch has symbols for sums and products of such numbers, not for their roots or bits. Where Python's function raises
for a number, an assertion of the exported program fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.exporting.interpreter.values import DTYPE_OF_KIND, NumberKind, UnbackedScalar, is_known, number_as_tensor

_aten: Final = torch.ops.aten

_FLOAT_FUNCTIONS: Final = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp", "expm1", "lgamma", "log"),
    *("log10", "log1p", "sin", "sinh", "sqrt", "tan", "tanh"),
)
_BITS: Final = (
    ("__and__", _aten.bitwise_and.Tensor),
    ("__or__", _aten.bitwise_or.Tensor),
    ("__xor__", _aten.bitwise_xor.Tensor),
    ("__lshift__", _aten.bitwise_left_shift.Tensor),
    ("__rshift__", _aten.bitwise_right_shift.Tensor),
)


def _converted(value: Any, kind: NumberKind) -> Tensor:
    tensor = number_as_tensor(value)
    dtype = DTYPE_OF_KIND[kind]
    return tensor if tensor.dtype == dtype else _aten.to.dtype(tensor, dtype)


def _on_tensors(
    form: Callable[..., Tensor], given: NumberKind, made: NumberKind, *, may_raise: bool = False
) -> Callable[[Sequence[Any]], Any]:
    """Return a function that computes ``form`` on numbers converted to the kind ``given``. With ``may_raise``, it
    asserts in the exported program that the result for finite numbers is finite, where Python raises."""

    def run(args: Sequence[Any]) -> Any:
        tensors = [_converted(value, given) for value in args]
        result = form(*tensors)
        if may_raise:
            is_fine = _aten.isfinite.default(result)
            for tensor in tensors:
                is_fine = _aten.logical_or.default(is_fine, _aten.logical_not.default(_aten.isfinite.default(tensor)))
            _aten._assert_async.msg(is_fine, "ValueError: math domain error")
        if result.dtype != DTYPE_OF_KIND[made]:
            result = _aten.to.dtype(result, DTYPE_OF_KIND[made])
        return UnbackedScalar(made, result)

    return run


_FORMS: Final[dict[str, Callable[[Sequence[Any]], Any]]] = {
    "aten::floor.float": _on_tensors(_aten.floor.default, "float", "int"),
    "aten::ceil.float": _on_tensors(_aten.ceil.default, "float", "int"),
    "aten::round.float": _on_tensors(_aten.round.default, "float", "float"),
    "aten::isnan.float": _on_tensors(_aten.isnan.default, "float", "bool"),
    "aten::isinf.float": _on_tensors(_aten.isinf.default, "float", "bool"),
    "aten::isfinite.float": _on_tensors(_aten.isfinite.default, "float", "bool"),
    **{f"aten::{name}.int": _on_tensors(form, "int", "int") for name, form in _BITS},
}
for _name in _FLOAT_FUNCTIONS:
    for _kind in ("int", "float"):
        _FORMS[f"aten::{_name}.{_kind}"] = _on_tensors(getattr(_aten, _name).default, "float", "float", may_raise=True)
for _kind in ("int", "float", "int_float", "float_int"):
    _FORMS[f"aten::pow.{_kind}"] = _on_tensors(_aten.pow.Tensor_Tensor, "float", "float", may_raise=True)
    _FORMS[f"aten::atan2.{_kind}"] = _on_tensors(_aten.atan2.default, "float", "float")
    if _kind != "int":
        _FORMS[f"aten::floordiv.{_kind}"] = _on_tensors(_aten.floor_divide.default, "float", "float", may_raise=True)
        _FORMS[f"aten::remainder.{_kind}"] = _on_tensors(_aten.remainder.Tensor, "float", "float", may_raise=True)
        _FORMS[f"prim::min.{_kind}"] = _on_tensors(_aten.minimum.default, "float", "float")
        _FORMS[f"prim::max.{_kind}"] = _on_tensors(_aten.maximum.default, "float", "float")


def form_of(name: str, args: Sequence[Any]) -> Callable[[Sequence[Any]], Any] | None:
    """Return the implementation on tensors of a math operator, by its qualified name; None if no argument is unbacked,
    or there is none."""
    found = _FORMS.get(name)
    return None if found is None or all(map(is_known, args)) else found
