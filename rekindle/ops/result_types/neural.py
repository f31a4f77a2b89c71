"""Convolutions, pooling, normalization, losses, embeddings, recurrent networks, attention, resampling, padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch

from rekindle.ir.types import TENSOR
from rekindle.ops.result_types import dtypes, sizes
from rekindle.ops.result_types.call import Call, Sizes
from rekindle.ops.result_types.dtypes import (
    DtypeRule,
    agreement,
    always,
    first,
    floating,
    only_floating,
    promotion,
    real,
)
from rekindle.ops.result_types.facts import Constant, Fact
from rekindle.ops.result_types.rules import ALL, NEVER, SOME, Rule, Rules, SizesRule, each, several, tensor
from rekindle.ops.result_types.sizes import axis, broadcast, keep_leading, last, replaced, unknown_of

_INDICES: Final = always(torch.int64)


# -------------------------------------------------------------------------------------------------------- convolutions


def _of_dims(values: Sizes | None, dims: int, otherwise: int) -> Sizes:
    """Return one int for each spatial dimension: a list of one counts for all."""
    if values is None:
        return (None,) * dims
    if not values:
        return (otherwise,) * dims
    return values * dims if len(values) == 1 else values


def _convolved(dims: int) -> SizesRule:
    """Return the rule of a convolution over ``dims`` dimensions. Without a batch, the result has one dimension less."""

    def rule(call: Call) -> Sizes | None:
        given, weight = call.first.sizes, call.tensor("weight").sizes
        if given is None:
            return None
        weight = weight if weight is not None and len(weight) == dims + 2 else (None,) * (dims + 2)
        if len(given) not in (dims + 1, dims + 2):
            return None
        steps, rates = (_of_dims(call.ints(name), dims, 1) for name in ("stride", "dilation"))
        margins = _of_dims(call.ints("padding"), dims, 0) if not call.is_none("padding") else (None,) * dims
        parts = zip(given[-dims:], weight[2:], margins, steps, rates, strict=True)
        spatial = [_convolved_size(*part) for part in parts]
        return (*given[: len(given) - dims - 1], weight[0], *spatial)

    return rule


def _convolved_size(*numbers: int | None) -> int | None:
    known = [number for number in numbers if number is not None]
    if len(known) != len(numbers):
        return None
    size, kernel, margin, step, rate = known
    return (size + 2 * margin - rate * (kernel - 1) - 1) // step + 1 if step else None


def _conv_transposed(dims: int) -> SizesRule:
    def rule(call: Call) -> Sizes | None:
        given, weight, groups = call.first.sizes, call.tensor("weight").sizes, call.int("groups")
        if given is None or len(given) not in (dims + 1, dims + 2):
            return None
        per_group = weight[1] if weight is not None and len(weight) == dims + 2 else None
        channels = None if per_group is None or groups is None else per_group * groups
        return (*given[: len(given) - dims - 1], channels, *(None,) * dims)

    return rule


def _any_convolution(call: Call) -> Sizes | None:
    """Return the sizes of ``convolution``, whose direction is an argument. There is always a batch dimension. None if
    not known."""
    weight = call.tensor("weight").sizes
    if call.first.sizes is None or weight is None or len(call.first.sizes) != len(weight):
        return unknown_of(call.first.rank)
    channels = weight[0] if call.flag("transposed") is False else None
    return (call.first.sizes[0], channels, *(None,) * (len(weight) - 2))


# ------------------------------------------------------------------------------------------------------------- pooling


def _pooled_to(dims: int) -> SizesRule:
    """Return the rule of adaptive pooling: the last ``dims`` sizes are ``output_size``."""

    def rule(call: Call) -> Sizes | None:
        given, items = call.first.sizes, call.items("output_size")
        if given is None or len(given) < dims:
            return None
        wanted = [item.value if isinstance(item, Constant) else None for item in items or ()]
        wanted = wanted * dims if len(wanted) == 1 else wanted
        return (*given[:-dims], *(wanted if len(wanted) == dims else (None,) * dims))

    return rule


def _pooled(dims: int) -> SizesRule:
    """Return the rule of pooling over ``dims`` dimensions. With ``ceil_mode``, these sizes are unknown."""

    def rule(call: Call) -> Sizes | None:
        given = call.first.sizes
        if given is None or len(given) < dims:
            return None
        window = _of_dims(call.ints("kernel_size"), dims, 1)
        steps = window if call.ints("stride") == () else _of_dims(call.ints("stride"), dims, 1)
        margins, rates = _of_dims(call.ints("padding"), dims, 0), _of_dims(call.ints("dilation"), dims, 1)
        if not call.has("dilation"):
            rates = (1,) * dims
        if call.flag("ceil_mode") is not False:
            return (*given[:-dims], *(None,) * dims)
        parts = zip(given[-dims:], window, margins, steps, rates, strict=True)
        return (*given[:-dims], *(_convolved_size(*part) for part in parts))

    return rule


def _pooling_of_planes(dims: int) -> Rules:
    """Return the rules of operators that exist for two and three dimensions only."""
    spatial = tensor(first, keep_leading(dims))
    return {
        f"_adaptive_avg_pool{dims}d": tensor(first, _pooled_to(dims)),
        f"fractional_max_pool{dims}d": several(spatial, tensor(_INDICES, keep_leading(dims), flow=NEVER)),
        f"max_unpool{dims}d": spatial,
    }


def _pooling(dims: int) -> Rules:
    pooled, fixed = tensor(first, _pooled(dims)), tensor(first, _pooled_to(dims))
    indices = tensor(_INDICES, _pooled(dims), flow=NEVER)
    return {
        **each(pooled, f"max_pool{dims}d avg_pool{dims}d"),
        f"max_pool{dims}d_with_indices": several(pooled, indices),
        f"adaptive_avg_pool{dims}d": fixed,
        f"adaptive_max_pool{dims}d": several(fixed, tensor(_INDICES, _pooled_to(dims), flow=NEVER)),
        **(_pooling_of_planes(dims) if dims > 1 else {}),
    }


# ------------------------------------------------------------------------------------------------------- normalization


def _statistic_dtype(call: Call) -> torch.dtype | None:
    """Return the dtype of saved statistics; None, unknown, for half precision: with float32 weights it is float32."""
    found = first(call)
    return found if found in (torch.float32, torch.float64) else None


_VECTOR = tensor(_statistic_dtype, sizes.of_rank(1), flow=SOME)
_NORMALIZED = tensor(only_floating(first), sizes.first)


def _layer_statistics(call: Call) -> Sizes | None:
    given, shape = call.first.sizes, call.ints("normalized_shape")
    if given is None or shape is None or len(shape) > len(given):
        return unknown_of(call.first.rank)
    return (*given[: len(given) - len(shape)], *(1,) * len(shape))


def _group_statistics(call: Call) -> Sizes | None:
    return (call.int("N"), call.int("group"))


_OF_LAYER = tensor(_statistic_dtype, _layer_statistics, flow=SOME)
_OF_GROUP = tensor(_statistic_dtype, _group_statistics, flow=SOME)


# -------------------------------------------------------------------------------------------------------------- losses


def _is_reduced(call: Call) -> bool | None:
    """Return whether a loss is one number, the sum or the mean, and not one for each element; None if not known."""
    reduction = call.int("reduction")
    return reduction != 0 if reduction in (0, 1, 2) else None


def _loss(*names: str, unreduced: SizesRule | None = None, dtype: DtypeRule | None = None) -> Rule:
    """Return the rule of a loss: a number, or one number for each element if ``reduction`` is 0."""
    each_one = unreduced or sizes.broadcasting(*names)

    def rule(call: Call) -> Sizes | None:
        is_reduced = _is_reduced(call)
        return () if is_reduced else None if is_reduced is None else each_one(call)

    return tensor(dtype or only_floating(agreement(*names)), rule, flow=SOME)


def _of_classes(call: Call) -> Sizes | None:
    """Return the sizes of a loss without the dimension of classes: one number for each row. None if not known."""
    known = call.first.sizes
    if known is None or not known:
        return None
    return known[:-1] if len(known) == 1 else (known[0], *known[2:])


def _nll(call: Call) -> Sizes | None:
    is_reduced = _is_reduced(call)
    return () if is_reduced else None if is_reduced is None else _of_classes(call)


def _multi_margin(call: Call) -> Sizes | None:
    """Return the sizes of ``multi_margin_loss``: if ``reduction`` is 0, one number for each row, and for a single row
    the sizes of the target, which may be a vector of one. None if not known."""
    is_row = call.first.rank == 1 and _is_reduced(call) is False
    return call.tensor("target").sizes if is_row else _nll(call)


def _entropy_dtype(call: Call) -> torch.dtype | None:
    """Return the dtype of a cross entropy: that of the scores, unless probabilities or weights have another. None if
    not known."""
    target = call.tensor("target").dtype
    classes = target is not None and dtypes.is_integral(target)
    return only_floating(agreement("self", "weight", *(() if classes else ("target",))))(call)


def _entropy_of_logits(call: Call) -> Sizes | None:
    """Return the sizes of a binary cross entropy: those of the inputs, broadcast, if ``reduction`` is 0; else none.
    None if not known."""
    is_reduced = _is_reduced(call)
    if is_reduced is None:
        return None
    return () if is_reduced else sizes.broadcasting("self", "target", "weight", "pos_weight")(call)


def _promoted_pair(call: Call) -> torch.dtype | None:
    """Return the common dtype of two tensors that are broadcast before they are promoted. None if not known."""
    return dtypes.promote_types(call.tensor("x1").dtype, call.tensor("x2").dtype)


def _pairwise(call: Call) -> Sizes | None:
    names = ("x1", "x2") if call.has("x1") else ("input1", "input2")
    found = broadcast(*(call.tensor(name).sizes for name in names))
    place = axis(call.int("dim"), None if found is None else len(found)) if call.has("dim") else None
    if call.has("keepdim") and call.flag("keepdim") is not False:
        return unknown_of(None if found is None or not call.flag("keepdim") else len(found))
    if found is None or not found:
        return None
    return unknown_of(len(found) - 1) if place is None else (*found[:place], *found[place + 1 :])


def _triplet(call: Call) -> Sizes | None:
    is_reduced = _is_reduced(call)
    if is_reduced:
        return ()
    ranks = [call.tensor(name).rank for name in ("anchor", "positive", "negative")]
    return None if None in ranks or is_reduced is None else (None,) * (max(r or 0 for r in ranks) - 1)


# ------------------------------------------------------------------------- embeddings, recurrent networks and others


def _embedded(call: Call) -> Sizes | None:
    """Return the sizes of an embedding: those of the indices, then that of a row of the weight. None if not known."""
    indices = call.tensor("indices").sizes
    return None if indices is None else (*indices, *last(call.tensor("weight").sizes, 1))


def _bag(call: Call) -> Sequence[Fact]:
    weight = call.tensor("weight")
    columns = last(weight.sizes, 1)[0]
    bags = tensor(dtypes.of("weight"), lambda call: (None, columns), flow=ALL).type(call)
    numbers = tensor(agreement("indices", "offsets"), flow=NEVER).type(call)
    return (bags, numbers, numbers, numbers)


def _cell(call: Call) -> Sizes | None:
    return call.tensor("hx").sizes


def _attended(call: Call) -> Sizes | None:
    query, value = call.tensor("query").sizes, call.tensor("value").sizes
    if query is None or value is None or not query or not value:
        return None
    if len(query) == len(value) and len(query) > 2:
        return (*(None,) * (len(query) - 2), query[-2], value[-1])
    return None


def _attention_dtype(call: Call) -> torch.dtype | None:
    return call.tensor("query").dtype


def _resampled(dims: int) -> SizesRule:
    def rule(call: Call) -> Sizes | None:
        given, wanted = call.first.sizes, call.ints("output_size")
        spatial = wanted if wanted is not None and len(wanted) == dims else (None,) * dims
        leading = given[:2] if given is not None and len(given) == dims + 2 else (None, None)
        return (*leading, *spatial)

    return rule


def _sampled(call: Call) -> Sizes | None:
    """Return the sizes of ``grid_sampler``: batch and channels of the input, and the positions of the grid. None if not
    known."""
    given, grid = call.first.sizes, call.tensor("grid").sizes
    if given is None or grid is None or len(given) < 2 or len(grid) != len(given):
        return unknown_of(call.first.rank or (len(grid) if grid is not None else None))
    return (sizes.same(given[0], grid[0]), given[1], *grid[1:-1])


def _padded(call: Call) -> Sizes | None:
    given, pad = call.first.sizes, call.ints("pad" if call.has("pad") else "padding")
    if given is None or pad is None or len(pad) > 2 * len(given) or len(pad) % 2:
        return unknown_of(call.first.rank)
    found = list(given)
    for index in range(len(pad) // 2):
        size, before, after = found[-1 - index], pad[2 * index], pad[2 * index + 1]
        exact = size is not None and before is not None and after is not None
        found[-1 - index] = (size or 0) + (before or 0) + (after or 0) if exact else None
    return tuple(found)


def _shifted_rank(more: int) -> SizesRule:
    return lambda call: unknown_of(None if call.first.rank is None else max(call.first.rank + more, 0))


def _halved(call: Call) -> Sizes | None:
    known = call.first.sizes
    place = axis(call.int("dim"), call.first.rank)
    size = known[place] if known and place is not None else None
    return replaced(known, place, None if size is None else size // 2)


def _one_more(call: Call) -> Sizes | None:
    known, classes = call.first.sizes, call.int("num_classes")
    return None if known is None else (*known, classes if classes is not None and classes >= 0 else None)


_PADDINGS = "pad constant_pad_nd " + " ".join(
    f"{kind}_pad{dims}d" for kind in ("reflection", "replication") for dims in (1, 2, 3)
)


def _lstm_cell(call: Call) -> Sequence[Fact]:
    """Return the types of the next states, with the sizes of the previous ones."""
    states = call.list_of_tensors("hx")
    if states is None or len(states) != 2:
        return (TENSOR, TENSOR)
    following = tensor(first, flow=ALL).type(call)
    return tuple([replace(following, sizes=state.sizes) for state in states])


def _recurrent(*, with_cell: bool) -> Rule:
    """Return the rule of ``lstm``, ``gru`` and similar operators: types of the output and of the last states."""

    def rule(call: Call) -> Sequence[Fact]:
        output = tensor(first, sizes.rank_of_first, flow=SOME).type(call)
        state = replace(output, sizes=None)
        return (output, state, state) if with_cell else (output, state)

    return rule


RULES: Final[Rules] = {
    **{f"conv{dims}d": tensor(first, _convolved(dims), flow=ALL) for dims in (1, 2, 3)},
    **{f"conv_transpose{dims}d": tensor(first, _conv_transposed(dims), flow=ALL) for dims in (1, 2, 3)},
    **each(tensor(first, _any_convolution, flow=ALL), "convolution _convolution convolution_overrideable"),
    **_pooling(1),
    **_pooling(2),
    **_pooling(3),
    **each(_NORMALIZED, "batch_norm instance_norm layer_norm group_norm"),
    "rms_norm": tensor(agreement("input", "weight"), sizes.first),
    **each(several(_NORMALIZED, _OF_LAYER, _OF_LAYER), "native_layer_norm"),
    **each(several(_NORMALIZED, _OF_GROUP, _OF_GROUP), "native_group_norm"),
    **each(several(_NORMALIZED, _VECTOR, _VECTOR), "native_batch_norm _native_batch_norm_legit"),
    # Losses
    **each(_loss("self", "target"), "mse_loss smooth_l1_loss huber_loss soft_margin_loss kl_div"),
    **each(_loss("self", "target"), "hinge_embedding_loss"),
    **each(_loss("self", "target", unreduced=sizes.first), "binary_cross_entropy"),
    "l1_loss": _loss("self", "target", dtype=real(only_floating(promotion("self", "target")))),
    "poisson_nll_loss": _loss("input", "target"),
    "binary_cross_entropy_with_logits": tensor(
        only_floating(agreement("self", "target", "weight", "pos_weight")), _entropy_of_logits, flow=SOME
    ),
    "margin_ranking_loss": _loss("input1", "input2", "target", dtype=floating(agreement("input1", "input2", "target"))),
    **each(tensor(first, _nll, flow=SOME), "nll_loss nll_loss_nd nll_loss2d multilabel_margin_loss"),
    "multi_margin_loss": tensor(first, _multi_margin, flow=SOME),
    "cross_entropy_loss": tensor(_entropy_dtype, _nll, flow=SOME),
    "cosine_embedding_loss": tensor(
        only_floating(agreement("input1", "input2")), lambda call: () if _is_reduced(call) else None, flow=SOME
    ),
    "triplet_margin_loss": tensor(real(floating(agreement("anchor", "positive", "negative"))), _triplet, flow=SOME),
    "ctc_loss": tensor(first, lambda call: () if _is_reduced(call) else None, flow=SOME),
    "cosine_similarity": tensor(only_floating(_promoted_pair), _pairwise, flow=ALL),
    "pairwise_distance": tensor(real(floating(promotion("x1", "x2"))), _pairwise, flow=ALL),
    # Embeddings, recurrent networks, attention
    "embedding": tensor(dtypes.of("weight"), _embedded, flow=ALL),
    "embedding_bag": _bag,
    "one_hot": tensor(_INDICES, _one_more, flow=NEVER),
    **each(tensor(first, _cell, flow=ALL), "gru_cell rnn_tanh_cell rnn_relu_cell"),
    "lstm_cell": _lstm_cell,
    **each(_recurrent(with_cell=False), "gru rnn_tanh rnn_relu"),
    "lstm": _recurrent(with_cell=True),
    "scaled_dot_product_attention": tensor(_attention_dtype, _attended),
    # Resampling, padding, rearranging
    **{
        name: tensor(first, _resampled(dims))
        for dims, names in (
            (1, "upsample_linear1d upsample_nearest1d _upsample_nearest_exact1d"),
            (2, "upsample_bilinear2d upsample_nearest2d _upsample_nearest_exact2d upsample_bicubic2d"),
            (2, "_upsample_bilinear2d_aa _upsample_bicubic2d_aa"),
            (3, "upsample_trilinear3d upsample_nearest3d _upsample_nearest_exact3d"),
        )
        for name in names.split()
    },
    **each(tensor(first, _sampled, flow=ALL), "grid_sampler grid_sampler_2d grid_sampler_3d"),
    "affine_grid_generator": tensor(dtypes.of("theta")),
    **each(tensor(first, _padded), _PADDINGS),
    "glu": tensor(first, _halved),
    "im2col": tensor(first, _shifted_rank(-1)),
    "col2im": tensor(first, _shifted_rank(1)),
}
