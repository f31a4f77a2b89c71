"""Tensors of one number on the CPU, which PyTorch's elementwise operators combine with tensors on a GPU.

They are read on the host and become tensors on the GPU where a group of operators allows it: an operator whose tensors
are all on the CPU returns a tensor on the CPU, and operators that are not elementwise raise. Such a tensor is made in
each call: it belongs to the stream of the call, and to the graph if one is captured.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.fusible import rule_of
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import TensorType

CPU: Final = torch.device("cpu")


def on_one_device(graph: Graph, inputs: Sequence[Any]) -> list[Any] | None:
    """Return ``inputs`` of ``graph`` with CPU tensors of no dimensions copied to the GPU of the other tensors; None if
    the others are not all on one GPU, or if that would change the results."""
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
    return torch.full((), scalar.item(), dtype=scalar.dtype, device=device)
