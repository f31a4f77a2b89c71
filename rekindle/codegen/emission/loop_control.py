"""Emission of loops in LLVM IR: over rows, over parts of rows, over the vectors of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rekindle.codegen.emission.ir_builder import FunctionBuilder
from rekindle.codegen.emission.memory import spread
from rekindle.codegen.loop_ir.nodes import LoopNest, MatmulNest

Bases = list[str]
"""Address of each access at the start of the current loops."""


@dataclass(slots=True)
class LoopControl:
    """Emitter of the loops of a nest. ``sizes`` and ``strides`` (of each access along each loop, in bytes) are
    operands."""

    f: FunctionBuilder
    nest: LoopNest | MatmulNest
    lanes: int
    sizes: list[str]
    strides: list[list[str]]
    variables: list[str] = field(default_factory=list)
    """The lines that allocate variables."""

    def variable(self, type: str) -> str:
        """Return the address of a new variable."""
        name = f"%{self.f.name()}"
        self.variables.append(f"  {name} = alloca {type}")
        return name

    def product(self, loops: Sequence[int]) -> str:
        """Emit the total number of iterations of some loops."""
        total = "1"
        for loop in loops:
            total = self.sizes[loop] if total == "1" else self.f.emit_value(f"mul i64 {total}, {self.sizes[loop]}")
        return total

    def rows(self, loops: Sequence[int], bases: Bases, begin: str, end: str, body: Callable[[Bases], None]) -> None:
        """Emit a loop over the iterations of ``loops`` from ``begin`` to ``end``. The last of the loops is the
        fastest."""
        f, tag = self.f, self.f.name()
        at = self.counter(begin)
        indices = self.indices(loops, begin)
        now = self.test(at, end, tag)
        body(self.moved(bases, loops, indices))
        f.emit(f"store i64 {f.emit_value(f'add i64 {now}, 1')}, ptr {at}")
        self._count(loops, indices, tag)

    def segments(
        self,
        loops: Sequence[int],
        bases: Bases,
        begin: str,
        end: str,
        body: Callable[[Bases, str, str, str], None],
    ) -> None:
        """Emit a loop over the rows along the last of ``loops``, from iteration ``begin`` to ``end``. The first and the
        last row may be partial. ``body`` takes the address of the row, the column, the number of elements, and the
        iteration."""
        f, inner = self.f, self.sizes[loops[-1]]
        if len(loops) == 1:
            body(bases, begin, f.emit_value(f"sub i64 {end}, {begin}"), begin)
            return
        tag = f.name()
        at, column = self.counter(begin), self.variable("i64")
        f.emit(f"store i64 {f.emit_value(f'urem i64 {begin}, {inner}')}, ptr {column}")
        indices = self.indices(loops[:-1], f.emit_value(f"udiv i64 {begin}, {inner}"))
        now = self.test(at, end, tag)
        start = f.emit_value(f"load i64, ptr {column}")
        to_row_end = f.emit_value(f"sub i64 {inner}, {start}")
        to_end = f.emit_value(f"sub i64 {end}, {now}")
        length = f.call("i64", "llvm.umin.i64", ("i64", to_row_end), ("i64", to_end))
        body(self.moved(bases, loops[:-1], indices), start, length, now)
        f.emit(f"store i64 {f.emit_value(f'add i64 {now}, {length}')}, ptr {at}")
        f.emit(f"store i64 0, ptr {column}")
        self._count(loops[:-1], indices, tag)

    def nested(self, loops: Sequence[int], bases: Bases, body: Callable[[Bases, str], None], done: str = "0") -> None:
        """Emit nested ``loops``. ``body`` takes the addresses of the accesses, and the index of the iteration."""
        self.unrolled(loops, bases, lambda inner, number, _: body(inner, number), 1, done)

    def unrolled(
        self,
        loops: Sequence[int],
        bases: Bases,
        body: Callable[[Bases, str, int], None],
        copies: int,
        done: str = "0",
    ) -> None:
        """Emit nested ``loops``, the innermost unrolled: ``copies`` iterations at a time. ``body`` also takes the
        number of the copy."""
        if not loops:
            body(bases, done, 0)
            return
        f, loop = self.f, loops[0]

        def iterations(first: str, count: int) -> None:
            for copy in range(count):
                now = first if copy == 0 else f.emit_value(f"add i64 {first}, {copy}")
                number = now
                if done != "0":
                    number = f.emit_value(f"add i64 {f.emit_value(f'mul i64 {done}, {self.sizes[loop]}')}, {now}")
                moved = list(bases)
                for index, access in enumerate(self.nest.accesses):
                    if not access.is_invariant:
                        step = f.emit_value(f"mul i64 {now}, {self.strides[index][loop]}")
                        moved[index] = f.emit_value(f"getelementptr i8, ptr {bases[index]}, i64 {step}")
                if len(loops) > 1:
                    self.unrolled(loops[1:], moved, body, copies, number)
                else:
                    body(moved, number, copy)

        widths = sorted({copies, 1}, reverse=True) if len(loops) == 1 else [1]
        self.blocks(self.sizes[loop], widths, iterations)

    def vectors(
        self, length: str, widest: int, body: Callable[[str, str | None, int], None], narrower: int = 1
    ) -> None:
        """Emit a loop over ``length`` elements by vectors: ``widest`` vectors at a time, then ``narrower``, then one,
        then one under a mask. ``body`` takes the element, the mask, and the number of vectors."""
        f, lanes = self.f, self.lanes
        tag = f.name()
        at = self.counter("0")
        for ways in sorted({widest, narrower, 1}, reverse=True):
            whole = f.emit_value(f"and i64 {length}, {-lanes * ways}") if lanes * ways > 1 else length
            now = self.test(at, whole, f"{ways}.{tag}")
            body(now, None, ways)
            f.emit(f"store i64 {f.emit_value(f'add i64 {now}, {ways * lanes}')}, ptr {at}")
            f.emit(f"br label %test.{ways}.{tag}")
            f.label(f"done.{ways}.{tag}")
        if lanes > 1:
            tail, over = f"tail.{tag}", f"over.{tag}"
            now = f.emit_value(f"load i64, ptr {at}")
            f.emit(f"br i1 {f.emit_value(f'icmp ult i64 {now}, {length}')}, label %{tail}, label %{over}")
            f.label(tail)
            left = f.emit_value(f"trunc i64 {f.emit_value(f'sub i64 {length}, {now}')} to i32")
            count = ", ".join(f"i32 {lane}" for lane in range(lanes))
            mask = f.emit_value(f"icmp ult <{lanes} x i32> <{count}>, {spread(f, left, 'i32', lanes)}")
            body(now, mask, 1)
            f.emit(f"br label %{over}")
            f.label(over)

    def blocks(self, length: str, widths: Sequence[int], body: Callable[[str, int], None]) -> None:
        """Emit a loop over ``length`` steps in blocks of ``widths``, powers of two in descending order that end with 1.
        ``body`` takes the first step of a block, and its width."""
        f, at, tag = self.f, self.counter("0"), self.f.name()
        for width in widths:
            whole = f.emit_value(f"and i64 {length}, {-width}") if width > 1 else length
            now = self.test(at, whole, f"{width}.{tag}")
            body(now, width)
            f.emit(f"store i64 {f.emit_value(f'add i64 {now}, {width}')}, ptr {at}")
            f.emit(f"br label %test.{width}.{tag}")
            f.label(f"done.{width}.{tag}")

    # ------------------------------------------------------------------------------------------------------- the parts

    def counter(self, begin: str) -> str:
        """Return the address of a new i64 variable that starts at ``begin``."""
        at = self.variable("i64")
        self.f.emit(f"store i64 {begin}, ptr {at}")
        return at

    def test(self, at: str, end: str, tag: str) -> str:
        """Emit the head of a loop that runs while the variable at ``at`` is below ``end``; return its value."""
        f = self.f
        f.emit(f"br label %test.{tag}")
        f.label(f"test.{tag}")
        now = f.emit_value(f"load i64, ptr {at}")
        f.emit(f"br i1 {f.emit_value(f'icmp ult i64 {now}, {end}')}, label %body.{tag}, label %done.{tag}")
        f.label(f"body.{tag}")
        return now

    def indices(self, loops: Sequence[int], row: str) -> list[str]:
        """Return variables that hold the index in each of ``loops`` for iteration ``row`` of all of them."""
        f = self.f
        indices = [self.variable("i64") for _ in loops]
        for number in range(len(loops) - 1, -1, -1):
            size = self.sizes[loops[number]]
            if number:
                f.emit(f"store i64 {f.emit_value(f'urem i64 {row}, {size}')}, ptr {indices[number]}")
                row = f.emit_value(f"udiv i64 {row}, {size}")
            else:
                f.emit(f"store i64 {row}, ptr {indices[0]}")
        return indices

    def moved(self, bases: Bases, loops: Sequence[int], indices: Sequence[str]) -> Bases:
        """Return ``bases`` advanced to ``indices`` of ``loops``."""
        f, moved = self.f, []
        values = [f.emit_value(f"load i64, ptr {index}") for index in indices]
        for base, strides, access in zip(bases, self.strides, self.nest.accesses, strict=True):
            if not access.is_fixed:
                for loop, value in zip(loops, values, strict=True):
                    base = f.emit_value(
                        f"getelementptr i8, ptr {base}, i64 {f.emit_value(f'mul i64 {value}, {strides[loop]}')}"
                    )
            moved.append(base)
        return moved

    def _count(self, loops: Sequence[int], indices: Sequence[str], tag: str) -> None:
        """Emit the increment of the loop indices, the last of them fastest, and the branch to the next iteration."""
        f = self.f
        for number in range(len(loops) - 1, -1, -1):
            value = f.emit_value(f"add i64 {f.emit_value(f'load i64, ptr {indices[number]}')}, 1")
            is_over = f.emit_value(f"icmp eq i64 {value}, {self.sizes[loops[number]]}")
            f.emit(f"store i64 {f.emit_value(f'select i1 {is_over}, i64 0, i64 {value}')}, ptr {indices[number]}")
            f.emit(f"br i1 {is_over}, label %carry{number}.{tag}, label %test.{tag}")
            f.label(f"carry{number}.{tag}")
        f.emit(f"br label %test.{tag}")
        f.label(f"done.{tag}")
