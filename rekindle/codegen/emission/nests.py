"""Loop nests as functions.

A nest becomes a function of a range of its iterations, so that threads can share them. It finds the row in which the
range begins, and iterates over the rows. A row is computed in whole vectors, and one masked vector at its end, so that
no memory beyond the row is accessed.

If there are reduction loops, the range counts iterations of the other loops. Vectors extend along the last reduction
loop, or across rows: along the last of the other loops, so that each lane reduces a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.emission.expressions import Expressions
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.emission.loop_control import Bases, LoopControl
from rekindle.codegen.emission.machines import Machine
from rekindle.codegen.emission.memory import MemoryAccess, load_one, spread, store_one
from rekindle.codegen.emission.reductions import ReductionWriter
from rekindle.codegen.emission.scans import Scan, held_type
from rekindle.codegen.emission.vector_types import element_type, vector
from rekindle.codegen.llvm.target import Target
from rekindle.codegen.loop_ir.nodes import Expression, Kernel, LoopNest, Phase
from rekindle.codegen.loop_ir.scalar_types import F64, arithmetic_type
from rekindle.codegen.phase_scheduling import SCANS, Dependence, subexpressions

WAYS: Final = 4
"""Number of vectors that are computed or reduced independently, for expressions of moderate size."""
LARGE: Final = 60
"""Number of subexpressions of an element above which vectors are computed one at a time."""
ACCUMULATORS: Final = 8
"""Number of vectors that are reduced independently across rows."""

PARAMETERS = "ptr %pointers, ptr %parameters, ptr %arguments"
RANGE = f"{PARAMETERS}, i64 %begin, i64 %end"

Known = dict[Expression, str]
"""Expressions that have been written, with the operands that hold them."""


def nest_lanes(nest: LoopNest, target: Target) -> int:
    """Return the number of lanes of a nest's vectors: as many elements of its widest type as a register holds. Sums use
    wider types, in several registers."""
    found = [access.scalar for access in nest.accesses]
    if not nest.reduction_rank:
        found += [each.scalar for each in expressions_of(nest)]
    widest = max((arithmetic_type(scalar).size for scalar in found), default=4)
    return max(target.vector_bits // 8 // widest, 1)


def expressions_of(nest: LoopNest) -> list[Expression]:
    """Return every expression of a nest, operands first."""
    stored = [store.value for phase in nest.phases for store in phase.stores]
    folded = [reduction.value for phase in nest.phases for reduction in phase.reductions]
    roots = [*stored, *folded, *(store.value for store in nest.last)]
    return list(dict.fromkeys(part for root in roots for part in subexpressions(root)))


def ways_of(phase: Phase) -> int:
    """Return how many vectors a phase computes at a time: one, if its expressions are large."""
    values = [each.value for each in phase.reductions] + [each.value for each in phase.stores]
    size = sum(len(subexpressions(value)) for value in values)
    return WAYS if size <= LARGE else 1


def rows_at_a_time(phase: Phase, vectors: int) -> int:
    """Return how many rows a phase computes at a time, if ``vectors`` extend across rows. Several rows shorten the
    chain of dependent reductions of a column."""
    if phase.stores or ways_of(phase) == 1 or any(part.kind in SCANS for part in parts_of(phase)):
        return 1
    return max(1, ACCUMULATORS // (vectors * max(len(phase.reductions), 1)))


def parts_of(phase: Phase) -> Iterable[Expression]:
    """Return every expression of a phase, operands first."""
    roots = [store.value for store in phase.stores] + [each.value for each in phase.reductions]
    return dict.fromkeys(part for root in roots for part in subexpressions(root))


@dataclass(slots=True)
class NestWriter:
    """Emitter of nest ``number`` of a kernel, whose parameters begin at ``first``: one function, for all or a part of
    the nest."""

    module: ModuleBuilder
    kernel: Kernel
    nest: LoopNest
    number: int
    first: int
    machine: Machine
    lanes: int
    """Number of elements of a vector."""
    is_aligned: bool = False
    """Whether whole vectors lie at multiples of 16 bytes, or of their size if that is less."""
    f: FunctionBuilder = field(init=False)
    walks: LoopControl = field(init=False)
    memory: MemoryAccess = field(init=False)
    dependence: Dependence = field(init=False)
    bases: Bases = field(default_factory=list)
    scans: dict[tuple[Expression, int], Scan] = field(default_factory=dict)
    """Scans of the current phase, for each vector that extends across rows."""
    fixed: Known = field(default_factory=dict)
    """Expressions that are loop-invariant."""

    def __post_init__(self) -> None:
        self.dependence = Dependence(self.nest.accesses, {})
        self.f = FunctionBuilder(self.module)
        self._read_parameters()
        self._read_fixed()

    def write(self) -> None:
        """Add the function ``@nest<number>`` to the module."""
        nest = self.nest
        kept = range(nest.rank - nest.reduction_rank)
        if not nest.reduction_rank:
            self.walks.segments(kept, self.bases, "%begin", "%end", self._plain_row)
        elif nest.vectorizes_outer:
            self.walks.segments(kept, self.bases, "%begin", "%end", self._columns)
        else:
            self.walks.rows(kept, self.bases, "%begin", "%end", self._folded_row)
        self.define(f"nest{self.number}", RANGE)

    def define(self, name: str, parameters: str) -> None:
        """Add the emitted function to the module."""
        self.f.emit("ret void")
        head = f"define internal void @{name}({parameters}) noinline {{"
        self.module.definitions.append("\n".join([head, "entry:", *self.walks.variables, *self.f.lines, "}"]))

    # --------------------------------------------------------------------------------------------------- what is given

    def _parameter(self, index: int) -> str:
        place = self.f.emit_value(f"getelementptr i64, ptr %parameters, i64 {self.first + index}")
        return self.f.emit_value(f"load i64, ptr {place}, align 8, !invariant.load !0")

    def _read_parameters(self) -> None:
        f, rank = self.f, self.nest.rank
        sizes = [self._parameter(loop) for loop in range(rank)]
        strides = []
        at = rank
        for access in self.nest.accesses:
            slot = f.emit_value(f"getelementptr ptr, ptr %pointers, i64 {access.buffer}")
            pointer = f.emit_value(f"load ptr, ptr {slot}, align 8, !invariant.load !0")
            self.bases.append(f.emit_value(f"getelementptr i8, ptr {pointer}, i64 {self._parameter(at)}"))
            strides.append([self._parameter(at + 1 + loop) for loop in range(rank)])
            at += 1 + rank
        for expression in expressions_of(self.nest):
            if expression.kind == "given":
                assert isinstance(expression.payload, int)
                self.fixed[expression] = spread(f, self._parameter(at + expression.payload), "i64", self.lanes)
        self.walks = LoopControl(f, self.nest, self.lanes, sizes, strides)
        steps = [each[self.nest.vector_loop] for each in strides]
        self.memory = MemoryAccess(f, self.nest, self.lanes, steps, self.is_aligned)

    def _read_fixed(self) -> None:
        f = self.f
        for expression in expressions_of(self.nest):
            if expression.kind == "argument":
                assert isinstance(expression.payload, int)
                place = f.emit_value(f"getelementptr i64, ptr %arguments, i64 {expression.payload}")
                type = "double" if expression.scalar is F64 else "i64"
                value = f.emit_value(f"load {type}, ptr {place}, align 8, !invariant.load !0")
                self.fixed[expression] = spread(f, value, type, self.lanes)
            elif expression.kind == "load":
                assert isinstance(expression.payload, int)
                access = self.nest.accesses[expression.payload]
                if access.is_fixed:
                    value = load_one(f, access.scalar, self.bases[expression.payload])
                    self.fixed[expression] = spread(f, value, element_type(access.scalar), self.lanes)
            elif expression.kind == "length":
                length = self.walks.product(range(self.nest.rank - self.nest.reduction_rank, self.nest.rank))
                self.fixed[expression] = spread(f, length, "i64", self.lanes)

    # ----------------------------------------------------------------------------------------------- nothing is folded

    def _plain_row(self, bases: Bases, column: str, length: str, _: str) -> None:
        """Emit the loop over ``length`` elements of a row, from ``column`` on."""
        known = dict(self.fixed)
        starts = self.moved(bases, column)
        (phase,) = self.nest.phases
        self.write_what_stays(phase, known, starts, "0", None)

        def body(at: str, mask: str | None, _: int) -> None:
            self.elements(phase, starts, known, at, mask)

        self.walks.vectors(length, 1, body)

    def moved(self, bases: Bases, column: str) -> Bases:
        """Return ``bases``, the start addresses of the accesses, advanced by ``column`` elements."""
        moved = []
        for base, step, access in zip(bases, self.memory.steps, self.nest.accesses, strict=True):
            if not (access.is_fixed or column == "0"):
                base = self.f.emit_value(
                    f"getelementptr i8, ptr {base}, i64 {self.f.emit_value(f'mul i64 {column}, {step}')}"
                )
            moved.append(base)
        return moved

    # ----------------------------------------------------------------------------------------------- vectors along rows

    def _folded_row(self, bases: Bases) -> None:
        known = dict(self.fixed)
        for phase in self.nest.phases:
            folds = self.folds(phase)
            self._begin_scans(phase, 1)
            self.write_what_stays(phase, known, bases, "0", None)
            *outer, _ = self.nest.reduction_loops

            def walk(inner: Bases, done: str, phase: Phase = phase, folds: list[ReductionWriter] = folds) -> None:
                length = self.walks.sizes[-1]
                first = done if done == "0" else self.f.emit_value(f"mul i64 {done}, {length}")
                self.along(phase, inner, known, length, folds, first)

            self.walks.nested(outer, bases, walk)
            for fold in folds:
                known[fold.reduction.result] = fold.result()
        self.store_last(bases, known)

    def folds(self, phase: Phase) -> list[ReductionWriter]:
        """Emit the initialization of a phase's reductions; return their emitters."""
        ways = ways_of(phase)
        folds = [ReductionWriter(self.f, each, self.lanes, self.walks.variable, ways) for each in phase.reductions]
        for fold in folds:
            fold.begin()
        return folds

    def along(
        self, phase: Phase, bases: Bases, known: Known, length: str, folds: list[ReductionWriter], first: str
    ) -> None:
        """Emit a phase over ``length`` elements of a row, whose indices start at ``first``."""

        def body(at: str, mask: str | None, ways: int) -> None:
            for way in range(ways):
                place = at if way == 0 else self.f.emit_value(f"add i64 {at}, {way * self.lanes}")
                values = self.elements(phase, bases, known, place, mask)
                for fold in folds:
                    fold.take(values.write(fold.reduction.value), self._numbers(fold, first, place), mask, way)

        self.walks.vectors(length, ways_of(phase) if folds else 1, body)

    def _numbers(self, fold: ReductionWriter, first: str, at: str) -> str:
        """Emit the indices of the elements of a vector, if the reduction needs them."""
        if fold.slots == 1:
            return ""
        f, lanes = self.f, self.lanes
        start = at if first == "0" else f.emit_value(f"add i64 {first}, {at}")
        if lanes == 1:
            return start
        count = ", ".join(f"i64 {lane}" for lane in range(lanes))
        return f.emit_value(f"add <{lanes} x i64> <{count}>, {spread(f, start, 'i64', lanes)}")

    def store_last(self, bases: Bases, known: Known) -> None:
        """Emit the stores of results with one element per row."""
        f, lanes = self.f, self.lanes
        values = self.expressions(bases, "0", None, known)
        for store in self.nest.last:
            scalar = self.nest.accesses[store.access].scalar
            value = values.write(store.value)
            if lanes > 1:
                value = f.emit_value(f"extractelement {vector(element_type(scalar), lanes)} {value}, i64 0")
            store_one(f, scalar, value, bases[store.access])

    # ---------------------------------------------------------------------------------------------- vectors across rows

    def _columns(self, bases: Bases, column: str, length: str, _: str) -> None:
        """Emit the reduction of ``length`` columns, from ``column`` on, several vectors at a time."""
        starts = self.moved(bases, column)
        widest = min(map(ways_of, self.nest.phases))

        def body(at: str, mask: str | None, ways: int) -> None:
            places = [at, *(self.f.emit_value(f"add i64 {at}, {way * self.lanes}") for way in range(1, ways))]
            self._block(starts, places, mask)

        self.walks.vectors(length, widest, body)

    def _block(self, bases: Bases, places: list[str], mask: str | None) -> None:
        """Emit the reduction of the columns of the vectors at ``places``."""
        known = [dict(self.fixed) for _ in places]
        for phase in self.nest.phases:
            for mine, place in zip(known, places, strict=True):
                self.write_what_stays(phase, mine, bases, place, mask)
            count = len(places)
            rows = rows_at_a_time(phase, count)
            folds = [
                ReductionWriter(self.f, each, self.lanes, self.walks.variable, rows * count)
                for each in phase.reductions
            ]
            for fold in folds:
                fold.begin()
            self._begin_scans(phase, count)

            def body(
                inner: Bases, done: str, row: int, phase: Phase = phase, folds: list[ReductionWriter] = folds
            ) -> None:
                for way, (mine, place) in enumerate(zip(known, places, strict=True)):
                    values = self.elements(phase, inner, mine, place, mask, way)
                    for fold in folds:
                        number = spread(self.f, done, "i64", self.lanes) if fold.slots > 1 else ""
                        fold.take(values.write(fold.reduction.value), number, None, row * len(places) + way)

            self.walks.unrolled(self.nest.reduction_loops, bases, body, rows)
            for way, mine in enumerate(known):
                ways = range(way, rows * count, count)
                mine.update({fold.reduction.result: fold.lane_results(ways) for fold in folds})
        for mine, place in zip(known, places, strict=True):
            values = self.expressions(bases, place, mask, mine)
            for store in self.nest.last:
                self.memory.store(store.access, bases[store.access], values.write(store.value), place, mask)

    # -------------------------------------------------------------------------------------------------------- elements

    def expressions(self, bases: Bases, at: str, mask: str | None, known: Known) -> Expressions:
        """Return an emitter of the expressions of a vector; ``known`` are those that are computed already, and new ones
        are added to it."""

        def lookup(expression: Expression, values: list[str]) -> str:
            assert isinstance(expression.payload, int)
            index, size, step = values
            start, status = bases[expression.payload], self._status()
            stays = not (self.nest.vectorizes_outer or self.dependence.varies(expression.operands[0]))
            look = self.memory.look_up_one if stays else self.memory.look_up
            return look(expression.payload, start, at, mask, index, size, step, status)

        def check(condition: str) -> None:
            self.memory.report_unless_all(condition, mask, self._status())

        leaf = self._leaf(bases, at, mask)
        return Expressions(self.f, self.machine, self.lanes, leaf, written=known, lookup=lookup, check=check)

    def _status(self) -> str:
        """Return the address of the flag that failing lookups and checks set; null on a machine without one."""
        kernel = self.kernel
        if not self.machine.has_status:
            return "null"
        number = len(kernel.inputs) + len(kernel.outputs) + len(kernel.temporaries)
        slot = self.f.emit_value(f"getelementptr ptr, ptr %pointers, i64 {number}")
        return self.f.emit_value(f"load ptr, ptr {slot}, align 8, !invariant.load !0")

    def _leaf(self, bases: Bases, at: str, mask: str | None) -> Callable[[Expression], str]:
        def leaf(expression: Expression) -> str:
            assert expression.kind == "load"
            assert isinstance(expression.payload, int)
            return self.memory.load(expression.payload, bases[expression.payload], at, mask)

        return leaf

    def write_what_stays(self, phase: Phase, known: Known, bases: Bases, at: str, mask: str | None) -> None:
        """Emit the loop-invariant values of a phase before its loop."""
        values = self.expressions(bases, at, mask, known)
        for part in parts_of(phase):
            if part.kind != "constant" and part not in known and not self.dependence.varies(part):
                values.write(part)

    def _begin_scans(self, phase: Phase, ways: int) -> None:
        self.scans.clear()
        for part in parts_of(phase):
            if part.kind in SCANS:
                for way in range(ways):
                    place = self.walks.variable(held_type(part, self.lanes, self.nest.vectorizes_outer))
                    scan = self.scans[part, way] = Scan(self.f, part, self.lanes, place, self.nest.vectorizes_outer)
                    scan.begin()

    def elements(
        self, phase: Phase, bases: Bases, known: Known, at: str, mask: str | None, way: int = 0
    ) -> Expressions:
        """Emit the computation and the stores of the elements from ``at`` on: a whole vector, or the lanes set in
        ``mask``. Return the emitter that has emitted them. ``way`` is the number of the vector, if vectors extend
        across rows."""

        def scan(expression: Expression, value: str) -> str:
            return self.scans[expression, way].take(value)

        values = self.expressions(bases, at, mask, dict(known))
        values.scan = scan
        for store in phase.stores:
            self.memory.store(store.access, bases[store.access], values.write(store.value), at, mask)
        return values
