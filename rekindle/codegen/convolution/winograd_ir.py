"""LLVM IR of Winograd's convolution F(2x2, 3x3): 16 multiplications for 4 results, where 36 are usual.

Tiles of 2x2 results are computed from patches of 4x4 places of a channels-last image. For a block of tiles::

    for tile, channel: patches[16][tile][channel]  = B' image B                        transform of the image
    for each of 16:    products[.][tile][output]   = patches[.] weights[.]             products of matrices
    for tile, output:  result[2x2 places][output]  = A' products A + bias + residual   transform of the result

``B`` and ``A`` have elements 0, 1 and -1. Places outside the image read zeros, places outside the result are written to
memory that nothing reads. Sizes are read at run time: one module serves all convolutions of a process.

For infinite inputs, the result differs from that of a direct convolution. The function returns whether a result is not
finite, so that the caller can compute it directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from itertools import chain
from typing import Final

from rekindle.codegen.convolution.activations import RELU
from rekindle.codegen.convolution.task_ir import VECTORS, TaskWriter, finished
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.llvm.target import Target

NAME: Final = "winograd"
POINTS: Final = 16
"""Number of transformed values of a patch."""


class WinogradWord(IntEnum):
    """Parameters of a function: 64-bit words. Steps are in bytes."""

    IMAGE = 0
    RESIDUAL = 1
    """Null if no residual is added."""
    OUTPUT = 2
    WORKSPACE = 3
    """The workspace of all threads."""
    NOT_FINITE = 4
    """Becomes 1 if a result is not finite."""
    WEIGHTS = 5
    BIAS = 6
    ZEROS = 7
    """Address of zeros, as many as an image has channels."""
    CHANNELS = 8
    CHUNK = 9
    """Number of channels whose products are accumulated before the sum is added to memory."""
    OUTPUTS = 10
    """Channels of the result."""
    HEIGHT = 11
    WIDTH = 12
    TOP = 13
    LEFT = 14
    """Rows and columns of zeros before the image."""
    OUTPUT_HEIGHT = 15
    OUTPUT_WIDTH = 16
    TILE_ROWS = 17
    TILE_COLUMNS = 18
    """Tiles of an image."""
    TILES = 19
    """Tiles of all images."""
    BLOCK = 20
    """Tiles of a task."""
    TASKS = 21
    PATCH_ROW = 22
    PATCH_STEP = 23
    """From one tile to the next, and from one of the 16 numbers to the next, in the workspace."""
    PRODUCT_ROW = 24
    PRODUCT_STEP = 25
    PRODUCTS = 26
    """Where products begin in the workspace of a thread."""
    UNREAD = 27
    """Where results outside the image are written to, in the workspace of a thread."""
    WORKSPACE_BYTES = 28
    """The size of the workspace of one thread, in bytes."""
    BLOCKS = 29
    """Blocks of channels of the result."""
    ACTIVATION = 30
    """The number of an :class:`~rekindle.codegen.convolution.activations.Activation`."""


_IMAGE_TRANSFORM: Final = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
_RESULT_TRANSFORM: Final = ((1, 1, 1, 0), (0, 1, -1, -1))
WEIGHT_TRANSFORM: Final = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))


def module_text(target: Target) -> str:
    """Return the LLVM IR of the function ``i64(ptr words, ptr image, ptr residual, ptr output, ptr workspace, i64
    threads)``. Its arguments replace the words of the same names."""
    module = ModuleBuilder()
    _WinogradWriter(module, target).write()
    return finished(module)


class _WinogradWriter(TaskWriter):
    """Writer of the module's functions: the transforms, the products, and the tasks."""

    def __init__(self, module: ModuleBuilder, target: Target) -> None:
        arguments = (WinogradWord.IMAGE, WinogradWord.RESIDUAL, WinogradWord.OUTPUT, WinogradWord.WORKSPACE)
        super().__init__(module, target, NAME, WinogradWord, arguments, WinogradWord.TASKS, WinogradWord.NOT_FINITE)

    def write(self) -> None:
        self.activate()
        self._transform_images()
        self.products(fetches=True)
        self._multiply_all()
        self._transform_results()
        self._tasks()
        self.share()
        self.entry()
        self.launch()

    def _tasks(self) -> None:
        """Emit the loop over blocks of tiles."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        block, tiles = self.word(WinogradWord.BLOCK), self.word(WinogradWord.TILES)
        own = self.calculate("mul", "%thread", self.word(WinogradWord.WORKSPACE_BYTES))
        work = self.at(self.pointer(WinogradWord.WORKSPACE), own)
        f.emit("br label %test")
        f.label("test")
        f.emit("%task = phi i64 [%begin, %entry], [%task.next, %body]")
        f.emit("%more = icmp ult i64 %task, %end")
        f.emit("br i1 %more, label %body, label %done")
        f.label("body")
        first = self.calculate("mul", "%task", block)
        left = self.calculate("sub", tiles, first)
        count = f.call("i64", "llvm.umin.i64", ("i64", block), ("i64", left))
        f.emit(f"call void @{NAME}.images(ptr %words, ptr {work}, i64 {first}, i64 {count})")
        f.emit(f"call void @{NAME}.points(ptr %words, ptr {work}, i64 {count})")
        f.emit(f"call void @{NAME}.results(ptr %words, ptr {work}, i64 {first}, i64 {count})")
        f.emit("%task.next = add i64 %task, 1")
        f.emit("br label %test")
        f.label("done")
        f.emit("ret void")
        self.define(f"{NAME}.tasks", "ptr %words, i64 %begin, i64 %end, i64 %thread")

    def _position(self, tile: str) -> tuple[str, str, str]:
        """Emit the image, the row and the column of a tile."""
        rows, columns = self.word(WinogradWord.TILE_ROWS), self.word(WinogradWord.TILE_COLUMNS)
        line, column = (self.calculate(how, tile, columns) for how in ("udiv", "urem"))
        image, row = (self.calculate(how, line, rows) for how in ("udiv", "urem"))
        return image, row, column

    def _combine(self, factors: Sequence[int], values: Sequence[str]) -> str:
        """Emit a sum of vectors with factors 1 and -1."""
        f = self.f
        plus = [value for factor, value in zip(factors, values, strict=True) if factor > 0]
        minus = [value for factor, value in zip(factors, values, strict=True) if factor < 0]
        total = plus[0]
        for value in plus[1:]:
            total = f.emit_value(f"fadd {self.vector} {total}, {value}")
        for value in minus:
            total = f.emit_value(f"fsub {self.vector} {total}, {value}")
        return total

    def _transformed(self, matrix: Sequence[Sequence[int]], values: Sequence[Sequence[str]]) -> list[list[str]]:
        """Emit ``matrix values matrix'``."""
        columns = list(zip(*values, strict=True))
        half = [[self._combine(factors, column) for column in columns] for factors in matrix]
        return [[self._combine(factors, row) for factors in matrix] for row in half]

    # ----------------------------------------------------------------------------------------------------- the image

    def _transform_images(self) -> None:
        """Emit the transform of the patches of a block."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        channels, height, width = map(self.word, (WinogradWord.CHANNELS, WinogradWord.HEIGHT, WinogradWord.WIDTH))
        image, zeros = self.pointer(WinogradWord.IMAGE), self.pointer(WinogradWord.ZEROS)
        step, patch_row = self.word(WinogradWord.PATCH_STEP), self.word(WinogradWord.PATCH_ROW)
        top, left = self.word(WinogradWord.TOP), self.word(WinogradWord.LEFT)
        pixel = self.calculate("mul", channels, 4)
        whole = self.calculate("udiv", channels, self.lanes)
        rest = self.calculate("urem", channels, self.lanes)
        (mask,) = self.masks(rest, 1)
        has_whole, has_rest = (f.emit_value(f"icmp ne i64 {each}, 0") for each in (whole, rest))
        end = self.calculate("mul", whole, 4 * self.lanes)

        def places(tile: str) -> list[str]:
            number, row, column = self._position(tile)
            rows = [self.calculate("sub", self.calculate("mul", row, 2), top)]
            columns = [self.calculate("sub", self.calculate("mul", column, 2), left)]
            for each in (rows, columns):
                each += [self.calculate("add", each[0], index) for index in range(1, 4)]
            inside = [
                [f.emit_value(f"icmp ult i64 {each}, {limit}") for each in found]  # a negative one is large
                for found, limit in ((rows, height), (columns, width))
            ]
            found = []
            for y, is_row in zip(rows, inside[0], strict=True):
                line = self.calculate("mul", self.calculate("add", self.calculate("mul", number, height), y), width)
                for x, is_column in zip(columns, inside[1], strict=True):
                    offset = self.calculate("mul", self.calculate("add", line, x), pixel)
                    is_inside = f.emit_value(f"and i1 {is_row}, {is_column}")
                    found.append(f.emit_value(f"select i1 {is_inside}, ptr {self.at(image, offset)}, ptr {zeros}"))
            return found

        def transform(sources: list[str], target: str, offset: str, is_masked: bool) -> None:
            at = [self.at(source, offset) for source in sources]
            values = [self.masked_load(each, mask) if is_masked else self.load(each) for each in at]
            patch = [values[index : index + 4] for index in range(0, POINTS, 4)]
            place = self.at(target, offset)
            for value in chain.from_iterable(self._transformed(_IMAGE_TRANSFORM, patch)):
                self.store(value, place)  # rows have room for whole vectors
                place = self.at(place, step)

        def tile(state: list[str], number: str) -> list[str]:
            sources = places(self.calculate("add", "%first", number))
            target = self.at("%work", self.calculate("mul", number, patch_row))

            def vector(state: list[str], offset: str) -> list[str]:
                transform(sources, target, offset, False)
                return state

            f.emit(f"br i1 {has_whole}, label %whole, label %after")
            f.label("whole")
            self.loop("vectors", whole, str(4 * self.lanes), "0", [], [], vector)
            f.emit("br label %after")
            f.label("after")
            f.emit(f"br i1 {has_rest}, label %rest, label %next")
            f.label("rest")
            transform(sources, target, end, True)
            f.emit("br label %next")
            f.label("next")
            return state

        self.loop("tiles", "%count", "1", "0", [], [], tile)
        f.emit("ret void")
        self.define(f"{NAME}.images", "ptr %words, ptr %work, i64 %first, i64 %count", after="noinline ")

    # -------------------------------------------------------------------------------------------------------- products

    def _multiply_all(self) -> None:
        """Emit the 16 products of a block of tiles."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        channels, chunk = self.word(WinogradWord.CHANNELS), self.word(WinogradWord.CHUNK)
        patch_row, product_row = self.word(WinogradWord.PATCH_ROW), self.word(WinogradWord.PRODUCT_ROW)
        width = 4 * self.lanes * VECTORS
        chunks = self.calculate("udiv", self.calculate("sub", self.calculate("add", channels, chunk), 1), chunk)
        all_products = self.at("%work", self.word(WinogradWord.PRODUCTS))
        weights = self.pointer(WinogradWord.WEIGHTS)
        patch_step, product_step = self.word(WinogradWord.PATCH_STEP), self.word(WinogradWord.PRODUCT_STEP)
        blocks = self.word(WinogradWord.BLOCKS)

        def point(state: list[str], number: str) -> list[str]:
            patches = self.at("%work", self.calculate("mul", number, patch_step))
            products = self.at(all_products, self.calculate("mul", number, product_step))

            def block(state: list[str], offset: str) -> list[str]:
                columns = self.at(products, offset)

                def part(state: list[str], first: str) -> list[str]:
                    left = self.calculate("sub", channels, first)
                    count = f.call("i64", "llvm.umin.i64", ("i64", left), ("i64", chunk))
                    adds = f.emit_value(f"icmp ne i64 {first}, 0")
                    start = self.at(patches, self.calculate("mul", first, 4))
                    self.call_products(start, patch_row, state[0], columns, product_row, "%count", count, adds)
                    return [self.at(state[0], self.calculate("mul", count, width))]

                return self.loop("chunks", chunks, chunk, "0", ["ptr"], state, part)

            return self.loop("blocks", blocks, str(width), "0", ["ptr"], state, block)

        self.loop("points", str(POINTS), "1", "0", ["ptr"], [weights], point)
        f.emit("ret void")
        self.define(f"{NAME}.points", "ptr %words, ptr %work, i64 %count", after="noinline ")

    # ------------------------------------------------------------------------------------------------------ the result

    def _transform_results(self) -> None:
        """Emit the inverse transform of the products of a block, the addition of bias and residual, the activation and
        the stores."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        f.emit(f"%sum = alloca {self.vector}, align {4 * self.lanes}")
        f.emit(f"store {self.vector} zeroinitializer, ptr %sum")
        outputs, height, width = map(
            self.word, (WinogradWord.OUTPUTS, WinogradWord.OUTPUT_HEIGHT, WinogradWord.OUTPUT_WIDTH)
        )
        output, residual, bias = map(self.pointer, (WinogradWord.OUTPUT, WinogradWord.RESIDUAL, WinogradWord.BIAS))
        has_residual = f.emit_value(f"icmp ne ptr {residual}, null")
        step, product_row = self.word(WinogradWord.PRODUCT_STEP), self.word(WinogradWord.PRODUCT_ROW)
        products = self.at("%work", self.word(WinogradWord.PRODUCTS))
        unread = self.at("%work", self.word(WinogradWord.UNREAD))
        activation = self.word(WinogradWord.ACTIVATION)
        is_relu = f.emit_value(f"icmp eq i64 {activation}, {RELU.number}")
        is_simple = f.emit_value(f"icmp ule i64 {activation}, {RELU.number}")
        pixel = self.calculate("mul", outputs, 4)
        vectors = self.calculate("udiv", self.calculate("add", outputs, self.lanes - 1), self.lanes)

        def places(tile: str) -> tuple[list[str], list[str]]:
            """Return where the four places are in the result, and in the residual; for places outside of the image, the
            address of unused memory in the workspace."""
            number, row, column = self._position(tile)
            written: list[str] = []
            added: list[str] = []
            for dy in (0, 1):
                y = self.calculate("add", self.calculate("mul", row, 2), dy)
                is_row = f.emit_value(f"icmp ult i64 {y}, {height}")
                line = self.calculate("mul", self.calculate("add", self.calculate("mul", number, height), y), width)
                for dx in (0, 1):
                    x = self.calculate("add", self.calculate("mul", column, 2), dx)
                    is_inside = f.emit_value(f"and i1 {is_row}, {f.emit_value(f'icmp ult i64 {x}, {width}')}")
                    offset = self.calculate("mul", self.calculate("add", line, x), pixel)
                    for base, found in ((output, written), (residual, added)):
                        place = self.at(base, offset)
                        found.append(f.emit_value(f"select i1 {is_inside}, ptr {place}, ptr {unread}"))
            return written, added

        def tile(state: list[str], number: str) -> list[str]:
            written, added = places(self.calculate("add", "%first", number))
            source = self.at(products, self.calculate("mul", number, product_row))

            def vector(state: list[str], offset: str) -> list[str]:
                place = self.at(source, offset)
                values = []
                for _ in range(POINTS):
                    values.append(self.load(place))
                    place = self.at(place, step)
                square = [values[index : index + 4] for index in range(0, POINTS, 4)]
                constant = self.load(self.at(bias, offset))
                results = [
                    f.emit_value(f"fadd {self.vector} {value}, {constant}")
                    for value in chain.from_iterable(self._transformed(_RESULT_TRANSFORM, square))
                ]
                left = self.calculate("sub", outputs, self.calculate("udiv", offset, 4))
                (mask,) = self.masks(left, 1)
                self._finish(results, written, added, offset, mask, has_residual, is_relu)
                return state

            self.loop("vectors", vectors, str(4 * self.lanes), "0", [], [], vector)
            f.emit(f"br i1 {is_simple}, label %next, label %active")
            f.label("active")
            for place in written:
                self.call_activate(place, "1", "0", outputs, activation)
            f.emit("br label %next")
            f.label("next")
            return state

        self.loop("tiles", "%count", "1", "0", [], [], tile)
        self._report()
        self.define(f"{NAME}.results", "ptr %words, ptr %work, i64 %first, i64 %count", after="noinline ")

    def _finish(
        self,
        results: Sequence[str],
        written: Sequence[str],
        added: Sequence[str],
        offset: str,
        mask: str,
        has_residual: str,
        is_relu: str,
    ) -> None:
        """Emit the addition of the residual, ``relu`` and the stores; accumulate in ``%sum`` whether a number is not
        finite."""
        f = self.f
        before = f.name()
        f.emit(f"br label %{before}")
        f.label(before)
        f.emit(f"br i1 {has_residual}, label %adding, label %plain")
        f.label("adding")
        others = [self.masked_load(self.at(place, offset), mask) for place in added]
        sums = [
            f.emit_value(f"fadd {self.vector} {value}, {other}") for value, other in zip(results, others, strict=True)
        ]
        f.emit("br label %plain")
        f.label("plain")
        merged = [
            f.emit_value(f"phi {self.vector} [{value}, %{before}], [{other}, %adding]")
            for value, other in zip(results, sums, strict=True)
        ]
        total = f.emit_value(f"load {self.vector}, ptr %sum")
        for value in results:
            zero = f.emit_value(f"fmul {self.vector} {value}, zeroinitializer")  # or NaN, if it is not finite
            total = f.emit_value(f"fadd {self.vector} {total}, {zero}")
        f.emit(f"store {self.vector} {total}, ptr %sum")
        for value, place in zip(merged, written, strict=True):
            self.masked_store(self.relu(value, is_relu), self.at(place, offset), mask)

    def _report(self) -> None:
        """Emit the store of 1 to ``NOT_FINITE`` if a result is not finite."""
        f = self.f
        total = f.emit_value(f"load {self.vector}, ptr %sum")
        unordered = f.emit_value(f"fcmp uno {self.vector} {total}, zeroinitializer")
        some = f.call("i1", f"llvm.vector.reduce.or.v{self.lanes}i1", (f"<{self.lanes} x i1>", unordered))
        f.emit(f"br i1 {some}, label %found, label %done")
        f.label("found")
        f.emit(f"store i64 1, ptr {self.place_of(WinogradWord.NOT_FINITE)}, align 8")
        f.emit("br label %done")
        f.label("done")
        f.emit("ret void")
