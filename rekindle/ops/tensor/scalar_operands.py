"""Constant zero-dimensional tensors as operands next to tensors, which TorchScript treats as numbers.

A trace of PyTorch's holds a number beside a tensor (``x * 2.5``) as a tensor of float64 without dimensions. A mark says
that it is a number, which decides about the dtype of the result. Archives do not hold the mark: ``torch.jit`` takes
each such constant for a number again when it optimizes the second operand of these operators.
"""

from __future__ import annotations

from typing import Final

import torch

from rekindle.ir.graph import Node

_KINDS: Final = frozenset(
    f"aten::{name}" for name in ("add", "sub", "mul", "div", "subtract", "multiply", "divide", "true_divide")
)
_NUMBERS: Final = frozenset(
    {
        *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex128),
    }
)


def scalar_operand(node: Node) -> int | float | complex | None:
    """Return the number for the second operand of ``node``, if TorchScript treats that as a number; else None."""
    if node.kind not in _KINDS or "rounding_mode" in _names(node):
        return None
    _, operand, *_ = node.inputs
    if operand.node.kind != "prim::Constant":
        return None
    value = operand.to_python()
    if not isinstance(value, torch.Tensor) or value.dim() != 0 or value.dtype not in _NUMBERS:
        return None
    is_plain = value.device.type == "cpu" and value.layout == torch.strided and not value.requires_grad
    number: int | float | complex | None = value.item() if is_plain else None
    return number


def _names(node: Node) -> set[str]:
    return set() if node.schema is None else {argument.name for argument in node.schema.arguments}
