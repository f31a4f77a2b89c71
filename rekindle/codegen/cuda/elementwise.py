"""Elementwise kernels on GPUs: nests without reductions, in which a thread computes one vector.

If a nest has rows, a block computes a tile: ``threads.x`` adjacent vectors of each of ``threads.y`` rows. Only the
index of the block, a number of 32 bits, is divided to find the row. A division of 64 bits in each thread would take
more instructions.
"""

from __future__ import annotations

from rekindle.codegen.cuda.block_reductions import thread_index
from rekindle.codegen.cuda.device_functions import DeviceFunctions, global_thread_index, return_unless
from rekindle.codegen.cuda.geometry import THREADS
from rekindle.codegen.emission.nests import NestWriter


def add_elementwise(functions: DeviceFunctions) -> None:
    """Add the device functions of an elementwise nest."""
    functions.add_variants("", THREADS, _compute)


def _compute(w: NestWriter) -> None:
    f, outer = w.f, range(w.nest.rank - 1)
    vectors = f.emit_value(f"udiv i64 {w.walks.sizes[-1]}, {w.lanes}")
    bases = w.bases
    if outer:
        row, column = _place_in_tiles(w, vectors)
        is_inside = f.emit_value(f"icmp ult i64 {column}, {vectors}")
        is_row = f.emit_value(f"icmp ult i64 {row}, {w.walks.product(outer)}")
        return_unless(w, f.emit_value(f"and i1 {is_inside}, {is_row}"))
        bases = w.walks.moved(bases, outer, w.walks.indices(outer, row))
    else:
        column = global_thread_index(w)
        return_unless(w, f.emit_value(f"icmp ult i64 {column}, {vectors}"))
    at = column if w.lanes == 1 else f.emit_value(f"mul i64 {column}, {w.lanes}")
    (phase,) = w.nest.phases
    w.elements(phase, bases, w.fixed, at, None)


def _place_in_tiles(w: NestWriter, vectors: str) -> tuple[str, str]:
    """Return the row and the vector in it that a thread computes; either may be beyond the last."""
    f = w.f
    width = thread_index(f, "threads.x")  # a power of two
    shift = f.call("i64", "llvm.cttz.i64", ("i64", width), ("i1", "true"))
    padded = f.emit_value(f"add i64 {vectors}, {f.emit_value(f'sub i64 {width}, 1')}")
    tiles = f.emit_value(f"trunc i64 {f.emit_value(f'lshr i64 {padded}, {shift}')} to i32")
    block = f.emit_value("call i32 @block()")
    above = f.emit_value(f"zext i32 {f.emit_value(f'udiv i32 {block}, {tiles}')} to i64")
    tile = f.emit_value(f"zext i32 {f.emit_value(f'urem i32 {block}, {tiles}')} to i64")
    row = f.emit_value(f"mul i64 {above}, {thread_index(f, 'threads.y')}")
    row = f.emit_value(f"add i64 {row}, {thread_index(f, 'thread.y')}")
    column = f.emit_value(f"shl i64 {tile}, {shift}")
    return row, f.emit_value(f"add i64 {column}, {thread_index(f, 'thread.x')}")
