"""Emit LLVM IR of depthwise convolutions of channels-last images, with the borders handled in the kernel.

A tile of the result stays in registers: adjacent positions of a row, each with one or two vectors of channels. The
width of the kernel, the stride and the dilation along a row are known, so that a column of the image is loaded once
for all positions that it belongs to::

    for row of the kernel that is inside the image:
        for column of the image under the tile:
            for position, place of the kernel at this column: tile[position] += image[column] * weights[place]

A tile that reaches over the left or the right border reads zeros there, and writes positions outside the result to
memory that nothing reads. The residual and the activation follow as in
:mod:`rekindle.codegen.convolution.direct_ir`; cheap activations are applied in registers. Other sizes are read at run
time: one module serves all convolutions of a width, stride and dilation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rekindle.codegen.convolution.activations import HARDSWISH, RELU, RELU6
from rekindle.codegen.convolution.task_ir import VECTORS, TaskWriter, finished
from rekindle.codegen.emission.expressions import multiply_add
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.llvm.target import Target

_IN_REGISTERS: Final = (RELU6, HARDSWISH)
"""Activations that are applied before a tile is stored, besides ``relu``."""


class DepthwiseWord(IntEnum):
    """Parameters of a function: 64-bit words. Steps are in bytes."""

    IMAGE = 0
    RESIDUAL = 1
    """Null if no residual is added."""
    OUTPUT = 2
    WEIGHTS = 3
    BIAS = 4
    IMAGES = 5
    HEIGHT = 6
    WIDTH = 7
    OUTPUT_HEIGHT = 8
    OUTPUT_WIDTH = 9
    PIXEL = 10
    """Bytes from one position to the next: all channels."""
    KERNEL_ROWS = 11
    ROW_STRIDE = 12
    ROW_DILATION = 13
    TOP = 14
    LEFT = 15
    """Rows and columns of zeros before the image."""
    CHANNELS = 16
    BLOCKS = 17
    """Blocks of ``VECTORS`` whole vectors of channels; the channels after them come one vector at a time."""
    ACTIVATION = 18
    """The number of an :class:`~rekindle.codegen.convolution.activations.Activation`."""
    TASKS = 19
    """Rows of the result, of all images, once for each block and for each vector after the blocks."""


@dataclass(frozen=True, slots=True)
class RowShape:
    """Compile-time constants of a function: ``places`` is the width of the kernel, ``stride`` and ``dilation`` are
    those along a row."""

    places: int
    stride: int
    dilation: int

    def name(self) -> str:
        """Return the name of the function."""
        return f"depthwise{self.places}s{self.stride}d{self.dilation}"


def tile_of(target: Target) -> int:
    """Return the number of positions of a tile. With AVX-512, it is 7: images of usual networks have multiples of 7,
    and the 14 sums of two vectors of channels, 2 columns and the weights of a row fit into 32 registers. Else it is 4,
    for 16 registers."""
    return 7 if target.vector_bits == 512 else 4


def module_text(target: Target, shape: RowShape) -> str:
    """Return the LLVM IR of the function ``void(ptr words, ptr image, ptr residual, ptr output, i64 threads)``. Its
    arguments replace the words of the same names."""
    module = ModuleBuilder()
    _DepthwiseWriter(module, target, shape).write()
    return finished(module)


class _DepthwiseWriter(TaskWriter):
    """Writer of the functions of a module: rows of the result, and the tasks."""

    def __init__(self, module: ModuleBuilder, target: Target, shape: RowShape) -> None:
        arguments = (DepthwiseWord.IMAGE, DepthwiseWord.RESIDUAL, DepthwiseWord.OUTPUT)
        super().__init__(module, target, shape.name(), DepthwiseWord, arguments, DepthwiseWord.TASKS)
        self.shape = shape
        self.tile = tile_of(target)
        positions = range(self.tile)
        self.columns = sorted(
            {
                position * shape.stride + place * shape.dilation
                for position in positions
                for place in range(shape.places)
            }
        )
        """The columns of the image that a tile reads, from its first one on."""

    def write(self) -> None:
        self.activate()
        for vectors in (1, VECTORS):
            self._row(vectors)
        self._tasks()
        self.share()
        self.entry()
        self.launch()

    # ----------------------------------------------------------------------------------------------------------- tasks

    def _tasks(self) -> None:
        """Emit the loop over tasks from %begin to %end: blocks of channels, images, rows of the result."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        words = {word: self.word(word) for word in DepthwiseWord}
        image, weights, bias = map(self.pointer, (DepthwiseWord.IMAGE, DepthwiseWord.WEIGHTS, DepthwiseWord.BIAS))
        residual, output = map(self.pointer, (DepthwiseWord.RESIDUAL, DepthwiseWord.OUTPUT))
        has_residual = f.emit_value(f"icmp ne ptr {residual}, null")
        pixel, height = words[DepthwiseWord.PIXEL], words[DepthwiseWord.OUTPUT_HEIGHT]
        row_bytes = self.calculate("mul", words[DepthwiseWord.OUTPUT_WIDTH], pixel)
        input_row = self.calculate("mul", words[DepthwiseWord.WIDTH], pixel)
        image_bytes = self.calculate("mul", input_row, words[DepthwiseWord.HEIGHT])
        places = self.calculate("mul", words[DepthwiseWord.KERNEL_ROWS], self.shape.places * 4)
        rows = self.calculate("mul", words[DepthwiseWord.IMAGES], height)
        first_block = self.calculate("udiv", "%begin", rows)
        line = self.calculate("urem", "%begin", rows)
        first_image, first_row = (self.calculate(how, line, height) for how in ("udiv", "urem"))
        f.emit("br label %test")
        f.label("test")
        f.emit("%task = phi i64 [%begin, %entry], [%task.next, %next]")
        f.emit(f"%block = phi i64 [{first_block}, %entry], [%block.next, %next]")
        f.emit(f"%number = phi i64 [{first_image}, %entry], [%number.next, %next]")
        f.emit(f"%row = phi i64 [{first_row}, %entry], [%row.next, %next]")
        f.emit("%more = icmp ult i64 %task, %end")
        f.emit("br i1 %more, label %body, label %done")
        f.label("body")
        blocks = words[DepthwiseWord.BLOCKS]
        whole = f.call("i64", "llvm.umin.i64", ("i64", "%block"), ("i64", blocks))
        after = self.calculate("sub", "%block", whole)
        doubled = self.calculate("mul", whole, VECTORS)
        channel = self.calculate("mul", self.calculate("add", doubled, after), self.lanes)
        left = self.calculate("sub", words[DepthwiseWord.CHANNELS], channel)
        offset = self.calculate("mul", channel, 4)
        my_image = self.at(self.at(image, self.calculate("mul", "%number", image_bytes)), offset)
        my_weights = self.at(weights, self.calculate("mul", channel, places))
        my_bias = self.at(bias, offset)
        line = self.calculate("add", self.calculate("mul", "%number", height), "%row")
        place = self.calculate("add", self.calculate("mul", line, row_bytes), offset)
        my_output, beside = self.at(output, place), self.at(residual, place)
        my_residual = f.emit_value(f"select i1 {has_residual}, ptr {beside}, ptr null")
        top = self.calculate("mul", "%row", words[DepthwiseWord.ROW_STRIDE])
        first = self.calculate("sub", top, words[DepthwiseWord.TOP])
        given = (
            f"ptr %words, ptr {my_image}, ptr {my_weights}, ptr {my_bias}, ptr {my_residual}, ptr {my_output}, "
            f"i64 {first}, i64 {left}"
        )
        is_whole = f.emit_value(f"icmp ult i64 %block, {blocks}")
        f.emit(f"br i1 {is_whole}, label %double, label %single")
        for label, vectors in (("double", VECTORS), ("single", 1)):
            f.label(label)
            f.emit(f"call void @{self.name}.row{vectors}({given})")
            f.emit("br label %next")
        self._next_task(words)
        f.label("done")
        f.emit("ret void")
        self.define(f"{self.name}.tasks", "ptr %words, i64 %begin, i64 %end, i64 %thread")

    def _next_task(self, words: dict[DepthwiseWord, str]) -> None:
        """Emit the end of the loop: the numbers of the next row."""
        f, height = self.f, words[DepthwiseWord.OUTPUT_HEIGHT]
        f.label("next")
        f.emit("%task.next = add i64 %task, 1")
        f.emit("%row.after = add i64 %row, 1")
        f.emit(f"%is.last.row = icmp eq i64 %row.after, {height}")
        f.emit("%row.next = select i1 %is.last.row, i64 0, i64 %row.after")
        f.emit("%number.after = add i64 %number, 1")
        f.emit("%number.moved = select i1 %is.last.row, i64 %number.after, i64 %number")
        f.emit(f"%is.last.image = icmp eq i64 %number.moved, {words[DepthwiseWord.IMAGES]}")
        f.emit("%number.next = select i1 %is.last.image, i64 0, i64 %number.moved")
        f.emit("%block.after = add i64 %block, 1")
        f.emit("%block.next = select i1 %is.last.image, i64 %block.after, i64 %block")
        f.emit("br label %test")

    # ----------------------------------------------------------------------------------------------------------- a row

    def _row(self, vectors: int) -> None:
        """Emit the function of a row of the result: of ``VECTORS`` whole vectors of channels, or of one vector, which
        may be partial. ``%first`` is the row of the image under the first row of the kernel."""
        shape = self.shape
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        words = {word: self.word(word) for word in DepthwiseWord}
        pixel, width = words[DepthwiseWord.PIXEL], words[DepthwiseWord.WIDTH]
        zeros, unread = "%zeros", "%unread"
        for name in (zeros, unread):
            f.emit(f"{name} = alloca [{vectors} x {self.vector}], align {self.lanes * 4}")
        for vector in range(vectors):
            self.store("zeroinitializer", self.at(zeros, str(4 * self.lanes * vector)))
        masks = None
        if vectors == 1:
            masks = self.masks(f.call("i64", "llvm.umin.i64", ("i64", "%left"), ("i64", str(self.lanes))), 1)
        row_bytes = self.calculate("mul", width, pixel)
        begin, count = self._rows_inside(words)
        dilation = words[DepthwiseWord.ROW_DILATION]
        line = self.calculate("add", "%first", self.calculate("mul", begin, dilation))
        start = self.at("%image", self.calculate("mul", line, row_bytes))
        weights = self.at("%weights", self.calculate("mul", begin, shape.places * vectors * self.lanes * 4))
        step = self.calculate("mul", dilation, row_bytes)
        has_rows = f.emit_value(f"icmp sgt i64 {count}, 0")
        has_residual = f.emit_value("icmp ne ptr %residual, null")
        bias = [self.load(self.at("%bias", str(4 * self.lanes * vector))) for vector in range(vectors)]
        f.emit("br label %tiles")
        f.label("tiles")
        f.emit("%x = phi i64 [0, %entry], [%x.next, %next]")
        left = self.calculate("sub", self.calculate("mul", "%x", shape.stride), words[DepthwiseWord.LEFT])
        end = self.calculate("add", left, self.columns[-1] + 1)
        positions = self.calculate("sub", words[DepthwiseWord.OUTPUT_WIDTH], "%x")
        here = self.calculate("mul", "%x", pixel)
        output, residual = self.at("%output", here), self.at("%residual", here)
        conditions = (
            f"icmp sge i64 {left}, 0",
            f"icmp sle i64 {end}, {width}",
            f"icmp sge i64 {positions}, {self.tile}",
        )
        a, b, c = map(f.emit_value, conditions)
        both = f.emit_value(f"and i1 {a}, {b}")
        f.emit(f"br i1 {f.emit_value(f'and i1 {both}, {c}')}, label %inner, label %border")
        tile = _Tile(vectors, masks, bias, weights, start, step, count, has_rows, left, residual, has_residual, output)
        for tag in ("inner", "border"):
            f.label(tag)
            sums = self._sums(tag, tile, words)
            self._store(tag, tile, sums, positions, words)
        f.label("next")
        f.emit(f"%x.next = add i64 %x, {self.tile}")
        f.emit(f"%more = icmp slt i64 %x.next, {words[DepthwiseWord.OUTPUT_WIDTH]}")
        f.emit("br i1 %more, label %tiles, label %done")
        f.label("done")
        f.emit("ret void")
        parameters = (
            "ptr %words, ptr %image, ptr %weights, ptr %bias, ptr %residual, ptr %output, i64 %first, i64 %left"
        )
        self.define(f"{self.name}.row{vectors}", parameters, after="noinline ")

    def _rows_inside(self, words: dict[DepthwiseWord, str]) -> tuple[str, str]:
        """Emit the first row of the kernel that is inside the image, and the number of rows from there; less than 1 if
        there are none. Return both operands."""
        f, dilation = self.f, words[DepthwiseWord.ROW_DILATION]
        less = self.calculate("sub", dilation, 1)
        above = f.call("i64", "llvm.smax.i64", ("i64", self.calculate("sub", "0", "%first")), ("i64", "0"))
        begin = self.calculate("sdiv", self.calculate("add", above, less), dilation)
        below = self.calculate("sub", words[DepthwiseWord.HEIGHT], "%first")
        end = self.calculate("sdiv", self.calculate("add", below, less), dilation)
        end = f.call("i64", "llvm.smin.i64", ("i64", end), ("i64", words[DepthwiseWord.KERNEL_ROWS]))
        return begin, self.calculate("sub", end, begin)

    def _sums(self, tag: str, tile: _Tile, words: dict[DepthwiseWord, str]) -> list[str]:
        """Emit the sums of a tile: for each position, its vectors."""
        f = self.f
        known = tile.bias * self.tile
        places = self._columns(tag, tile, words)
        types = ["ptr", "ptr", *[self.vector] * len(known)]

        def row(state: list[str], offset: str) -> list[str]:
            line, weights, *sums = state
            added = self._added(tag, tile, line, weights, places, sums)
            following = self.at(weights, str(self.shape.places * tile.vectors * self.lanes * 4))
            return [self.at(line, tile.step), following, *added]

        before, after = f"{tag}.before", f"{tag}.after"
        f.emit(f"br label %{before}")
        f.label(before)
        f.emit(f"br i1 {tile.has_rows}, label %{tag}.first, label %{after}")
        f.label(f"{tag}.first")
        _, _, *sums = self.loop(f"{tag}.rows", tile.count, "0", "0", types, [tile.start, tile.weights, *known], row)
        f.emit(f"br label %{after}")
        f.label(after)
        return [
            f.emit_value(f"phi {self.vector} [{bias}, %{before}], [{value}, %{tag}.rows.end]")
            for bias, value in zip(known, sums, strict=True)
        ]

    def _columns(self, tag: str, tile: _Tile, words: dict[DepthwiseWord, str]) -> list[tuple[str, str]]:
        """Emit the offset of each column in a row, in bytes, and at the border whether the column is inside the
        image."""
        f, found = self.f, []
        for column in self.columns:
            number = self.calculate("add", tile.left, column)
            inside = f.emit_value(f"icmp ult i64 {number}, {words[DepthwiseWord.WIDTH]}") if tag == "border" else ""
            found.append((self.calculate("mul", number, words[DepthwiseWord.PIXEL]), inside))
        return found

    def _added(
        self, tag: str, tile: _Tile, line: str, weights: str, places: Sequence[tuple[str, str]], sums: list[str]
    ) -> list[str]:
        """Emit ``sums`` plus the products of one row of the kernel; return the new sums."""
        f, shape, vectors = self.f, self.shape, tile.vectors
        factors = [self.load(self.at(weights, str(4 * self.lanes * each))) for each in range(shape.places * vectors)]
        found = list(sums)
        for column, (offset, inside) in zip(self.columns, places, strict=True):
            start = self.at(line, offset)
            if inside:
                start = f.emit_value(f"select i1 {inside}, ptr {start}, ptr %zeros")
            for vector in range(vectors):
                at = self.at(start, str(4 * self.lanes * vector))
                value = self.load(at) if tile.masks is None else self.masked_load(at, tile.masks[vector])
                for position in range(self.tile):
                    place, other = divmod(column - position * shape.stride, shape.dilation)
                    if other or not 0 <= place < shape.places:
                        continue
                    number, factor = position * vectors + vector, factors[place * vectors + vector]
                    has_fma = self.target.has("fma")
                    found[number] = multiply_add(f, has_fma, "float", self.lanes, value, factor, found[number])
        return found

    # ------------------------------------------------------------------------------------------------------- the result

    def _store(self, tag: str, tile: _Tile, sums: list[str], positions: str, words: dict[DepthwiseWord, str]) -> None:
        f, pixel = self.f, words[DepthwiseWord.PIXEL]
        offsets = [self.calculate("mul", pixel, position) for position in range(self.tile)]
        exists = [""] * self.tile
        if tag == "border":
            exists = [f.emit_value(f"icmp sgt i64 {positions}, {position}") for position in range(self.tile)]
        plain, adding = f"{tag}.plain", f"{tag}.adding"
        f.emit(f"br i1 {tile.has_residual}, label %{adding}, label %{plain}")
        f.label(adding)
        added = []
        for position, number, vector in self._each(tile.vectors):
            at = self._at(tile.residual, offsets[position], exists[position], "%zeros", vector)
            other = self.load(at) if tile.masks is None else self.masked_load(at, tile.masks[vector])
            added.append(f.emit_value(f"fadd {self.vector} {sums[number]}, {other}"))
        f.emit(f"br label %{plain}")
        f.label(plain)
        sums = [
            f.emit_value(f"phi {self.vector} [{known}, %{tag}.after], [{new}, %{adding}]")
            for known, new in zip(sums, added, strict=True)
        ]
        activation = words[DepthwiseWord.ACTIVATION]
        cases = " ".join(f"i64 {each.number}, label %{tag}.{each.name}" for each in _IN_REGISTERS)
        f.emit(f"switch i64 {activation}, label %{tag}.others [{cases}]")

        def store(values: list[str]) -> None:
            for position, number, vector in self._each(tile.vectors):
                at = self._at(tile.output, offsets[position], exists[position], "%unread", vector)
                if tile.masks is None:
                    self.store(values[number], at)
                else:
                    self.masked_store(values[number], at, tile.masks[vector])

        for each in _IN_REGISTERS:
            f.label(f"{tag}.{each.name}")
            store([each.emit(f, self.target, self.lanes, value) for value in sums])
            f.emit("br label %next")
        f.label(f"{tag}.others")
        is_relu = f.emit_value(f"icmp eq i64 {activation}, {RELU.number}")
        store([self.relu(value, is_relu) for value in sums])
        is_simple = f.emit_value(f"icmp ule i64 {activation}, {RELU.number}")
        f.emit(f"br i1 {is_simple}, label %next, label %{tag}.active")
        f.label(f"{tag}.active")
        count = f.call("i64", "llvm.umin.i64", ("i64", positions), ("i64", str(self.tile)))
        whole = str(tile.vectors * self.lanes)
        channels = f.call("i64", "llvm.umin.i64", ("i64", "%left"), ("i64", whole))
        self.call_activate(tile.output, count, pixel, channels, activation)
        f.emit("br label %next")

    def _each(self, vectors: int) -> list[tuple[int, int, int]]:
        """Return each vector of a tile: the position, the index in the tile, and the index in the position."""
        return [
            (position, position * vectors + vector, vector)
            for position in range(self.tile)
            for vector in range(vectors)
        ]

    def _at(self, base: str, offset: str, exists: str, otherwise: str, vector: int) -> str:
        """Emit the address of a vector at a position, or, if the position does not exist, in ``otherwise``."""
        at = self.at(base, offset)
        if exists:
            at = self.f.emit_value(f"select i1 {exists}, ptr {at}, ptr {otherwise}")
        return self.at(at, str(4 * self.lanes * vector))


@dataclass(frozen=True, slots=True)
class _Tile:
    """State of the emission of a tile: its vectors of channels, masks of existing lanes, and values."""

    vectors: int
    masks: list[str] | None
    bias: list[str]
    weights: str
    start: str
    """The row of the image under the first row of the kernel that is inside."""
    step: str
    """Bytes from a row of the image to the one under the next row of the kernel."""
    count: str
    """Rows of the kernel that are inside the image."""
    has_rows: str
    left: str
    """The number of the first column, which may be negative."""
    residual: str
    has_residual: str
    output: str
