"""Faster ways into common operators of the dispatcher.

A call through ``torch.ops`` reads its arguments by the schema; the functions that Python programs call (``torch.add``,
``Tensor.view``) were generated with their arguments known, and cost about half. They are eager's own way in, so that
they do what eager does. Listed are overloads whose function has the schema's parameters in the schema's order and
whose result is a Tensor or a number, or several Tensors. Where the IR has numbers of dtypes, layouts and memory
formats, they take the objects of torch.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Final

import torch

from rekindle.ir.operators.registry import Operation
from rekindle.ir.operators.schema import Argument
from rekindle.ir.scalar_types import DTYPES, LAYOUTS, MEMORY_FORMATS

_HOMES: Final[tuple[Any, ...]] = (torch._C._VariableFunctions, torch._C._nn, torch.Tensor)

_POINTWISE: Final = """
    abs acos acosh angle asin asinh atan atan2 atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1
    floor frac isfinite isinf isnan isneginf isposinf lgamma log log10 log1p log2 logit neg positive rad2deg
    reciprocal round round.decimals rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc
    add.Tensor add.Scalar sub.Tensor sub.Scalar rsub.Tensor rsub.Scalar mul.Tensor mul.Scalar div.Tensor div.Scalar
    div.Tensor_mode div.Scalar_mode floor_divide fmod.Tensor fmod.Scalar remainder.Tensor remainder.Scalar
    pow.Tensor_Tensor pow.Tensor_Scalar pow.Scalar float_power.Tensor_Scalar copysign.Tensor hypot logaddexp
    xlogy.Tensor maximum minimum fmax fmin clamp clamp.Tensor clamp_max clamp_min nan_to_num eq.Tensor eq.Scalar
    ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar gt.Tensor gt.Scalar ge.Tensor ge.Scalar isclose
    logical_and logical_not logical_or logical_xor bitwise_and.Tensor bitwise_and.Scalar bitwise_or.Tensor
    bitwise_or.Scalar bitwise_xor.Tensor bitwise_xor.Scalar bitwise_left_shift.Tensor_Scalar
    bitwise_right_shift.Tensor_Scalar addcdiv addcmul lerp.Scalar lerp.Tensor where.self where.ScalarOther
    where.ScalarSelf masked_fill.Scalar masked_fill.Tensor masked_scatter complex view_as_real view_as_complex
"""
_REDUCTIONS: Final = """
    all all.dim any any.dim amax amin aminmax argmax argmin count_nonzero cummax cumprod cumsum equal logcumsumexp
    logsumexp max max.dim mean mean.dim median median.dim min min.dim mode norm.Scalar norm.ScalarOpt_dim prod
    prod.dim_int std std.correction std.dim std_mean.correction sum sum.dim_IntList var var.correction var.dim
    var_mean.correction
"""
_SHAPES: Final = """
    as_strided broadcast_to cat clone contiguous detach diag diag_embed diagonal expand expand_as flatten.using_ints
    flip hstack movedim.int movedim.intlist narrow permute pixel_shuffle pixel_unshuffle repeat
    repeat_interleave.self_int repeat_interleave.self_Tensor reshape reshape_as roll rot90 select.int size.int
    squeeze squeeze.dim squeeze.dims stack stride.int swapaxes swapdims t tile transpose.int tril triu type_as
    unflatten.int unfold unsqueeze view view_as vstack channel_shuffle dim numel item is_floating_point is_complex
    to.dtype to.device to.other
"""
_INDEXING: Final = """
    argsort bincount bucketize.Tensor gather index_add index_copy index_fill.int_Scalar index_select masked_select
    nonzero one_hot scatter.src scatter.value scatter_add scatter_reduce.two searchsorted.Tensor sort sort.stable
    take take_along_dim topk
"""
_PRODUCTS: Final = """
    addbmm addmm addmv addr baddbmm bilinear bmm cdist cosine_similarity cross dist dot einsum inner kron linear
    matmul mm mv outer pairwise_distance pdist tensordot
"""
_ACTIVATIONS: Final = """
    celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid log_softmax.int mish prelu
    relu relu6 rrelu selu silu softmax.int softplus softshrink threshold alpha_dropout bernoulli dropout
    feature_alpha_dropout feature_dropout multinomial native_dropout
"""
_LAYERS: Final = """
    embedding embedding_bag embedding_bag.padding_idx embedding_renorm_ scaled_dot_product_attention
    _native_multi_head_attention conv1d conv2d conv3d conv1d.padding conv2d.padding conv3d.padding conv_transpose1d
    conv_transpose2d.input conv_transpose3d.input convolution conv_tbc im2col col2im batch_norm group_norm
    instance_norm layer_norm rms_norm native_batch_norm native_group_norm native_layer_norm adaptive_avg_pool1d
    adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d avg_pool1d
    avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices
    max_pool3d_with_indices max_unpool2d max_unpool3d fractional_max_pool2d fractional_max_pool3d pad
    constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
    replication_pad3d upsample_nearest1d.vec upsample_nearest2d.vec upsample_nearest3d.vec upsample_linear1d.vec
    upsample_bilinear2d.vec upsample_trilinear3d.vec upsample_bicubic2d.vec _upsample_nearest_exact1d.vec
    _upsample_nearest_exact2d.vec _upsample_nearest_exact3d.vec _upsample_bilinear2d_aa.vec
    _upsample_bicubic2d_aa.vec upsample_nearest1d upsample_nearest2d upsample_bilinear2d grid_sampler
    affine_grid_generator lstm.input lstm.data gru.input gru.data rnn_tanh.input rnn_tanh.data rnn_relu.input
    rnn_relu.data lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
"""
_LOSSES: Final = """
    binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy_loss ctc_loss.IntList
    ctc_loss.Tensor hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
    multilabel_margin_loss nll_loss nll_loss2d nll_loss_nd poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss
"""
_IN_PLACE: Final = """
    abs_ add_.Tensor add_.Scalar addcdiv_ addcmul_ addmm_ baddbmm_ bernoulli_.float bitwise_and_.Tensor
    bitwise_or_.Tensor ceil_ celu_ clamp_ clamp_max_ clamp_min_ copy_ cos_ detach_ div_.Tensor div_.Scalar
    div_.Tensor_mode dropout_ elu_ eq_.Tensor erf_ exp_ fill_.Scalar fill_.Tensor floor_ hardsigmoid_ hardswish_
    hardtanh_ index_add_ index_copy_ index_fill_.int_Scalar leaky_relu_ lerp_.Scalar lerp_.Tensor log_ logical_and_
    logical_not_ logical_or_ masked_fill_.Scalar masked_fill_.Tensor mish_ mul_.Tensor mul_.Scalar neg_ normal_
    pow_.Scalar pow_.Tensor reciprocal_ relu6_ relu_ remainder_.Scalar round_ rrelu_ rsqrt_ scatter_.src
    scatter_.value scatter_add_ scatter_reduce_.two selu_ sigmoid_ silu_ sin_ sqrt_ square_ squeeze_ squeeze_.dim
    sub_.Tensor sub_.Scalar t_ tanh_ threshold_ transpose_ tril_ triu_ trunc_ uniform_ unsqueeze_ zero_
"""
_FACTORIES: Final = """
    arange arange.start arange.start_step empty.memory_format empty_like empty_strided eye eye.m full full_like
    linspace new_empty new_full new_ones new_zeros ones ones_like rand rand_like randint randint.low randn
    randn_like randperm scalar_tensor tril_indices triu_indices zeros zeros_like
"""

_FEWER: Final = {
    **dict.fromkeys(("aten::add.Scalar", "aten::sub.Scalar", "aten::add_.Scalar", "aten::sub_.Scalar"), 2),
    **dict.fromkeys(("aten::to.dtype", "aten::to.other"), 4),
    "aten::to.device": 5,
}
"""Number of positional arguments of a function, if it is less than the schema's."""

ALWAYS_PASSED: Final = frozenset({"reduction"})
"""Arguments whose default is another one in functions."""

SPREADS: Final = frozenset({"aten::expand", "aten::repeat", "aten::view"})
"""Methods whose last argument, a non-empty list of ints, may be passed as separate int arguments: PyTorch parses these
faster."""

_OBJECTS: Final[dict[str, Mapping[int, object]]] = {
    spelling: {number: each for number, each in enumerate(objects) if each is not None}
    for spelling, objects in (("ScalarType", DTYPES), ("Layout", LAYOUTS), ("MemoryFormat", MEMORY_FORMATS))
}
"""Python's objects for the numbers of the IR, by the text of an argument's type."""


def objects_of(argument: Argument) -> Mapping[int, object] | None:
    """Return the map from numbers in the IR to the objects that Python functions take for an argument, such as dtypes;
    None if both are the same."""
    return _OBJECTS.get((argument.spelling or "").removesuffix("?"))


def most_positional(name: str, arguments: tuple[Argument, ...]) -> int:
    """Return how many arguments the Python function of an overload takes by position."""
    return _FEWER.get(name) or sum(not argument.kwarg_only for argument in arguments)


def _functions(*groups: str) -> dict[str, Operation]:
    """Return the Python function of each overload, from the first of the groups that has its name."""
    found: dict[str, Operation] = {}
    for name in " ".join(groups).split():
        base = name.partition(".")[0]
        found[f"aten::{name}"] = next(getattr(home, base) for home in _HOMES if hasattr(home, base))
    return found


DIRECT: Final[dict[str, Operation]] = {
    **_functions(_POINTWISE, _REDUCTIONS, _SHAPES, _INDEXING, _PRODUCTS),
    **_functions(_ACTIVATIONS, _LAYERS, _LOSSES, _IN_PLACE, _FACTORIES),
    "aten::bitwise_not": operator.invert,  # whose errors are those of ``~x``, as it is mostly written
}
"""The function of an overload."""

CHECKED_BY_PYTHON: Final = frozenset({"aten::bitwise_not"})
"""Overloads whose function looks at its arguments before the dispatcher does."""

IN_PIECES: Final = _functions(
    "broadcast_tensors chunk split.Tensor split_with_sizes split.sizes tensor_split.indices unbind.int unsafe_chunk"
)
"""The functions for operators that return a list where the function returns a tuple. They serve where the result is
unpacked at once."""
