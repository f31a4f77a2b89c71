"""Attributes of tensors other than operators."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rekindle.frontend.sugared_values.base import SugaredValue

TENSOR_PROPERTIES: dict[str, str] = {
    **dict.fromkeys(("dtype", "device", "shape", "is_cuda", "is_cpu", "is_xla", "is_xpu", "is_mtia", "data"), "prim"),
    **dict.fromkeys(("is_sparse", "is_sparse_csr", "is_mkldnn", "is_mps", "is_quantized", "is_vulkan"), "prim"),
    **dict.fromkeys(("is_ipu", "is_meta", "is_nested", "is_maia", "requires_grad", "layout", "itemsize"), "prim"),
    **dict.fromkeys(("nbytes", "ndim", "name", "grad"), "prim"),
    **dict.fromkeys(("is_leaf", "T", "H", "mT", "mH", "real", "imag", "retains_grad"), "aten"),
}
"""Attributes of tensors that are not methods, and the namespace of the operator that reads each."""

TENSOR_CASTS: dict[str, torch.dtype] = {
    "byte": torch.uint8,
    "char": torch.int8,
    "short": torch.int16,
    "int": torch.int32,
    "long": torch.int64,
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "float": torch.float32,
    "double": torch.float64,
    "cfloat": torch.complex64,
    "cdouble": torch.complex128,
    "bool": torch.bool,
}
"""Methods of tensors that cast to a dtype."""

PYTHON_METHODS: dict[str, Callable[[], SugaredValue]] = {}
"""Methods of tensors that are not operators, but functions of Python with the tensor as their first argument, by name.
:mod:`rekindle.scripting.library_values.tensor_methods` fills the table."""
