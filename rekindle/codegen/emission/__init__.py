"""Emission of kernels as LLVM IR, for vectors of the machine's width. Kernels whose code is cached on disk are not
emitted."""

from typing import TYPE_CHECKING

from rekindle.errors.deferred_imports import deferred_names

if TYPE_CHECKING:
    from rekindle.codegen.emission.kernels import kernel_module as kernel_module
    from rekindle.codegen.emission.matmul import product_module as product_module, product_name as product_name

__getattr__ = deferred_names(
    __name__,
    {
        "kernel_module": "rekindle.codegen.emission.kernels",
        "product_module": "rekindle.codegen.emission.matmul",
        "product_name": "rekindle.codegen.emission.matmul",
    },
)
