"""Emit LLVM IR of direct convolutions of channels-last images.

A tile of the result stays in registers: several positions, each with a few vectors of channels. For each place of the
kernel and each input channel, one vector of weights is multiplied with one number of each position::

    for place, channel:                                 dense
        for position: tile[position] += image[position][place, channel] * weights[place, channel]
    for place:                                          depthwise: each channel is convolved for itself
        for position: tile[position] += image[position][place] * weights[place]

The bias, the residual and the activation follow. The image is padded, so that every place is inside it. Sizes are read
at run time: one module serves all convolutions of a process.

Positions are numbered across images, rows and columns. A tile that would end beyond the last position begins earlier,
and computes some positions again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final

from rekindle.codegen.emission.expressions import multiply_add
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.llvm.target import Target


class Word(IntEnum):
    """What a function reads: words of 64 bits. Steps and pitches are in bytes."""

    IMAGE = 0
    WEIGHTS = 1
    BIAS = 2
    RESIDUAL = 3
    """Null, where nothing is added."""
    OUTPUT = 4
    POSITIONS = 5
    WIDTH = 6
    """Positions in a row."""
    HEIGHT = 7
    """Rows in an image."""
    IMAGE_STEP = 8
    ROW_STEP = 9
    COLUMN_STEP = 10
    """From the first place of a position to that of the next one, of the one below, and of the next image."""
    KERNEL_ROWS = 11
    KERNEL_COLUMNS = 12
    KERNEL_ROW_STEP = 13
    KERNEL_COLUMN_STEP = 14
    CHUNKS = 15
    CHANNELS = 16
    """Input channels of a place come in chunks of so many."""
    ADDS_CHUNKS = 17
    """Whether the sums of chunks are added to the result one by one: long sums in one number lose digits."""
    OUTPUT_STEP = 18
    """From one position to the next in the output, and in the residual."""
    BLOCKS = 19
    """Whole blocks of output channels."""
    REST = 20
    """Output channels after the whole blocks."""
    TILES = 21
    BLOCK_BYTES = 22
    """Weights of a whole block."""
    ACTIVATION = 23
    TASKS = 24
    """Tiles of all blocks, the rest included."""


class Activation(IntEnum):
    """What is done to a result last."""

    NONE = 0
    RELU = 1


WORDS: Final = len(Word)
VECTORS: Final = 2
"""Vectors of channels in a block."""


def lanes_of(target: Target) -> int:
    """Return how many channels a vector has."""
    return target.vector_bits // 32


def rows_of(target: Target) -> tuple[int, ...]:
    """Return how many positions tiles have, the most first: as many as there are registers for."""
    most = {512: 8, 256: 6, 128: 6}[target.vector_bits]
    return (most, 4, 2, 1)


def function_name(kind: str, rows: int) -> str:
    """Return the name of the function of a kind (``dense``, ``depthwise``) for tiles of so many positions."""
    return f"{kind}{rows}"


def module_text(target: Target, kind: str, rows: int) -> str:
    """Return the module of a function: ``void(ptr words, ptr image, ptr residual, ptr output, i64 threads)``. Its
    arguments take the places of the words of their names."""
    module = ModuleBuilder()
    _FunctionWriter(module, target, kind, rows).write()
    declarations = "\n".join(module.declarations[name] for name in sorted(module.declarations))
    return "\n\n".join([declarations, *module.definitions, "!0 = !{}"]) + "\n"


class _FunctionWriter:
    """Writes one function: all tasks of it, shared by threads."""

    def __init__(self, module: ModuleBuilder, target: Target, kind: str, rows: int) -> None:
        self.module = module
        self.target = target
        self.is_depthwise = kind == "depthwise"
        self.rows = rows
        self.lanes = lanes_of(target)
        self.vector = f"<{self.lanes} x float>"
        self.name = function_name(kind, rows)
        self.f = FunctionBuilder(module)

    def write(self) -> None:
        self._tasks()
        self._share()
        self._entry()

    # ----------------------------------------------------------------------------------------------------- parallelism

    def _entry(self) -> None:
        """Emit the function: run all tasks here, or a share of them on each thread."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        f.emit(f"%words = alloca [{WORDS} x i64], align 8")
        f.call(
            "void",
            "llvm.memcpy.p0.p0.i64",
            ("ptr", "%words"),
            ("ptr", "%given"),
            ("i64", str(8 * WORDS)),
            ("i1", "false"),
        )
        for word, name in ((Word.IMAGE, "image"), (Word.RESIDUAL, "residual"), (Word.OUTPUT, "output")):
            place = f.emit_value(f"getelementptr i64, ptr %words, i64 {int(word)}")
            f.emit(f"store ptr %{name}, ptr {place}, align 8")
        place = f.emit_value(f"getelementptr i64, ptr %given, i64 {int(Word.TASKS)}")
        tasks = f.emit_value(f"load i64, ptr {place}, align 8")
        inside = f.emit_value(f"icmp ne i32 {f.call('i32', 'omp_in_parallel')}, 0")
        single = f.emit_value("icmp ult i64 %threads, 2")
        f.emit(f"br i1 {f.emit_value(f'or i1 {inside}, {single}')}, label %one, label %several")
        f.label("one")
        f.emit(f"call void @{self.name}.tasks(ptr %words, i64 0, i64 {tasks})")
        f.emit("ret void")
        f.label("several")
        count = f.emit_value("trunc i64 %threads to i32")
        body = ("ptr", f"@{self.name}.share")
        f.call("void", "GOMP_parallel", body, ("ptr", "%words"), ("i32", count), ("i32", "0"))
        f.emit("ret void")
        self._define(self.name, "ptr %given, ptr %image, ptr %residual, ptr %output, i64 %threads", "")

    def _share(self) -> None:
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        tasks = self._word(Word.TASKS)
        thread = f.emit_value(f"sext i32 {f.call('i32', 'omp_get_thread_num')} to i64")
        threads = f.emit_value(f"sext i32 {f.call('i32', 'omp_get_num_threads')} to i64")
        begin, end = (
            f.emit_value(f"udiv i64 {f.emit_value(f'mul i64 {tasks}, {each}')}, {threads}")
            for each in (thread, f.emit_value(f"add i64 {thread}, 1"))
        )
        f.emit(f"call void @{self.name}.tasks(ptr %words, i64 {begin}, i64 {end})")
        f.emit("ret void")
        self._define(f"{self.name}.share", "ptr %words", "internal ")

    def _define(self, name: str, parameters: str, linkage: str) -> None:
        head = f"define {linkage}void @{name}({parameters}) {{"
        self.module.definitions.append("\n".join([head, *self.f.lines, "}"]))

    def _word(self, word: Word) -> str:
        place = self.f.emit_value(f"getelementptr i64, ptr %words, i64 {int(word)}")
        return self.f.emit_value(f"load i64, ptr {place}, align 8, !invariant.load !0")

    def _pointer(self, word: Word) -> str:
        place = self.f.emit_value(f"getelementptr i64, ptr %words, i64 {int(word)}")
        return self.f.emit_value(f"load ptr, ptr {place}, align 8, !invariant.load !0")

    # ----------------------------------------------------------------------------------------------------------- tasks

    def _tasks(self) -> None:
        """Emit the loop over tasks from %begin to %end; tasks of one block of channels are adjacent."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        for number in range(0 if self.is_depthwise else self.rows * VECTORS):
            f.emit(f"%total{number} = alloca {self.vector}, align {self.lanes * 4}")
        self.words = {word: self._word(word) for word in Word}
        image, weights, bias = map(self._pointer, (Word.IMAGE, Word.WEIGHTS, Word.BIAS))
        residual, output = map(self._pointer, (Word.RESIDUAL, Word.OUTPUT))
        has_residual = f.emit_value(f"icmp ne ptr {residual}, null")
        f.emit("br label %test")
        f.label("test")
        f.emit("%task = phi i64 [%begin, %entry], [%task.next, %next]")
        f.emit("%more = icmp ult i64 %task, %end")
        f.emit("br i1 %more, label %body, label %done")
        f.label("body")
        tiles = self.words[Word.TILES]
        block = f.emit_value(f"udiv i64 %task, {tiles}")
        tile = f.emit_value(f"urem i64 %task, {tiles}")
        first_channel = f.emit_value(f"mul i64 {block}, {VECTORS * self.lanes}")
        my_bias = f.emit_value(f"getelementptr float, ptr {bias}, i64 {first_channel}")
        skipped = f.emit_value(f"mul i64 {block}, {self.words[Word.BLOCK_BYTES]}")
        my_weights = f.emit_value(f"getelementptr i8, ptr {weights}, i64 {skipped}")
        starts, places = self._positions(tile, image, first_channel)
        is_whole = f.emit_value(f"icmp ult i64 {block}, {self.words[Word.BLOCKS]}")
        rest = self.words[Word.REST]
        f.emit(f"br i1 {is_whole}, label %whole, label %rest")
        f.label("rest")
        is_single = f.emit_value(f"icmp ule i64 {rest}, {self.lanes}")
        f.emit(f"br i1 {is_single}, label %single, label %double")
        for label, vectors in (("whole", VECTORS), ("single", 1), ("double", VECTORS)):
            f.label(label)
            masks = None if label == "whole" else self._masks(rest, vectors)
            self._tile(label, vectors, masks, my_weights, my_bias, starts, places, residual, output, has_residual)
        f.label("next")
        f.emit("%task.next = add i64 %task, 1")
        f.emit("br label %test")
        f.label("done")
        f.emit("ret void")
        self._define(f"{self.name}.tasks", "ptr %words, i64 %begin, i64 %end", "internal ")

    def _positions(self, tile: str, image: str, channel: str) -> tuple[list[str], list[str]]:
        """Where the first places of the positions of a tile are in the image, and where their channels are in the
        output, in bytes."""
        f, words = self.f, self.words
        last = f.emit_value(f"sub i64 {words[Word.POSITIONS]}, {self.rows}")
        wanted = f.emit_value(f"mul i64 {tile}, {self.rows}")
        first = f.call("i64", "llvm.umin.i64", ("i64", wanted), ("i64", last))
        starts, places = [], []
        for row in range(self.rows):
            at = first if row == 0 else f.emit_value(f"add i64 {first}, {row}")
            line, column = (f.emit_value(f"{how} i64 {at}, {words[Word.WIDTH]}") for how in ("udiv", "urem"))
            number, line = (f.emit_value(f"{how} i64 {line}, {words[Word.HEIGHT]}") for how in ("udiv", "urem"))
            offset = f.emit_value(f"mul i64 {column}, {words[Word.COLUMN_STEP]}")
            for index, step in ((line, Word.ROW_STEP), (number, Word.IMAGE_STEP)):
                offset = f.emit_value(f"add i64 {offset}, {f.emit_value(f'mul i64 {index}, {words[step]}')}")
            if self.is_depthwise:
                offset = f.emit_value(f"add i64 {offset}, {f.emit_value(f'mul i64 {channel}, 4')}")
            starts.append(f.emit_value(f"getelementptr i8, ptr {image}, i64 {offset}"))
            place = f.emit_value(f"mul i64 {at}, {words[Word.OUTPUT_STEP]}")
            places.append(f.emit_value(f"add i64 {place}, {f.emit_value(f'mul i64 {channel}, 4')}"))
        return starts, places

    def _masks(self, rest: str, vectors: int) -> list[str]:
        """Which channels of the last vectors there are."""
        f = self.f
        numbers = f"<{self.lanes} x i64>"
        spread = f.emit_value(f"insertelement {numbers} poison, i64 {rest}, i64 0")
        spread = f.emit_value(
            f"shufflevector {numbers} {spread}, {numbers} poison, <{self.lanes} x i32> zeroinitializer"
        )
        found = []
        for vector in range(vectors):
            lanes = ", ".join(f"i64 {vector * self.lanes + lane}" for lane in range(self.lanes))
            found.append(f.emit_value(f"icmp ult {numbers} <{lanes}>, {spread}"))
        return found

    # ----------------------------------------------------------------------------------------------------------- a tile

    def _tile(
        self,
        tag: str,
        vectors: int,
        masks: list[str] | None,
        weights: str,
        bias: str,
        starts: Sequence[str],
        places: Sequence[str],
        residual: str,
        output: str,
        has_residual: str,
    ) -> None:
        """Compute a tile, and store it. With ``masks``, channels of the last vectors are missing."""
        f, words = self.f, self.words
        count = self.rows * vectors
        zero = f"{self.vector} zeroinitializer"
        for number in range(0 if self.is_depthwise else count):
            f.emit(f"store volatile {zero}, ptr %total{number}, align {self.lanes * 4}")
        state = [weights, *["zeroinitializer"] * count]
        types = ["ptr", *[self.vector] * count]

        def step(state: list[str], offset: str) -> list[str]:
            return self._step(state, offset, vectors, masks if self.is_depthwise else None, starts)

        def chunk(state: list[str], offset: str) -> list[str]:
            following, *sums = self._loop(f"channels.{tag}", words[Word.CHANNELS], "4", offset, types, state, step)
            return [following, *self._flushed(tag, sums)]

        def chunks(state: list[str], offset: str) -> list[str]:
            if self.is_depthwise:
                return step(state, offset)
            size = f.emit_value(f"mul i64 {words[Word.CHANNELS]}, 4")
            return self._loop(f"chunks.{tag}", words[Word.CHUNKS], size, offset, types, state, chunk)

        def columns(state: list[str], offset: str) -> list[str]:
            counts = words[Word.KERNEL_COLUMNS], words[Word.KERNEL_COLUMN_STEP]
            return self._loop(f"columns.{tag}", *counts, offset, types, state, chunks)

        counts = words[Word.KERNEL_ROWS], words[Word.KERNEL_ROW_STEP]
        _, *sums = self._loop(f"rows.{tag}", *counts, "0", types, state, columns)
        self._store(tag, vectors, masks, self._with_bias(sums, vectors, bias), places, residual, output, has_residual)

    def _flushed(self, tag: str, sums: list[str]) -> list[str]:
        """Add the sums of a chunk to the totals and reset them, if ``ADDS_CHUNKS`` is set."""
        f = self.f
        flush, kept, before = f"flush.{tag}", f"kept.{tag}", f"summed.{tag}"
        f.emit(f"br label %{before}")
        f.label(before)
        is_flushed = f.emit_value(f"icmp ne i64 {self.words[Word.ADDS_CHUNKS]}, 0")
        f.emit(f"br i1 {is_flushed}, label %{flush}, label %{kept}")
        f.label(flush)
        for number, value in enumerate(sums):
            f.emit(f"store volatile {self.vector} {self._total(number, value)}, ptr %total{number}")
        f.emit(f"br label %{kept}")
        f.label(kept)
        return [f.emit_value(f"phi {self.vector} [{value}, %{before}], [zeroinitializer, %{flush}]") for value in sums]

    def _total(self, number: str | int, value: str) -> str:
        known = self.f.emit_value(f"load volatile {self.vector}, ptr %total{number}, align {self.lanes * 4}")
        return self.f.emit_value(f"fadd {self.vector} {known}, {value}")

    def _with_bias(self, sums: list[str], vectors: int, bias: str) -> list[str]:
        f, found = self.f, []
        for number, value in enumerate(sums):
            if not self.is_depthwise:
                value = self._total(number, value)
            place = f.emit_value(f"getelementptr float, ptr {bias}, i64 {number % vectors * self.lanes}")
            known = f.emit_value(f"load {self.vector}, ptr {place}, align 4")
            found.append(f.emit_value(f"fadd {self.vector} {value}, {known}"))
        return found

    def _loop(
        self,
        tag: str,
        count: str,
        step: str,
        start: str,
        types: Sequence[str],
        state: list[str],
        body: Callable[[list[str], str], list[str]],
    ) -> list[str]:
        """Run ``body`` ``count`` times, at least once. An offset begins as ``start`` and grows by ``step`` bytes."""
        f = self.f
        before = f.name()
        f.emit(f"br label %{before}")
        f.label(before)
        f.emit(f"br label %{tag}")
        f.label(tag)
        head = len(f.lines)
        number, offset = f"%{f.name()}", f"%{f.name()}"
        names = [f"%{f.name()}" for _ in state]
        results = body(names, offset)
        after = f.emit_value(f"add i64 {number}, 1")
        moved = f.emit_value(f"add i64 {offset}, {step}")
        latch = f.name()
        f.emit(f"br label %{latch}")
        f.label(latch)
        more = f.emit_value(f"icmp ult i64 {after}, {count}")
        f.emit(f"br i1 {more}, label %{tag}, label %{tag}.end")
        f.label(f"{tag}.end")
        phis = [
            f"  {number} = phi i64 [0, %{before}], [{after}, %{latch}]",
            f"  {offset} = phi i64 [{start}, %{before}], [{moved}, %{latch}]",
        ]
        for name, type, first, following in zip(names, types, state, results, strict=True):
            phis.append(f"  {name} = phi {type} [{first}, %{before}], [{following}, %{latch}]")
        f.lines[head:head] = phis
        return results

    def _step(
        self, state: list[str], offset: str, vectors: int, masks: list[str] | None, starts: Sequence[str]
    ) -> list[str]:
        """Add the products with the next vectors of weights."""
        f, lanes = self.f, self.lanes
        weights, *sums = state
        factors = []
        for vector in range(vectors):
            place = f.emit_value(f"getelementptr float, ptr {weights}, i64 {vector * lanes}")
            factors.append(f.emit_value(f"load {self.vector}, ptr {place}, align 4"))
        found = [f.emit_value(f"getelementptr float, ptr {weights}, i64 {vectors * lanes}")]
        for row, start in enumerate(starts):
            at = f.emit_value(f"getelementptr i8, ptr {start}, i64 {offset}")
            numbers = self._numbers(at, vectors, masks)
            for vector in range(vectors):
                known = sums[row * vectors + vector]
                number, factor = numbers[vector], factors[vector]
                found.append(multiply_add(f, self.target.has("fma"), "float", lanes, number, factor, known))
        return found

    def _numbers(self, at: str, vectors: int, masks: list[str] | None) -> list[str]:
        """What the weights are multiplied with: one number, or one for each channel."""
        f, lanes = self.f, self.lanes
        if not self.is_depthwise:
            one = f.emit_value(f"load float, ptr {at}, align 4")
            spread = f.emit_value(f"insertelement {self.vector} poison, float {one}, i64 0")
            shape = f"{self.vector} poison, <{lanes} x i32> zeroinitializer"
            return [f.emit_value(f"shufflevector {self.vector} {spread}, {shape}")] * vectors
        found = []
        for vector in range(vectors):
            place = f.emit_value(f"getelementptr float, ptr {at}, i64 {vector * lanes}")
            if masks is None:
                found.append(f.emit_value(f"load {self.vector}, ptr {place}, align 4"))
            else:
                found.append(self._masked_load(place, masks[vector]))
        return found

    def _masked_load(self, place: str, mask: str) -> str:
        return self.f.call(
            self.vector,
            f"llvm.masked.load.v{self.lanes}f32.p0",
            ("ptr", place),
            ("i32", "4"),
            (f"<{self.lanes} x i1>", mask),
            (self.vector, "zeroinitializer"),
        )

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
                    other = self._masked_load(at, masks[vector])
                added.append(f.emit_value(f"fadd {self.vector} {sums[row * vectors + vector]}, {other}"))
        f.emit(f"br label %{plain}")
        f.label(plain)
        before = f"rows.{tag}.end"
        merged = []
        for known, new in zip(sums, added, strict=True):
            merged.append(f.emit_value(f"phi {self.vector} [{known}, %{before}], [{new}, %{adding}]"))
        is_relu = f.emit_value(f"icmp eq i64 {self.words[Word.ACTIVATION]}, {int(Activation.RELU)}")
        zero = f"{self.vector} zeroinitializer"
        for row, place in enumerate(places):
            for vector in range(vectors):
                value = merged[row * vectors + vector]
                below = f.emit_value(f"fcmp olt {self.vector} {value}, zeroinitializer")
                active = f.emit_value(f"select <{self.lanes} x i1> {below}, {zero}, {self.vector} {value}")
                value = f.emit_value(f"select i1 {is_relu}, {self.vector} {active}, {self.vector} {value}")
                at = f.emit_value(f"getelementptr i8, ptr {output}, i64 {place}")
                at = f.emit_value(f"getelementptr float, ptr {at}, i64 {vector * self.lanes}")
                if masks is None:
                    f.emit(f"store {self.vector} {value}, ptr {at}, align 4")
                else:
                    f.call(
                        "void",
                        f"llvm.masked.store.v{self.lanes}f32.p0",
                        (self.vector, value),
                        ("ptr", at),
                        ("i32", "4"),
                        (f"<{self.lanes} x i1>", masks[vector]),
                    )
        f.emit("br label %next")
