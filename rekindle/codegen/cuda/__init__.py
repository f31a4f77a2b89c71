"""Kernels for NVIDIA GPUs: loop nests are compiled to PTX by LLVM, and launched through the CUDA driver.

A nest becomes one kernel of the GPU, or several variants, of which the launch selects one. A host function, the
*launcher*, computes grids, allocates temporaries and launches the kernels of all nests on PyTorch's current stream. It
has the signature of a kernel for CPUs, so that call sites and native plans call both alike.
"""

from typing import TYPE_CHECKING

from rekindle.errors.deferred_imports import deferred_names

if TYPE_CHECKING:
    from rekindle.codegen.cuda.compiled import compile_for as compile_for
    from rekindle.codegen.cuda.devices import CudaDevice as CudaDevice, cuda_device as cuda_device

__getattr__ = deferred_names(
    __name__,
    {"compile_for": "rekindle.codegen.cuda.compiled", "cuda_device": "rekindle.codegen.cuda.devices"},
)
