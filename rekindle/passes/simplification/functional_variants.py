"""Which operators that write to a tensor have one beside them that gives the same numbers in a tensor of its own.

``x.add_(y)`` keeps the dtype and the sizes of ``x``, or fails; ``x + y`` takes those that both need. So the two are the
same only where something is known of the operands: here from their types, and from how they were computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from rekindle.ir.graph import Node, Value
from rekindle.ir.types import BoolType, FloatType, IntType, NoneType, OptionalType, StringType, TensorType, Type

_OF_ANY_DTYPE: Final = frozenset({"relu", "neg", "ceil", "floor", "trunc", "sign", "conj_physical"})
"""Operators of one tensor that keep its dtype, whatever it is."""

_OF_FLOATS: Final = frozenset(
    {
        *("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "deg2rad", "digamma", "elu", "erf"),
        *("erfc", "erfinv", "exp", "exp2", "expm1", "frac", "gelu", "hardsigmoid", "hardswish", "hardtanh", "i0"),
        *("celu", "leaky_relu", "lgamma", "log", "log10", "log1p", "log2", "logit", "mish", "nan_to_num", "rad2deg"),
        *("reciprocal", "relu6", "round", "rsqrt", "selu", "sgn", "sigmoid", "silu", "sin", "sinc", "sinh", "sqrt"),
        *("square", "tan", "tanh", "threshold", "clamp", "clamp_min", "clamp_max", "pow", "mvlgamma"),
        *("add", "sub", "mul", "div", "remainder", "fmod", "floor_divide", "atan2", "hypot", "copysign", "xlogy"),
        *("addcmul", "addcdiv", "lerp", "masked_fill", "tril", "triu"),
    }
)
"""Operators that keep the dtype of a tensor of floats, if what they take beside it is not wider."""

_OF_INTS: Final = frozenset({"add", "sub", "mul", "abs", "square", "clamp", "clamp_min", "clamp_max", "floor_divide"})
"""The same for integers, beside which there are integers."""


def functional_kind(node: Node, *, sizes_stay: bool) -> str | None:
    """The kind of the operator that takes what ``node`` takes, and gives in a new tensor what ``node`` writes to its
    first input; None where there is none, or where it may give another dtype or other sizes.

    ``sizes_stay`` says that nothing in the graph changes the sizes of a tensor that is there.
    """
    schema = node.schema
    if schema is None or not node.kind.endswith("_") or node.kind.endswith("__") or len(node.outputs) != 1:
        return None
    first, *others = schema.arguments
    if first.alias is None or not first.alias.is_write or any(other.alias is not None for other in others):
        return None
    return node.kind[:-1] if _keeps_dtype_and_sizes(node, sizes_stay) else None


def _keeps_dtype_and_sizes(node: Node, sizes_stay: bool) -> bool:
    name = node.kind.removeprefix("aten::")[:-1]
    if name in _OF_ANY_DTYPE and len(node.inputs) == 1:
        return True
    self, *others = node.inputs
    type = self.type
    if not isinstance(type, TensorType) or type.dtype is None:
        return False
    if type.dtype in _FLOATS:
        fits = name in _OF_FLOATS and all(_is_no_wider(other.type, type.dtype) for other in others)
    elif type.dtype in _INTS:
        fits = name in _OF_INTS and all(_is_int(other.type) for other in others)
    else:
        return False
    tensors = [other for other in others if not isinstance(_item(other.type), _PLAIN)]
    return fits and all(_fits_in(other, self, sizes_stay) for other in tensors)


_PLAIN: Final = (IntType, FloatType, BoolType, NoneType, StringType)
_FLOATS: Final = frozenset({torch.float32, torch.float64})
"""Those that autocast leaves as they are."""
_INTS: Final = frozenset({torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8})


def _item(type: Type) -> Type:
    return type.element if isinstance(type, OptionalType) else type


def _is_no_wider(type: Type, dtype: torch.dtype) -> bool:
    """Whether an operand of ``type`` leaves floats of ``dtype`` as they are."""
    type = _item(type)
    if not isinstance(type, TensorType):
        return isinstance(type, _PLAIN)
    if type.dtype is None or type.dtype.is_complex:
        return False
    return type.dtype == dtype or type.rank == 0 or not type.dtype.is_floating_point


def _is_int(type: Type) -> bool:
    return isinstance(_item(type), (IntType, NoneType))


def _fits_in(other: Value, self: Value, sizes_stay: bool) -> bool:
    """Whether ``other`` broadcasts to the sizes of ``self``."""
    mine, theirs = self.type, other.type
    if not isinstance(mine, TensorType) or not isinstance(theirs, TensorType):
        return False
    if theirs.rank == 0 or (sizes_stay and _origin_of_sizes(self) is _origin_of_sizes(other)):
        return True
    return mine.sizes is not None and theirs.sizes is not None and _broadcasts(theirs.sizes, mine.sizes)


def _broadcasts(sizes: Sequence[int | None], to: Sequence[int | None]) -> bool:
    if len(sizes) > len(to):
        return False
    known = zip(reversed(sizes), reversed(to), strict=False)
    return all(mine == 1 or (mine is not None and mine == theirs) for mine, theirs in known)


_KEEP_SIZES: Final = _OF_ANY_DTYPE | _OF_FLOATS | _OF_INTS
"""Operators whose result has the sizes of their only tensor, be it given twice."""


def _origin_of_sizes(value: Value) -> Value:
    """A value that has the sizes of ``value``, as far as operators of it and numbers tell."""
    while True:
        node = value.node
        if node.kind.removeprefix("aten::").removesuffix("_") not in _KEEP_SIZES or len(node.outputs) != 1:
            return value
        self, *others = node.inputs
        is_alone = all(each is self or isinstance(_item(each.type), _PLAIN) for each in others)
        if not is_alone or not isinstance(self.type, TensorType):
            return value
        value = self
