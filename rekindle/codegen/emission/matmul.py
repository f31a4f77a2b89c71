"""Matrix products as functions: tiles of the result stay in registers during the loop over ``k``.

If vectors extend along ``k``, each element of a tile is accumulated in a vector. At the end, the lanes of these vectors
are summed pairwise, so that the sums of several become one vector. If vectors extend along ``n``, a vector holds as
many elements of the result as it has lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rekindle.codegen.emission.expressions import multiply_add
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.emission.loop_control import Bases, LoopControl
from rekindle.codegen.emission.memory import MemoryAccess, load_one, spread
from rekindle.codegen.emission.vector_types import element_type, vector
from rekindle.codegen.llvm.optimization import PREOPTIMIZED
from rekindle.codegen.llvm.target import Target
from rekindle.codegen.loop_ir.nodes import MatmulNest
from rekindle.codegen.loop_ir.scalar_types import ScalarType

_TILE: Final = 4
"""Number of rows and columns of a tile with many registers; half as many rows with few."""
_ROW_VECTORS: Final = {512: 16, 256: 8, 128: 8}
"""Number of vectors of a row whose sums are computed together, by the size of a register in bits: more than the latency
of a multiply-add times the units, as far as registers hold them."""
_SUMMANDS: Final = 128
"""Number of products that are summed before the sum is added to the total: the rounding error grows with the length of
a sum."""
_A, _B, _OUT = range(3)


def product_name(nest: MatmulNest) -> str:
    """Return the name of the function that computes matrix products of the kind of ``nest``."""
    direction, rows = "across" if nest.vectorizes_outer else "dots", "row" if nest.is_row else "rows"
    return f"product.{direction}.{rows}.{nest.rank}.{nest.accesses[_OUT].scalar}"


def product_module(nest: MatmulNest, target: Target) -> str:
    """Return the LLVM IR of the function of :func:`product_name`, which all kernels share: ``void(ptr a, ptr b, ptr
    out, ptr parameters)``."""
    module = ModuleBuilder()
    _ProductWriter(module, nest, target).write()
    declarations = "\n".join(module.declarations[name] for name in sorted(module.declarations))
    return "\n\n".join([PREOPTIMIZED, declarations, *module.definitions, "!0 = !{}"]) + "\n"


@dataclass(slots=True)
class _ProductWriter:
    module: ModuleBuilder
    nest: MatmulNest
    target: Target
    f: FunctionBuilder = field(init=False)
    walks: LoopControl = field(init=False)
    memory: MemoryAccess = field(init=False)
    lanes: int = field(init=False)
    bases: Bases = field(default_factory=list)

    def __post_init__(self) -> None:
        self.f = FunctionBuilder(self.module)
        self.lanes = self.target.vector_bits // self.scalar.bits
        f, rank = self.f, self.nest.rank
        sizes = [self._parameter(loop) for loop in range(rank)]
        strides, at = [], rank
        for pointer in ("%a", "%b", "%out"):
            self.bases.append(f.emit_value(f"getelementptr i8, ptr {pointer}, i64 {self._parameter(at)}"))
            strides.append([self._parameter(at + 1 + loop) for loop in range(rank)])
            at += 1 + rank
        self.walks = LoopControl(f, self.nest, self.lanes, sizes, strides)
        self.memory = MemoryAccess(f, self.nest, self.lanes, [each[rank - 1] for each in strides])

    @property
    def scalar(self) -> ScalarType:
        return self.nest.accesses[_OUT].scalar

    @property
    def _type(self) -> str:
        return vector(element_type(self.scalar), self.lanes)

    def _parameter(self, index: int) -> str:
        place = self.f.emit_value(f"getelementptr i64, ptr %parameters, i64 {index}")
        return self.f.emit_value(f"load i64, ptr {place}, align 8, !invariant.load !0")

    def write(self) -> None:
        """Add the function to the module."""
        batch = range(self.nest.rank - 3)
        matrices = self.walks.product(batch)
        self.walks.rows(batch, self.bases, "0", matrices, self._across if self.nest.vectorizes_outer else self._dots)
        self.f.emit("ret void")
        head = f"define void @{product_name(self.nest)}(ptr %a, ptr %b, ptr %out, ptr %parameters) {{"
        self.module.definitions.append("\n".join([head, "entry:", *self.walks.variables, *self.f.lines, "}"]))

    def _rows(self) -> Sequence[int]:
        """Return the numbers of rows of a tile, the largest first; the last is 1."""
        if self.nest.is_row:
            return (1,)
        return (_TILE, 1) if self.target.has("avx512f") else (_TILE // 2, 1)

    def _lines(self, base: str, access: int, loop: int, start: str, count: int) -> list[str]:
        """Emit the addresses of ``count`` rows or columns of a matrix, from ``start`` on."""
        stride = self.walks.strides[access][loop]
        line = self.f.emit_value(f"getelementptr i8, ptr {base}, i64 {self.f.emit_value(f'mul i64 {start}, {stride}')}")
        found = [line]
        for _ in range(count - 1):
            line = self.f.emit_value(f"getelementptr i8, ptr {line}, i64 {stride}")
            found.append(line)
        return found

    def _zeros(self, count: int) -> list[str]:
        """Emit ``count`` accumulators, initialized to zero; return their addresses."""
        places = [self.walks.variable(self._type) for _ in range(count)]
        for place in places:
            self.f.emit(f"store {self._type} zeroinitializer, ptr {place}")
        return places

    def _add(self, place: str, a: str, b: str) -> None:
        known = self.f.emit_value(f"load {self._type}, ptr {place}")
        found = multiply_add(self.f, self.target.has("fma"), element_type(self.scalar), self.lanes, a, b, known)
        self.f.emit(f"store {self._type} {found}, ptr {place}")

    def _flush(self, total: str, place: str) -> str:
        """Emit the addition of a sum to the total, and reset the sum; return the total."""
        found = self.f.emit_value(f"load {self._type}, ptr {place}")
        known = self.f.emit_value(f"load {self._type}, ptr {total}")
        value = self.f.emit_value(f"fadd {self._type} {known}, {found}")
        self.f.emit(f"store {self._type} {value}, ptr {total}")
        self.f.emit(f"store {self._type} zeroinitializer, ptr {place}")
        return value

    # ---------------------------------------------------------------------------------------------------------- along n

    def _across(self, bases: Bases) -> None:
        m, n, k = range(self.nest.rank - 3, self.nest.rank)
        f, walks = self.f, self.walks
        parts = f.emit_value(f"udiv i64 {walks.sizes[k]}, {_SUMMANDS}")
        done = f.emit_value(f"mul i64 {parts}, {_SUMMANDS}")
        rest = f.emit_value(f"sub i64 {walks.sizes[k]}, {done}")
        widest = _ROW_VECTORS[self.target.vector_bits] if self.nest.is_row else _TILE

        def block(row: str, rows: int) -> None:
            lines = self._lines(bases[_A], _A, m, row, rows)
            written = self._lines(bases[_OUT], _OUT, m, row, rows)

            def columns(at: str, mask: str | None, ways: int) -> None:
                sums = self._zeros(rows * ways)
                totals = self._zeros(rows * ways)
                places = [at, *(f.emit_value(f"add i64 {at}, {way * self.lanes}") for way in range(1, ways))]

                def step(now: str) -> None:
                    moved = f.emit_value(f"mul i64 {now}, {walks.strides[_B][k]}")
                    start = f.emit_value(f"getelementptr i8, ptr {bases[_B]}, i64 {moved}")
                    right = [self.memory.load(_B, start, place, mask) for place in places]
                    along = f.emit_value(f"mul i64 {now}, {walks.strides[_A][k]}")
                    for number, line in enumerate(lines):
                        one = load_one(f, self.scalar, f.emit_value(f"getelementptr i8, ptr {line}, i64 {along}"))
                        left = spread(f, one, element_type(self.scalar), self.lanes)
                        for way, value in enumerate(right):
                            self._add(sums[number * ways + way], left, value)

                def part(number: str, _: int) -> None:
                    first = f.emit_value(f"mul i64 {number}, {_SUMMANDS}")
                    walks.blocks(str(_SUMMANDS), (1,), lambda now, _: step(f.emit_value(f"add i64 {first}, {now}")))
                    for total, found in zip(totals, sums, strict=True):
                        self._flush(total, found)

                walks.blocks(parts, (1,), part)
                walks.blocks(rest, (1,), lambda now, _: step(f.emit_value(f"add i64 {done}, {now}")))
                for number, line in enumerate(written):
                    for way, place in enumerate(places):
                        value = self._flush(totals[number * ways + way], sums[number * ways + way])
                        self.memory.store(_OUT, line, value, place, mask)

            walks.vectors(walks.sizes[n], widest, columns, _TILE)

        walks.blocks(walks.sizes[m], self._rows(), block)

    # ---------------------------------------------------------------------------------------------------------- along k

    def _dots(self, bases: Bases) -> None:
        m, n, k = range(self.nest.rank - 3, self.nest.rank)
        walks = self.walks
        widest = _TILE * (_TILE if self.target.has("avx512f") else _TILE // 2) if self.nest.is_row else _TILE

        def block(row: str, rows: int) -> None:
            left = self._lines(bases[_A], _A, m, row, rows)
            written = self._lines(bases[_OUT], _OUT, m, row, rows)

            def tile(column: str, columns: int) -> None:
                right = self._lines(bases[_B], _B, n, column, columns)
                sums = self._zeros(rows * columns)

                def step(at: str, mask: str | None, _: int) -> None:
                    others = [self.memory.load(_B, line, at, mask) for line in right]
                    for number, line in enumerate(left):
                        value = self.memory.load(_A, line, at, mask)
                        for other, found in enumerate(others):
                            self._add(sums[number * columns + other], value, found)

                walks.vectors(walks.sizes[k], 1, step)
                self._store_sums(sums, written, column, columns)

            walks.blocks(walks.sizes[n], (widest, 1), tile)

        walks.blocks(walks.sizes[m], self._rows(), block)

    def _store_sums(self, sums: list[str], lines: list[str], column: str, columns: int) -> None:
        """Emit the horizontal sums of the accumulators of a tile, and the stores of ``columns`` elements of each
        row."""
        f, element, size = self.f, element_type(self.scalar), self.scalar.size
        values = [f.emit_value(f"load {self._type}, ptr {place}") for place in sums]
        at = 0
        for first in range(0, len(values), self.lanes):
            part = values[first : first + self.lanes]
            found, width = self._folded(part), len(part)
            done = 0
            while done < width:
                line, offset = divmod(at + done, columns)
                count = min(columns - offset, width - done)
                value = found
                if count < width:
                    lanes = ", ".join(f"i32 {lane}" for lane in range(done, done + count))
                    whole = vector(element, width)
                    value = f.emit_value(
                        f"shufflevector <{width} x {element}> {found}, {whole} poison, <{count} x i32> <{lanes}>"
                    )
                start = f.emit_value(f"getelementptr {element}, ptr {lines[line]}, i64 {column}")
                place = f.emit_value(f"getelementptr {element}, ptr {start}, i64 {offset}") if offset else start
                f.emit(f"store <{count} x {element}> {value}, ptr {place}, align {size}")
                done += count
            at += width

    def _folded(self, values: list[str]) -> str:
        """Emit one vector with the horizontal sum of each of ``values``, whose number is a power of two."""
        width, length = self.lanes, self.lanes
        while length > 1:
            half = length // 2
            starts = range(0, width, length)
            low = [lane for start in starts for lane in range(start, start + half)]
            if len(values) > 1:
                values = [
                    self._sum(a, b, width, [*low, *(width + lane for lane in low)], half)
                    for a, b in zip(values[::2], values[1::2], strict=True)
                ]
            else:
                values = [self._sum(values[0], "poison", width, low, half)]
                width = half * len(starts)
            length = half
        return values[0]

    def _sum(self, a: str, b: str, width: int, low: list[int], half: int) -> str:
        """Emit the sum of two halves: the lanes ``low`` of two vectors, plus the lanes that are ``half`` further on."""
        element = element_type(self.scalar)
        whole = vector(element, width)
        parts = []
        for step in (0, half):
            lanes = ", ".join(f"i32 {lane + step}" for lane in low)
            parts.append(self.f.emit_value(f"shufflevector {whole} {a}, {whole} {b}, <{len(low)} x i32> <{lanes}>"))
        return self.f.emit_value(f"fadd <{len(low)} x {element}> {parts[0]}, {parts[1]}")
