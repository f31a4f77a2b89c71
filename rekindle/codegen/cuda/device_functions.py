"""Emission of the functions of a GPU module, and the parts that kinds of functions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rekindle.codegen.cuda.block_reductions import define_shared_memory, thread_index
from rekindle.codegen.cuda.geometry import parameters_of, vector_lanes
from rekindle.codegen.emission.ir_builder import ModuleBuilder
from rekindle.codegen.emission.loop_control import Bases
from rekindle.codegen.emission.machines import Machine
from rekindle.codegen.emission.nests import Known, NestWriter
from rekindle.codegen.emission.reductions import ReductionWriter
from rekindle.codegen.loop_ir.nodes import Kernel, LoopNest, Phase


@dataclass(slots=True)
class DeviceFunctions:
    """Emitter of the functions of nest ``number`` of a kernel, whose parameters begin at ``first``."""

    module: ModuleBuilder
    kernel: Kernel
    nest: LoopNest
    number: int
    first: int
    machine: Machine

    def add(
        self, variant: str, lanes: int, threads: int, write: Callable[[NestWriter], None], parameters: str = ""
    ) -> None:
        """Add a function, whose body ``write`` emits, for blocks of at most ``threads`` threads. It takes
        ``parameters`` besides those of all functions."""
        w = NestWriter(
            self.module, self.kernel, self.nest, self.number, self.first, self.machine, lanes, is_aligned=lanes > 1
        )
        name = w.f.symbol = f"nest{self.number}_{variant}"
        write(w)
        w.f.emit("br label %exit")
        w.f.label("exit")
        w.f.emit("ret void")
        define_shared_memory(w.f)
        head = f"define KERNEL void @{name}({parameters_of(self.kernel)}{parameters}) {{"
        self.module.definitions.append("\n".join([head, "entry:", *w.walks.variables, *w.f.lines, "}"]))
        self.module.most_threads[name] = threads

    def add_variants(
        self, prefix: str, threads: int, write: Callable[[NestWriter], None], parameters: str = ""
    ) -> None:
        """Add a function that computes elements, and one that computes vectors if there are any."""
        self.add(f"{prefix}scalar", 1, threads, write, parameters)
        lanes = vector_lanes(self.nest)
        if lanes > 1:
            self.add(f"{prefix}vector", lanes, threads, write, parameters)


def return_unless(w: NestWriter, condition: str) -> None:
    """Emit a return from the function if ``condition`` is false."""
    tag = w.f.name()
    w.f.emit(f"br i1 {condition}, label %stay.{tag}, label %exit")
    w.f.label(f"stay.{tag}")


def global_thread_index(w: NestWriter) -> str:
    """Emit the index of the thread among the threads of all blocks."""
    before = w.f.emit_value(f"mul i64 {thread_index(w.f, 'block')}, {thread_index(w.f, 'threads.x')}")
    return w.f.emit_value(f"add i64 {before}, {thread_index(w.f, 'thread.x')}")


def begin_reductions(w: NestWriter, phase: Phase) -> list[ReductionWriter]:
    """Emit the initialization of a phase's reductions; return their emitters."""
    folds = [ReductionWriter(w.f, each, w.lanes, w.walks.variable, 1) for each in phase.reductions]
    for fold in folds:
        fold.begin()
    return folds


def loop(w: NestWriter, begin: str, end: str, step: str | int, body: Callable[[str], None]) -> None:
    """Emit a loop that runs ``body`` for the numbers from ``begin`` to ``end``, in steps of ``step``."""
    tag, counter = w.f.name(), w.walks.counter(begin)
    now = w.walks.test(counter, end, tag)
    body(now)
    w.f.emit(f"store i64 {w.f.emit_value(f'add i64 {now}, {step}')}, ptr {counter}")
    w.f.emit(f"br label %test.{tag}")
    w.f.label(f"done.{tag}")


def strided_vectors(
    w: NestWriter, phase: Phase, bases: Bases, known: Known, folds: list[ReductionWriter], thread: str, threads: str
) -> None:
    """Emit the innermost loop over the vectors of ``thread``, one of ``threads`` that share them."""
    begin, step = (w.f.emit_value(f"mul i64 {each}, {w.lanes}") for each in (thread, threads))

    def compute(at: str) -> None:
        values = w.elements(phase, bases, known, at, None)
        for fold in folds:
            fold.take(values.write(fold.reduction.value), "", None, 0)

    loop(w, begin, w.walks.sizes[-1], step, compute)
