"""Column reductions on GPUs: nests that reduce loops outside of the vectorized one. The *x* index of a thread selects
columns, and the threads with the same *x* index divide the rows.

If there are few rows, one block reduces all of them. Otherwise each block reduces a part of the rows and stores the
results in memory, and a second function reduces these.
"""

from __future__ import annotations

from typing import Final

from rekindle.codegen.cuda.block_reductions import reduce_columns, thread_index
from rekindle.codegen.cuda.device_functions import (
    DeviceFunctions,
    begin_reductions,
    global_thread_index,
    loop,
    return_unless,
)
from rekindle.codegen.cuda.geometry import COLUMN_ROWS, COLUMNS, THREADS, is_splittable
from rekindle.codegen.emission.loop_control import Bases
from rekindle.codegen.emission.memory import load_one
from rekindle.codegen.emission.nests import Known, NestWriter
from rekindle.codegen.emission.reductions import SLOT, ReductionWriter
from rekindle.codegen.emission.vector_types import memory_type, vector
from rekindle.codegen.loop_ir.nodes import Phase
from rekindle.codegen.loop_ir.scalar_types import BOOL

_SHARED: Final = ", ptr %parts, i64 %count"
"""Parameters of split reductions: the partial results, and the number of shares."""


def add_columns(functions: DeviceFunctions) -> None:
    """Add the device functions of a nest that reduces columns."""
    functions.add_variants("", COLUMNS * COLUMN_ROWS, _reduce_all_rows)
    if is_splittable(functions.nest):
        functions.add_variants("split_", COLUMNS * COLUMN_ROWS, _reduce_chunk, _SHARED)
        functions.add("combine", 1, THREADS, _reduce_partials, _SHARED)


def _reduce_all_rows(w: NestWriter) -> None:
    tile, known = _Tile(w, thread_index(w.f, "block")), dict(w.fixed)
    for phase in w.nest.phases:
        folds = tile.fold(phase, known, thread_index(w.f, "thread.y"), tile.rows)
        known.update({fold.reduction.result: value for fold, value in folds})
    return_unless(w, tile.is_inside)
    _store_last(w, tile.bases, tile.at, known)


def _reduce_chunk(w: NestWriter) -> None:
    f, (phase,) = w.f, w.nest.phases
    block = thread_index(f, "block")
    share, block = f.emit_value(f"urem i64 {block}, %count"), f.emit_value(f"udiv i64 {block}, %count")
    tile = _Tile(w, block)
    less = f.emit_value("sub i64 %count, 1")
    rows = w.walks.sizes[w.nest.reduction_loops[0]]
    each = f.emit_value(f"udiv i64 {f.emit_value(f'add i64 {rows}, {less}')}, %count")
    begin = f.emit_value(f"mul i64 {share}, {each}")
    end = f.call("i64", "llvm.umin.i64", ("i64", f.emit_value(f"add i64 {begin}, {each}")), ("i64", tile.rows))
    begin = f.emit_value(f"add i64 {begin}, {thread_index(f, 'thread.y')}")
    folds = tile.fold(phase, dict(w.fixed), begin, end)
    return_unless(w, tile.is_inside)
    for number, (fold, value) in enumerate(folds):
        place = _place(w, number, share, tile.row, tile.at, fold)
        type = vector(memory_type(fold.scalar), w.lanes)
        if fold.scalar is BOOL:
            value = f.emit_value(f"zext {vector('i1', w.lanes)} {value} to {type}")
        f.emit(f"store {type} {value}, ptr {place}, align {fold.scalar.size}")


def _reduce_partials(w: NestWriter) -> None:
    f, nest, (phase,) = w.f, w.nest, w.nest.phases
    outer, columns, thread = range(nest.vector_loop), w.walks.sizes[nest.vector_loop], global_thread_index(w)
    total = f.emit_value(f"mul i64 {w.walks.product(outer)}, {columns}")
    return_unless(w, f.emit_value(f"icmp ult i64 {thread}, {total}"))
    row, column = f.emit_value(f"udiv i64 {thread}, {columns}"), f.emit_value(f"urem i64 {thread}, {columns}")
    bases = w.walks.moved(w.bases, outer, w.walks.indices(outer, row))
    folds = begin_reductions(w, phase)

    def take(share: str) -> None:
        for number, fold in enumerate(folds):
            part = load_one(f, fold.scalar, _place(w, number, share, row, column, fold))
            fold.take(part, "", None, 0)

    loop(w, "0", "%count", 1, take)
    known = {**w.fixed, **{fold.reduction.result: fold.lane_results([0]) for fold in folds}}
    _store_last(w, bases, column, known)


def _store_last(w: NestWriter, bases: Bases, at: str, known: Known) -> None:
    values = w.expressions(bases, at, None, known)
    for store in w.nest.last:
        w.memory.store(store.access, bases[store.access], values.write(store.value), at, None)


def _place(w: NestWriter, number: int, share: str, row: str, column: str, fold: ReductionWriter) -> str:
    """Emit the address of the partial result of a share of a column. The partial results of each reduction are one
    array."""
    f, last = w.f, w.nest.vector_loop
    columns, rows = w.walks.sizes[last], w.walks.product(range(last))
    above = f.emit_value(f"add i64 {f.emit_value(f'mul i64 {share}, {rows}')}, {row}")
    index = f.emit_value(f"add i64 {f.emit_value(f'mul i64 {above}, {columns}')}, {column}")
    all_rows = f.emit_value(f"mul i64 {rows}, %count")
    before = f.emit_value(f"mul i64 {f.emit_value(f'mul i64 {all_rows}, {columns}')}, {number * SLOT}")
    first = f.emit_value(f"getelementptr i8, ptr %parts, i64 {before}")
    return f.emit_value(f"getelementptr {memory_type(fold.scalar)}, ptr {first}, i64 {index}")


class _Tile:
    """The columns that a block reduces. Each thread has one vector of them."""

    def __init__(self, w: NestWriter, block: str) -> None:
        f, nest = w.f, w.nest
        outer = range(nest.vector_loop)
        vectors = f.emit_value(f"udiv i64 {w.walks.sizes[nest.vector_loop]}, {w.lanes}")
        tiles = f.emit_value(f"udiv i64 {f.emit_value(f'add i64 {vectors}, {COLUMNS - 1}')}, {COLUMNS}")
        tile, self.row = f.emit_value(f"urem i64 {block}, {tiles}"), f.emit_value(f"udiv i64 {block}, {tiles}")
        column = f.emit_value(f"add i64 {f.emit_value(f'mul i64 {tile}, {COLUMNS}')}, {thread_index(f, 'thread.x')}")
        self.w = w
        self.bases = w.walks.moved(w.bases, outer, w.walks.indices(outer, self.row)) if outer else w.bases
        self.is_inside = f.emit_value(f"icmp ult i64 {column}, {vectors}")
        last = f.emit_value(f"sub i64 {vectors}, 1")
        column = f.call("i64", "llvm.umin.i64", ("i64", column), ("i64", last))
        self.at = f.emit_value(f"mul i64 {column}, {w.lanes}")
        # Threads beyond the last column have no rows, and wait for the others.
        self.rows = f.emit_value(f"select i1 {self.is_inside}, i64 {w.walks.sizes[nest.reduction_loops[0]]}, i64 0")

    def fold(self, phase: Phase, known: Known, begin: str, end: str) -> list[tuple[ReductionWriter, str]]:
        """Emit a phase over the rows from ``begin`` to ``end``, in steps of the number of threads per column, and the
        reduction over these threads."""
        w = self.w
        first, *inner_loops = w.nest.reduction_loops
        folds = begin_reductions(w, phase)
        w.write_what_stays(phase, known, self.bases, self.at, None)
        index = w.walks.variable("i64")

        def walk(inner: Bases, _: str) -> None:
            values = w.elements(phase, inner, known, self.at, None)
            for fold in folds:
                fold.take(values.write(fold.reduction.value), "", None, 0)

        def compute(row: str) -> None:
            w.f.emit(f"store i64 {row}, ptr {index}")
            w.walks.nested(inner_loops, w.walks.moved(self.bases, [first], [index]), walk)

        loop(w, begin, end, COLUMN_ROWS, compute)
        return [(fold, reduce_columns(fold, fold.lane_results([0]), COLUMNS, COLUMN_ROWS)) for fold in folds]
