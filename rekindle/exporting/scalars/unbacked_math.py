"""Functions of numbers that are known only when the exported program runs: computed on tensors without dimensions.

PyTorch has symbols for sums and products of such numbers, not for their roots or bits. Where Python's function raises,
or the result is an int of more than 64 bits, an assertion of the exported program fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.exporting.interpreter.values import DTYPE_OF_KIND, NumberKind, UnbackedScalar, is_known, number_as_tensor

_aten: Final = torch.ops.aten

_FLOAT_FUNCTIONS: Final = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp", "expm1", "lgamma", "log"),
    *("log10", "log1p", "sin", "sinh", "sqrt", "tan", "tanh"),
)


def _converted(value: Any, kind: NumberKind) -> Tensor:
    tensor = number_as_tensor(value)
    dtype = DTYPE_OF_KIND[kind]
    return tensor if tensor.dtype == dtype else _aten.to.dtype(tensor, dtype)


_Check = tuple[Callable[[Tensor, Sequence[Tensor]], Tensor], str]
"""A condition on the result and the operands, outside of which Python raises, and the message of the assertion."""


def _any(conditions: Sequence[Tensor]) -> Tensor:
    return reduce(_aten.logical_or.default, conditions)


def _all(conditions: Sequence[Tensor]) -> Tensor:
    return reduce(_aten.logical_and.default, conditions)


def _is_in_domain(result: Tensor, operands: Sequence[Tensor]) -> Tensor:
    """Return whether the result is finite, or infinite as an operand is, or an operand is NaN."""
    from_infinity = [
        _aten.logical_and.default(_aten.isinf.default(result), _any([_aten.isinf.default(each) for each in operands]))
    ]
    return _any([_aten.isfinite.default(result), *from_infinity, *(_aten.isnan.default(each) for each in operands)])


def _is_finite(result: Tensor, operands: Sequence[Tensor]) -> Tensor:
    """Return whether the result is finite, or an operand is not."""
    is_infinite = [_aten.logical_not.default(_aten.isfinite.default(each)) for each in operands]
    return _any([_aten.isfinite.default(result), *is_infinite])


def _has_64_bits(result: Tensor, operands: Sequence[Tensor]) -> Tensor:
    return _all([_aten.ge.Scalar(result, -(2.0**63)), _aten.lt.Scalar(result, 2.0**63)])


def _may_be_shifted_left(result: Tensor, operands: Sequence[Tensor]) -> Tensor:
    value, places = operands
    is_exact = _aten.eq.Tensor(_aten.bitwise_right_shift.Tensor(result, places), value)
    return _all([_aten.ge.Scalar(places, 0), _aten.lt.Scalar(places, 64), is_exact])


def _may_be_shifted_right(result: Tensor, operands: Sequence[Tensor]) -> Tensor:
    is_fine: Tensor = _aten.ge.Scalar(operands[1], 0)
    return is_fine


_DOMAIN: Final[_Check] = (_is_in_domain, "ValueError: math domain error")
_RANGE: Final[_Check] = (_is_finite, "ValueError: math domain error")
_INTEGER: Final[_Check] = (_has_64_bits, "OverflowError: cannot convert the float to an integer of 64 bits")
_BITS: Final[tuple[tuple[str, Any, _Check | None], ...]] = (
    ("__and__", _aten.bitwise_and.Tensor, None),
    ("__or__", _aten.bitwise_or.Tensor, None),
    ("__xor__", _aten.bitwise_xor.Tensor, None),
    (
        "__lshift__",
        _aten.bitwise_left_shift.Tensor,
        (_may_be_shifted_left, "ValueError: negative shift count, or an integer of more than 64 bits"),
    ),
    ("__rshift__", _aten.bitwise_right_shift.Tensor, (_may_be_shifted_right, "ValueError: negative shift count")),
)


def _on_tensors(
    form: Callable[..., Tensor], given: NumberKind, made: NumberKind, check: _Check | None = None
) -> Callable[[Sequence[Any]], Any]:
    """Return a function that computes ``form`` on numbers converted to the kind ``given``, and returns an unbacked
    scalar of the kind ``made``. It asserts in the exported program that the condition of ``check`` holds."""

    def run(args: Sequence[Any]) -> Any:
        tensors = [_converted(value, given) for value in args]
        result = form(*tensors)
        if check is not None:
            is_fine, message = check
            _aten._assert_async.msg(is_fine(result, tensors), message)
        if result.dtype != DTYPE_OF_KIND[made]:
            result = _aten.to.dtype(result, DTYPE_OF_KIND[made])
        return UnbackedScalar(made, result)

    return run


def _smaller(a: Tensor, b: Tensor) -> Tensor:
    """Return ``min(a, b)`` as Python does: ``a`` unless ``b`` is less, so that a NaN is not always the result."""
    found: Tensor = _aten.where.self(_aten.lt.Tensor(b, a), b, a)
    return found


def _larger(a: Tensor, b: Tensor) -> Tensor:
    """Return ``max(a, b)`` as Python does: ``a`` unless ``b`` is greater."""
    found: Tensor = _aten.where.self(_aten.gt.Tensor(b, a), b, a)
    return found


def as_int64(number: Tensor) -> Tensor:
    """Convert a tensor of a floating dtype to int64, towards zero. Emit an assertion that 64 bits can hold the integer,
    which fails for infinity and NaN too."""
    wide = number if number.dtype in (torch.float32, torch.float64) else _aten.to.dtype(number, torch.float32)
    is_fine, message = _INTEGER
    _aten._assert_async.msg(is_fine(wide, []), message)
    made: Tensor = _aten.to.dtype(wide, torch.int64)
    return made


_FORMS: Final[dict[str, Callable[[Sequence[Any]], Any]]] = {
    "aten::floor.float": _on_tensors(_aten.floor.default, "float", "int", _INTEGER),
    "aten::ceil.float": _on_tensors(_aten.ceil.default, "float", "int", _INTEGER),
    "aten::round.float": _on_tensors(_aten.round.default, "float", "float"),
    "aten::isnan.float": _on_tensors(_aten.isnan.default, "float", "bool"),
    "aten::isinf.float": _on_tensors(_aten.isinf.default, "float", "bool"),
    "aten::isfinite.float": _on_tensors(_aten.isfinite.default, "float", "bool"),
    **{f"aten::{name}.int": _on_tensors(form, "int", "int", check) for name, form, check in _BITS},
}
for _name in _FLOAT_FUNCTIONS:
    for _kind in ("int", "float"):
        _FORMS[f"aten::{_name}.{_kind}"] = _on_tensors(getattr(_aten, _name).default, "float", "float", _DOMAIN)
for _kind in ("int", "float", "int_float", "float_int"):
    _FORMS[f"aten::pow.{_kind}"] = _on_tensors(_aten.pow.Tensor_Tensor, "float", "float", _DOMAIN)
    _FORMS[f"aten::atan2.{_kind}"] = _on_tensors(_aten.atan2.default, "float", "float")
    if _kind != "int":
        _FORMS[f"aten::floordiv.{_kind}"] = _on_tensors(_aten.floor_divide.default, "float", "float", _RANGE)
        _FORMS[f"aten::remainder.{_kind}"] = _on_tensors(_aten.remainder.Tensor, "float", "float", _RANGE)
        _FORMS[f"prim::min.{_kind}"] = _on_tensors(_smaller, "float", "float")
        _FORMS[f"prim::max.{_kind}"] = _on_tensors(_larger, "float", "float")


def form_of(name: str, args: Sequence[Any]) -> Callable[[Sequence[Any]], Any] | None:
    """Return the implementation on tensors of a math operator, by its qualified name; None if no argument is unbacked,
    or there is none."""
    found = _FORMS.get(name)
    return None if found is None or all(map(is_known, args)) else found
