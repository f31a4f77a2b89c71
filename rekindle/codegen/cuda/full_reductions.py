"""Full reductions: two-stage reductions of all elements, which blocks share.

For each phase, one function stores the partial result of every block in ``%parts``. Another, of one block, reduces
these to ``%known``, which the following phases read. The last such function stores the outputs of one element.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rekindle.codegen.cuda.block_reductions import reduce_rows, thread_index
from rekindle.codegen.cuda.device_functions import (
    DeviceFunctions,
    begin_reductions,
    global_thread_index,
    loop,
    return_unless,
    strided_vectors,
)
from rekindle.codegen.cuda.geometry import THREADS
from rekindle.codegen.emission.full_reductions import known_results, slots_of
from rekindle.codegen.emission.nests import NestWriter
from rekindle.codegen.emission.reductions import SLOT, ReductionWriter

_RESULTS: Final = ", ptr %known, ptr %parts"


def add_full_reduction(functions: DeviceFunctions) -> None:
    """Add the functions of a full reduction."""
    phases = functions.nest.phases
    last = max((index for index, phase in enumerate(phases) if phase.reductions), default=0)
    for index, phase in enumerate(phases):
        functions.add_variants(f"phase{index}_", THREADS, partial(_reduce_chunk, index=index), _RESULTS)
        if phase.reductions:
            join = partial(_join, index=index, is_last=index == last)
            functions.add(f"join{index}", 1, THREADS, join, f"{_RESULTS}, i64 %count")


def _reduce_chunk(w: NestWriter, index: int) -> None:
    f, phase = w.f, w.nest.phases[index]
    known, folds = known_results(w, index), begin_reductions(w, phase)
    w.write_what_stays(phase, known, w.bases, "0", None)
    *outer, _ = w.nest.reduction_loops
    thread, threads = thread_index(f, "thread.x"), thread_index(f, "threads.x")
    block, blocks = thread_index(f, "block"), thread_index(f, "blocks")
    if outer:  # blocks share the outer loops, and their threads the innermost

        def walk(row: str) -> None:
            bases = w.walks.moved(w.bases, outer, w.walks.indices(outer, row))
            strided_vectors(w, phase, bases, known, folds, thread, threads)

        loop(w, block, w.walks.product(outer), blocks, walk)
    else:
        all_threads = f.emit_value(f"mul i64 {blocks}, {threads}")
        strided_vectors(w, phase, w.bases, known, folds, global_thread_index(w), all_threads)
    results = [reduce_rows(fold, fold.end()[0]) for fold in folds]
    return_unless(w, f.emit_value(f"icmp eq i64 {thread}, 0"))
    offset = f.emit_value(f"mul i64 {block}, {slots_of(phase) * SLOT}")
    _store_results(folds, results, f.emit_value(f"getelementptr i8, ptr %parts, i64 {offset}"), 0)


def _join(w: NestWriter, index: int, is_last: bool) -> None:
    f, phase = w.f, w.nest.phases[index]
    folds, thread = begin_reductions(w, phase), thread_index(f, "thread.x")

    def take(block: str) -> None:
        offset = f.emit_value(f"mul i64 {block}, {slots_of(phase) * SLOT}")
        part = f.emit_value(f"getelementptr i8, ptr %parts, i64 {offset}")
        for slot, fold in enumerate(folds):
            fold.take_stored(part, slot)

    loop(w, thread, "%count", thread_index(f, "threads.x"), take)
    results = [reduce_rows(fold, fold.end()[0]) for fold in folds]
    return_unless(w, f.emit_value(f"icmp eq i64 {thread}, 0"))
    _store_results(folds, results, "%known", sum(map(slots_of, w.nest.phases[:index])))
    if is_last and w.nest.last:
        known = known_results(w, index)
        known.update({fold.reduction.result: result for fold, result in zip(folds, results, strict=True)})
        w.store_last(w.bases, known)


def _store_results(folds: list[ReductionWriter], results: list[str], slots: str, first: int) -> None:
    for slot, (fold, result) in enumerate(zip(folds, results, strict=True), first):
        fold.store_value(result, slots, slot)
