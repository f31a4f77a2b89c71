"""Launches of a nest on a GPU: the choice of its function, and of the numbers of blocks and threads."""

from __future__ import annotations

from typing import Final, cast

from rekindle.codegen.cuda.geometry import (
    COLUMN_ROWS,
    COLUMNS,
    MAX_ROW_THREADS,
    REGISTER_VECTORS,
    THREADS,
    VECTOR_BYTES,
    fits_registers,
    is_splittable,
    vector_lanes,
)
from rekindle.codegen.cuda.launcher_builder import LauncherBuilder
from rekindle.codegen.cuda.thread_ir import WARP
from rekindle.codegen.emission.full_reductions import slots_of
from rekindle.codegen.emission.nests import expressions_of
from rekindle.codegen.emission.reductions import SLOT
from rekindle.codegen.kernel_status import KernelStatus
from rekindle.codegen.loop_ir.nodes import AccessStride, LoopNest

MAX_BLOCKS: Final = 1024
"""Maximum number of blocks that share a full reduction."""
LONG_ROW: Final = 1 << 16
"""Rows with more elements are left to PyTorch if there are fewer than ``MANY_ROWS``, since a row has one block."""
MANY_ROWS: Final = 64
"""Number of rows that use enough of a GPU, however long they are."""
FEW_VECTORS: Final = 64
"""Maximum number of vectors of a row for which each thread has one."""
NARROW_TILE: Final = 8
"""Number of adjacent threads in a block if the length of a row is not a multiple of a warp."""
MIN_SHARED_ROWS: Final = 64
"""Minimum number of rows per block, if several share the rows."""


class NestLaunch:
    """Emitter of the launches of one nest's device functions."""

    def __init__(self, launcher: LauncherBuilder, nest: LoopNest, number: int, first: int) -> None:
        self.launcher = launcher
        self.f = launcher.f
        self.nest = nest
        self.number = number
        self.first = first
        self.sizes = [launcher.parameter(first + loop) for loop in range(nest.rank)]
        self.lanes = vector_lanes(nest)

    def write(self) -> None:
        nest = self.nest
        if nest.is_full_reduction:
            self._full_reduction()
        elif not nest.reduction_rank:
            self._elementwise()
        elif nest.vectorizes_outer:
            self._columns()
        else:
            self._rows()

    def _value(self, what: str) -> str:
        return self.f.emit_value(what)

    def _product(self, loops: range) -> str:
        total = "1"
        for loop in loops:
            total = self.sizes[loop] if total == "1" else self._value(f"mul i64 {total}, {self.sizes[loop]}")
        return total

    def _ceiling(self, count: str, of: str | int) -> str:
        """Emit ``count / of``, rounded up."""
        less = self._value(f"sub i64 {of}, 1")
        return self._value(f"udiv i64 {self._value(f'add i64 {count}, {less}')}, {of}")

    def _is_aligned(self) -> str:
        """Emit a test whether all rows are aligned to vectors, and consist of whole vectors."""
        f, nest = self.f, self.nest
        loop = nest.vector_loop
        rest = self._value(f"and i64 {self.sizes[loop]}, {self.lanes - 1}")
        at = self.first + nest.rank
        for number, access in enumerate(nest.accesses):
            if access.step is AccessStride.NEXT:
                place = self._value(f"getelementptr ptr, ptr {self.launcher.pointers}, i64 {access.buffer}")
                address = self._value(f"ptrtoint ptr {self._value(f'load ptr, ptr {place}')} to i64")
                words = [self._value(f"add i64 {address}, {self.launcher.parameter(at)}")]
                words += [self.launcher.parameter(at + 1 + each) for each in range(nest.rank) if each != loop]
                bits = min(access.scalar.size * self.lanes, VECTOR_BYTES) - 1
                words += [self.launcher.parameter(each) for each in self._lookup_strides(number)]
                for word in words:
                    rest = self._value(f"or i64 {rest}, {self._value(f'and i64 {word}, {bits}')}")
            at += 1 + nest.rank
        return f.emit_value(f"icmp eq i64 {rest}, 0")

    def _lookup_strides(self, access: int) -> list[int]:
        """Return the indices of the parameters that hold the strides, in bytes, of the dimensions of ``access`` that
        index tensors select."""
        given = self.first + self.nest.rank + len(self.nest.accesses) * (1 + self.nest.rank)
        strides = []
        for expression in expressions_of(self.nest):
            if expression.kind == "lookup" and expression.payload == access:
                *_, stride = expression.operands
                strides.append(given + cast("int", stride.payload))
        return strides

    def _variant(self, condition: str, name: str, other: str) -> str:
        numbers = self.launcher.numbers
        own, others = (numbers[f"nest{self.number}_{each}"] for each in (name, other))
        return self._value(f"select i1 {condition}, i64 {own}, i64 {others}")

    def _choice(self) -> tuple[str, str, str]:
        """Emit the choice between the vector and the scalar function. Return whether vectors are used, the index of the
        function, and its number of lanes."""
        if self.lanes == 1:
            return "true", str(self.launcher.numbers[f"nest{self.number}_scalar"]), "1"
        aligned = self._is_aligned()
        lanes = self._value(f"select i1 {aligned}, i64 {self.lanes}, i64 1")
        return aligned, self._variant(aligned, "vector", "scalar"), lanes

    def _elementwise(self) -> None:
        _, function, lanes = self._choice()
        vectors = self._value(f"udiv i64 {self.sizes[-1]}, {lanes}")
        if self.nest.rank == 1:
            self.launcher.launch(function, self._ceiling(vectors, THREADS), THREADS, 1)
            return
        width = self._tile_width(vectors)
        height = self._value(f"udiv i64 {THREADS}, {width}")
        rows = self._product(range(self.nest.rank - 1))
        blocks = self._value(f"mul i64 {self._ceiling(vectors, width)}, {self._ceiling(rows, height)}")
        self.launcher.launch(function, blocks, width, height)

    def _tile_width(self, vectors: str) -> str:
        """Emit the number of adjacent threads that compute vectors of a row: a warp, or fewer if many of its threads
        would be idle."""
        padded = self._value(f"mul i64 {self._ceiling(vectors, WARP)}, {WARP}")
        most = self._value(f"add i64 {vectors}, {self._value(f'lshr i64 {vectors}, 3')}")
        is_full = self._value(f"icmp ule i64 {padded}, {most}")
        power = self._power_of_two(vectors)
        narrow = self.f.call("i64", "llvm.umin.i64", ("i64", power), ("i64", str(NARROW_TILE)))
        return self._value(f"select i1 {is_full}, i64 {WARP}, i64 {narrow}")

    def _power_of_two(self, count: str) -> str:
        """Emit the smallest power of two that is at least ``count``."""
        least = self.f.call("i64", "llvm.umax.i64", ("i64", count), ("i64", "2"))
        less = self._value(f"sub i64 {least}, 1")
        zeros = self.f.call("i64", "llvm.ctlz.i64", ("i64", less), ("i1", "false"))
        power = self._value(f"shl i64 1, {self._value(f'sub i64 64, {zeros}')}")
        return self._value(f"select i1 {self._value(f'icmp ule i64 {count}, 1')}, i64 1, i64 {power}")

    def _rows(self) -> None:
        """Emit the launch of a row reduction, with the smallest power of two of threads per row, at least a warp, with
        which each thread holds at most the maximum number of vectors. If a warp suffices, a block has several rows."""
        f = self.f
        aligned, function, lanes = self._choice()
        length = self.sizes[-1]
        vectors = self._ceiling(length, lanes)
        are_few = self._value(f"icmp ule i64 {vectors}, {FEW_VECTORS}")
        each_thread = self._value(f"select i1 {are_few}, i64 {REGISTER_VECTORS[0]}, i64 {REGISTER_VECTORS[-1]}")
        wanted = self._ceiling(vectors, each_thread)
        threads = f.call("i64", "llvm.umax.i64", ("i64", self._power_of_two(wanted)), ("i64", str(WARP)))
        threads = f.call("i64", "llvm.umin.i64", ("i64", threads), ("i64", str(MAX_ROW_THREADS)))
        rows = self._product(range(self.nest.rank - self.nest.reduction_rank))
        is_warp = self._value(f"icmp eq i64 {threads}, {WARP}")
        each = self._value(f"select i1 {is_warp}, i64 {THREADS // WARP}, i64 1")
        blocks = self._ceiling(rows, each)
        if fits_registers(self.nest):
            most = self._value(f"mul i64 {threads}, {each_thread}")
            fits = self._value(f"and i1 {aligned}, {self._value(f'icmp ule i64 {vectors}, {most}')}")
            registers = self._variant(are_few, *(f"registers{count}" for count in REGISTER_VECTORS))
            function = self._value(f"select i1 {fits}, i64 {registers}, i64 {function}")
        self._leave_to_operators_if_long(LONG_ROW, rows)
        self.launcher.launch(function, blocks, threads, each)

    def _folded(self) -> range:
        loops = self.nest.reduction_loops
        return range(loops.start, loops.stop)

    def _columns(self) -> None:
        _, function, lanes = self._choice()
        loop = self.nest.vector_loop
        tiles = self._ceiling(self._value(f"udiv i64 {self.sizes[loop]}, {lanes}"), COLUMNS)
        blocks = self._value(f"mul i64 {self._product(range(loop))}, {tiles}")
        if is_splittable(self.nest):
            self._split_columns(blocks, function)
            return
        self._leave_to_operators_if_long(LONG_ROW // COLUMNS, blocks)
        self.launcher.launch(function, blocks, COLUMNS, COLUMN_ROWS)

    def _split_columns(self, blocks: str, function: str) -> None:
        """Emit the launches of a column reduction. If there are few blocks, several divide the rows of the same
        columns."""
        f, nest, launcher = self.f, self.nest, self.launcher
        rows = self.sizes[nest.reduction_loops.start]
        tag = f.name()
        at_least = f.call("i64", "llvm.umax.i64", ("i64", blocks), ("i64", "1"))
        wanted = self._value(f"udiv i64 {MAX_BLOCKS}, {at_least}")
        most = self._ceiling(rows, MIN_SHARED_ROWS)
        shares = f.call("i64", "llvm.umin.i64", ("i64", wanted), ("i64", most))
        is_one = self._value(f"icmp ule i64 {shares}, 1")
        f.emit(f"br i1 {is_one}, label %whole.{tag}, label %split.{tag}")
        f.label(f"whole.{tag}")
        launcher.launch(function, blocks, COLUMNS, COLUMN_ROWS)
        f.emit(f"br label %launched.{tag}")
        f.label(f"split.{tag}")
        columns = self._product(range(nest.vector_loop + 1))
        results = self._value(f"mul i64 {columns}, {shares}")
        size = self._value(f"mul i64 {results}, {SLOT * len(nest.phases[0].reductions)}")
        _, parts_at = launcher.buffer(size)
        count_at = self._value("alloca i64")
        f.emit(f"store i64 {shares}, ptr {count_at}")
        split = function
        if self.lanes > 1:
            scalar, vector = (launcher.numbers[f"nest{self.number}_{each}"] for each in ("scalar", "split_scalar"))
            split = self._value(f"add i64 {function}, {vector - scalar}")
        else:
            split = str(launcher.numbers[f"nest{self.number}_split_scalar"])
        shared = self._value(f"mul i64 {blocks}, {shares}")
        launcher.launch(split, shared, COLUMNS, COLUMN_ROWS, [parts_at, count_at])
        combine = launcher.numbers[f"nest{self.number}_combine"]
        launcher.launch(combine, self._ceiling(columns, THREADS), THREADS, 1, [parts_at, count_at])
        f.emit(f"br label %launched.{tag}")
        f.label(f"launched.{tag}")

    def _leave_to_operators_if_long(self, most: int, blocks: str) -> None:
        """Emit a return to the caller, which runs the operators, if a row has more than ``most`` elements and there are
        few ``blocks``."""
        is_long = self._value(f"icmp ugt i64 {self._product(self._folded())}, {most}")
        condition = self._value(f"and i1 {is_long}, {self._value(f'icmp ult i64 {blocks}, {MANY_ROWS}')}")
        f, tag = self.f, self.f.name()
        f.emit(f"br i1 {condition}, label %leave.{tag}, label %launch.{tag}")
        f.label(f"leave.{tag}")
        f.emit(f"store i64 {KernelStatus.DECLINED.value}, ptr %status")
        f.emit("br label %free")
        f.label(f"launch.{tag}")

    def _full_reduction(self) -> None:
        f, nest, launcher = self.f, self.nest, self.launcher
        slots = sum(map(slots_of, nest.phases))
        most = max(*map(slots_of, nest.phases), 1)
        known, known_at = launcher.buffer(str(max(slots, 1) * SLOT + most * SLOT * MAX_BLOCKS))
        parts = self._value(f"getelementptr i8, ptr {known}, i64 {max(slots, 1) * SLOT}")
        parts_at, count_at = self._value("alloca ptr"), self._value("alloca i64")
        f.emit(f"store ptr {parts}, ptr {parts_at}")
        aligned = self._is_aligned() if self.lanes > 1 else "false"
        total = self._product(range(nest.rank))
        wanted = self._ceiling(total, THREADS * REGISTER_VECTORS[-1] * self.lanes)
        blocks = f.call("i64", "llvm.umin.i64", ("i64", wanted), ("i64", str(MAX_BLOCKS)))
        f.emit(f"store i64 {blocks}, ptr {count_at}")
        for index, phase in enumerate(nest.phases):
            if self.lanes > 1:
                function = self._variant(aligned, f"phase{index}_vector", f"phase{index}_scalar")
            else:
                function = str(launcher.numbers[f"nest{self.number}_phase{index}_scalar"])
            launcher.launch(function, blocks, THREADS, 1, [known_at, parts_at])
            if phase.reductions:
                join = launcher.numbers[f"nest{self.number}_join{index}"]
                launcher.launch(join, "1", THREADS, 1, [known_at, parts_at, count_at])
