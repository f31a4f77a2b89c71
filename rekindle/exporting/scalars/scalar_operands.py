"""Unbacked scalars as arguments of operators on tensors.

``mul.Scalar(x, n)`` of an unbacked ``n`` is replaced by ``mul.Tensor(x, n)`` of the tensor that holds it, without a
symbol. PyTorch's compilers treat floats that are read from tensors as constants, and cannot pass symbols to branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.exporting.interpreter.values import UnbackedScalar, kind_of, number_as_tensor

_aten: Final = torch.ops.aten
_EXAMPLES: Final[dict[str, Any]] = {"int": 1, "float": 1.0, "bool": True}


def as_tensor(value: Any, other: Tensor | None) -> Tensor:
    """Return a number as a tensor without dimensions, for an operator with ``other``. Its dtype is such that PyTorch
    promotes it with ``other`` as it promotes the number."""
    tensor = number_as_tensor(value)
    kind = kind_of(value)
    assert kind is not None
    if other is None:
        return _aten.to.dtype(tensor, torch.get_default_dtype()) if kind == "float" else tensor
    wanted = torch.result_type(other, _EXAMPLES[kind])
    return tensor if torch.result_type(other, tensor) == wanted else _aten.to.dtype(tensor, wanted)


def with_tensors(overload: Any, args: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """Return an operator and its arguments, with tensors in place of unbacked scalars if there is an overload that
    takes tensors."""
    args = _unscaled(overload, args)
    late = [index for index, value in enumerate(args) if isinstance(value, UnbackedScalar)]
    formals = overload._schema.arguments
    if any(_is_scalar(formals[index].type) for index in late):
        overload = _sibling(overload, tuple(late)) or overload
        formals = overload._schema.arguments
    given = list(args)
    other = next((value for value in args if isinstance(value, Tensor)), None)
    for index, (formal, value) in enumerate(zip(formals, args, strict=True)):
        if _is_tensor(formal.type) and kind_of(value) is not None:
            given[index] = as_tensor(value, other)
            if overload._schema.name == "aten::lerp" and other is not None:
                given[index] = given[index].to(other.dtype)
    return overload, given


_SIBLINGS: Final[dict[tuple[Any, tuple[int, ...]], Any]] = {}


def _sibling(overload: Any, late: tuple[int, ...]) -> Any:
    """Return the overload that takes tensors for the numbers at the indices ``late``, perhaps for other numbers too,
    and is otherwise equal; None if there is none."""
    key = (overload, late)
    if key not in _SIBLINGS:
        packet = overload.overloadpacket
        others = (getattr(packet, name) for name in packet.overloads())
        _SIBLINGS[key] = next((other for other in others if _is_sibling(overload, other, late)), None)
    return _SIBLINGS[key]


def _is_sibling(overload: Any, other: Any, late: tuple[int, ...]) -> bool:
    given, taken = overload._schema.arguments, other._schema.arguments
    if other is overload or len(given) != len(taken):
        return False
    for a, b in zip(given, taken, strict=True):
        if str(a.type) != str(b.type) and not (_is_scalar(a.type) and _is_tensor(b.type)):
            return False
    return all(_is_tensor(taken[index].type) or not _is_scalar(given[index].type) for index in late)


def _is_scalar(type: Any) -> bool:
    return str(type) in ("number", "Optional[number]")


def _is_tensor(type: Any) -> bool:
    return str(type) in ("Tensor", "Optional[Tensor]")


_SCALED: Final = frozenset({"aten::add", "aten::add_", "aten::sub", "aten::sub_"})


def _unscaled(overload: Any, args: Sequence[Any]) -> Sequence[Any]:
    """Return the arguments of ``add(x, y, alpha=n)`` without a data-dependent ``alpha``: ``y`` is multiplied by it
    first."""
    if overload._schema.name not in _SCALED or not isinstance(args[2], UnbackedScalar):
        return args
    x, y, alpha = args
    return x, _aten.mul.Tensor(y if isinstance(y, Tensor) else as_tensor(y, x), as_tensor(alpha, x)), 1


def filled(overload: Any, args: Sequence[Any]) -> tuple[Sequence[Any], Tensor] | None:
    """Return the arguments of ``full(size, n)``, or a call like it, with 0 in place of an unbacked ``n``, and the
    tensor that holds ``n``, with which the result is to be filled. Return None for other calls."""
    if overload._schema.name not in _FILLS or not isinstance(args[1], UnbackedScalar):
        return None
    value = args[1]
    return [args[0], type(_EXAMPLES[value.kind])(0), *args[2:]], value.tensor


_FILLS: Final = frozenset({"aten::full", "aten::full_like", "aten::new_full"})
