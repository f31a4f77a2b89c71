"""Faster ways into common operators of the dispatcher.

A call through ``torch.ops`` reads its arguments by the schema; the functions that Python programs call (``torch.add``,
``Tensor.view``) were generated with their arguments known, and cost about half. They are eager's own way in, so that
they do what eager does. Here stand those whose parameters are the schema's, in its order, given by position, and whose
result is a Tensor or a number, or several Tensors. They take no dtypes, layouts and memory formats, which are numbers
in the IR: these are behind what is passed, or the overload is called the other way.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.ir.operators.registry import Operation

_FUNCTIONS: Final[Any] = torch._C._VariableFunctions
_NN: Final[Any] = torch._C._nn

# By the number of arguments, all of which are passed by position; those behind are left to their defaults.
_UNARY: Final = (
    *("abs", "acos", "all", "any", "argmax", "argmin", "asin", "atan", "ceil", "clone", "cos", "cosh"),
    *("detach", "erf", "erfc", "exp", "exp2", "expm1", "floor", "frac", "isfinite", "isinf", "isnan", "log", "log10"),
    *("log1p", "log2", "logical_not", "max", "mean", "min", "neg", "nonzero", "ones_like", "prod", "reciprocal"),
    *("relu", "round", "rsqrt", "selu", "sgn", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "squeeze", "sum"),
    *("t", "tan", "tanh", "trunc", "zeros_like"),
)
_BINARY: Final = (
    *("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar"),
    *("eq.Tensor", "eq.Scalar", "ne.Tensor", "ne.Scalar", "lt.Tensor", "lt.Scalar", "le.Tensor", "le.Scalar"),
    *("gt.Tensor", "gt.Scalar", "ge.Tensor", "ge.Scalar", "maximum", "minimum", "pow.Tensor_Tensor"),
    *("pow.Tensor_Scalar", "matmul", "mm", "bmm", "mv", "dot", "logical_and", "logical_or", "embedding"),
    *("remainder.Tensor", "remainder.Scalar", "floor_divide", "stack", "cat", "softmax.int", "log_softmax.int"),
    *("cumsum", "unsqueeze", "squeeze.dim", "permute", "reshape", "bitwise_and.Tensor", "bitwise_or.Tensor"),
    *("atan2", "bitwise_xor.Tensor", "clamp_max", "clamp_min", "cumprod", "flip", "fmod.Tensor", "full_like"),
    *("masked_select", "outer", "rsub.Scalar", "rsub.Tensor", "tril", "triu"),
)
_TERNARY: Final = (
    *("addmm", "baddbmm", "where.self", "select.int", "transpose.int", "flatten.using_ints", "sum.dim_IntList"),
    *("mean.dim", "index_select", "gather", "masked_fill.Scalar", "masked_fill.Tensor", "lerp.Scalar", "clamp"),
    *("addcdiv", "addcmul", "all.dim", "amax", "amin", "any.dim", "argsort", "dropout", "lerp.Tensor", "logsumexp"),
    *("max.dim", "min.dim", "prod.dim_int", "roll", "sort", "where.ScalarOther", "where.ScalarSelf"),
)
_LARGER: Final = (
    *(("as_strided", 4), ("batch_norm", 9), ("conv1d", 7), ("conv2d", 7), ("conv3d", 7), ("group_norm", 6)),
    *(("layer_norm", 6), ("max_pool2d", 6), ("narrow", 4), ("topk", 5)),
)
_METHODS: Final = (
    *(("dim", 1), ("numel", 1), ("item", 1), ("is_floating_point", 1), ("size.int", 2), ("view", 2), ("expand", 2)),
    *(("contiguous", 1), ("type_as", 2), ("view_as", 2), ("expand_as", 2), ("repeat", 2), ("unfold", 4)),
    *(("add_.Tensor", 2), ("add_.Scalar", 2), ("sub_.Tensor", 2), ("mul_.Tensor", 2), ("mul_.Scalar", 2)),
    *(("div_.Tensor", 2), ("zero_", 1), ("fill_.Scalar", 2), ("copy_", 2), ("relu_", 1)),
)
_LAYERS: Final = (
    *(("linear", 3), ("gelu", 1), ("silu", 1), ("adaptive_avg_pool2d", 2), ("avg_pool2d", 7), ("elu", 4)),
    *(("hardsigmoid", 1), ("hardswish", 1), ("hardtanh", 3), ("leaky_relu", 2), ("log_sigmoid", 1), ("mish", 1)),
    *(("relu6", 1), ("scaled_dot_product_attention", 6), ("softplus", 3)),
)

SPREADS: Final = frozenset({"aten::expand", "aten::repeat", "aten::view"})
"""Methods whose last argument, a list of ints that is not empty, may be given as so many arguments: that is read
faster."""

IN_PIECES: Final = {
    f"aten::{name}": (getattr(_FUNCTIONS, name.partition(".")[0]), count)
    for name, count in (("chunk", 3), ("split.Tensor", 3), ("split_with_sizes", 3), ("unbind.int", 2))
}
"""The same as ``DIRECT`` for operators that give a list where the function gives a tuple: for results that are taken
apart at once."""


def _table() -> Iterator[tuple[str, tuple[Operation, int]]]:
    for names, count in ((_UNARY, 1), (_BINARY, 2), (_TERNARY, 3)):
        for name in names:
            yield f"aten::{name}", (getattr(_FUNCTIONS, name.partition(".")[0]), count)
    for name, count in _LARGER:
        yield f"aten::{name}", (getattr(_FUNCTIONS, name), count)
    for name, count in _METHODS:
        yield f"aten::{name}", (getattr(Tensor, name.partition(".")[0]), count)
    for name, count in _LAYERS:
        yield f"aten::{name}", (getattr(_NN, name), count)
    yield "aten::bitwise_not", (operator.invert, 1)  # whose errors are those of ``~x``, as it is mostly written


DIRECT: Final[dict[str, tuple[Operation, int]]] = dict(_table())
"""The function of an overload, and how many arguments it takes at most."""
