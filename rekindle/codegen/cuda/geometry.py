"""Geometry of GPU kernels: how loop nests are mapped to threads, on which device functions and their launches agree."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.nodes import AccessStride, Kernel, LoopNest

THREADS: Final = 256
"""Default number of threads of a block."""
VECTOR_BYTES: Final = 16
"""Number of bytes that a thread reads at a time from the buffer with the smallest elements."""
MAX_LANES: Final = 8
REGISTER_VECTORS: Final = (1, 4)
"""Number of vectors of a row that a thread keeps in registers, by variant."""
MAX_ROW_THREADS: Final = 1024
"""Maximum number of threads that share a row."""
COLUMNS, COLUMN_ROWS = 32, 16
"""The numbers of threads of a block that reduces columns, in *x* and *y*."""
COLUMN_BYTES: Final = 4
"""Number of bytes that such a thread reads at a time, if a block has all rows of its columns."""

_PARAMETER_BYTES: Final = 4096
"""Number of bytes of kernel parameters that every GPU supports."""


def vector_lanes(nest: LoopNest) -> int:
    """Return how many elements a thread computes at a time if memory is aligned."""
    sizes = [access.scalar.size for access in nest.accesses if access.step is AccessStride.NEXT]
    if not sizes:
        return 1
    width = COLUMN_BYTES if nest.vectorizes_outer and not is_splittable(nest) else VECTOR_BYTES
    return max(1, min(width // min(sizes), MAX_LANES))


def fits_registers(nest: LoopNest) -> bool:
    """Return whether there is a variant of ``nest`` that keeps rows in registers."""
    return nest.reduction_rank == 1 and not nest.vectorizes_outer and not nest.is_full_reduction


def is_splittable(nest: LoopNest) -> bool:
    """Return whether blocks may share the rows of a column: there is one phase, which stores nothing."""
    return nest.vectorizes_outer and len(nest.phases) == 1 and not nest.phases[0].stores


def parameters_of(kernel: Kernel) -> str:
    """Return the parameters of every function of a kernel: pointers, numbers and arguments, each an array by value.

    Raises:
        Unsupported: there are more than a GPU takes.
    """
    counts = argument_words(kernel)
    if sum(counts.values()) * 8 > _PARAMETER_BYTES:
        raise Unsupported("more parameters than a GPU takes")
    parts = [f"BYVAL([{count} x {'ptr' if name == 'pointers' else 'i64'}]) %{name}" for name, count in counts.items()]
    return ", ".join(parts)


def argument_words(kernel: Kernel) -> dict[str, int]:
    """Return the array arguments of a kernel's functions by name, with the number of 64-bit words of each. Empty arrays
    are omitted."""
    counts = {
        "pointers": len(kernel.inputs) + len(kernel.outputs) + len(kernel.temporaries),
        "parameters": sum(nest.parameters for nest in kernel.nests),
        "arguments": len(kernel.arguments),
    }
    return {name: count for name, count in counts.items() if count}
