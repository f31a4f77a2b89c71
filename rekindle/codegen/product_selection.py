"""Decide up to which size kernels compute matrix products, by measuring them beside BLAS, once for each machine.

BLAS is built for some processors: on others it takes twice the time of a kernel's register tiles. Whether a product is
computed by a kernel depends on a square product of about as many multiplications. That is measured when there is such a
product, and the result is kept on disk, with the processor and the number of threads in its key.
"""

from __future__ import annotations

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

_SIZES: Final = {128**3: 96, 256**3: 176, 512**3: 352, 1024**3: 704}
"""The sizes of the square products that are measured, by the limit up to which products are like them: they have a
third of its multiplications, in the middle between the limits."""
_BLAS: Final = "blas"
_KERNEL: Final = "kernel"


def is_measured(needed: int) -> bool:
    """Return whether :func:`max_multiplications` returns a result for ``needed`` without a measurement."""
    limit = _limit(needed)
    return limit is None or _known(_SIZES[limit], torch.get_num_threads()) is not None


def max_multiplications(needed: int) -> int:
    """Return the number of multiplications up to which kernels compute matrix products, and BLAS larger ones.

    A kernel computes a product of ``needed`` multiplications if the result is ``needed`` or more. ``needed`` selects
    the size of the square product that is measured beside BLAS, with the present number of threads. If BLAS is faster,
    or ``needed`` is larger than every measured size, the result is ``MAX_MULTIPLICATIONS``.
    """
    limit = _limit(needed)
    if limit is None or _faster(_SIZES[limit], torch.get_num_threads()) == _BLAS:
        return MAX_MULTIPLICATIONS
    return limit


def _limit(needed: int) -> int | None:
    """Return the smallest limit in ``_SIZES`` that is at least ``needed``; None if there is none."""
    return next((limit for limit in _SIZES if limit >= needed), None)


_RESULTS: Final[dict[tuple[int, int], str]] = {}
"""The faster way to multiply square matrices, ``blas`` or ``kernel``, by their size and the number of threads."""


def _faster(size: int, threads: int) -> str:
    """Return the faster way to multiply square matrices: known, or measured now and stored on disk. ``threads`` is the
    present number of threads, which is a part of the key on disk."""
    found = _known(size, threads)
    if found is None:
        found = _RESULTS[size, threads] = _measured(size)
        disk = disk_cache()
        if disk is not None:
            disk.store(_key(size), found.encode())
    return found


def _known(size: int, threads: int) -> str | None:
    """Return the result of an earlier measurement, in this process or from disk; None if there is none."""
    found = _RESULTS.get((size, threads))
    disk = disk_cache() if found is None else None
    if disk is not None:
        text = (disk.load(_key(size)) or b"").decode(errors="replace")
        if text in (_BLAS, _KERNEL):
            found = _RESULTS[size, threads] = text
    return found


def _key(size: int) -> bytes:
    return machine_key("square product", str(size))


def _measured(size: int) -> str:
    """Time a kernel and BLAS on square matrices. Return the name of the faster one; the kernel's only if it is faster
    by a tenth."""
    generator = torch.Generator().manual_seed(0)
    try:
        candidates: dict[str, Candidate] = {_BLAS: torch.mm, _KERNEL: _kernel(size)}
    except Unsupported:
        return _BLAS
    a, b = (torch.randn(size, size, generator=generator) for _ in range(2))
    with torch.no_grad():
        return Selection(candidates).fastest((a, b))


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
