"""Arithmetic, comparisons and conversions of numbers of which some are known only when the exported program runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import SymBool, SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from rekindle.exporting.interpreter.values import SYMBOLS, UnbackedScalar, full, is_known, kind_of, with_symbols
from rekindle.exporting.scalars.unbacked_arithmetic import unbacked_arithmetic
from rekindle.exporting.scalars.unbacked_math import as_int64


def settled(condition: Any) -> Any:
    """Return a condition as a bool if its value is known; else unchanged."""
    if isinstance(condition, SymBool):
        if statically_known_true(condition):
            return True
        if statically_known_true(torch.sym_not(condition)):
            return False
    return condition


def negated(condition: Any) -> Any:
    """Return ``not condition``."""
    if isinstance(condition, UnbackedScalar):
        return UnbackedScalar("bool", torch.ops.aten.logical_not.default(condition.tensor))
    if isinstance(condition, SymBool):
        return settled(torch.sym_not(condition))
    return not condition


def both(a: Any, b: Any) -> Any:
    """Return ``a and b``."""
    return _joined(a, b, absorbing=False, of_tensors=torch.ops.aten.logical_and.default, of_symbols=operator.and_)


def either(a: Any, b: Any) -> Any:
    """Return ``a or b``."""
    return _joined(a, b, absorbing=True, of_tensors=torch.ops.aten.logical_or.default, of_symbols=operator.or_)


def _joined(
    a: Any, b: Any, *, absorbing: bool, of_tensors: Callable[[Tensor, Tensor], Tensor], of_symbols: Callable[..., Any]
) -> Any:
    for known, other in ((a, b), (b, a)):
        if isinstance(known, bool):
            return absorbing if known is absorbing else other
    if isinstance(a, SymBool) and isinstance(b, SymBool):
        return settled(of_symbols(a, b))
    return UnbackedScalar("bool", of_tensors(condition_tensor(a), condition_tensor(b)))


def condition_tensor(condition: Any) -> Tensor:
    """Return a condition as a bool tensor without dimensions."""
    if isinstance(condition, UnbackedScalar):
        return condition.tensor
    return full(condition, torch.bool)


def truth_of(value: Any) -> Any:
    """Return ``bool(value)`` of a number, or of a tensor with one element."""
    if isinstance(value, Tensor):
        single = value if value.dim() == 0 else torch.ops.aten.reshape.default(value, [])
        return UnbackedScalar("bool", single if single.dtype == torch.bool else torch.ops.aten.ne.Scalar(single, 0))
    kind = kind_of(value)
    if kind == "bool":
        return settled(value)
    if isinstance(value, UnbackedScalar):
        return UnbackedScalar("bool", torch.ops.aten.ne.Scalar(value.tensor, 0))
    if isinstance(value, SYMBOLS):
        return settled(value != 0)
    return bool(value)


def number_of_tensor(tensor: Tensor, kind: str) -> Any:
    """Return ``int(tensor)`` or ``float(tensor)`` as an unbacked scalar; ``kind`` is ``int`` or ``float``. Where Python
    makes no int of a float, or one of more than 64 bits, an assertion of the exported program fails."""
    single = tensor if tensor.dim() == 0 else torch.ops.aten.reshape.default(tensor, [])
    if kind == "int" and single.is_floating_point():
        return UnbackedScalar("int", as_int64(single))
    dtype = torch.int64 if kind == "int" else torch.float64
    if single.dtype != dtype:
        single = torch.ops.aten.to.dtype(single, dtype)
    return UnbackedScalar(kind, single)  # type: ignore[arg-type]


def element_of(tensor: Tensor) -> Any:
    """Return ``tensor.item()`` as an unbacked scalar; of a complex tensor, its number.

    Raises:
        NotImplementedError: ``tensor`` is complex, and a FakeTensor, of which the number is unknown.
    """
    if tensor.dtype == torch.bool:
        return truth_of(tensor)
    if tensor.is_complex():
        return tensor.item()
    return number_of_tensor(tensor, "float" if tensor.is_floating_point() else "int")


def absolute(value: Any) -> Any:
    """Return ``abs(value)`` of a number. For a symbol that is ``sym_max(value, -value)``, since files of exported
    programs have no ``abs`` of symbols."""
    if isinstance(value, UnbackedScalar):
        return UnbackedScalar(value.kind, torch.ops.aten.abs.default(value.tensor))
    if is_known(value):
        return abs(value)
    return torch.sym_max(value, -value)


def as_int(value: Any) -> Any:
    """Return ``int(value)``."""
    if kind_of(value) == "int":
        return value
    if isinstance(value, UnbackedScalar):
        return number_of_tensor(value.tensor, "int")
    if isinstance(value, SymBool):
        return torch.sym_ite(value, 1, 0)
    if not is_known(value):
        return torch.sym_int(value)
    return int(value)


def as_float(value: Any) -> Any:
    """Return ``float(value)``."""
    if kind_of(value) == "float":
        return value
    if isinstance(value, UnbackedScalar):
        return number_of_tensor(value.tensor, "float")
    if isinstance(value, SymBool):
        return torch.sym_float(torch.sym_ite(value, 1, 0))
    if not is_known(value):
        return torch.sym_float(value)
    return float(value)


def as_size(count: Any) -> Any:
    """Return ``count`` as the size of a tensor; ``max(count, 0)`` for a symbol that may be below 2. PyTorch would
    exclude the sizes 0 and 1; so that size is read from a tensor, and PyTorch knows nothing of it."""
    if not isinstance(count, SymInt) or settled(count >= 2) is True:
        return count
    size = full(torch.sym_max(count, 0), torch.int64).item()
    torch._check(size >= 0)
    return size


def equal_lists(a: list[Any], b: list[Any]) -> Any:
    """Return whether two lists of numbers are equal."""
    if len(a) != len(b):
        return False
    result: Any = True
    for x, y in zip(a, b, strict=True):
        result = both(result, equal(x, y))
        if result is False:
            return False
    return result


def equal(a: Any, b: Any) -> Any:
    """Return whether two numbers are equal."""
    late = unbacked_arithmetic("aten::eq", a, b)
    if late is not None:
        return late
    a, b = with_symbols(a), with_symbols(b)
    if isinstance(a, SYMBOLS) or isinstance(b, SYMBOLS):
        if isinstance(a, (SymBool, bool)):
            a, b = as_int(a), as_int(b)
        return settled(a == b)
    return bool(a == b)


def smallest(items: list[Any]) -> Any:
    """Return ``min`` of ints."""
    return _chosen("prim::min", items, torch.sym_min, min)


def largest(items: list[Any]) -> Any:
    """Return ``max`` of ints."""
    return _chosen("prim::max", items, torch.sym_max, max)


def _chosen(
    kind: str, items: list[Any], of_symbols: Callable[[Any, Any], Any], of_numbers: Callable[[Any, Any], Any]
) -> Any:
    result = items[0]
    for item in items[1:]:
        late = unbacked_arithmetic(kind, result, item)
        if late is not None:
            result = late
            continue
        is_symbolic = isinstance(result, SYMBOLS) or isinstance(item, SYMBOLS)
        result = of_symbols(result, item) if is_symbolic else of_numbers(result, item)
    return result
