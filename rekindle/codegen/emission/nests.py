"""Nests of loops as functions.

A nest becomes a function of a range of its iterations, so that threads can share them. It finds the row in which the
range begins, and walks row after row; a row is walked by whole vectors, and by one under a mask at its end: nothing
beyond the row is touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.emission.expressions import Expressions
from rekindle.codegen.emission.folds import Fold
from rekindle.codegen.emission.names import Function, Module
from rekindle.codegen.emission.registers import element_type, memory_type, splat, suffix, vector
from rekindle.codegen.llvm.target import Target
from rekindle.codegen.loops.form import Access, Expression, Kernel, Nest, Phase, Step
from rekindle.codegen.loops.scalars import BOOL, F64, arithmetic_type
from rekindle.codegen.phases import Dependence, parts_of

WAYS: Final = 4
"""How many vectors are folded beside each other …"""
LARGE: Final = 60
"""… unless an element consists of more expressions than this."""

PARAMETERS = "ptr %pointers, ptr %parameters, ptr %arguments"


def nest_lanes(nest: Nest, target: Target) -> int:
    """How many elements are worked on at a time: as many of the widest type as a register holds. Sums are made in
    wider types, in several registers."""
    found = [access.scalar for access in nest.accesses]
    if not nest.is_reduction:
        found += [each.scalar for each in expressions_of(nest)]
    widest = max((arithmetic_type(scalar).size for scalar in found), default=4)
    return max(target.vector_bits // 8 // widest, 1)


def expressions_of(nest: Nest) -> list[Expression]:
    """Every expression of a nest, operands first."""
    stored = [store.value for phase in nest.phases for store in phase.stores]
    folded = [reduction.value for phase in nest.phases for reduction in phase.reductions]
    roots = [*stored, *folded, *(store.value for store in nest.last)]
    return list(dict.fromkeys(part for root in roots for part in parts_of(root)))


def _no_leaf(expression: Expression) -> str:
    raise AssertionError(expression.kind)


@dataclass(slots=True)
class NestWriter:
    """Writes nest ``number`` of a kernel, whose numbers begin at ``first`` among the parameters."""

    module: Module
    kernel: Kernel
    nest: Nest
    number: int
    first: int
    target: Target
    f: Function = field(init=False)
    dependence: Dependence = field(init=False)
    lanes: int = field(init=False)
    sizes: list[str] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)
    strides: list[list[str]] = field(default_factory=list)
    variables: list[str] = field(default_factory=list)
    fixed: dict[Expression, str] = field(default_factory=dict)
    """What is the same for all elements."""

    def __post_init__(self) -> None:
        self.dependence = Dependence(self.nest.accesses, {})
        self.f = Function(self.module)
        self.lanes = nest_lanes(self.nest, self.target)

    def write(self) -> None:
        """Add the function ``@nest<number>`` to the module."""
        f = self.f
        self._read_parameters()
        self._read_fixed()
        if self.nest.is_reduction:
            self._whole_rows()
        elif self.nest.rank == 1:
            length = f.let("sub i64 %end, %begin")
            self._row(self.bases, "%begin", length)
            f.do("ret void")
        else:
            self._rows()
        head = f"define internal void @nest{self.number}({PARAMETERS}, i64 %begin, i64 %end) {{"
        self.module.definitions.append("\n".join([head, "entry:", *self.variables, *f.lines, "}"]))

    def _variable(self, type: str) -> str:
        """A place for a value that changes."""
        name = f"%{self.f.name()}"
        self.variables.append(f"  {name} = alloca {type}")
        return name

    # --------------------------------------------------------------------------------------------------- what is given

    def _parameter(self, index: int) -> str:
        place = self.f.let(f"getelementptr i64, ptr %parameters, i64 {self.first + index}")
        return self.f.let(f"load i64, ptr {place}, align 8, !invariant.load !0")

    def _read_parameters(self) -> None:
        f, rank = self.f, self.nest.rank
        self.sizes = [self._parameter(loop) for loop in range(rank)]
        at = rank
        for access in self.nest.accesses:
            slot = f.let(f"getelementptr ptr, ptr %pointers, i64 {access.buffer}")
            pointer = f.let(f"load ptr, ptr {slot}, align 8, !invariant.load !0")
            self.bases.append(f.let(f"getelementptr i8, ptr {pointer}, i64 {self._parameter(at)}"))
            self.strides.append([self._parameter(at + 1 + loop) for loop in range(rank)])
            at += 1 + rank

    def _read_fixed(self) -> None:
        for expression in expressions_of(self.nest):
            if expression.kind == "argument":
                assert isinstance(expression.datum, int)
                place = self.f.let(f"getelementptr i64, ptr %arguments, i64 {expression.datum}")
                type = "double" if expression.scalar is F64 else "i64"
                value = self.f.let(f"load {type}, ptr {place}, align 8, !invariant.load !0")
                self.fixed[expression] = self._spread(value, type)
            elif expression.kind == "load":
                assert isinstance(expression.datum, int)
                access = self.nest.accesses[expression.datum]
                if access.is_fixed:
                    self.fixed[expression] = self._load_one(access, self.bases[expression.datum])
            elif expression.kind == "length":
                self.fixed[expression] = self._spread(self.sizes[-1], "i64")

    def _spread(self, value: str, type: str) -> str:
        """``value`` in all lanes."""
        if self.lanes == 1:
            return value
        whole = vector(type, self.lanes)
        one = self.f.let(f"insertelement {whole} poison, {type} {value}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.f.let(f"shufflevector {whole} {one}, {whole} poison, {zeros}")

    def _load_one(self, access: Access, place: str) -> str:
        """An element in all lanes."""
        stored = memory_type(access.scalar)
        value = self.f.let(f"load {stored}, ptr {place}, align {access.scalar.size}")
        if access.scalar is BOOL:
            value = self.f.let(f"icmp ne i8 {value}, 0")
        return self._spread(value, element_type(access.scalar))

    # ------------------------------------------------------------------------------------------------------------ rows

    def _whole_rows(self) -> None:
        """Walk the rows that the range counts, one after the other."""
        f, outer = self.f, self.nest.rank - 1
        at = self._variable("i64")
        indices = [self._variable("i64") for _ in range(outer)]
        f.do(f"store i64 %begin, ptr {at}")
        row = "%begin"
        for loop in range(outer - 1, -1, -1):
            f.do(f"store i64 {f.let(f'urem i64 {row}, {self.sizes[loop]}')}, ptr {indices[loop]}")
            row = f.let(f"udiv i64 {row}, {self.sizes[loop]}")
        f.do("br label %row.test")
        f.label("row.test")
        now = f.let(f"load i64, ptr {at}")
        f.do(f"br i1 {f.let(f'icmp ult i64 {now}, %end')}, label %row, label %rows.done")
        f.label("row")
        self._row(self._bases_of_row(indices), "0", self.sizes[-1])
        f.do(f"store i64 {f.let(f'add i64 {now}, 1')}, ptr {at}")
        self._next_row(indices)
        f.label("rows.done")
        f.do("ret void")

    def _rows(self) -> None:
        """Walk the rows that the range touches, the first and the last of them perhaps in part."""
        f, inner = self.f, self.sizes[-1]
        at, column = self._variable("i64"), self._variable("i64")
        indices = [self._variable("i64") for _ in range(self.nest.rank - 1)]
        f.do(f"store i64 %begin, ptr {at}")
        row = f.let(f"udiv i64 %begin, {inner}")
        f.do(f"store i64 {f.let(f'urem i64 %begin, {inner}')}, ptr {column}")
        for loop in range(len(indices) - 1, -1, -1):
            f.do(f"store i64 {f.let(f'urem i64 {row}, {self.sizes[loop]}')}, ptr {indices[loop]}")
            if loop:
                row = f.let(f"udiv i64 {row}, {self.sizes[loop]}")
        f.do("br label %row.test")
        f.label("row.test")
        now = f.let(f"load i64, ptr {at}")
        f.do(f"br i1 {f.let(f'icmp ult i64 {now}, %end')}, label %row, label %rows.done")
        f.label("row")
        start = f.let(f"load i64, ptr {column}")
        to_row_end = f.let(f"sub i64 {inner}, {start}")
        to_end = f.let(f"sub i64 %end, {now}")
        length = f.call("i64", "llvm.umin.i64", ("i64", to_row_end), ("i64", to_end))
        self._row(self._bases_of_row(indices), start, length)
        f.do(f"store i64 {f.let(f'add i64 {now}, {length}')}, ptr {at}")
        f.do(f"store i64 0, ptr {column}")
        self._next_row(indices)
        f.label("rows.done")
        f.do("ret void")

    def _bases_of_row(self, variables: list[str]) -> list[str]:
        f, bases = self.f, []
        indices = [f.let(f"load i64, ptr {variable}") for variable in variables]
        for base, strides, access in zip(self.bases, self.strides, self.nest.accesses, strict=True):
            if not access.is_fixed:
                for index, stride in zip(indices, strides, strict=False):
                    base = f.let(f"getelementptr i8, ptr {base}, i64 {f.let(f'mul i64 {index}, {stride}')}")
            bases.append(base)
        return bases

    def _next_row(self, variables: list[str]) -> None:
        """Count the indices of the outer loops on, the last of them fastest."""
        f = self.f
        for loop in range(len(variables) - 1, -1, -1):
            value = f.let(f"add i64 {f.let(f'load i64, ptr {variables[loop]}')}, 1")
            is_over = f.let(f"icmp eq i64 {value}, {self.sizes[loop]}")
            f.do(f"store i64 {f.let(f'select i1 {is_over}, i64 0, i64 {value}')}, ptr {variables[loop]}")
            carry = f"carry{loop}"
            f.do(f"br i1 {is_over}, label %{carry}, label %row.test")
            f.label(carry)
        f.do("br label %row.test")

    # ------------------------------------------------------------------------------------------------------- one row

    def _row(self, bases: list[str], column: str, length: str) -> None:
        """Walk ``length`` elements of a row, from ``column`` on; ``bases`` say where the row begins."""
        f = self.f
        starts = []
        for base, strides, access in zip(bases, self.strides, self.nest.accesses, strict=True):
            if access.step is Step.NEXT:
                base = f.let(f"getelementptr {memory_type(access.scalar)}, ptr {base}, i64 {column}")
            elif access.step is Step.STRIDE:
                base = f.let(f"getelementptr i8, ptr {base}, i64 {f.let(f'mul i64 {column}, {strides[-1]}')}")
            starts.append(base)
        known = dict(self.fixed)
        for expression in expressions_of(self.nest):
            if expression.kind == "load" and expression not in known:
                assert isinstance(expression.datum, int)
                access = self.nest.accesses[expression.datum]
                if access.step is Step.STAYS:
                    known[expression] = self._load_one(access, starts[expression.datum])
        for phase in self.nest.phases:
            self._phase(phase, starts, known, length)
        self._store_last(starts, known)

    def _store_last(self, starts: list[str], known: dict[Expression, str]) -> None:
        """Store what is one element for a row."""
        f, lanes = self.f, self.lanes
        values = Expressions(f, self.target, lanes, _no_leaf, known)
        for store in self.nest.last:
            scalar = self.nest.accesses[store.access].scalar
            value = values.write(store.value)
            if lanes > 1:
                value = f.let(f"extractelement {vector(element_type(scalar), lanes)} {value}, i64 0")
            if scalar is BOOL:
                value = f.let(f"zext i1 {value} to i8")
            f.do(f"store {memory_type(scalar)} {value}, ptr {starts[store.access]}, align {scalar.size}")

    def _write_what_stays(self, phase: Phase, known: dict[Expression, str]) -> None:
        """Compute in front of a phase what is the same for all of its elements."""
        values = Expressions(self.f, self.target, self.lanes, _no_leaf, known)
        roots = [store.value for store in phase.stores] + [each.value for each in phase.reductions]
        for root in roots:
            for part in parts_of(root):
                if part.kind != "constant" and part not in known and not self.dependence.varies(part):
                    values.write(part)

    def _phase(self, phase: Phase, starts: list[str], known: dict[Expression, str], length: str) -> None:
        f, lanes = self.f, self.lanes
        self._write_what_stays(phase, known)
        size = sum(len(parts_of(reduction.value)) for reduction in phase.reductions)
        ways = WAYS if size <= LARGE else 1
        folds = [Fold(f, reduction, lanes, self._variable, ways) for reduction in phase.reductions]
        for fold in folds:
            fold.begin()
        self._walk(phase, starts, known, length, folds)
        for fold in folds:
            known[fold.reduction.result] = self._spread(fold.end(), fold.type)

    def _walk(
        self, phase: Phase, starts: list[str], known: dict[Expression, str], length: str, folds: list[Fold]
    ) -> None:
        """Walk ``length`` elements: by several vectors at a time where something is folded, by one, and by one under a
        mask."""
        f, lanes = self.f, self.lanes
        tag = f.name()
        at = self._variable("i64")
        f.do(f"store i64 0, ptr {at}")
        for ways in sorted({folds[0].ways if folds else 1, 1}, reverse=True):
            whole = f.let(f"and i64 {length}, {-lanes * ways}")
            head, body, done = (f"{name}{ways}.{tag}" for name in ("head", "body", "done"))
            f.do(f"br label %{head}")
            f.label(head)
            now = f.let(f"load i64, ptr {at}")
            f.do(f"br i1 {f.let(f'icmp ult i64 {now}, {whole}')}, label %{body}, label %{done}")
            f.label(body)
            for way in range(ways):
                place = now if way == 0 else f.let(f"add i64 {now}, {way * lanes}")
                self._elements(phase, starts, known, folds, place, None, way)
            f.do(f"store i64 {f.let(f'add i64 {now}, {ways * lanes}')}, ptr {at}")
            f.do(f"br label %{head}")
            f.label(done)
        if lanes > 1:
            tail, over = f"tail.{tag}", f"over.{tag}"
            now = f.let(f"load i64, ptr {at}")
            f.do(f"br i1 {f.let(f'icmp ult i64 {now}, {length}')}, label %{tail}, label %{over}")
            f.label(tail)
            left = f.let(f"trunc i64 {f.let(f'sub i64 {length}, {now}')} to i32")
            count = ", ".join(f"i32 {lane}" for lane in range(lanes))
            mask = f.let(f"icmp ult <{lanes} x i32> <{count}>, {self._spread(left, 'i32')}")
            self._elements(phase, starts, known, folds, now, mask, 0)
            f.do(f"br label %{over}")
            f.label(over)

    def _elements(
        self,
        phase: Phase,
        starts: list[str],
        known: dict[Expression, str],
        folds: list[Fold],
        at: str,
        mask: str | None,
        way: int,
    ) -> None:
        """Compute the elements from ``at`` on: a whole vector, or those that ``mask`` tells."""

        def leaf(expression: Expression) -> str:
            assert expression.kind == "load"
            assert isinstance(expression.datum, int)
            return self._load(expression.datum, starts[expression.datum], at, mask)

        values = Expressions(self.f, self.target, self.lanes, leaf, dict(known))
        for store in phase.stores:
            self._store(store.access, starts[store.access], values.write(store.value), at, mask)
        for fold in folds:
            fold.take(values.write(fold.reduction.value), mask, way)

    def _place(self, access: Access, start: str, at: str) -> str:
        return self.f.let(f"getelementptr {memory_type(access.scalar)}, ptr {start}, i64 {at}")

    def _load(self, number: int, start: str, at: str, mask: str | None) -> str:
        f, access = self.f, self.nest.accesses[number]
        stored, lanes = memory_type(access.scalar), self.lanes
        whole, align = vector(stored, lanes), access.scalar.size
        if access.step is Step.STRIDE:
            value = self._gather(access, number, start, at, mask)
        else:
            place = self._place(access, start, at)
            if mask is None:
                value = f.let(f"load {whole}, ptr {place}, align {align}")
            else:
                symbol = f"llvm.masked.load.{suffix(stored, lanes)}.p0"
                type = vector("i1", lanes)
                f.module.declare(symbol, whole, "ptr", "i32", type, whole)
                value = f.let(
                    f"call {whole} @{symbol}(ptr {place}, i32 {align}, {type} {mask}, {whole} zeroinitializer)"
                )
        if access.scalar is BOOL:
            return f.let(f"icmp ne {whole} {value}, {splat('i8', '0', lanes)}")
        return value

    def _gather(self, access: Access, number: int, start: str, at: str, mask: str | None) -> str:
        f, lanes = self.f, self.lanes
        stored, stride = memory_type(access.scalar), self.strides[number][-1]
        whole = vector(stored, lanes)
        place = f.let(f"getelementptr i8, ptr {start}, i64 {f.let(f'mul i64 {at}, {stride}')}")
        if lanes == 1:
            return f.let(f"load {stored}, ptr {place}, align {access.scalar.size}")
        count = ", ".join(f"i64 {lane}" for lane in range(lanes))
        offsets = f.let(f"mul <{lanes} x i64> <{count}>, {self._spread(stride, 'i64')}")
        places = f.let(f"getelementptr i8, ptr {place}, <{lanes} x i64> {offsets}")
        type = vector("i1", lanes)
        symbol = f"llvm.masked.gather.{suffix(stored, lanes)}.v{lanes}p0"
        f.module.declare(symbol, whole, f"<{lanes} x ptr>", "i32", type, whole)
        given = splat("i1", "true", lanes) if mask is None else mask
        return f.let(
            f"call {whole} @{symbol}(<{lanes} x ptr> {places}, i32 {access.scalar.size}, {type} {given}, "
            f"{whole} zeroinitializer)"
        )

    def _store(self, number: int, start: str, value: str, at: str, mask: str | None) -> None:
        f, access = self.f, self.nest.accesses[number]
        stored, lanes = memory_type(access.scalar), self.lanes
        whole, align = vector(stored, lanes), access.scalar.size
        if access.scalar is BOOL:
            value = f.let(f"zext {vector('i1', lanes)} {value} to {whole}")
        place = self._place(access, start, at)
        if mask is None:
            f.do(f"store {whole} {value}, ptr {place}, align {align}")
            return
        symbol = f"llvm.masked.store.{suffix(stored, lanes)}.p0"
        type = vector("i1", lanes)
        f.module.declare(symbol, "void", whole, "ptr", "i32", type)
        f.do(f"call void @{symbol}({whole} {value}, ptr {place}, i32 {align}, {type} {mask})")
