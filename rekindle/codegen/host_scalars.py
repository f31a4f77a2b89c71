"""Tensors of one number on the CPU, which PyTorch's elementwise operators combine with tensors on a GPU.

They are read on the host and become tensors on the GPU where a group of operators allows it: an operator whose tensors
are all on the CPU returns a tensor on the CPU, and operators that are not elementwise raise.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.fusible import rule_of
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import TensorType

CPU: Final = torch.device("cpu")
_MAX_COPIES: Final = 256
"""Maximum number of copies that are kept."""
_COPIES: Final[dict[Hashable, Tensor]] = {}
"""Numbers on a GPU, by device, dtype and value."""


def on_one_device(graph: Graph, inputs: Sequence[Any]) -> list[Any] | None:
    """Return ``inputs`` of ``graph`` with copies of such tensors on the GPU of the others; None if the results of the
    graph would not be those of its operators."""
    devices = {each.device for each in inputs if isinstance(each, Tensor) and not _is_host_scalar(each)}
    if len(devices) != 1 or devices == {CPU}:
        return None
    on_host = {value for value, each in zip(graph.inputs, inputs, strict=True) if _is_host_scalar(each)}
    if not all(_allows(node, on_host) for node in graph.nodes):
        return None
    (device,) = devices
    return [_copy(each, device) if _is_host_scalar(each) else each for each in inputs]


def _is_host_scalar(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_cpu and value.ndim == 0


def _allows(node: Node, on_host: Container[Value]) -> bool:
    tensors = [value in on_host for value in node.inputs if isinstance(value.type, TensorType)]
    return not any(tensors) or (not all(tensors) and rule_of(node) is not None)


def _copy(scalar: Tensor, device: torch.device) -> Tensor:
    number = scalar.item()
    key = (device, scalar.dtype, number.hex() if isinstance(number, float) else number)
    found = _COPIES.get(key)
    if found is None:
        found = torch.full((), number, dtype=scalar.dtype, device=device)
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return found  # in memory of the graph
        if len(_COPIES) >= _MAX_COPIES:
            _COPIES.clear()
        _COPIES[key] = found
    return found
