"""Operators that are taken apart before graphs are read, because kernels know the parts and not the whole."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch
from torch._decomp import get_decompositions

aten: Final = torch.ops.aten

_TAKEN_APART: Final = (
    aten.gelu_backward,
    aten.silu_backward,
    aten.hardswish_backward,
    aten.hardsigmoid_backward,
    aten.elu_backward,
    aten.softplus_backward,
    aten.leaky_relu_backward,
    aten.mish_backward,
    aten.native_layer_norm_backward,
    aten._softmax_backward_data,
    aten._log_softmax_backward_data,
    aten.mse_loss_backward,
    aten.smooth_l1_loss_backward,
    aten.native_dropout_backward,
    aten.select_backward,
    aten.slice_backward,
)


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """What :mod:`torch._decomp` makes of them."""
    found: dict[Any, Callable[..., Any]] = get_decompositions(_TAKEN_APART)
    return found
