"""Arithmetic and comparisons of numbers of which some are known only when the exported program runs, as tensors without
dimensions::

    n = int(x.sum())                  n = x.sum().to(int64)
    y = x * (n // 3 + 1)   becomes    y = x * (div(n, 3, rounding_mode="floor") + 1)

So branches and loops can read these numbers, and compilers need not pass symbols to them. A number is converted to a
symbol where an operator needs one, as for a size.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import SymInt, Tensor

from rekindle.exporting.interpreter.values import (
    DTYPE_OF_KIND,
    UnbackedScalar,
    full,
    is_known,
    kind_of,
    number_as_tensor,
    with_symbols,
)

_aten: Final = torch.ops.aten
_ZERO: Final = "ZeroDivisionError: division by zero"


@dataclass(frozen=True, slots=True)
class _BinaryOp:
    """The implementations of an operator on two numbers: for two tensors, for a tensor and a number, for a number and a
    tensor, and for symbols of ints, as far as there are such. ``made`` is the kind of the result, None for the kind of
    the operands. ``divides``: Python raises if the second operand is zero."""

    of_tensors: Callable[[Tensor, Tensor], Tensor]
    with_number: Callable[[Tensor, Any], Tensor]
    from_number: Callable[[Any, Tensor], Tensor] | None = None
    of_symbols: Callable[[Any, Any], Any] | None = None
    made: str | None = None
    divides: bool = False


def _compares(overloads: Any, mirrored: Any) -> _BinaryOp:
    return _BinaryOp(overloads.Tensor, overloads.Scalar, lambda a, b: mirrored.Scalar(b, a), made="bool")


def _floor(a: Tensor, b: Any) -> Tensor:
    made: Tensor = _aten.div.Tensor_mode(a, b, rounding_mode="floor")
    return made


_FORMS: Final[dict[str, _BinaryOp]] = {
    "aten::add": _BinaryOp(_aten.add.Tensor, _aten.add.Tensor, lambda a, b: _aten.add.Tensor(b, a), operator.add),
    "aten::sub": _BinaryOp(_aten.sub.Tensor, _aten.sub.Tensor, lambda a, b: _aten.rsub.Scalar(b, a), operator.sub),
    "aten::mul": _BinaryOp(_aten.mul.Tensor, _aten.mul.Tensor, lambda a, b: _aten.mul.Tensor(b, a), operator.mul),
    "aten::div": _BinaryOp(_aten.div.Tensor, _aten.div.Tensor, made="float", divides=True),
    "aten::floordiv": _BinaryOp(_floor, _floor, of_symbols=operator.floordiv, divides=True),
    "aten::remainder": _BinaryOp(_aten.remainder.Tensor, _aten.remainder.Scalar, of_symbols=operator.mod, divides=True),
    "prim::min": _BinaryOp(_aten.minimum.default, _aten.clamp_max.default, of_symbols=torch.sym_min),
    "prim::max": _BinaryOp(_aten.maximum.default, _aten.clamp_min.default, of_symbols=torch.sym_max),
    "aten::lt": _compares(_aten.lt, _aten.gt),
    "aten::le": _compares(_aten.le, _aten.ge),
    "aten::gt": _compares(_aten.gt, _aten.lt),
    "aten::ge": _compares(_aten.ge, _aten.le),
    "aten::eq": _compares(_aten.eq, _aten.eq),
    "aten::ne": _compares(_aten.ne, _aten.ne),
}


def unbacked_arithmetic(kind: str, a: Any, b: Any) -> Any:
    """Return ``a <kind> b`` as an unbacked scalar, if an operand is one and operators on tensors can compute it; else
    None. A division also emits an assertion that the divisor is not zero.

    Raises:
        ZeroDivisionError: the divisor is known to be zero.
    """
    form = _FORMS.get(kind)
    kinds = (kind_of(a), kind_of(b))
    if (
        form is None
        or None in kinds
        or "rows" in kinds
        or not (isinstance(a, UnbackedScalar) or isinstance(b, UnbackedScalar))
    ):
        return None
    of_ints = "float" not in kinds and form.made != "float"
    common = "int" if of_ints else "float"
    x, y = _operand(a, common), _operand(b, common)
    if form.divides:
        y = _divisor(y)
    if isinstance(x, Tensor) and not isinstance(y, Tensor):
        result = form.with_number(x, y)
    elif not isinstance(x, Tensor) and form.from_number is not None:
        result = form.from_number(x, y)
    else:
        result = form.of_tensors(x if isinstance(x, Tensor) else full(x, DTYPE_OF_KIND[common]), y)
    symbol = None
    if form.of_symbols is not None and kinds == ("int", "int"):
        symbol = _symbol(form.of_symbols, a, b)
    return UnbackedScalar(form.made or common, result, symbol=symbol)  # type: ignore[arg-type]


def _operand(value: Any, common: str) -> Any:
    """Return an unbacked number or a symbol as a tensor of the common dtype of both operands; an int symbol among ints
    unchanged, as known numbers are, except a bool, which is returned as an int."""
    if is_known(value):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, SymInt) and common == "int":
        return value
    tensor, dtype = number_as_tensor(value), DTYPE_OF_KIND[common]
    return tensor if tensor.dtype == dtype else _aten.to.dtype(tensor, dtype)


def _divisor(value: Any) -> Any:
    """Return the divisor, and emit an assertion that it is not zero, unless it is a known number. In a tensor of ints,
    0 is replaced by 1, so that the division itself does not fail.

    Raises:
        ZeroDivisionError: the divisor is the known number 0.
    """
    if not isinstance(value, Tensor):
        if is_known(value):
            if value == 0:
                raise ZeroDivisionError("division by zero")
            return value
        value = full(value, torch.int64)
    _aten._assert_async.msg(_aten.ne.Scalar(value, 0), _ZERO)
    if value.dtype.is_floating_point:
        return value
    return _aten.where.ScalarSelf(_aten.eq.Scalar(value, 0), 1, value)


def _symbol(of_symbols: Callable[[Any, Any], Any], a: Any, b: Any) -> Callable[[], Any]:
    return lambda: of_symbols(with_symbols(a), with_symbols(b))


def negative(value: Any) -> Any:
    """Return ``-value``."""
    if not isinstance(value, UnbackedScalar):
        return -value
    symbol = (lambda: -value.number) if value.kind == "int" else None
    return UnbackedScalar(value.kind, _aten.neg.default(_operand(value, value.kind)), symbol=symbol)
