"""Row reductions on GPUs: the threads of a block reduce one row together, or the threads of a warp a short row.

In one variant, a thread recomputes its vectors of the row in every phase, however many it has. In the others it has a
few vectors, whose intermediates stay in registers between phases.
"""

from __future__ import annotations

from functools import partial

from rekindle.codegen.cuda.block_reductions import reduce_rows, thread_index
from rekindle.codegen.cuda.device_functions import DeviceFunctions, begin_reductions, return_unless, strided_vectors
from rekindle.codegen.cuda.geometry import MAX_ROW_THREADS, REGISTER_VECTORS, fits_registers, vector_lanes
from rekindle.codegen.emission.loop_control import Bases
from rekindle.codegen.emission.memory import spread
from rekindle.codegen.emission.nests import Known, NestWriter
from rekindle.codegen.emission.reductions import ReductionWriter
from rekindle.codegen.emission.vector_types import element_type
from rekindle.codegen.loop_ir.nodes import Phase


def add_rows(functions: DeviceFunctions) -> None:
    """Add the device functions of a nest that reduces rows."""
    functions.add_variants("", MAX_ROW_THREADS, _loop_over_row)
    if fits_registers(functions.nest):
        lanes = vector_lanes(functions.nest)
        for count in REGISTER_VECTORS:
            functions.add(f"registers{count}", lanes, MAX_ROW_THREADS, partial(_keep_row, count=count))


def _loop_over_row(w: NestWriter) -> None:
    bases, known = _begin_row(w), dict(w.fixed)
    *outer, _ = w.nest.reduction_loops
    thread, threads = thread_index(w.f, "thread.x"), thread_index(w.f, "threads.x")
    for phase in w.nest.phases:
        folds = begin_reductions(w, phase)
        w.write_what_stays(phase, known, bases, "0", None)

        def walk(inner: Bases, _: str, phase: Phase = phase, folds: list[ReductionWriter] = folds) -> None:
            strided_vectors(w, phase, inner, known, folds, thread, threads)

        w.walks.nested(outer, bases, walk)
        _reduce(w, folds, known)
    _store_last(w, bases, known)


def _keep_row(w: NestWriter, count: int) -> None:
    bases, known = _begin_row(w), dict(w.fixed)
    thread, threads = thread_index(w.f, "thread.x"), thread_index(w.f, "threads.x")
    vectors = [_RegisterVector(w, thread, threads, number) for number in range(count)]
    for phase in w.nest.phases:
        folds = begin_reductions(w, phase)
        w.write_what_stays(phase, known, bases, "0", None)
        for vector in vectors:
            vector.compute(phase, bases, known, folds)
        _reduce(w, folds, known)
    _store_last(w, bases, known)


def _begin_row(w: NestWriter) -> Bases:
    """Emit a return if there is no row for the thread; else return the addresses at which its row begins."""
    f, kept = w.f, range(w.nest.rank - w.nest.reduction_rank)
    first = f.emit_value(f"mul i64 {thread_index(f, 'block')}, {thread_index(f, 'threads.y')}")
    row = f.emit_value(f"add i64 {first}, {thread_index(f, 'thread.y')}")
    return_unless(w, f.emit_value(f"icmp ult i64 {row}, {w.walks.product(kept)}"))
    return w.walks.moved(w.bases, kept, w.walks.indices(kept, row))


def _reduce(w: NestWriter, folds: list[ReductionWriter], known: Known) -> None:
    """Emit the reductions over the threads of a row, and add the results to ``known``."""
    for fold in folds:
        (value,) = fold.end()
        known[fold.reduction.result] = spread(w.f, reduce_rows(fold, value), element_type(fold.scalar), w.lanes)


def _store_last(w: NestWriter, bases: Bases, known: Known) -> None:
    if w.nest.last:
        return_unless(w, w.f.emit_value(f"icmp eq i64 {thread_index(w.f, 'thread.x')}, 0"))
        w.store_last(bases, known)


class _RegisterVector:
    """Vector ``number`` of a row that a thread keeps in registers. Beyond the end of the row, the first vector is
    computed and dropped."""

    def __init__(self, w: NestWriter, thread: str, threads: str, number: int) -> None:
        f = w.f
        before = f.emit_value(f"mul i64 {threads}, {number}")
        at = f.emit_value(f"mul i64 {f.emit_value(f'add i64 {before}, {thread}')}, {w.lanes}")
        self.w = w
        self.is_inside = f.emit_value(f"icmp ult i64 {at}, {w.walks.sizes[-1]}")
        self.at = f.emit_value(f"select i1 {self.is_inside}, i64 {at}, i64 0")
        self.values: Known = {}

    def compute(self, phase: Phase, bases: Bases, known: Known, folds: list[ReductionWriter]) -> None:
        """Emit one phase for the vector. The expressions of earlier phases are in ``known``."""
        w, f = self.w, self.w.f
        self.values.update(known)
        values = w.expressions(bases, self.at, None, self.values)
        stored = [(store.access, values.write(store.value)) for store in phase.stores]
        mask = spread(f, self.is_inside, "i1", w.lanes)
        for fold in folds:
            fold.take(values.write(fold.reduction.value), "", mask, 0)
        if stored:
            tag = f.name()
            f.emit(f"br i1 {self.is_inside}, label %store.{tag}, label %stored.{tag}")
            f.label(f"store.{tag}")
            for access, value in stored:
                w.memory.store(access, bases[access], value, self.at, None)
            f.emit(f"br label %stored.{tag}")
            f.label(f"stored.{tag}")
