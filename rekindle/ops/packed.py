"""Convolutions and linear maps by oneDNN, with weights that are brought into its own layout once.

They are put in place of what has constant weights by :class:`rekindle.passes.pack_weights.PackWeights`. What oneDNN
cannot do, or not with gradients, the operators that stood there before do: other devices and dtypes, images without a
batch, inputs that need gradients, dual tensors, what vmap wraps, autocast.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from rekindle.errors import GraphError
from rekindle.ir.graph import Node
from rekindle.ir.registry import Operation
from rekindle.ops.declare import implements_for_node, int_attribute

LINEAR: Final = "linear"
CONVOLUTION: Final = "convolution"
POINTWISE: Final = "pointwise"

CAN_PACK: Final = bool(torch.backends.mkldnn.is_available()) and hasattr(torch._C._nn, "mkldnn_reorder_conv2d_weight")
"""Whether this build of PyTorch has oneDNN with what is needed here."""

FEWEST_ROWS: Final = 16
LEAST_PRODUCTS: Final = {LINEAR: 1 << 22, CONVOLUTION: 1 << 20, POINTWISE: 1 << 23}
"""Of how many products of numbers on a call goes to oneDNN: linear maps, which must have :data:`FEWEST_ROWS` besides,
convolutions, and those whose kernels have one place. Below these, the way there takes longer than is won. They were
measured on one thread with AVX-512."""


def _is_plain(input: Any, weight: Tensor) -> bool:
    """Whether oneDNN can take it, and nobody asks for more than the result."""
    if type(input) is not Tensor or input.dtype is not torch.float32 or weight.dtype is not torch.float32:
        return False
    if input.device.type != "cpu" or weight.device.type != "cpu" or input.layout is not torch.strided:
        return False
    if torch.is_grad_enabled() and (input.requires_grad or weight.requires_grad):
        return False
    if input.is_neg() or not input.numel() or torch.is_autocast_enabled("cpu"):
        return False
    return torch._C._functorch.peek_interpreter_stack() is None and torch.autograd.forward_ad._current_level < 0


def _ints(node: Node, name: str) -> list[int]:
    found = node[name]
    ints = [item for item in found if isinstance(item, int)] if isinstance(found, list) else []
    if not isinstance(found, list) or len(ints) != len(found):
        raise GraphError(f"the attribute '{name}' of {node.kind} is a list of ints")
    return ints


@implements_for_node("prim::packed_convolution(Tensor input, Tensor weight, Tensor? bias) -> Tensor")
def packed_convolution(node: Node) -> Operation:
    """``conv2d`` with ``stride``, ``padding``, ``dilation``, ``groups`` as attributes, and an ``activation`` behind
    it: ``none`` or ``relu``. Its result is in channels-last order wherever oneDNN made it."""
    stride, padding, dilation = _ints(node, "stride"), _ints(node, "padding"), _ints(node, "dilation")
    groups, activation = int_attribute(node, "groups"), node.get_string("activation")
    steps = stride[0] * stride[1]
    packed: list[Tensor] = []

    def pays(input: Tensor, weight: Tensor) -> bool:
        kind = POINTWISE if weight.shape[2] == weight.shape[3] == 1 else CONVOLUTION
        places = input.shape[0] * input.shape[2] * input.shape[3] // steps
        return places * weight.numel() >= LEAST_PRODUCTS[kind]

    def run(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        is_batch = _is_plain(input, weight) and input.dim() == 4 and input.shape[1] == weight.shape[1] * groups
        if is_batch and pays(input, weight):
            if not packed:
                dense = weight.detach().to_mkldnn()
                packed.append(torch._C._nn.mkldnn_reorder_conv2d_weight(dense, padding, stride, dilation, groups))
            given = input.contiguous(memory_format=torch.channels_last)
            try:
                result: Tensor = torch.ops.mkldnn._convolution_pointwise(
                    given, packed[0], bias, padding, stride, dilation, groups, activation, [], None
                )
                return result
            except RuntimeError:
                pass  # the operator itself says what is wrong
        elif is_batch:
            input = input.contiguous()
        result = torch.conv2d(input, weight, bias, stride, padding, dilation, groups)
        return _activated(result, activation)

    return run


@implements_for_node("prim::packed_linear(Tensor input, Tensor weight, Tensor? bias) -> Tensor")
def packed_linear(node: Node) -> Operation:
    """``linear`` with an ``activation`` behind it, as for :func:`packed_convolution`."""
    activation = node.get_string("activation")
    packed: list[Tensor] = []
    fewest: list[int] = []  # entries of an input that pay, known with the weight

    def run(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if not fewest:
            outputs, inputs = weight.shape
            fewest.append(inputs * max(FEWEST_ROWS, -(-LEAST_PRODUCTS[LINEAR] // (inputs * outputs))))
        if input.numel() >= fewest[0] and _is_plain(input, weight) and input.shape[-1] == weight.shape[1]:
            if not packed:
                packed.append(torch.ops.mkldnn._reorder_linear_weight(weight.detach()))
            result: Tensor = torch.ops.mkldnn._linear_pointwise(input, packed[0], bias, activation, [], None)
            return result
        result = torch.nn.functional.linear(input, weight, bias)
        return _activated(result, activation)

    return run


def _activated(result: Tensor, activation: str) -> Tensor:
    return torch.relu_(result) if activation == "relu" else result
