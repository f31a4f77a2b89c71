"""Scaled dot-product attention and its backward. Where PyTorch's flash kernel applies, the log-sum-exp of each row of
scores is saved; otherwise attention is computed by several operators."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from rekindle.autodiff.backward_operators.sizes import sum_to
from rekindle.ir.scalar_types import DTYPES, number_of
from rekindle.ops.registration.declare import implements

_FLASH = 1
"""PyTorch's number for its flash attention kernel."""


@implements("autodiff::accumulation_dtype(int dtype) -> int")
def accumulation_dtype(dtype: int) -> int:
    """Return the number of the dtype in which PyTorch computes attention of tensors of ``dtype`` on a CPU."""
    return number_of(torch.float32) if DTYPES[dtype] in (torch.float16, torch.bfloat16) else dtype


@implements("autodiff::head_size(Tensor query, Tensor key, Tensor value) -> int")
def head_size(query: Tensor, key: Tensor, value: Tensor) -> int:
    """Return the size of a head of attention, the last one of ``query``.

    Raises:
        RuntimeError: the tensors have fewer than two dimensions, or different dtypes or devices.
    """
    is_alike = query.dtype is key.dtype is value.dtype and query.device == key.device == value.device
    if not is_alike or min(query.dim(), key.dim(), value.dim()) < 2:  # an error, in the words of PyTorch
        torch.nn.functional.scaled_dot_product_attention(query, key, value)
    return query.size(-1)


@implements("autodiff::attention_factors(int width, float? scale) -> (float, float)")
def attention_factors(width: int, scale: float | None) -> tuple[float, float]:
    """Return the factors of query and key, whose product is the scale of scores. ``width`` is the size of a head."""
    whole = (1 / math.sqrt(width) if width else math.inf) if scale is None else scale
    return math.copysign(math.sqrt(abs(whole)), whole), math.sqrt(abs(whole))


@implements("autodiff::causal_mask(Tensor scores) -> Tensor")
def causal_mask(scores: Tensor) -> Tensor:
    """Return the matrix that is 0 where a query may attend to a key, which is up to its own position, and else
    negative infinity."""
    return torch.full(scores.shape[-2:], -math.inf, dtype=scores.dtype, device=scores.device).triu(1)


@implements("autodiff::attention_noise(Tensor weights, float p) -> Tensor", nondeterministic=True)
def attention_noise(weights: Tensor, p: float) -> Tensor:
    """Return what dropout in training multiplies attention weights by: 0 with probability ``p``, else 1 / (1 - p). The
    random numbers are those of eager.

    Raises:
        RuntimeError: ``torch.nn.attention.sdpa_kernel`` excludes the only implementation that has dropout.
    """
    if not torch.backends.cuda.math_sdp_enabled():
        raise RuntimeError("No available kernel.  Aborting execution.")
    return torch.zeros_like(weights) if p == 1 else torch.empty_like(weights).bernoulli_(1 - p).div_(1 - p)


@implements(
    "autodiff::attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float dropout_p, bool is_causal,"
    " float? scale, bool enable_gqa) -> (Tensor, Tensor?, Tensor?)",
    nondeterministic=True,
)
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Compute ``scaled_dot_product_attention``. Return its result, the log-sum-exp that PyTorch's flash kernel saves,
    and the mask with which dropout multiplied the weights; each of the two is None where there is none.

    Raises:
        RuntimeError: ``is_causal`` and ``attn_mask`` are both given, or :func:`head_size` or :func:`attention_noise`
            raises it.
    """
    options: dict[str, Any] = {"scale": scale, "enable_gqa": enable_gqa}
    head_size(query, key, value)
    if is_causal and attn_mask is not None:  # an error, in the words of PyTorch
        torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, **options)
    way = torch._fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, **options)
    is_on_cpu = way == _FLASH and query.device.type == "cpu"
    # Since 2.15 PyTorch chooses the kernel for three dimensions too, to which it adds one.
    if is_on_cpu and query.dim() == 4 and not enable_gqa and _as_kernel_takes_it(attn_mask, query):
        result, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, dropout_p, is_causal, attn_mask=attn_mask, scale=scale
        )
        return result, sums, None
    weights = _weights(query, key, attn_mask, is_causal, scale, enable_gqa)
    noise = attention_noise(weights, dropout_p) if dropout_p > 0 else None
    if noise is not None:
        weights = weights * noise
    result = weights @ _repeated(value, query, enable_gqa)
    if way == _FLASH and result.dim() == 4:
        result = result.transpose(1, 2).contiguous().transpose(1, 2)  # as the kernel lays it out: views may follow
    return result, None, noise


def _as_kernel_takes_it(mask: Tensor | None, query: Tensor) -> bool:
    return mask is None or mask.dtype is query.dtype


def _repeated(value: Tensor, query: Tensor, enable_gqa: bool) -> Tensor:
    """Return ``value`` with each head repeated for all query heads that share it (grouped-query attention)."""
    if not enable_gqa or value.shape[-3] == query.shape[-3]:
        return value
    return value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)


def _weights(
    query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Tensor:
    """Return the attention weights: the softmax of the scaled scores, with the mask."""
    first, second = attention_factors(query.shape[-1], scale)
    scores = (query * first) @ (_repeated(key, query, enable_gqa) * second).mT
    if is_causal:
        mask = causal_mask(scores)
    if mask is not None and mask.dtype is torch.bool:  # added, as in PyTorch, so that NaN and infinities are not hidden
        mask = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(mask.logical_not(), -math.inf)
    if mask is not None:
        scores = scores + mask
    return torch._safe_softmax(scores, -1)


@implements(
    "autodiff::attention_back(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal,"
    " float? scale, bool enable_gqa, Tensor result, Tensor? sums, Tensor? noise, bool needs_mask)"
    " -> (Tensor, Tensor, Tensor, Tensor?)"
)
def attention_back(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
    result: Tensor,
    sums: Tensor | None,
    noise: Tensor | None,
    needs_mask: bool,
) -> Any:
    """Return the gradients of query, key, value and mask; None for the mask unless ``needs_mask``. The attention
    weights are recomputed."""
    if sums is not None and not needs_mask and not torch.is_grad_enabled():
        found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, query, key, value, result, sums, 0.0, is_causal, attn_mask=attn_mask, scale=scale
        )
        return *found, None
    weights = _weights(query, key, attn_mask, is_causal, scale, enable_gqa)
    used = weights if noise is None else weights * noise
    of_weights = grad @ _repeated(value, query, enable_gqa).mT
    if noise is not None:
        of_weights = of_weights * noise
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdim=True))
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    of_query = of_scores @ _repeated(key, query, enable_gqa) * factor
    of_key = of_scores.mT @ query * factor
    return (
        sum_to(of_query, query.shape),
        _gathered(of_key, key),
        _gathered(used.mT @ grad, value),
        sum_to(of_scores, attn_mask.shape) if needs_mask and attn_mask is not None else None,
    )


def _gathered(grad: Tensor, self: Tensor) -> Tensor:
    """Return the gradient of key or value heads: the sum over the query heads that share each, and over broadcast
    dimensions."""
    if grad.dim() >= 3 and self.dim() >= 3 and grad.shape[-3] != self.shape[-3]:
        grad = grad.unflatten(-3, (self.shape[-3], -1)).sum(-3)
    return sum_to(grad, self.shape)
