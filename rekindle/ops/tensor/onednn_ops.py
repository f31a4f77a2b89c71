"""Convolutions and linear maps by oneDNN, with weights that are brought into its own layout once.

They are put in place of what has constant weights by :class:`rekindle.passes.frozen_modules.pack_weights.PackWeights`.
What oneDNN cannot do, or not with gradients, the operators that stood there before do: other devices and dtypes, images
without a batch, inputs that need gradients, dual tensors, what vmap wraps, autocast.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from rekindle.errors import GraphError
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import Operation
from rekindle.ops.registration.declare import implements_for_node, int_attribute

LINEAR: Final = "linear"
CONVOLUTION: Final = "convolution"
POINTWISE: Final = "pointwise"

CAN_PACK: Final = bool(torch.backends.mkldnn.is_available()) and hasattr(torch._C._nn, "mkldnn_reorder_conv2d_weight")
"""Whether this build of PyTorch has oneDNN with what is needed here."""

MIN_ROWS: Final = 16
MIN_MULTIPLICATIONS: Final = {LINEAR: 1 << 22, CONVOLUTION: 1 << 20, POINTWISE: 1 << 20}
"""Of how many products of numbers on a call goes to oneDNN: linear maps, which must have :data:`MIN_ROWS` besides,
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


class _Convolution:
    """A convolution with the attributes of ``node``."""

    def __init__(self, node: Node) -> None:
        self.stride, self.padding = _ints(node, "stride"), _ints(node, "padding")
        self.dilation, self.groups = _ints(node, "dilation"), int_attribute(node, "groups")
        self.activation = node.get_string("activation")
        self.may_overwrite = bool(int_attribute(node, "may_overwrite", 0))
        """Whether nobody reads what is added any more."""
        self._packed: Tensor | None = None

    def by_library(self, input: Tensor, weight: Tensor, bias: Tensor | None, other: Tensor | None) -> Tensor | None:
        """What oneDNN makes of it, with ``other`` added and the activation behind that, in channels-last order; None
        where it cannot, or where that does not pay."""
        if not (_is_plain(input, weight) and input.dim() == 4 and input.shape[1] == weight.shape[1] * self.groups):
            return None
        kind = POINTWISE if weight.shape[2] == weight.shape[3] == 1 else CONVOLUTION
        places = input.shape[0] * input.shape[2] * input.shape[3] // (self.stride[0] * self.stride[1])
        if places * weight.numel() < MIN_MULTIPLICATIONS[kind]:
            return None
        if other is not None and not (_is_plain(other, weight) and other.shape == self._sizes(input, weight)):
            return None
        if self._packed is None:
            dense = weight.detach().to_mkldnn()
            self._packed = torch._C._nn.mkldnn_reorder_conv2d_weight(
                dense, self.padding, self.stride, self.dilation, self.groups
            )
        given = input.contiguous(memory_format=torch.channels_last)
        numbers = (self.padding, self.stride, self.dilation, self.groups)
        result: Tensor
        try:
            if other is None:
                run = torch.ops.mkldnn._convolution_pointwise.default
                result = run(given, self._packed, bias, *numbers, self.activation, [], None)
            else:
                result = self._added(given, other, bias)
        except RuntimeError:
            return None  # the operator itself says what is wrong
        return result

    def _added(self, input: Tensor, other: Tensor, bias: Tensor | None) -> Tensor:
        numbers = (self.padding, self.stride, self.dilation, self.groups)
        unary = None if self.activation == "none" else self.activation
        behind: tuple[Any, ...] = (self._packed, bias, *numbers, "add", 1.0, unary, [], None)
        result: Tensor
        if self.may_overwrite and other.is_contiguous(memory_format=torch.channels_last):
            result = torch.ops.mkldnn._convolution_pointwise_.binary(other, input, *behind)
        else:
            given = other.contiguous(memory_format=torch.channels_last)
            result = torch.ops.mkldnn._convolution_pointwise.binary(input, given, *behind)
        return result

    def _sizes(self, input: Tensor, weight: Tensor) -> tuple[int, ...]:
        """The sizes of the result."""
        image = tuple(
            (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for size, padding, dilation, kernel, stride in zip(
                input.shape[2:], self.padding, self.dilation, weight.shape[2:], self.stride, strict=True
            )
        )
        return (input.shape[0], weight.shape[0], *image)

    def plain(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """What PyTorch's operator makes of it, without the activation."""
        return torch.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


@implements_for_node("prim::packed_convolution(Tensor input, Tensor weight, Tensor? bias) -> Tensor")
def packed_convolution(node: Node) -> Operation:
    """``conv2d`` with ``stride``, ``padding``, ``dilation``, ``groups`` as attributes, and an ``activation`` behind
    it: ``none`` or ``relu``. Its result is in channels-last order wherever oneDNN made it."""
    convolution = _Convolution(node)

    def run(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        result = convolution.by_library(input, weight, bias, None)
        if result is None:
            result = _activated(convolution.plain(input, weight, bias), convolution.activation)
        return result

    return run


@implements_for_node("prim::packed_convolution_add(Tensor input, Tensor weight, Tensor? bias, Tensor other) -> Tensor")
def packed_convolution_add(node: Node) -> Operation:
    """The same with ``other`` added in front of the activation; where ``is_in_place``, as ``add_`` does, which has to
    broadcast to what is convolved. It ``may_overwrite`` what nobody reads any more."""
    convolution, is_in_place = _Convolution(node), bool(int_attribute(node, "is_in_place"))

    def run(input: Tensor, weight: Tensor, bias: Tensor | None, other: Tensor) -> Tensor:
        result = convolution.by_library(input, weight, bias, other)
        if result is None:
            made = convolution.plain(input, weight, bias)
            result = _activated(made.add_(other) if is_in_place else made + other, convolution.activation)
        return result

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
            fewest.append(inputs * max(MIN_ROWS, -(-MIN_MULTIPLICATIONS[LINEAR] // (inputs * outputs))))
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
