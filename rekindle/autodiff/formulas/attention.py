"""Attention."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
forward scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    result, sums, noise = own.attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    return result, sums, noise

backward scaled_dot_product_attention(
        grad, query, key, value, attn_mask, is_causal, scale, enable_gqa, result, sums, noise,
        needs_attn_mask) -> query, key, value, attn_mask:
    return own.attention_back(
        grad, query, key, value, attn_mask, is_causal, scale, enable_gqa, result, sums, noise, needs_attn_mask)
"""
