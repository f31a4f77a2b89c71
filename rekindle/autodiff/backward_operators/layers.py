"""Backward of convolution, resampling and normalization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from rekindle.autodiff.backward_operators.sizes import Sizes, negated, ratio
from rekindle.ops.registration.declare import implements


@implements(
    "autodiff::convolution_back(Tensor grad, Tensor input, Tensor weight, bool has_bias, int[] stride, int[] padding,"
    " int[] dilation, bool transposed, int[] output_padding, int groups, bool[] needed) -> (Tensor, Tensor, Tensor)"
)
def convolution_back(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    has_bias: bool,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    needed: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """Return the gradients of the input, the weight and the bias of a convolution, with a batch or without; None for
    those that are not ``needed``."""
    rank = weight.dim() - 2
    alone = input.dim() == rank + 1
    if alone:
        grad, input = grad.unsqueeze(0), input.unsqueeze(0)
    sizes = [weight.shape[1] * groups if transposed else weight.shape[0]] if has_bias else None
    options = [
        list(option) * rank if len(option) == 1 else list(option)
        for option in (stride, padding, dilation, output_padding)
    ]
    mask = [needed[0], needed[1], needed[2] and has_bias]
    found = torch.ops.aten.convolution_backward(
        grad, input, weight, sizes, options[0], options[1], options[2], transposed, options[3], groups, mask
    )
    return found[0].squeeze(0) if alone and found[0] is not None else found[0], found[1], found[2]


@implements(
    "autodiff::padded_convolution_back(Tensor grad, Tensor input, Tensor weight, bool has_bias, int[] stride,"
    " str padding, int[] dilation, int groups, bool[] needed) -> (Tensor, Tensor, Tensor)"
)
def padded_convolution_back(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    has_bias: bool,
    stride: Sizes,
    padding: str,
    dilation: Sizes,
    groups: int,
    needed: Sequence[bool],
) -> tuple[Any, Any, Any]:
    """Return the gradients of a convolution whose padding is a string; an odd element of padding is added at the
    end."""
    rank = weight.dim() - 2
    spread = list(dilation) * rank if len(dilation) == 1 else list(dilation)
    kernel = weight.shape[2:]
    totals = [0 if padding == "valid" else d * (k - 1) for d, k in zip(spread, kernel, strict=True)]
    extra = [total % 2 for total in totals]
    pad = [number for odd in reversed(extra) for number in (0, odd)]
    wide = torch.constant_pad_nd(input, pad) if any(extra) else input
    halves = [total // 2 for total in totals]
    found = convolution_back(grad, wide, weight, has_bias, stride, halves, dilation, False, [0], groups, needed)
    back = found[0]
    return torch.constant_pad_nd(back, negated(pad)) if any(extra) and back is not None else back, *found[1:]


@implements(
    "autodiff::upsample_back(str kind, Tensor grad, int[] size, bool? align_corners, float[]? scales) -> Tensor"
)
def upsample_back(
    kind: str, grad: Tensor, size: Sizes, align_corners: bool | None, scales: Sequence[float] | None
) -> Tensor:
    """Return the gradient of an interpolation, of the operator ``kind``."""
    backward = getattr(torch.ops.aten, f"{kind}_backward").default
    options = [] if align_corners is None else [align_corners]
    factors = [None] * (len(size) - 2) if scales is None else list(scales)
    found: Tensor = backward(grad, list(grad.shape[2:]), list(size), *options, *factors)
    return found


@implements(
    "autodiff::grid_back(Tensor grad, Tensor input, Tensor grid, int interpolation, int padding, bool align_corners,"
    " bool[] needed) -> (Tensor, Tensor)"
)
def grid_back(
    grad: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation: int,
    padding: int,
    align_corners: bool,
    needed: Sequence[bool],
) -> Any:
    """Return the gradients of ``grid_sample``."""
    aten = torch.ops.aten
    backward = aten.grid_sampler_2d_backward if input.dim() == 4 else aten.grid_sampler_3d_backward
    return backward(grad, input, grid, interpolation, padding, align_corners, list(needed))


@implements(
    "autodiff::batch_norm_back(Tensor grad, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var,"
    " Tensor mean, Tensor rstd, Tensor reserve, bool training, float eps, bool[] needed) -> (Tensor, Tensor, Tensor)"
)
def batch_norm_back(
    grad: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor,
    rstd: Tensor,
    reserve: Tensor,
    training: bool,
    eps: float,
    needed: Sequence[bool],
) -> Any:
    """Return the gradients of ``batch_norm``. Of an empty input they are zeros as large as the weights, which need not
    be as many as the channels there."""
    if input.numel() == 0:
        none = torch.zeros(input.shape[1:2], dtype=input.dtype, device=input.device)
        of_weight = torch.zeros_like(none if weight is None else weight)
        return torch.zeros_like(input), of_weight, torch.zeros_like(of_weight)
    backward = torch.ops.aten._batch_norm_impl_index_backward.default
    return backward(0, input, grad, weight, running_mean, running_var, mean, rstd, training, eps, list(needed), reserve)


@implements("autodiff::in_suggested_order(Tensor(a) self) -> Tensor(a)")
def in_suggested_order(self: Tensor) -> Tensor:
    """Return ``self`` contiguous in the order in which PyTorch's ``group_norm`` returns its result: channels last if
    its strides are in that order, and it is on the CPU."""
    return self.contiguous(memory_format=_suggested_order(self))


def _suggested_order(tensor: Tensor) -> torch.memory_format:
    return suggest_memory_format(tensor) if tensor.is_cpu else torch.contiguous_format


@implements(
    "autodiff::group_norm_back(Tensor grad, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int n, int c,"
    " int area, int groups, bool[] needed) -> (Tensor, Tensor, Tensor)"
)
def group_norm_back(
    grad: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    n: int,
    c: int,
    area: int,
    groups: int,
    needed: Sequence[bool],
) -> Any:
    """Return the ``needed`` gradients of ``group_norm``: of the input, the weight and the bias; in grad mode all three,
    by operators that have gradients themselves."""
    if not torch.is_grad_enabled():
        order = _suggested_order(input)
        return torch.ops.aten.native_group_norm_backward(
            grad.contiguous(memory_format=order),
            input.contiguous(memory_format=order),
            mean,
            rstd,
            None if weight is None else weight.contiguous(),
            n,
            c,
            area,
            groups,
            list(needed),
        )
    count = ratio(c, groups) * area
    rows = input.reshape(n, groups, count)
    variance, centre = torch.var_mean(rows, 2, correction=0, keepdim=True)
    eps = (rstd.reshape(n, groups, 1).pow(-2) - variance).detach()
    scale = (variance + eps).rsqrt()
    normal = (rows - centre) * scale
    flat = grad.reshape(n, c, area)
    given = flat if weight is None else flat * weight.reshape(1, c, 1)
    given = given.reshape(n, groups, count)
    back = scale * (given - given.mean(2, True) - normal * (given * normal).mean(2, True))
    of_weight = (flat * normal.reshape(n, c, area)).sum([0, 2])
    return back.reshape(input.shape), of_weight, flat.sum([0, 2])


@implements(
    "autodiff::rms_norm_back(Tensor grad, Tensor input, int[] shape, Tensor? weight, float? eps) -> (Tensor, Tensor)"
)
def rms_norm_back(grad: Tensor, input: Tensor, shape: Sizes, weight: Tensor | None, eps: float | None) -> Any:
    """Return the gradients of ``rms_norm``."""
    axes = list(range(input.dim() - len(shape), input.dim()))
    least = torch.finfo(input.dtype).eps if eps is None else eps
    scale = (input.square().mean(axes, keepdim=True) + least).rsqrt()
    normal = input * scale
    given = grad if weight is None else grad * weight
    back = scale * (given - normal * (given * normal).mean(axes, keepdim=True))
    return back, (grad * normal).sum_to_size(shape)


@implements(
    "autodiff::instance_norm_back(Tensor grad, Tensor input, Tensor? weight, Tensor? running_mean,"
    " Tensor? running_var, bool use_input_stats, float eps) -> (Tensor, Tensor, Tensor)"
)
def instance_norm_back(
    grad: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    eps: float,
) -> Any:
    """Return the gradients of ``instance_norm``, whose statistics are recomputed."""
    axes = list(range(2, input.dim()))
    sizes = [1, -1, *([1] * len(axes))]
    given = grad if weight is None else grad * weight.reshape(sizes)
    if use_input_stats:
        variance, centre = torch.var_mean(input, axes, correction=0, keepdim=True)
        scale = (variance + eps).rsqrt()
        normal = (input - centre) * scale
        back = scale * (given - given.mean(axes, True) - normal * (given * normal).mean(axes, True))
    else:
        assert running_mean is not None
        assert running_var is not None
        scale = (running_var + eps).rsqrt().reshape(sizes)
        normal = (input - running_mean.reshape(sizes)) * scale
        back = given * scale
    return back, (grad * normal).sum([0, *axes]), grad.sum([0, *axes])


@implements("autodiff::unpool_back(Tensor grad, Tensor self, Tensor indices, int dims) -> Tensor")
def unpool_back(grad: Tensor, self: Tensor, indices: Tensor, dims: int) -> Tensor:
    """Return the gradient of ``max_unpool``: for each element of the input, that of the position to which it was
    written."""
    if self.numel() == 0:
        return torch.zeros_like(self)
    return grad.flatten(-dims).gather(-1, indices.flatten(-dims)).reshape(self.shape)
