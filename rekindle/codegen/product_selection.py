"""Decide up to which size kernels compute matrix products, by measuring them beside BLAS, once for each machine.

BLAS is built for some processors: on others it takes twice the time of a kernel's register tiles. The largest square
product for which the kernel is faster bounds those in kernels. The result is kept on disk, with the processor and the
number of threads in its key.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import torch
from torch import Tensor

from rekindle.codegen.compiled_kernels import guarded_kernel
from rekindle.codegen.layout import Layout, contiguous_strides
from rekindle.codegen.llvm.engine import disk_cache
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.operators.matmul import MAX_MULTIPLICATIONS
from rekindle.codegen.selection import Candidate, Selection, machine_key
from rekindle.ir.graph import Graph

_SIZES: Final = (128, 256, 512, 1024)


def max_multiplications() -> int:
    """Return the maximum number of multiplications of a matrix product in a kernel, for the current number of
    threads."""
    return _known(torch.get_num_threads())


@cache
def _known(threads: int) -> int:
    """Return the limit for a number of threads: from the disk cache, or measured."""
    disk, key = disk_cache(), machine_key("largest product", str(threads))
    found = (disk.load(key) or b"") if disk is not None else b""
    if found.isdigit():
        return int(found)
    limit = measured_limit()
    if disk is not None:
        disk.store(key, str(limit).encode())
    return limit


def measured_limit() -> int:
    """Measure up to how many multiplications kernels are at least a tenth faster than BLAS. The result is at least the
    fixed minimum."""
    generator = torch.Generator().manual_seed(0)
    limit = MAX_MULTIPLICATIONS
    for size in _SIZES:
        try:
            candidates: dict[str, Candidate] = {"blas": torch.mm, "kernel": _kernel(size)}
        except Unsupported:
            break
        a, b = (torch.randn(size, size, generator=generator) for _ in range(2))
        with torch.no_grad():
            if Selection(candidates).fastest((a, b)) == "blas":
                break
        limit = size**3
    return limit


def _kernel(size: int) -> Candidate:
    """Return a function that multiplies two ``size`` by ``size`` matrices with a generated kernel, not with BLAS."""
    graph = Graph()
    x, y = graph.add_input("x"), graph.add_input("y")
    product = graph.append_node(graph.create("aten::mm", [x, y]))
    graph.add_output(product.output)
    layout = Layout((size, size), contiguous_strides((size, size)), torch.float32)
    launch = guarded_kernel(graph, (layout, layout), max_multiplications=size**3).launch((layout, layout))
    assert launch is not None

    def multiply(a: Tensor, b: Tensor) -> Tensor:
        result = launch((a, b))
        assert isinstance(result, Tensor)
        return result

    return multiply
