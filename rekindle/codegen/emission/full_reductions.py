"""Full reductions: emit nests that reduce all elements of a tensor, as one row that the threads share.

Each phase becomes a function of a range of the row, which stores its partial results. Each thread has a range of the
row, and memory of its own for partial results. When all threads are done, one thread reduces the partial results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.emission.loop_control import Bases
from rekindle.codegen.emission.machines import Machine
from rekindle.codegen.emission.nests import PARAMETERS, RANGE, Known, NestWriter
from rekindle.codegen.emission.reductions import SLOT, ReductionWriter
from rekindle.codegen.loop_ir.nodes import Kernel, LoopNest, Phase

MAX_THREADS: Final = 64
"""Maximum number of threads that share a row."""


@dataclass(slots=True)
class FullReductionWriter:
    """Emitter of a nest that reduces over all elements; see :class:`~rekindle.codegen.emission.nests.NestWriter`."""

    module: ModuleBuilder
    kernel: Kernel
    nest: LoopNest
    number: int
    first: int
    machine: Machine
    lanes: int

    def write(self) -> None:
        """Add the functions of the nest. ``@nest<number>.phase<k>`` writes the partial results of a range to
        ``%found``; ``@nest<number>.join<k>`` reduces those of several threads; ``@nest<number>.last`` stores the
        results. ``%known`` has the results of earlier phases."""
        for index in range(len(self.nest.phases)):
            self._phase(index)
            self._join(index)
        writer = self._writer()
        writer.store_last(writer.bases, known_results(writer, len(self.nest.phases)))
        writer.define(f"nest{self.number}.last", f"{PARAMETERS}, ptr %known")

    def _writer(self) -> NestWriter:
        return NestWriter(self.module, self.kernel, self.nest, self.number, self.first, self.machine, self.lanes)

    def _phase(self, index: int) -> None:
        writer, phase = self._writer(), self.nest.phases[index]
        known = known_results(writer, index)
        folds = writer.folds(phase)
        writer.write_what_stays(phase, known, writer.bases, "0", None)

        def body(bases: Bases, column: str, length: str, done: str) -> None:
            writer.along(phase, writer.moved(bases, column), known, length, folds, done)

        writer.walks.segments(self.nest.reduction_loops, writer.bases, "%begin", "%end", body)
        slot = 0
        for fold in folds:
            fold.store("%found", slot)
            slot += fold.slots
        writer.define(f"nest{self.number}.phase{index}", f"{RANGE}, ptr %known, ptr %found")

    def _join(self, index: int) -> None:
        """Emit the function that reduces the partial results of ``%threads`` threads, which are at ``%parts``."""
        phase = self.nest.phases[index]
        f, variables = FunctionBuilder(self.module), list[str]()

        def variable(type: str) -> str:
            name = f"%{f.name()}"
            variables.append(f"  {name} = alloca {type}")
            return name

        folds = [ReductionWriter(f, reduction, 1, variable, 1) for reduction in phase.reductions]
        for fold in folds:
            fold.begin()
        at = variable("i64")
        f.emit(f"store i64 0, ptr {at}")
        f.emit("br label %test")
        f.label("test")
        now = f.emit_value(f"load i64, ptr {at}")
        f.emit(f"br i1 {f.emit_value(f'icmp ult i64 {now}, %threads')}, label %body, label %done")
        f.label("body")
        offset = f.emit_value(f"mul i64 {now}, {slots_of(phase) * SLOT}")
        part, slot = f.emit_value(f"getelementptr i8, ptr %parts, i64 {offset}"), 0
        for fold in folds:
            fold.take_stored(part, slot)
            slot += fold.slots
        f.emit(f"store i64 {f.emit_value(f'add i64 {now}, 1')}, ptr {at}")
        f.emit("br label %test")
        f.label("done")
        slot = 0
        for fold in folds:
            fold.store("%found", slot)
            slot += fold.slots
        f.emit("ret void")
        head = f"define internal void @nest{self.number}.join{index}(ptr %parts, i64 %threads, ptr %found) {{"
        self.module.definitions.append("\n".join([head, "entry:", *variables, *f.lines, "}"]))


def known_results(writer: NestWriter, before: int) -> Known:
    """Emit the loads of the results of the phases before that of index ``before``, which are in memory at ``%known``;
    return them."""
    known, slot = dict(writer.fixed), 0
    for phase in writer.nest.phases[:before]:
        for reduction in phase.reductions:
            fold = ReductionWriter(writer.f, reduction, writer.lanes, writer.walks.variable, 1)
            known[reduction.result] = fold.load("%known", slot)
            slot += fold.slots
    return known


def slots_of(phase: Phase) -> int:
    """Return the number of slots in memory that the results of a phase take."""
    return sum(2 if reduction.kind.startswith("arg") else 1 for reduction in phase.reductions)
