"""PyTorch 2.12: the last operators of Tensors that Python had, and the dispatcher had not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from rekindle.ir.scalar_types import MEMORY_FORMATS
from rekindle.ops.registration.declare import declare


def _is_contiguous(x: torch.Tensor, memory_format: int) -> bool:
    return x.is_contiguous(memory_format=MEMORY_FORMATS[memory_format])


_OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "aten::dim(Tensor self) -> int": torch.Tensor.dim,
    "aten::numel(Tensor self) -> int": torch.Tensor.numel,
    "aten::storage_offset(Tensor self) -> int": torch.Tensor.storage_offset,
    "aten::get_device(Tensor self) -> int": torch.Tensor.get_device,
    "aten::is_contiguous(Tensor self) -> bool": torch.Tensor.is_contiguous,
    "aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool": _is_contiguous,
}

for _text, _operation in _OPERATORS.items():
    if not torch._C._dispatch_has_kernel(_text.partition("(")[0]):
        declare(_operation, _text)
