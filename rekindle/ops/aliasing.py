"""What the schemas of PyTorch's operators do not tell of aliasing and writing.

An operator that the dispatcher composes of others (a *composite*) may return its argument though its schema says
``-> Tensor``: ``type_as`` where nothing is to be converted, ``dropout`` when it does not train, ``einsum`` where a
permutation is all there is to do. So a composite is taken to pass its arguments on unless it stands in
:data:`NON_ALIASING_COMPOSITES`. Of other operators the schema is believed, but for those of
:data:`UNANNOTATED_ALIASES`. tests/ops/test_aliasing.py runs PyTorch's own samples and compares.
"""

from __future__ import annotations

from typing import Final

import torch

NON_ALIASING_COMPOSITES: Final = frozenset(
    f"aten::{name}"
    for name in (
        # arithmetic and comparisons
        *("__and__", "__or__", "__xor__", "absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2"),
        *("arctanh", "clip", "cross", "cumulative_trapezoid", "diff", "divide", "fix", "float_power", "greater"),
        *("greater_equal", "isclose", "isfinite", "isreal", "less", "less_equal", "log_sigmoid", "max", "min"),
        *("multiply", "negative", "not_equal", "square", "subtract", "trapezoid", "trapz", "true_divide", "where"),
        *("special_digamma", "special_erf", "special_erfc", "special_erfinv", "special_exp2", "special_expit"),
        *("special_expm1", "special_gammainc", "special_gammaincc", "special_gammaln", "special_i0"),
        *("special_log1p", "special_logit", "special_logsumexp", "special_multigammaln", "special_ndtr"),
        *("special_polygamma", "special_psi", "special_round", "special_sinc", "special_xlogy"),
        # matrix products
        *("bilinear", "cdist", "det", "ger", "inner", "inverse", "kron", "linalg_cond", "linalg_det"),
        *("linalg_inv", "linalg_matmul", "linalg_pinv", "linalg_solve", "linalg_vecdot", "linear", "logdet", "matmul"),
        *("outer", "pinverse", "slogdet", "svd", "qr", "tensordot"),
        # reductions, statistics, order
        *("argsort", "argwhere", "corrcoef", "cov", "cosine_similarity", "frobenius_norm", "linalg_matrix_norm"),
        *("linalg_norm", "msort", "nanmean", "nuclear_norm", "pairwise_distance", "pdist", "std", "std_mean", "var"),
        *("var_mean",),
        # neural networks
        *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "avg_pool1d"),
        *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "_convolution"),
        *("batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm", "grid_sampler", "one_hot"),
        *("cosine_embedding_loss", "cross_entropy_loss", "ctc_loss", "hinge_embedding_loss", "kl_div", "l1_loss"),
        *("margin_ranking_loss", "multilabel_margin_loss", "nll_loss", "nll_loss2d", "nll_loss_nd"),
        *("poisson_nll_loss", "triplet_margin_loss", "embedding_bag", "gru", "gru_cell", "lstm", "lstm_cell"),
        *("rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell", "log_softmax", "softmax"),
        *("special_log_softmax", "special_softmax", "max_pool1d", "max_pool1d_with_indices", "max_pool2d"),
        *("max_pool3d", "prelu", "relu6", "selu", "scaled_dot_product_attention", "upsample_bicubic2d"),
        *("upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d"),
        *("upsample_nearest3d", "upsample_trilinear3d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d"),
        *("_upsample_nearest_exact3d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa"),
        # joining, indexing
        *("column_stack", "concat", "concatenate", "dstack", "hstack", "row_stack", "vstack", "fliplr", "flipud"),
        *("index_select_backward", "pad_sequence", "take_along_dim", "vander", "_shape_as_tensor"),
        # Fourier transforms
        *("fft_fft", "fft_hfft", "fft_ifft", "fft_ihfft", "fft_irfft", "fft_rfft", "istft", "stft"),
    )
)
"""Composites whose results are new, always."""

UNANNOTATED_ALIASES: Final = frozenset(
    {
        *("aten::_unsafe_view", "aten::unsafe_split", "aten::unsafe_split_with_sizes", "aten::lift"),
        *("aten::_sparse_coo_tensor_with_dims_and_tensors", "aten::_sparse_compressed_tensor_with_dims"),
        *("aten::_resize_output", "aten::_nested_tensor_from_tensor_list"),
    }
)
"""Operators that are no composites, and whose results share memory with their arguments all the same."""

_NORMALISATION: Final = (("running_mean", "training"), ("running_var", "training"))

HIDDEN_WRITES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    **dict.fromkeys(
        (
            *("aten::batch_norm", "aten::native_batch_norm", "aten::_batch_norm_impl_index"),
            *("aten::cudnn_batch_norm", "aten::miopen_batch_norm"),
        ),
        _NORMALISATION,
    ),
    "aten::instance_norm": (("running_mean", "use_input_stats"), ("running_var", "use_input_stats")),
}
"""Arguments that are written to without an annotation, each with the argument that turns it off."""


def may_alias_inputs(qualified_name: str) -> bool:
    """Whether the results of an operator of the dispatcher may be its arguments, or views of them, though they have no
    alias annotation."""
    kind = qualified_name.partition(".")[0]
    if kind in NON_ALIASING_COMPOSITES:
        return False
    return kind in UNANNOTATED_ALIASES or torch._C._dispatch_has_kernel_for_dispatch_key(
        qualified_name, "CompositeImplicitAutograd"
    )
