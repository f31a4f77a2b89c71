"""Functions of ``torch.nn`` that TorchScript calls and the dispatcher lacks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from rekindle.ir.operators.registry import AliasAnalysisKind
from rekindle.ops.registration.declare import implements

# ------------------------------------------------------------------------------------------------------- interpolation


@implements(
    'aten::__interpolate.scale_list(Tensor input, int? size=None, float[]? scale_factor=None, str mode="nearest",'
    " bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
    "aten::__interpolate.size_list_scale_list(Tensor input, int[]? size=None, float[]? scale_factor=None,"
    ' str mode="nearest", bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor',
    'aten::__interpolate(Tensor input, int? size=None, float? scale_factor=None, str mode="nearest",'
    " bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
    'aten::__interpolate.size_list(Tensor input, int[]? size=None, float? scale_factor=None, str mode="nearest",'
    " bool? align_corners=None, bool? recompute_scale_factor=None, bool antialias=False) -> Tensor",
)
def interpolate(
    input: Tensor,
    size: int | list[int] | None = None,
    scale_factor: float | list[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return ``torch.nn.functional.interpolate`` of these arguments."""
    return functional.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)


@implements(
    'aten::__upsample(Tensor input, int? size=None, int? scale_factor=None, str mode="nearest",'
    " bool? align_corners=None) -> Tensor",
    'aten::__upsample.size_list(Tensor input, int[]? size=None, int? scale_factor=None, str mode="nearest",'
    " bool? align_corners=None) -> Tensor",
)
def upsample(
    input: Tensor,
    size: int | list[int] | None = None,
    scale_factor: int | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Return ``torch.nn.functional.upsample`` of these arguments, the old name of :func:`interpolate`."""
    return functional.interpolate(input, size, _floats(scale_factor), mode, align_corners)


@implements(
    "aten::__upsample_nearest(Tensor input, int? size=None, int? scale_factor=None) -> Tensor",
    "aten::__upsample_nearest.size_list(Tensor input, int[]? size=None, int? scale_factor=None) -> Tensor",
)
def upsample_nearest(input: Tensor, size: int | list[int] | None = None, scale_factor: int | None = None) -> Tensor:
    """Return ``torch.nn.functional.upsample_nearest`` of these arguments."""
    return functional.interpolate(input, size, _floats(scale_factor), "nearest")


@implements(
    "aten::__upsample_bilinear(Tensor input, int? size=None, int? scale_factor=None) -> Tensor",
    "aten::__upsample_bilinear.size_list(Tensor input, int[]? size=None, int? scale_factor=None) -> Tensor",
    "aten::__upsample_bilinear.scale_list(Tensor input, int? size=None, int[]? scale_factor=None) -> Tensor",
    "aten::__upsample_bilinear.size_list_scale_list(Tensor input, int[]? size=None, int[]? scale_factor=None)"
    " -> Tensor",
)
def upsample_bilinear(
    input: Tensor, size: int | list[int] | None = None, scale_factor: int | list[int] | None = None
) -> Tensor:
    """Return ``torch.nn.functional.upsample_bilinear`` of these arguments, which aligns the corners."""
    return functional.interpolate(input, size, _floats(scale_factor), "bilinear", align_corners=True)


def _floats(factor: int | Sequence[int] | None) -> float | list[float] | None:
    if factor is None:
        return None
    return float(factor) if isinstance(factor, int) else [float(part) for part in factor]


# ------------------------------------------------------------------------------------------------------ initialization


@implements("aten::_no_grad_fill_(Tensor(a!) tensor, float val) -> Tensor(a!)")
def no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    """Run ``tensor.fill_(val)`` without gradients; return the tensor."""
    with torch.no_grad():
        return tensor.fill_(val)


@implements("aten::_no_grad_zero_(Tensor(a!) tensor) -> Tensor(a!)")
def no_grad_zero_(tensor: Tensor) -> Tensor:
    """Run ``tensor.zero_()`` without gradients; return the tensor."""
    with torch.no_grad():
        return tensor.zero_()


@implements(
    "aten::_no_grad_uniform_(Tensor(a!) tensor, float a, float b, Generator? generator=None) -> Tensor(a!)",
    nondeterministic=True,
)
def no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: torch.Generator | None = None) -> Tensor:
    """Run ``tensor.uniform_(a, b)`` without gradients; return the tensor."""
    with torch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@implements(
    "aten::_no_grad_normal_(Tensor(a!) tensor, float mean, float std, Generator? generator=None) -> Tensor(a!)",
    nondeterministic=True,
)
def no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: torch.Generator | None = None) -> Tensor:
    """Run ``tensor.normal_(mean, std)`` without gradients; return the tensor."""
    with torch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


@implements(
    "aten::_no_grad_embedding_renorm_(Tensor weight, Tensor input, float max_norm, float norm_type) -> Tensor",
    effects=AliasAnalysisKind.CONSERVATIVE,
    side_effects=True,
)
def no_grad_embedding_renorm_(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale the rows of ``weight`` at the indices ``input`` down to the norm ``max_norm``, in place and without
    gradients; return the weight."""
    with torch.no_grad():
        return torch.embedding_renorm_(weight, input, max_norm, norm_type)


@implements(
    "aten::_pack_sequence(Tensor output, Tensor batch_sizes, Tensor? sorted_indices, Tensor? unsorted_indices)"
    " -> (Tensor, Tensor, Tensor?, Tensor?)",
    may_alias_inputs=True,
)
def pack_sequence(
    output: Tensor, batch_sizes: Tensor, sorted_indices: Tensor | None, unsorted_indices: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Return the four parts of a packed sequence."""
    return output, batch_sizes, sorted_indices, unsorted_indices
