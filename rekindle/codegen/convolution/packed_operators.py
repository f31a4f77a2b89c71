"""Convolutions and linear maps with constant weights, by whatever is fastest on this machine.

:class:`rekindle.passes.frozen_modules.pack_weights.PackWeights` puts them in place of PyTorch's operators. The first
call with images of about a size measures what there is: a kernel of our own
(:mod:`rekindle.codegen.convolution.direct`), oneDNN with weights in its own layout, and the operators that stood there
before. Later calls run the fastest. All of them are right up to rounding, so that the choice is one of speed alone.

What nothing but the operators that stood there can do, they do: gradients, other devices and dtypes, images without a
batch, dual tensors, what vmap wraps, autocast.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.convolution.direct import DirectConvolution, Geometry
from rekindle.codegen.convolution.direct_ir import Activation
from rekindle.errors import GraphError
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import Operation
from rekindle.ir.scalar_types import number_of
from rekindle.ops.registration.declare import implements_for_node, int_attribute

HAS_ONEDNN: Final = bool(torch.backends.mkldnn.is_available()) and hasattr(torch._C._nn, "mkldnn_reorder_conv2d_weight")
"""Whether this build of PyTorch has oneDNN with what is needed here."""

_MEASURED_SECONDS: Final = 2e-4
"""How long candidates are called for, at least, and how often."""
_MEASURED_CALLS: Final = 3
_WORTH_IT: Final = 0.95
"""A candidate behind the first is chosen if it takes less than this part of the time."""
_LAST: Final = torch.channels_last

Candidate = Callable[[Tensor, "Tensor | None"], "Tensor | None"]
"""Returns the result for an input, and for what is to be added to it; None where it cannot."""


def _is_plain(input: Any) -> bool:
    """Whether kernels can take it, and nobody asks for more than the result."""
    if type(input) is not Tensor or input.dtype is not torch.float32 or not input.is_cpu:
        return False
    if input.requires_grad and torch.is_grad_enabled():
        return False
    if input.layout is not torch.strided or input.is_neg() or not input.numel() or torch.is_autocast_enabled("cpu"):
        return False
    return torch._C._functorch.peek_interpreter_stack() is None and torch.autograd.forward_ad._current_level < 0


def _are_plain_weights(weight: Tensor, bias: Tensor | None) -> bool:
    given = [weight] if bias is None else [weight, bias]
    return all(each.dtype is torch.float32 and each.is_cpu and not each.requires_grad for each in given)


@dataclass(slots=True)
class Selection:
    """Chooses among ``candidates`` by measuring them. The last of them can always."""

    candidates: Sequence[Candidate]
    chosen: dict[tuple[int, bool], Candidate] = field(default_factory=dict)
    """By the number of bits of how many numbers an input has, and whether it is in channels-last order."""

    def run(self, input: Tensor, other: Tensor | None) -> Tensor:
        """Return the result of the candidate that is fastest for inputs like this one."""
        key = input.numel().bit_length(), input.dim() == 4 and input.is_contiguous(memory_format=_LAST)
        candidate = self.chosen.get(key)
        if candidate is None:
            candidate = self.chosen[key] = self._fastest(input, other)
        result = candidate(input, other)
        if result is None:
            result = self.candidates[-1](input, other)
        assert result is not None
        return result

    def _fastest(self, input: Tensor, other: Tensor | None) -> Candidate:
        best, least = self.candidates[-1], float("inf")
        for candidate in self.candidates:
            taken = _seconds(candidate, input, other)
            if taken is not None and taken < least * _WORTH_IT:
                best, least = candidate, taken
        return best


def _seconds(candidate: Candidate, input: Tensor, other: Tensor | None) -> float | None:
    """Return the least time that a call takes; None where the candidate cannot, or raises what the operator that stood
    there before is to raise."""
    other = None if other is None else other.clone()  # which a candidate may write to
    # The time of the processor leaves out what else runs there, but knows one thread only.
    clock = time.thread_time if torch.get_num_threads() == 1 else time.perf_counter
    try:
        if candidate(input, other) is None:
            return None
        times: list[float] = []
        while len(times) < _MEASURED_CALLS or sum(times) < _MEASURED_SECONDS:
            started = clock()
            candidate(input, other)
            times.append(clock() - started)
    except RuntimeError:
        return None
    return min(times)


def _ints(node: Node, name: str) -> tuple[int, int]:
    found = node[name]
    ints = [item for item in found if isinstance(item, int)] if isinstance(found, list) else []
    if not isinstance(found, list) or not len(ints) == len(found) == 2:
        raise GraphError(f"the attribute '{name}' of {node.kind} is a pair of ints")
    return ints[0], ints[1]


# ---------------------------------------------------------------------------------------------------------- convolution


class _Convolution:
    """A convolution with the attributes of ``node``."""

    def __init__(self, node: Node) -> None:
        stride, padding, dilation = (_ints(node, name) for name in ("stride", "padding", "dilation"))
        self.geometry = Geometry(stride, padding, dilation, int_attribute(node, "groups"))
        self.activation = node.get_string("activation")
        self.may_overwrite = bool(int_attribute(node, "may_overwrite", 0))
        """Whether nobody reads what is added any more."""
        self.is_in_place = bool(int_attribute(node, "is_in_place", 0))
        self._selected: tuple[Tensor | None, Selection | None] = None, None
        """The weight that was packed, and what it was packed for: one value, which threads may read at any time."""

    def run(self, input: Tensor, weight: Tensor, bias: Tensor | None, other: Tensor | None) -> Tensor:
        """Return the convolution of ``input``, with ``other`` added before the activation."""
        packed, selection = self._selected
        if weight is not packed:
            selection = Selection(self._candidates(weight, bias)) if _are_plain_weights(weight, bias) else None
            self._selected = weight, selection
        if selection is None or not self._is_selectable(input, weight, other):
            return self._plain(input, weight, bias, other)
        return selection.run(input, other)

    def _is_selectable(self, input: Tensor, weight: Tensor, other: Tensor | None) -> bool:
        if not (_is_plain(input) and input.dim() == 4 and input.shape[1] == weight.shape[1] * self.geometry.groups):
            return False
        if other is None:
            return True
        return _is_plain(other) and tuple(other.shape) == self.geometry.output_sizes(input.shape, weight.shape)

    def _candidates(self, weight: Tensor, bias: Tensor | None) -> list[Candidate]:
        direct = DirectConvolution(weight, bias, self.geometry, Activation[self.activation.upper()])
        found: list[Candidate] = [direct.run]
        if HAS_ONEDNN:
            found.append(self._by_onednn(weight, bias))
        return [*found, lambda input, other: self._plain(input, weight, bias, other)]

    def _by_onednn(self, weight: Tensor, bias: Tensor | None) -> Candidate:
        """What oneDNN makes of it, in channels-last order. Its own ``relu`` makes 0 of NaN: PyTorch's comes behind."""
        geometry = self.geometry
        numbers: tuple[Any, ...] = (geometry.padding, geometry.stride, geometry.dilation, geometry.groups)
        packed: list[Tensor] = []

        def run(input: Tensor, other: Tensor | None) -> Tensor:
            if not packed:
                dense = weight.detach().to_mkldnn()
                packed.append(torch._C._nn.mkldnn_reorder_conv2d_weight(dense, *numbers))
            input = input.contiguous(memory_format=_LAST)
            result: Tensor
            if other is None:
                pointwise = torch.ops.mkldnn._convolution_pointwise.default
                result = pointwise(input, packed[0], bias, *numbers, "none", [], None)
                return _activated(result, self.activation)
            behind: tuple[Any, ...] = (packed[0], bias, *numbers, "add", 1.0, None, [], None)
            if self.may_overwrite and other.is_contiguous(memory_format=_LAST):
                result = torch.ops.mkldnn._convolution_pointwise_.binary(other, input, *behind)
            else:
                other = other.contiguous(memory_format=_LAST)
                result = torch.ops.mkldnn._convolution_pointwise.binary(input, other, *behind)
            return _activated(result, self.activation)

        return run

    def _plain(self, input: Tensor, weight: Tensor, bias: Tensor | None, other: Tensor | None) -> Tensor:
        """What PyTorch's operators make of it."""
        geometry = self.geometry
        numbers = (geometry.stride, geometry.padding, geometry.dilation, geometry.groups)
        made = torch.conv2d(input, weight, bias, *numbers)
        if other is not None:
            made = made.add_(other) if self.is_in_place else made + other
        return _activated(made, self.activation)


@implements_for_node("prim::packed_convolution(Tensor input, Tensor weight, Tensor? bias) -> Tensor")
def packed_convolution(node: Node) -> Operation:
    """``conv2d`` with ``stride``, ``padding``, ``dilation``, ``groups`` as attributes, and an ``activation`` behind
    it: ``none`` or ``relu``. Its result may be in channels-last order."""
    convolution = _Convolution(node)
    return lambda input, weight, bias: convolution.run(input, weight, bias, None)


@implements_for_node("prim::packed_convolution_add(Tensor input, Tensor weight, Tensor? bias, Tensor other) -> Tensor")
def packed_convolution_add(node: Node) -> Operation:
    """The same with ``other`` added in front of the activation; where ``is_in_place``, as ``add_`` does, which has to
    broadcast to what is convolved. It ``may_overwrite`` what nobody reads any more."""
    return _Convolution(node).run


@implements_for_node("prim::image_order(Tensor image) -> int")
def image_order(node: Node) -> Operation:
    """The memory format, as a number, that PyTorch's convolutions give their results for ``image``."""
    usual, last = number_of(torch.contiguous_format), number_of(_LAST)

    def run(image: Tensor) -> int:
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return usual  # what vmap wraps has no order
        is_last = image.dim() == 4 and image.is_contiguous(memory_format=_LAST) and not image.is_contiguous()
        return last if is_last else usual

    return run


# ---------------------------------------------------------------------------------------------------------- linear maps

_NO_GEOMETRY: Final = Geometry((1, 1), (0, 0), (1, 1), 1)


@implements_for_node("prim::packed_linear(Tensor input, Tensor weight, Tensor? bias) -> Tensor")
def packed_linear(node: Node) -> Operation:
    """``linear`` with an ``activation`` behind it, as for :func:`packed_convolution`."""
    activation = node.get_string("activation")
    selections: list[Selection] = []

    def run(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if not selections and _are_plain_weights(weight, bias):
            selections.append(Selection(_linear_candidates(weight, bias, activation)))
        if not selections or not (_is_plain(input) and input.dim() > 1 and input.shape[-1] == weight.shape[1]):
            return _activated(torch.nn.functional.linear(input, weight, bias), activation)
        return selections[0].run(input, None)

    return run


def _linear_candidates(weight: Tensor, bias: Tensor | None, activation: str) -> list[Candidate]:
    direct = DirectConvolution(weight[:, :, None, None], bias, _NO_GEOMETRY, Activation[activation.upper()])
    outputs, inputs = weight.shape
    packed: list[Tensor] = []

    def by_own_kernel(input: Tensor, _: Tensor | None) -> Tensor | None:
        """A map of rows is a convolution of an image of one column."""
        image = input.reshape(1, -1, 1, inputs).permute(0, 3, 1, 2)
        result = direct.run(image, None)
        return None if result is None else result.permute(0, 2, 3, 1).view(*input.shape[:-1], outputs)

    def by_onednn(input: Tensor, _: Tensor | None) -> Tensor:
        if not packed:
            packed.append(torch.ops.mkldnn._reorder_linear_weight(weight.detach()))
        result: Tensor = torch.ops.mkldnn._linear_pointwise(input, packed[0], bias, "none", [], None)
        return _activated(result, activation)  # oneDNN's relu makes 0 of NaN

    def plain(input: Tensor, _: Tensor | None) -> Tensor:
        return _activated(torch.nn.functional.linear(input, weight, bias), activation)

    return [by_own_kernel, *([by_onednn] if HAS_ONEDNN else []), plain]


def _activated(result: Tensor, activation: str) -> Tensor:
    return torch.relu_(result) if activation == "relu" else result
