"""Operators of frozen programs, which choose among kernels of this package and PyTorch's operators.

Their schemas are declared here. Their implementations are imported with the first program that has them.
"""

from __future__ import annotations

from typing import Final

from rekindle.errors.deferred_imports import deferred_function
from rekindle.ops.registration.declare import implements_for_node

_SCHEMAS: Final = {
    "rekindle.codegen.convolution.packed_operators": {
        "packed_convolution": "(Tensor input, Tensor weight, Tensor? bias) -> Tensor",
        "packed_convolution_add": "(Tensor input, Tensor weight, Tensor? bias, Tensor other) -> Tensor",
        "packed_transposed_convolution": "(Tensor input, Tensor weight, Tensor? bias) -> Tensor",
        "packed_linear": "(Tensor input, Tensor weight, Tensor? bias) -> Tensor",
        "image_order": "(Tensor image) -> int",
    },
    "rekindle.codegen.attention.attention_operator": {
        "attention": (
            "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float dropout_p, bool is_causal, "
            "float? scale, bool enable_gqa) -> Tensor"
        ),
        "written_attention": "(Tensor query, Tensor key, Tensor value, Scalar scale) -> Tensor",
    },
}
"""By module, the operators of the namespace ``prim``: the name of the function that makes the operation of a node, and
the schema."""

for _module, _operators in _SCHEMAS.items():
    for _name, _schema in _operators.items():
        implements_for_node(f"prim::{_name}{_schema}")(deferred_function(_module, _name))
