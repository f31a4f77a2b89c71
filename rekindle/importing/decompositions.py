"""Decompositions applied before graphs are imported: of operators that do not fuse but decompose into operators that
do, and of calls of PyTorch's function transforms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch
from torch import fx
from torch._decomp import get_decompositions
from torch.export import ExportedProgram

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
    """Return the decompositions from :mod:`torch._decomp` of the operators that are not imported directly, by
    operator."""
    found: dict[Any, Callable[..., Any]] = get_decompositions(_TAKEN_APART)
    return found


_OF_TRANSFORMS: Final = "torch._functorch.predispatch"
"""The module of the functions that represent ``torch.vmap`` and similar transforms in graphs."""


def without_transforms(program: ExportedProgram) -> ExportedProgram:
    """Return ``program`` with calls of ``torch.vmap`` and the like replaced by their operators."""
    if not any(
        node.op == "call_function" and getattr(node.target, "__module__", "") == _OF_TRANSFORMS
        for module in program.graph_module.modules()
        if isinstance(module, fx.GraphModule)
        for node in module.graph.nodes
    ):
        return program
    plain: ExportedProgram = program.run_decompositions({})
    plain._guards_code = program._guards_code  # PyTorch forgets them
    return plain
