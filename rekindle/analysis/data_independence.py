"""Which operators may be tried out on tensors of zeros to learn the types of their results."""

from __future__ import annotations

from functools import cache
from typing import Final

import torch

from rekindle.ir.registry import Operator

_COMPOSITES: Final = frozenset(
    {
        *("linear", "matmul", "t", "transpose", "reshape", "flatten", "unflatten", "contiguous", "movedim"),
        *("softmax", "log_softmax", "layer_norm", "group_norm", "batch_norm", "conv1d", "conv2d", "conv3d"),
        *("chunk", "split", "stack", "squeeze", "expand_as", "view_as", "max_pool1d", "max_pool2d", "max_pool3d"),
        *("zeros", "ones", "zeros_like", "ones_like", "new_zeros", "new_ones", "new_full", "eye", "arange"),
        *("adaptive_avg_pool2d", "einsum", "sum", "mean", "to", "type_as", "masked_fill", "unbind", "addmm", "mv"),
    }
)
"""Operators that PyTorch does not tag, because it takes them apart into tagged ones."""

_REFUSED: Final = frozenset(
    {
        torch.Tag.data_dependent_output,
        torch.Tag.dynamic_output_shape,
        torch.Tag.nondeterministic_seeded,
        torch.Tag.inplace_view,
    }
)


@cache
def ignores_data(operator: Operator) -> bool:
    """Whether the types of what ``operator`` returns never depend on the numbers in its arguments, it draws no random
    numbers, and it is one of PyTorch's well-worn operators, which check what they are given."""
    namespace, _, name = operator.name.partition("::")
    if namespace != "aten" or name.endswith("_"):
        return False
    packet = getattr(torch.ops.aten, name, None)
    overload = getattr(packet, operator.schema.overload or "default", None)
    if not isinstance(overload, torch._ops.OpOverload):
        return False
    tags = set(overload.tags)
    is_known = bool(tags & {torch.Tag.core, torch.Tag.pointwise}) or name in _COMPOSITES
    return is_known and not tags & _REFUSED
