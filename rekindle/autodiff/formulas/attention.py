"""Attention."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
composite scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    if dropout_p > 0 and attn_mask is None and not enable_gqa:
        wide = own.accumulation_dtype(query.dtype)
        first, second = own.attention_factors(own.head_size(query, key, value), scale)
        scores = torch.matmul(query.to(wide) * first, (key.to(wide) * second).transpose(-2, -1))
        if is_causal:
            scores = scores + own.causal_mask(scores)
        weights = torch._safe_softmax(scores, -1)
        return torch.matmul(weights * own.attention_noise(weights, dropout_p), value.to(wide)).to(query.dtype)
    result, sums, noise = own.attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    return result

backward own.attention(
        grad0, query, key, value, attn_mask, is_causal, scale, enable_gqa, result0, result1, result2,
        needs_attn_mask) -> query, key, value, attn_mask:
    return own.attention_back(
        existing(grad0), query, key, value, attn_mask, is_causal, scale, enable_gqa, result0, result1, result2,
        needs_attn_mask)

constant own.causal_mask, own.attention_noise
"""
"""Scaled dot-product attention and its backward. Where PyTorch's flash kernel applies, the log-sum-exp of each row of
scores is saved. PyTorch has no such kernel with dropout: then attention is written out, and fused like other operators.
"""
