"""Run convolutions and linear maps with constant weights by the fastest implementation on this machine.

:class:`rekindle.passes.frozen_modules.pack_weights.PackWeights` inserts these operators in place of PyTorch's. The
first call with an input of a size class measures the candidates: kernels of this package
(:mod:`rekindle.codegen.convolution.direct`, and :mod:`rekindle.codegen.convolution.winograd` where it applies), oneDNN
with weights in its own layout, and PyTorch's operator. Later calls run the fastest. Results differ by rounding only.

Weights of linear maps that fewer bits hold are stored in these (:mod:`rekindle.codegen.convolution.storage`), and read
in less time.

PyTorch's operator runs where the others do not apply: gradients, other devices and dtypes, images without a batch, dual
tensors, tensors wrapped by vmap, autocast.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import torch
from torch import Tensor

from rekindle.codegen.convolution import depthwise, winograd
from rekindle.codegen.convolution.activations import ACTIVATIONS, Activation
from rekindle.codegen.convolution.depthwise import DepthwiseConvolution
from rekindle.codegen.convolution.direct import DirectConvolution, Geometry
from rekindle.codegen.convolution.storage import FLOAT32, NARROW, WeightStorage
from rekindle.codegen.convolution.transposed import TransposedConvolution
from rekindle.codegen.convolution.winograd import WinogradConvolution
from rekindle.codegen.kernel_eligibility import is_plain
from rekindle.codegen.launched_operation import LaunchedOperation, NativeCall
from rekindle.codegen.selection import Candidate, NativeCandidate, Selection
from rekindle.errors import GraphError
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import Operation
from rekindle.ir.scalar_types import number_of
from rekindle.ops.registration.declare import int_attribute

HAS_ONEDNN: Final = bool(torch.backends.mkldnn.is_available()) and hasattr(torch._C._nn, "mkldnn_reorder_conv2d_weight")
"""Whether this build of PyTorch has oneDNN with the required operators."""

_LAST: Final = torch.channels_last


def _are_plain_weights(weight: Tensor, bias: Tensor | None) -> bool:
    given = [weight] if bias is None else [weight, bias]
    return all(each.dtype is torch.float32 and each.is_cpu and not each.requires_grad for each in given)


def _kind(input: Tensor) -> tuple[int, bool]:
    """Return the bit length of the number of elements, and whether the image is in channels-last order: calls with
    equal ones share the choice of an implementation."""
    return input.numel().bit_length(), input.dim() == 4 and input.is_contiguous(memory_format=_LAST)


def _identity(operator: str, weight: Tensor, bias: Tensor | None, *options: object) -> str:
    return " ".join(map(str, (operator, list(weight.shape), bias is not None, *options)))


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
        self.activation = ACTIVATIONS[node.get_string("activation")]
        self.may_overwrite = bool(int_attribute(node, "may_overwrite", 0))
        """Whether the addend has no later use."""
        self.is_in_place = bool(int_attribute(node, "is_in_place", 0))
        self._selected: tuple[Tensor | None, Selection | None] = None, None
        """The packed weight, and the selection that it was packed for: one value, so that threads may read it at any
        time."""

    def run(self, input: Tensor, weight: Tensor, bias: Tensor | None, other: Tensor | None = None) -> Tensor:
        """Return the convolution of ``input``, with ``other`` added before the activation. The result may take the
        memory of ``other`` if the convolution ``may_overwrite`` it."""
        packed, selection = self._selected
        if weight is not packed:
            selection = None
            if _are_plain_weights(weight, bias):
                options = (self.geometry, self.activation.name, self.may_overwrite, self.is_in_place)
                identity = _identity("convolution", weight, bias, *options)
                selection = Selection(self._candidates(weight, bias), identity, written=1)
            self._selected = weight, selection
        if selection is None or not self._is_selectable(input, weight, other):
            return self._plain(input, weight, bias, other)
        return selection.run((*_kind(input), other is None), input, other)

    def native_call(
        self, input: Tensor, weight: Tensor, bias: Tensor | None, other: Tensor | None = None
    ) -> NativeCall | None:
        """Return the call data for native code, for such arguments. Return None unless :meth:`run` has chosen a
        candidate for them, and native code can call it."""
        packed, selection = self._selected
        if selection is None or weight is not packed or not self._is_selectable(input, weight, other):
            return None
        return selection.native_call((*_kind(input), other is None), input, other)

    def _is_selectable(self, input: Tensor, weight: Tensor, other: Tensor | None) -> bool:
        if not (is_plain(input) and input.dim() == 4 and input.shape[1] == weight.shape[1] * self.geometry.groups):
            return False
        if other is None:
            return True
        return is_plain(other) and tuple(other.shape) == self.geometry.output_sizes(input.shape, weight.shape)

    def _candidates(self, weight: Tensor, bias: Tensor | None) -> dict[str, Candidate]:
        """Return the candidates that are timed, by name. All have results in channels-last order, since later operators
        would copy others."""
        is_depthwise = depthwise.applies(weight, self.geometry)
        kind = DepthwiseConvolution if is_depthwise else DirectConvolution
        direct = kind(weight, bias, self.geometry, self.activation)
        found: dict[str, Candidate] = {"direct": NativeCandidate(direct.run, direct.native_call)}
        if winograd.applies(weight, self.geometry):
            faster = WinogradConvolution(weight, bias, self.geometry, self.activation)
            found["winograd"] = NativeCandidate(faster.run, faster.native_call)
        if HAS_ONEDNN:
            found["oneDNN"] = self._by_onednn(weight, bias)
        found["PyTorch"] = lambda input, other: self._plain(input, weight, bias, other).contiguous(memory_format=_LAST)
        return found

    def _by_onednn(self, weight: Tensor, bias: Tensor | None) -> Candidate:
        """Return the candidate that calls oneDNN. Its fused ``relu`` turns NaN into 0, so PyTorch's runs after it."""
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
                return self.activation.apply(result)
            arguments: tuple[Any, ...] = (packed[0], bias, *numbers, "add", 1.0, None, [], None)
            if self.may_overwrite and other.is_contiguous(memory_format=_LAST):
                result = torch.ops.mkldnn._convolution_pointwise_.binary(other, input, *arguments)
            else:
                other = other.contiguous(memory_format=_LAST)
                result = torch.ops.mkldnn._convolution_pointwise.binary(input, other, *arguments)
            return self.activation.apply(result)

        return run

    def _plain(self, input: Tensor, weight: Tensor, bias: Tensor | None, other: Tensor | None) -> Tensor:
        """Return the result of PyTorch's operators. If ``is_in_place``, ``other`` is added in place to the
        convolution's result."""
        geometry = self.geometry
        numbers = (geometry.stride, geometry.padding, geometry.dilation, geometry.groups)
        made = torch.conv2d(input, weight, bias, *numbers)
        if other is not None:
            made = made.add_(other) if self.is_in_place else made + other
        return self.activation.apply(made)


def packed_convolution(node: Node) -> Operation:
    """Return the operation of ``conv2d`` with ``stride``, ``padding``, ``dilation`` and ``groups`` as attributes, then
    an ``activation``: a name of :data:`~rekindle.codegen.convolution.activations.ACTIVATIONS`. The result may be in
    channels-last order."""
    convolution = _Convolution(node)
    return LaunchedOperation("packed_convolution", convolution.run, convolution.native_call, [0])


def packed_convolution_add(node: Node) -> Operation:
    """Return the operation of :func:`packed_convolution` with ``other`` added before the activation. If
    ``is_in_place``, ``other`` must broadcast to the convolution's result, as in ``add_``. If ``may_overwrite``,
    ``other`` has no later use."""
    convolution = _Convolution(node)
    return LaunchedOperation("packed_convolution_add", convolution.run, convolution.native_call, [0, 3])


def packed_transposed_convolution(node: Node) -> Operation:
    """Return the operation of ``conv_transpose2d`` without padding, whose stride is the kernel's size, then an
    ``activation``, as in :func:`packed_convolution`."""
    activation = ACTIVATIONS[node.get_string("activation")]
    selections: list[Selection] = []

    def plain(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return activation.apply(torch.conv_transpose2d(input, weight, bias, tuple(weight.shape[2:])))

    def run(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if not selections and _are_plain_weights(weight, bias):
            kernel = TransposedConvolution(weight, bias, activation=activation)
            candidates: dict[str, Candidate] = {
                "direct": NativeCandidate(kernel.run, kernel.native_call),
                "PyTorch": lambda input: plain(input, weight, bias),
            }
            identity = _identity("transposed convolution", weight, bias, activation.name)
            selections.append(Selection(candidates, identity))
        if not selections or not (is_plain(input) and input.dim() == 4 and input.shape[1] == weight.shape[0]):
            return plain(input, weight, bias)
        return selections[0].run(_kind(input), input)

    def native_call(input: Tensor, weight: Tensor, bias: Tensor | None) -> NativeCall | None:
        return selections[0].native_call(_kind(input), input) if selections and input.dim() == 4 else None

    return LaunchedOperation("packed_transposed_convolution", run, native_call, [0])


def image_order(node: Node) -> Operation:
    """Return the operation that returns the number of the memory format in which PyTorch's convolutions return their
    results for ``image``."""
    usual, last = number_of(torch.contiguous_format), number_of(_LAST)

    def run(image: Tensor) -> int:
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return usual  # tensors wrapped by vmap do not report a memory format
        is_last = image.dim() == 4 and image.is_contiguous(memory_format=_LAST) and not image.is_contiguous()
        return last if is_last else usual

    return run


# ---------------------------------------------------------------------------------------------------------- linear maps


def packed_linear(node: Node) -> Operation:
    """Return the operation of ``linear``, then an ``activation``, as in :func:`packed_convolution`."""
    activation = ACTIVATIONS[node.get_string("activation")]
    selections: list[Selection] = []

    def run(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if not selections and _are_plain_weights(weight, bias):
            identity = _identity("linear", weight, bias, activation.name)
            selections.append(Selection(_linear_candidates(weight, bias, activation), identity))
        if not selections or not (is_plain(input) and input.dim() > 1 and input.shape[-1] == weight.shape[1]):
            return activation.apply(torch.nn.functional.linear(input, weight, bias))
        return selections[0].run(_kind(input), input)

    def native_call(input: Tensor, weight: Tensor, bias: Tensor | None) -> NativeCall | None:
        return selections[0].native_call(_kind(input), input) if selections and input.dim() > 1 else None

    return LaunchedOperation("packed_linear", run, native_call, [0])


def _linear_candidates(weight: Tensor, bias: Tensor | None, activation: Activation) -> dict[str, Candidate]:
    packed: list[Tensor] = []

    def by_onednn(input: Tensor) -> Tensor:
        if not packed:
            packed.append(torch.ops.mkldnn._reorder_linear_weight(weight.detach()))
        result: Tensor = torch.ops.mkldnn._linear_pointwise(input, packed[0], bias, "none", [], None)
        return activation.apply(result)  # oneDNN's relu makes 0 of NaN

    def plain(input: Tensor) -> Tensor:
        return activation.apply(torch.nn.functional.linear(input, weight, bias))

    found: dict[str, Candidate] = {}
    for storage in NARROW:
        if storage.holds(weight):
            found[storage.name] = _own_linear(weight, bias, activation, storage)
    found["direct"] = _own_linear(weight, bias, activation, FLOAT32)
    if HAS_ONEDNN:
        found["oneDNN"] = by_onednn
    found["PyTorch"] = plain
    return found


def _own_linear(weight: Tensor, bias: Tensor | None, activation: Activation, storage: WeightStorage) -> NativeCandidate:
    """Return the candidate that computes a linear map by this package's convolution with a 1x1 kernel, of an image
    whose pixels are the rows."""
    direct = DirectConvolution(weight[:, :, None, None], bias, activation=activation, storage=storage)
    outputs, inputs = weight.shape

    def run(input: Tensor) -> Tensor | None:
        result = direct.run(input.reshape(1, -1, 1, inputs).permute(0, 3, 1, 2), None)
        return None if result is None else result.permute(0, 2, 3, 1).view(*input.shape[:-1], outputs)

    def native_call(input: Tensor) -> NativeCall | None:
        if not input.is_contiguous():
            return None
        found = direct.native_call(input.view(1, -1, 1, inputs).permute(0, 3, 1, 2))
        if found is None:
            return None
        sizes = (*input.shape[:-1], outputs)
        strides = tuple(stride // inputs * outputs for stride in input.stride()[:-1])
        return replace(found, output=(torch.float32, sizes, (*strides, 1)))

    return NativeCandidate(run, native_call)
