"""Operators that derivatives are made of: PyTorch's backward operators, and those of :mod:`rekindle.autodiff`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rekindle.ir.types import TENSOR, TensorType
from rekindle.ops.result_types import sizes
from rekindle.ops.result_types.call import Call, Sizes
from rekindle.ops.result_types.dtypes import agreement, first, only_floating, unknown
from rekindle.ops.result_types.facts import Fact
from rekindle.ops.result_types.rules import SOME, Result, Rule, Rules, each, tensor, unknown_sizes


def _gradient(of: str, *others: str) -> Result:
    """Return the rule of a gradient with respect to the argument ``of``: its sizes; its dtype too, if ``others`` have
    the same."""
    return tensor(agreement(of, *others), sizes.like(of), flow=SOME)


def _pointwise(*names: str) -> Result:
    return tensor(agreement(*names), sizes.broadcasting(*names), flow=SOME)


def _of_layer(*names: str) -> Rule:
    """Return the rule for the gradients of the arguments ``names`` selected by ``output_mask``."""

    def rule(call: Call) -> Sequence[Fact]:
        mask = call.items("output_mask") or ()
        wanted = [getattr(item, "value", None) for item in mask]
        if len(wanted) != len(names):
            return ()
        return [_gradient(name).type(call) if is_on else TENSOR for name, is_on in zip(names, wanted, strict=True)]

    return rule


def _made_of(name: str) -> Result:
    """Return the rule of a gradient of the sizes that the argument ``name`` lists, of the dtype of the incoming
    gradient."""
    return tensor(agreement("grad_output"), sizes.listed(name), flow=SOME)


def _softmax_gradient(call: Call) -> Sizes | None:
    return call.tensor("output").sizes


RULES: Final[Rules] = {
    **each(_pointwise("grad_output", "output"), "tanh_backward sigmoid_backward"),
    **each(
        _pointwise("grad_output", "self"),
        "threshold_backward silu_backward mish_backward gelu_backward hardtanh_backward hardswish_backward",
        "hardsigmoid_backward softplus_backward leaky_relu_backward softshrink_backward logit_backward",
    ),
    "hardshrink_backward": _pointwise("grad_out", "self"),
    "glu_backward": _gradient("self", "grad_output"),
    "log_sigmoid_backward": _gradient("self", "grad_output"),
    **each(
        _gradient("self", "grad_output"),
        "max_pool2d_with_indices_backward max_pool3d_with_indices_backward avg_pool2d_backward avg_pool3d_backward",
        "_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward adaptive_max_pool2d_backward",
        "adaptive_max_pool3d_backward binary_cross_entropy_backward nll_loss_backward nll_loss2d_backward",
        "multi_margin_loss_backward multilabel_margin_loss_backward",
    ),
    **each(
        tensor(agreement("self", "target", "grad_output"), unknown_sizes, flow=SOME),
        "mse_loss_backward smooth_l1_loss_backward huber_loss_backward soft_margin_loss_backward",
    ),
    **each(_made_of("input_sizes"), "slice_backward select_backward diagonal_backward"),
    "index_select_backward": tensor(agreement("grad"), sizes.listed("self_sizes"), flow=SOME),
    "unfold_backward": tensor(agreement("grad_in"), sizes.listed("input_sizes"), flow=SOME),
    "value_selecting_reduction_backward": tensor(agreement("grad"), sizes.listed("sizes"), flow=SOME),
    **each(
        tensor(agreement("grad_output", "output"), _softmax_gradient, flow=SOME),
        "_softmax_backward_data _log_softmax_backward_data",
    ),
    "convolution_backward": _of_layer("input", "weight", "bias"),
    "native_layer_norm_backward": _of_layer("input", "weight", "bias"),
    "native_batch_norm_backward": _of_layer("input", "weight", "bias"),
}


def _or_zeros(call: Call) -> Sequence[Fact]:
    """Return the type of the argument ``gradient``, in place of which zeros are returned if it is missing; nothing
    unless it is known to exist."""
    found = call.fact("gradient")
    return (replace(found, requires_grad=None),) if isinstance(found, TensorType) else ()


def _sum(call: Call) -> Sequence[Fact]:
    if call.is_none("b"):
        return (replace(call.tensor("a"), requires_grad=None),)
    return _pointwise("a", "b")(call) if call.is_none("b") is False else ()


_GIVEN = tensor(only_floating(first), sizes.listed("size"), flow=SOME)

OWN_RULES: Final[Rules] = {
    **each(_GIVEN, "autodiff::sum_to autodiff::unreduced"),
    **each(_GIVEN, "autodiff::slice_back autodiff::narrow_back autodiff::diagonal_back"),
    "autodiff::summed": tensor(only_floating(first), sizes.rank_of_first, flow=SOME),
    "autodiff::mean_over": tensor(only_floating(first), sizes.rank_of_first, flow=SOME),
    "autodiff::fitted": tensor(agreement("self"), sizes.like("self"), flow=SOME),
    "autodiff::unit": tensor(agreement("like"), sizes.like("like"), flow=SOME),
    "autodiff::seed": tensor(agreement("value"), sizes.like("value"), flow=SOME),
    "autodiff::in_dtype": tensor(unknown, sizes.like("gradient"), flow=SOME),
    "autodiff::or_zeros": _or_zeros,
    "autodiff::plus": _sum,
}
