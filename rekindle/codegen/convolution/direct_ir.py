"""Emit LLVM IR of direct convolutions, whose results are channels-last images.

A tile of the result stays in registers: several positions, each with a few vectors of channels. For each place of the
kernel and each input channel, one vector of weights is multiplied with one number of each position::

    for place, channel:                                 dense
        for position: tile[position] += image[position][place, channel] * weights[place, channel]
    for place:                                          depthwise: each channel is convolved for itself
        for position: tile[position] += image[position][place] * weights[place]

A *scattered* function is a dense one whose positions are not adjacent in the output: a part of a transposed
convolution.

The bias, the residual and the activation follow. An activation of more than a comparison is applied to the tile after
it was stored, by a function that goes over its rows. The image is padded, so that every place is inside it. Sizes are
read at run time: one module serves all convolutions of a process.

Positions are numbered across images, rows and columns. A tile that would end beyond the last position begins earlier,
and computes some positions again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rekindle.codegen.convolution.activations import RELU
from rekindle.codegen.convolution.padding_ir import define_pad
from rekindle.codegen.convolution.storage import FLOAT32, WeightStorage
from rekindle.codegen.convolution.task_ir import VECTORS, TaskWriter, finished
from rekindle.codegen.emission.expressions import multiply_add
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.llvm.target import Target


class DirectWord(IntEnum):
    """Parameters of a function: 64-bit words. Steps and pitches are in bytes."""

    IMAGE = 0
    WEIGHTS = 1
    BIAS = 2
    RESIDUAL = 3
    """Null if no residual is added."""
    OUTPUT = 4
    POSITIONS = 5
    WIDTH = 6
    """Positions in a row."""
    HEIGHT = 7
    """Rows in an image."""
    IMAGE_STEP = 8
    ROW_STEP = 9
    COLUMN_STEP = 10
    """Bytes from a position's first element in the image to that of the position in the next image, the next row, and
    the next column."""
    KERNEL_ROWS = 11
    KERNEL_COLUMNS = 12
    KERNEL_ROW_STEP = 13
    KERNEL_COLUMN_STEP = 14
    CHUNKS = 15
    """Number of chunks of a segment: the whole run of input channels, or the share of one of the ``chains``."""
    CHANNELS = 16
    """Number of input channels in a chunk."""
    ADDS_CHUNKS = 17
    """Whether the sums of chunks are added to totals in memory: long sums in one number lose digits."""
    OUTPUT_STEP = 18
    """Bytes from one position to the next in the output, and in the residual."""
    BLOCKS = 19
    """Whole blocks of output channels."""
    REST = 20
    """Output channels after the whole blocks."""
    TILES = 21
    BLOCK_BYTES = 22
    """Size in bytes of the weights of a whole block."""
    ACTIVATION = 23
    """The number of an :class:`~rekindle.codegen.convolution.activations.Activation`."""
    TASKS = 24
    """Tiles of all blocks, the rest included."""
    OUTPUT_JUMP = 25
    """Distance from the last position of a row to the first of the next one, minus ``OUTPUT_STEP``, in a ``scattered``
    function."""
    CHANNEL_STEP = 26
    """Bytes from one input channel to the next at the same position; not used by depthwise functions."""
    AHEAD_TILE = 27
    AHEAD_STEP = 28
    """The tiles of a block fetch the weights of the next one into a cache: the share of a tile, and of a step."""
    SCALES = 29
    """Bytes from the bias of a channel to its scale, if weights are stored with scales."""
    BAND = 30
    """Number of tiles of a band: all blocks of channels are computed for its tiles, block by block, before those of the
    next band."""


WORDS: Final = len(DirectWord)
_MAX_SUMS: Final = {512: 16, 256: 8, 128: 8}
"""Maximum number of vectors of sums of a tile with several chains, by the size of a register in bits."""
_MAX_CHAINS: Final = 4
"""Number of streams that a core reads from memory at least as fast as fewer or more."""
_DISTANCE: Final = 1024
"""How far ahead of its loads a stream is prefetched, in bytes."""
_FETCHED: Final = 128
"""Bytes for which a stream has one prefetch: the processor itself loads what follows."""
LINE: Final = 64
"""Size in bytes of a cache line."""


@dataclass(frozen=True, slots=True)
class Form:
    """The kind of a function: ``dense``, ``depthwise`` or ``scattered``, for tiles of ``rows`` positions, and weights
    in ``storage``. Each element of a tile has ``chains`` independent partial sums, a power of two, which are added at
    the end of a chunk. Each has a segment of the input channels, so that weights are read as several streams. An
    iteration of the loop over channels has ``unroll`` steps, which divide the channels of a chunk; if there are
    several, the channels of a position are adjacent, and there is one chain. With one chain, an iteration prefetches
    ``fetched`` cache lines of the next block of weights, each by itself: not all processors load lines in pairs."""

    kind: str
    rows: int
    storage: WeightStorage = FLOAT32
    chains: int = 1
    unroll: int = 1
    fetched: int = 1

    @property
    def name(self) -> str:
        """The name of the function."""
        suffix = "" if self.storage is FLOAT32 else f".{self.storage.name}"
        suffix += f".{self.chains}chains" if self.chains > 1 else ""
        suffix += f".{self.unroll}steps" if self.unroll > 1 else ""
        return f"{self.kind}{self.rows}{suffix}" + (f".{self.fetched}lines" if self.fetched > 1 else "")


def chains_for(target: Target, rows: int, channels: int) -> int:
    """Return the number of independent partial sums of each element of a tile: as many as registers hold, and divide
    the channels. They hide the latency of additions, and read weights as streams, for which a core loads more from
    memory at a time than for one. A tile of many positions has enough sums, and reads weights from a cache."""
    most = min(_MAX_CHAINS, _MAX_SUMS[target.vector_bits] // (rows * VECTORS))
    return next((each for each in (4, 2) if each <= most and channels % each == 0), 1)


def module_text(target: Target, form: Form) -> str:
    """Return the LLVM IR of a function: ``void(ptr words, ptr image, ptr residual, ptr output, i64 threads)``. Its
    arguments replace the words of the same names."""
    module = ModuleBuilder()
    _FunctionWriter(module, target, form).write()
    return finished(module)


class _FunctionWriter(TaskWriter):
    """Writer of one function with all its tasks, which threads share."""

    def __init__(self, module: ModuleBuilder, target: Target, form: Form) -> None:
        arguments = (DirectWord.IMAGE, DirectWord.RESIDUAL, DirectWord.OUTPUT)
        super().__init__(module, target, form.name, DirectWord, arguments, DirectWord.TASKS)
        self.is_depthwise = form.kind == "depthwise"
        self.is_scattered = form.kind == "scattered"
        self.rows = form.rows
        self.storage = form.storage
        self.chains = form.chains
        self.unroll = form.unroll
        self.fetched = form.fetched

    def write(self) -> None:
        self.activate()
        self._tasks()
        self.share()
        self.entry()
        define_pad(self.module)
        self.launch(pads=True)

    # ----------------------------------------------------------------------------------------------------------- tasks

    def _tasks(self) -> None:
        """Emit the loop over tasks from %begin to %limit; tasks of one block of channels in a band are adjacent."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        for number in range(0 if self.is_depthwise else self.rows * VECTORS):
            f.emit(f"%total{number} = alloca {self.vector}, align {self.lanes * 4}")
        self.words = {word: self.word(word) for word in DirectWord}
        image, weights, bias = map(self.pointer, (DirectWord.IMAGE, DirectWord.WEIGHTS, DirectWord.BIAS))
        residual, output = map(self.pointer, (DirectWord.RESIDUAL, DirectWord.OUTPUT))
        has_residual = f.emit_value(f"icmp ne ptr {residual}, null")
        self.adds_chunks = f.emit_value(f"icmp ne i64 {self.words[DirectWord.ADDS_CHUNKS]}, 0")
        self.to_next_row = self._step_beyond(DirectWord.ROW_STEP, DirectWord.WIDTH, DirectWord.COLUMN_STEP)
        self.to_next_image = self._step_beyond(DirectWord.IMAGE_STEP, DirectWord.HEIGHT, DirectWord.ROW_STEP)
        last = self.calculate("sub", self.words[DirectWord.POSITIONS], self.rows)
        f.emit("%is.some = icmp ult i64 %begin, %limit")
        f.emit("br i1 %is.some, label %seek, label %done")
        f.label("seek")
        f.emit("%sought = phi i64 [%begin, %entry], [%task.next, %more]")
        found = self._seek("%sought", last)
        f.emit("br label %body")
        f.label("body")
        f.emit("%task = phi i64 [%sought, %seek], [%task.next, %more]")
        state = ("block", "first", "end", "tile", "column", "line", "offset", "place")
        for name, value in zip(state, found, strict=True):
            f.emit(f"%{name} = phi i64 [{value}, %seek], [%{name}.next, %more]")
        first_channel = f.emit_value(f"mul i64 %block, {VECTORS * self.lanes}")
        my_bias = f.emit_value(f"getelementptr float, ptr {bias}, i64 {first_channel}")
        skipped = f.emit_value(f"mul i64 %block, {self.words[DirectWord.BLOCK_BYTES]}")
        my_weights = f.emit_value(f"getelementptr i8, ptr {weights}, i64 {skipped}")
        skipped = self.calculate("mul", self.calculate("sub", "%tile", "%first"), self.words[DirectWord.AHEAD_TILE])
        ahead = self.at(self.at(my_weights, self.words[DirectWord.BLOCK_BYTES]), skipped)
        starts, places, following = self._positions(image)
        if not self.is_depthwise:
            self._fetch_results(places, residual, output, has_residual)
        is_whole = f.emit_value(f"icmp ult i64 %block, {self.words[DirectWord.BLOCKS]}")
        rest = self.words[DirectWord.REST]
        f.emit(f"br i1 {is_whole}, label %whole, label %rest")
        f.label("rest")
        is_single = f.emit_value(f"icmp ule i64 {rest}, {self.lanes}")
        f.emit(f"br i1 {is_single}, label %single, label %double")
        for label, vectors in (("whole", VECTORS), ("single", 1), ("double", VECTORS)):
            f.label(label)
            masks = None if label == "whole" else self.masks(rest, vectors)
            self._tile(
                label, vectors, masks, my_weights, ahead, my_bias, starts, places, residual, output, has_residual
            )
        f.label("next")
        f.emit("%task.next = add i64 %task, 1")
        for name, value in zip(state, ("%block", "%first", "%end", *following), strict=True):
            f.emit(f"%{name}.next = add i64 {value}, 0")
        is_inside = f.emit_value("icmp ult i64 %tile.next, %end")
        is_regular = self.calculate("icmp ule", self.calculate("mul", "%tile.next", self.rows), last)
        is_adjacent = f.emit_value(f"and i1 {is_inside}, {is_regular}")
        f.emit("%is.more = icmp ult i64 %task.next, %limit")
        f.emit("br i1 %is.more, label %more, label %done")
        f.label("more")
        f.emit(f"br i1 {is_adjacent}, label %body, label %seek")
        f.label("done")
        f.emit("ret void")
        self.define(f"{self.name}.tasks", "ptr %words, i64 %begin, i64 %limit, i64 %thread")

    def _fetch_results(self, places: Sequence[str], residual: str, output: str, has_residual: str) -> None:
        """Emit prefetches of the output of a tile, to write to it, and of its residual: without them, the loads and the
        stores after the sums wait for memory."""
        f = self.f
        f.emit(f"br i1 {has_residual}, label %fetch, label %fetched")
        for label, base, is_written in (("fetch", residual, 0), ("fetched", output, 1)):
            f.label(label)
            for place in places:
                for vector in range(VECTORS):
                    at = self.at(self.at(base, place), str(vector * self.lanes * 4))
                    arguments = ("ptr", at), ("i32", str(is_written)), ("i32", "3"), ("i32", "1")
                    f.call("void", "llvm.prefetch.p0", *arguments)
            if label == "fetch":
                f.emit("br label %fetched")

    def _step_beyond(self, step: DirectWord, count: DirectWord, inner: DirectWord) -> str:
        """Emit the offset from the last of ``count`` positions, ``inner`` apart, to the first position of the next row;
        for rows, what is added to that at the end of an image."""
        f, words = self.f, self.words
        length = f.emit_value(f"mul i64 {words[count]}, {words[inner]}")
        beyond = f.emit_value(f"sub i64 {words[step]}, {length}")
        return beyond if step is DirectWord.IMAGE_STEP else f.emit_value(f"add i64 {beyond}, {words[inner]}")

    def _seek(self, task: str, last: str) -> list[str]:
        """Emit the block of a task, the first tile of its band, the tile after the band, the task's tile, and of the
        tile's first position the column, the row, and the byte offsets in the image and in the output. That takes
        divisions, so the position of most tiles is that after the preceding one."""
        f, words = self.f, self.words
        tiles, band = words[DirectWord.TILES], words[DirectWord.BAND]
        blocks = self.calculate("udiv", words[DirectWord.TASKS], tiles)
        tasks = self.calculate("mul", band, blocks)
        begin = self.calculate("mul", self.calculate("udiv", task, tasks), band)
        end = f.call("i64", "llvm.umin.i64", ("i64", self.calculate("add", begin, band)), ("i64", tiles))
        inside, length = self.calculate("urem", task, tasks), self.calculate("sub", end, begin)
        block = self.calculate("udiv", inside, length)
        tile = self.calculate("add", begin, self.calculate("urem", inside, length))
        wanted = self.calculate("mul", tile, self.rows)
        first = f.call("i64", "llvm.umin.i64", ("i64", wanted), ("i64", last))
        width, height = words[DirectWord.WIDTH], words[DirectWord.HEIGHT]
        row, column = (self.calculate(how, first, width) for how in ("udiv", "urem"))
        number, line = (self.calculate(how, row, height) for how in ("udiv", "urem"))
        channel = self.calculate("mul", block, VECTORS * self.lanes * 4)
        offset = channel if self.is_depthwise else "0"
        for index, step in (
            (column, DirectWord.COLUMN_STEP),
            (line, DirectWord.ROW_STEP),
            (number, DirectWord.IMAGE_STEP),
        ):
            offset = self.calculate("add", offset, self.calculate("mul", index, words[step]))
        place = self.calculate("add", channel, self.calculate("mul", first, words[DirectWord.OUTPUT_STEP]))
        if self.is_scattered:
            place = self.calculate("add", place, self.calculate("mul", row, words[DirectWord.OUTPUT_JUMP]))
        return [block, begin, end, tile, column, line, offset, place]

    def _positions(self, image: str) -> tuple[list[str], list[str], list[str]]:
        """Emit the addresses of the positions of a tile in the image, their byte offsets in the output, and the next
        tile with the column, the row and the offsets of its first position."""
        f, words = self.f, self.words
        step, output_step = words[DirectWord.COLUMN_STEP], words[DirectWord.OUTPUT_STEP]
        after = self.calculate("add", "%tile", 1)
        is_one_row = self.calculate("icmp ule", self.calculate("add", "%column", self.rows), words[DirectWord.WIDTH])
        f.emit(f"br i1 {is_one_row}, label %adjacent, label %wrapped")
        f.label("adjacent")
        offsets = [self.calculate("add", "%offset", self.calculate("mul", step, row)) for row in range(self.rows)]
        places = [self.calculate("add", "%place", self.calculate("mul", output_step, row)) for row in range(self.rows)]
        last = self.calculate("add", "%column", self.rows - 1)
        adjacent = [*offsets, *places, last, "%line"]
        f.emit("br label %positions")
        f.label("wrapped")
        column, line, offsets, places = "%column", "%line", ["%offset"], ["%place"]
        for _ in range(self.rows - 1):
            column, line, offset, place = self._following(column, line, offsets[-1], places[-1])
            offsets.append(offset)
            places.append(place)
        wrapped = [*offsets, *places, column, line]
        f.emit("br label %positions")
        f.label("positions")
        merged = [
            f.emit_value(f"phi i64 [{a}, %adjacent], [{b}, %wrapped]") for a, b in zip(adjacent, wrapped, strict=True)
        ]
        offsets, places, (column, line) = merged[: self.rows], merged[self.rows : -2], merged[-2:]
        starts = [self.at(image, offset) for offset in offsets]
        return starts, places, [after, *self._following(column, line, offsets[-1], places[-1])]

    def _following(self, column: str, line: str, offset: str, place: str) -> tuple[str, str, str, str]:
        """Emit the position after this one: its column, its row, and its byte offsets in the image and in the
        output."""
        f, words = self.f, self.words
        column = f.emit_value(f"add i64 {column}, 1")
        is_end = f.emit_value(f"icmp eq i64 {column}, {words[DirectWord.WIDTH]}")
        column = f.emit_value(f"select i1 {is_end}, i64 0, i64 {column}")
        line = f.emit_value(f"add i64 {line}, {f.emit_value(f'zext i1 {is_end} to i64')}")
        is_last = f.emit_value(f"icmp eq i64 {line}, {words[DirectWord.HEIGHT]}")
        line = f.emit_value(f"select i1 {is_last}, i64 0, i64 {line}")
        moved = f.emit_value(f"select i1 {is_end}, i64 {self.to_next_row}, i64 {words[DirectWord.COLUMN_STEP]}")
        more = f.emit_value(f"select i1 {is_last}, i64 {self.to_next_image}, i64 0")
        offset = self.calculate("add", offset, self.calculate("add", moved, more))
        place = self.calculate("add", place, words[DirectWord.OUTPUT_STEP])
        if self.is_scattered:
            jump = f.emit_value(f"select i1 {is_end}, i64 {words[DirectWord.OUTPUT_JUMP]}, i64 0")
            place = self.calculate("add", place, jump)
        return column, line, offset, place

    # ----------------------------------------------------------------------------------------------------------- a tile

    def _tile(
        self,
        tag: str,
        vectors: int,
        masks: list[str] | None,
        weights: str,
        ahead: str,
        bias: str,
        starts: Sequence[str],
        places: Sequence[str],
        residual: str,
        output: str,
        has_residual: str,
    ) -> None:
        """Emit the computation of a tile, and its stores. With ``masks``, some channels of the last vectors are
        missing."""
        f, words = self.f, self.words
        count = self.rows * vectors
        zero = f"{self.vector} zeroinitializer"
        if not self.is_depthwise:
            f.emit(f"br i1 {self.adds_chunks}, label %zeros.{tag}, label %start.{tag}")
            f.label(f"zeros.{tag}")
            for number in range(count):
                f.emit(f"store volatile {zero}, ptr %total{number}, align {self.lanes * 4}")
            f.emit(f"br label %start.{tag}")
            f.label(f"start.{tag}")
        state = [weights, ahead, *["zeroinitializer"] * count]
        types = ["ptr", "ptr", *[self.vector] * count]
        chunk_size = self.calculate("mul", words[DirectWord.CHANNELS], words[DirectWord.CHANNEL_STEP])
        segments = self._segments(vectors, chunk_size)

        def step(state: list[str], offset: str) -> list[str]:
            return self._step(state, offset, vectors, masks if self.is_depthwise else None, starts)

        def chunk(state: list[str], offset: str) -> list[str]:
            if self.chains > 1 or self.unroll > 1:
                following, fetched, *sums = self._several_steps(tag, state, offset, segments, step)
            else:
                counts = words[DirectWord.CHANNELS], words[DirectWord.CHANNEL_STEP]
                following, fetched, *sums = self.loop(f"channels.{tag}", *counts, offset, types, state, step)
            return [following, fetched, *self._flushed(tag, sums)]

        def chunks(state: list[str], offset: str) -> list[str]:
            if self.is_depthwise:
                return step(state, offset)
            following, *rest = self.loop(
                f"chunks.{tag}", words[DirectWord.CHUNKS], chunk_size, offset, types, state, chunk
            )
            return [self.at(following, segments[-1][0]), *rest]

        def columns(state: list[str], offset: str) -> list[str]:
            counts = words[DirectWord.KERNEL_COLUMNS], words[DirectWord.KERNEL_COLUMN_STEP]
            return self.loop(f"columns.{tag}", *counts, offset, types, state, chunks)

        counts = words[DirectWord.KERNEL_ROWS], words[DirectWord.KERNEL_ROW_STEP]
        _, _, *sums = self.loop(f"rows.{tag}", *counts, "0", types, state, columns)
        self._store(
            tag, vectors, masks, self._with_bias(tag, sums, vectors, bias), places, residual, output, has_residual
        )

    def _segments(self, vectors: int, chunk_size: str) -> list[tuple[str, str]]:
        """Emit the offsets of the segment of each chain from the first one, in the weights and in the image."""
        channels = self.calculate("mul", self.words[DirectWord.CHUNKS], self.words[DirectWord.CHANNELS])
        weights = self.calculate("mul", channels, vectors * self.lanes * self.storage.size)
        image = self.calculate("mul", self.words[DirectWord.CHUNKS], chunk_size)
        return [
            (self.calculate("mul", weights, each), self.calculate("mul", image, each)) for each in range(self.chains)
        ]

    def _several_steps(
        self,
        tag: str,
        state: list[str],
        offset: str,
        segments: Sequence[tuple[str, str]],
        step: Callable[[list[str], str], list[str]],
    ) -> list[str]:
        """Emit the loop over the channels of a chunk with several steps in an iteration: one in each of the
        ``segments``, whose sums are added afterwards, or ``unroll`` that follow each other."""
        f, words = self.f, self.words
        weights, ahead, *sums = state
        count = len(sums)

        def one_of_each(state: list[str], offset: str) -> list[str]:
            first, ahead, *known = state
            found = []
            for number, (skipped, moved) in enumerate(segments):
                own = known[number * count : (number + 1) * count]
                start = first if number == 0 else self.at(first, skipped)
                weights, ahead, *new = step([start, ahead, *own], self.calculate("add", offset, moved))
                found += new if number else [weights, *new]
            return [found[0], ahead, *found[1:]]

        def adjacent(state: list[str], offset: str) -> list[str]:
            start = state[1]
            for number in range(self.unroll):
                for line in range(self.fetched):
                    if line * self.unroll // self.fetched == number:
                        self._fetch(self.at(start, str(line * LINE)), level=2)
                state = step(state, self.calculate("add", offset, 4 * number))
            return state

        number, size = self.calculate("udiv", words[DirectWord.CHANNELS], self.unroll), str(4 * self.unroll)
        if self.chains > 1:
            number, size = words[DirectWord.CHANNELS], words[DirectWord.CHANNEL_STEP]
        first = [weights, ahead, *sums, *["zeroinitializer"] * count * (self.chains - 1)]
        types = ["ptr", "ptr", *[self.vector] * count * self.chains]
        body = one_of_each if self.chains > 1 else adjacent
        weights, ahead, *found = self.loop(f"channels.{tag}", number, size, offset, types, first, body)
        while len(found) > count:
            half = len(found) // 2
            found = [
                f.emit_value(f"fadd {self.vector} {a}, {b}") for a, b in zip(found[:half], found[half:], strict=True)
            ]
        return [weights, ahead, *found]

    def _flushed(self, tag: str, sums: list[str]) -> list[str]:
        """Emit code that, if ``ADDS_CHUNKS`` is set, adds the sums of a chunk to the totals. Return the sums with
        which the next chunk begins: zeros after the addition, else ``sums``."""
        f = self.f
        flush, kept, before = f"flush.{tag}", f"kept.{tag}", f"summed.{tag}"
        f.emit(f"br label %{before}")
        f.label(before)
        f.emit(f"br i1 {self.adds_chunks}, label %{flush}, label %{kept}")
        f.label(flush)
        for number, value in enumerate(sums):
            f.emit(f"store volatile {self.vector} {self._total(number, value)}, ptr %total{number}")
        f.emit(f"br label %{kept}")
        f.label(kept)
        return [f.emit_value(f"phi {self.vector} [{value}, %{before}], [zeroinitializer, %{flush}]") for value in sums]

    def _total(self, number: str | int, value: str) -> str:
        known = self.f.emit_value(f"load volatile {self.vector}, ptr %total{number}, align {self.lanes * 4}")
        return self.f.emit_value(f"fadd {self.vector} {known}, {value}")

    def _with_bias(self, tag: str, sums: list[str], vectors: int, bias: str) -> list[str]:
        f, found = self.f, []
        if not self.is_depthwise:
            f.emit(f"br i1 {self.adds_chunks}, label %totals.{tag}, label %biased.{tag}")
            f.label(f"totals.{tag}")
            totals = [self._total(number, value) for number, value in enumerate(sums)]
            f.emit(f"br label %biased.{tag}")
        else:
            f.emit(f"br label %biased.{tag}")
            totals = sums
        f.label(f"biased.{tag}")
        for value, total in zip(sums, totals, strict=True):
            if total is not value:
                value = f.emit_value(f"phi {self.vector} [{value}, %rows.{tag}.end], [{total}, %totals.{tag}]")
            found.append(value)
        for number, value in enumerate(found):
            place = f.emit_value(f"getelementptr float, ptr {bias}, i64 {number % vectors * self.lanes}")
            if self.storage.is_scaled:
                scale = f.emit_value(
                    f"load {self.vector}, ptr {self.at(place, self.words[DirectWord.SCALES])}, align 4"
                )
                value = f.emit_value(f"fmul {self.vector} {value}, {scale}")
            known = f.emit_value(f"load {self.vector}, ptr {place}, align 4")
            found[number] = f.emit_value(f"fadd {self.vector} {value}, {known}")
        return found

    def _step(
        self, state: list[str], offset: str, vectors: int, masks: list[str] | None, starts: Sequence[str]
    ) -> list[str]:
        """Emit the products with the next vectors of weights; return the new state: the advanced addresses, and the
        sums."""
        f, lanes = self.f, self.lanes
        weights, ahead, *sums = state
        size = lanes * self.storage.size
        if self.chains > 1:
            for distance in range(_DISTANCE, _DISTANCE + vectors * size, _FETCHED):
                self._fetch(self.at(weights, str(distance)), level=3)
        elif not self.is_depthwise:
            for line in range(self.fetched if self.unroll == 1 else 0):
                self._fetch(self.at(ahead, str(line * LINE)), level=2)
            ahead = self.at(ahead, self.words[DirectWord.AHEAD_STEP])
        factors = [
            self.storage.load(f, f.emit_value(f"getelementptr i8, ptr {weights}, i64 {vector * size}"), lanes)
            for vector in range(vectors)
        ]
        found = [f.emit_value(f"getelementptr i8, ptr {weights}, i64 {vectors * size}"), ahead]
        for row, start in enumerate(starts):
            at = f.emit_value(f"getelementptr i8, ptr {start}, i64 {offset}")
            numbers = self._numbers(at, vectors, masks)
            for vector in range(vectors):
                known = sums[row * vectors + vector]
                number, factor = numbers[vector], factors[vector]
                found.append(multiply_add(f, self.target.has("fma"), "float", lanes, number, factor, known))
        return found

    def _fetch(self, place: str, level: int) -> None:
        """Emit a prefetch into the second-level cache (2) or both (3). Nothing is read, so that the address may be
        invalid."""
        arguments = ("ptr", place), ("i32", "0"), ("i32", str(level)), ("i32", "1")
        self.f.call("void", "llvm.prefetch.p0", *arguments)

    def _numbers(self, at: str, vectors: int, masks: list[str] | None) -> list[str]:
        """Emit the numbers of the image that multiply the weights: the same one for all channels, or one for each
        channel if the convolution is depthwise."""
        f, lanes = self.f, self.lanes
        if not self.is_depthwise:
            return [self.spread(at)] * vectors
        found = []
        for vector in range(vectors):
            place = f.emit_value(f"getelementptr float, ptr {at}, i64 {vector * lanes}")
            if masks is None:
                found.append(f.emit_value(f"load {self.vector}, ptr {place}, align 4"))
            else:
                found.append(self.masked_load(place, masks[vector]))
        return found

    # ------------------------------------------------------------------------------------------------------- the result

    def _store(
        self,
        tag: str,
        vectors: int,
        masks: list[str] | None,
        sums: list[str],
        places: Sequence[str],
        residual: str,
        output: str,
        has_residual: str,
    ) -> None:
        f = self.f
        plain, adding = f"plain.{tag}", f"adding.{tag}"
        f.emit(f"br i1 {has_residual}, label %{adding}, label %{plain}")
        f.label(adding)
        added = []
        for row, place in enumerate(places):
            for vector in range(vectors):
                at = f.emit_value(f"getelementptr i8, ptr {residual}, i64 {place}")
                at = f.emit_value(f"getelementptr float, ptr {at}, i64 {vector * self.lanes}")
                if masks is None:
                    other = f.emit_value(f"load {self.vector}, ptr {at}, align 4")
                else:
                    other = self.masked_load(at, masks[vector])
                added.append(f.emit_value(f"fadd {self.vector} {sums[row * vectors + vector]}, {other}"))
        f.emit(f"br label %{plain}")
        f.label(plain)
        before = f"biased.{tag}"
        merged = []
        for known, new in zip(sums, added, strict=True):
            merged.append(f.emit_value(f"phi {self.vector} [{known}, %{before}], [{new}, %{adding}]"))
        is_relu = f.emit_value(f"icmp eq i64 {self.words[DirectWord.ACTIVATION]}, {RELU.number}")
        for row, place in enumerate(places):
            for vector in range(vectors):
                value = self.relu(merged[row * vectors + vector], is_relu)
                at = f.emit_value(f"getelementptr i8, ptr {output}, i64 {place}")
                at = f.emit_value(f"getelementptr float, ptr {at}, i64 {vector * self.lanes}")
                if masks is None:
                    f.emit(f"store {self.vector} {value}, ptr {at}, align 4")
                else:
                    self.masked_store(value, at, masks[vector])
        is_simple = f.emit_value(f"icmp ule i64 {self.words[DirectWord.ACTIVATION]}, {RELU.number}")
        f.emit(f"br i1 {is_simple}, label %next, label %active.{tag}")
        f.label(f"active.{tag}")
        channels = str(vectors * self.lanes) if masks is None else self.words[DirectWord.REST]
        step, activation = self.words[DirectWord.OUTPUT_STEP], self.words[DirectWord.ACTIVATION]
        if self.is_scattered:
            for place in places:
                self.call_activate(self.at(output, place), "1", step, channels, activation)
        else:
            self.call_activate(self.at(output, places[0]), str(self.rows), step, channels, activation)
        f.emit("br label %next")
