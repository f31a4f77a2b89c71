"""Nests that fold nothing: a thread computes one vector."""

from __future__ import annotations

from rekindle.codegen.cuda.device_functions import DeviceFunctions, global_thread_index, return_unless
from rekindle.codegen.cuda.geometry import THREADS
from rekindle.codegen.emission.nests import NestWriter


def add_elementwise(functions: DeviceFunctions) -> None:
    """Add the functions of such a nest."""
    functions.add_variants("", THREADS, _compute)


def _compute(w: NestWriter) -> None:
    f, outer, thread = w.f, range(w.nest.rank - 1), global_thread_index(w)
    vectors = f.emit_value(f"udiv i64 {w.walks.sizes[-1]}, {w.lanes}")
    rows = w.walks.product(outer)
    total = vectors if rows == "1" else f.emit_value(f"mul i64 {rows}, {vectors}")
    return_unless(w, f.emit_value(f"icmp ult i64 {thread}, {total}"))
    bases, column = w.bases, thread
    if outer:
        row, column = f.emit_value(f"udiv i64 {thread}, {vectors}"), f.emit_value(f"urem i64 {thread}, {vectors}")
        bases = w.walks.moved(bases, outer, w.walks.indices(outer, row))
    at = column if w.lanes == 1 else f.emit_value(f"mul i64 {column}, {w.lanes}")
    (phase,) = w.nest.phases
    w.elements(phase, bases, w.fixed, at, None)
