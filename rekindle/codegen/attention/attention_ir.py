"""Emit LLVM IR of attention: ``softmax(query key' scale + mask) value``, of a block of queries at a time.

The keys and the values of a head are packed once for all of its queries that a thread computes::

    keys[block of keys][dimension][key of the block]       values[block of dimensions][key][dimension of the block]
    for block of queries:
        scores[query][key] = query keys                    products of matrices
        scores = exp(scores scale + mask - maximum)        a row at a time, with its sum
        result = scores values / sums                      products of matrices, of so many keys at a time

If there are few queries, as in a step of generation, keys and values are read where they are: packing them would take
longer than the products.

Sizes and strides are read at run time: one module serves all attention of a process. A query none of whose keys counts
gets zeros, as PyTorch's operator has it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from rekindle.codegen.convolution.task_ir import VECTORS, TaskWriter, finished
from rekindle.codegen.emission.expressions import Expressions, multiply_add
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.emission.machines import HostMachine
from rekindle.codegen.llvm.target import Target
from rekindle.codegen.loop_ir.builder import Builder
from rekindle.codegen.loop_ir.scalar_types import F32

NAME: Final = "attention"
KEYS_AT_A_TIME: Final = 128
"""Number of keys whose products are accumulated before the sum is added to memory."""


class AttentionWord(IntEnum):
    """Parameters of the function: 64-bit words. Steps and offsets are in bytes."""

    QUERY = 0
    KEY = 1
    VALUE = 2
    MASK = 3
    """Null, where there is none. It is added to the scores."""
    OUTPUT = 4
    WORKSPACE = 5
    """The workspace of all threads."""
    HEADS = 6
    GROUP = 7
    """Number of heads that share their keys and values."""
    QUERIES = 8
    KEYS = 9
    DIMENSIONS = 10
    """The number of elements of a query and of a key."""
    VALUE_DIMENSIONS = 11
    SCALE = 12
    """The bits of a float."""
    IS_CAUSAL = 13
    """Whether a query sees the keys up to its own number."""
    QUERY_BATCH = 14
    QUERY_HEAD = 15
    QUERY_ROW = 16
    KEY_BATCH = 17
    KEY_HEAD = 18
    KEY_ROW = 19
    VALUE_BATCH = 20
    VALUE_HEAD = 21
    VALUE_ROW = 22
    MASK_BATCH = 23
    MASK_HEAD = 24
    MASK_ROW = 25
    OUTPUT_BATCH = 26
    OUTPUT_HEAD = 27
    OUTPUT_ROW = 28
    BLOCK = 29
    """Queries of a task."""
    BLOCKS = 30
    """Tasks of a head."""
    TASKS = 31
    VALUES = 32
    """Where packed values begin in the workspace of a thread; packed keys begin at 0."""
    SCORES = 33
    SCORES_ROW = 34
    RESULTS = 35
    RESULTS_ROW = 36
    FACTORS = 37
    """One over the sum of each row."""
    WORKSPACE_BYTES = 38
    """The size of the workspace of one thread, in bytes."""
    IS_PACKED = 39
    """Whether keys and values are packed."""


def module_text(target: Target) -> str:
    """Return the LLVM IR of the function ``void(ptr words, ptr query, ptr key, ptr value, ptr mask, ptr output, ptr
    workspace, i64 threads)``. Its arguments replace the words of the same names."""
    module = ModuleBuilder()
    _AttentionWriter(module, target).write()
    return finished(module)


class _AttentionWriter(TaskWriter):
    """Writer of the module's functions: packing, softmax, a block of queries, and the tasks."""

    def __init__(self, module: ModuleBuilder, target: Target) -> None:
        arguments = (
            AttentionWord.QUERY,
            AttentionWord.KEY,
            AttentionWord.VALUE,
            AttentionWord.MASK,
            AttentionWord.OUTPUT,
            AttentionWord.WORKSPACE,
        )
        super().__init__(module, target, NAME, AttentionWord, arguments, AttentionWord.TASKS)
        self.width = VECTORS * self.lanes
        """Number of columns in a block of a packed matrix."""

    def write(self) -> None:
        self.products()
        self._pack_keys()
        self._pack_values()
        self._softmax()
        self._attend()
        self._tasks()
        self.share()
        self.entry()
        self.launch()

    def _blocks(self, count: str) -> str:
        """Emit the number of blocks that ``count`` columns occupy, rounded up; return the operand."""
        return self.calculate("udiv", self.calculate("add", count, self.width - 1), self.width)

    # ----------------------------------------------------------------------------------------------------------- tasks

    def _tasks(self) -> None:
        """Emit the loop over blocks of queries; those of a head are adjacent."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        blocks, heads, group = map(self.word, (AttentionWord.BLOCKS, AttentionWord.HEADS, AttentionWord.GROUP))
        own = self.calculate("mul", "%thread", self.word(AttentionWord.WORKSPACE_BYTES))
        work = self.at(self.pointer(AttentionWord.WORKSPACE), own)
        f.emit("br label %test")
        f.label("test")
        f.emit("%task = phi i64 [%begin, %entry], [%task.next, %attend]")
        f.emit("%packed = phi i64 [-1, %entry], [%shared, %attend]")
        f.emit("%more = icmp ult i64 %task, %end")
        f.emit("br i1 %more, label %body, label %done")
        f.label("body")
        number, block = (self.calculate(how, "%task", blocks) for how in ("udiv", "urem"))
        batch, head = (self.calculate(how, number, heads) for how in ("udiv", "urem"))
        own_keys = self.calculate("udiv", head, group)
        f.emit(f"%shared = add i64 {self.calculate('mul', batch, heads)}, {own_keys}")
        key = self._head(AttentionWord.KEY, batch, AttentionWord.KEY_BATCH, own_keys, AttentionWord.KEY_HEAD)
        value = self._head(AttentionWord.VALUE, batch, AttentionWord.VALUE_BATCH, own_keys, AttentionWord.VALUE_HEAD)
        is_other = f.emit_value("icmp ne i64 %shared, %packed")
        packs = f.emit_value(f"icmp ne i64 {self.word(AttentionWord.IS_PACKED)}, 0")
        f.emit(f"br i1 {f.emit_value(f'and i1 {is_other}, {packs}')}, label %pack, label %attend")
        f.label("pack")
        for name, source in (("keys", key), ("values", value)):
            f.emit(f"call void @{NAME}.{name}(ptr %words, ptr {work}, ptr {source})")
        f.emit("br label %attend")
        f.label("attend")
        query = self._head(AttentionWord.QUERY, batch, AttentionWord.QUERY_BATCH, head, AttentionWord.QUERY_HEAD)
        output = self._head(AttentionWord.OUTPUT, batch, AttentionWord.OUTPUT_BATCH, head, AttentionWord.OUTPUT_HEAD)
        mask = self._head(AttentionWord.MASK, batch, AttentionWord.MASK_BATCH, head, AttentionWord.MASK_HEAD)
        has_mask = f.emit_value(f"icmp ne ptr {self.pointer(AttentionWord.MASK)}, null")
        mask = f.emit_value(f"select i1 {has_mask}, ptr {mask}, ptr null")
        first = self.calculate("mul", block, self.word(AttentionWord.BLOCK))
        given = f"ptr {query}, ptr {key}, ptr {value}, ptr {mask}, ptr {output}"
        f.emit(f"call void @{NAME}.attend(ptr %words, ptr {work}, {given}, i64 {first})")
        f.emit("%task.next = add i64 %task, 1")
        f.emit("br label %test")
        f.label("done")
        f.emit("ret void")
        self.define(f"{NAME}.tasks", "ptr %words, i64 %begin, i64 %end, i64 %thread")

    def _head(
        self, base: AttentionWord, batch: str, batch_step: AttentionWord, head: str, head_step: AttentionWord
    ) -> str:
        """Emit the address of one head of a tensor."""
        offset = self.calculate("mul", batch, self.word(batch_step))
        offset = self.calculate("add", offset, self.calculate("mul", head, self.word(head_step)))
        return self.at(self.pointer(base), offset)

    # --------------------------------------------------------------------------------------------------------- packing

    def _pack_keys(self) -> None:
        """Emit the transposition of the keys of a head; the last block is filled up with zeros."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        keys, dimensions, row = map(self.word, (AttentionWord.KEYS, AttentionWord.DIMENSIONS, AttentionWord.KEY_ROW))
        step = 4 * self.width
        block_step = self.calculate("mul", dimensions, step)
        padded = self.calculate("mul", self._blocks(keys), self.width)

        def key(state: list[str], number: str) -> list[str]:
            block, lane = (self.calculate(how, number, self.width) for how in ("udiv", "urem"))
            target = self.at("%work", self.calculate("mul", block, block_step))
            target = self.at(target, self.calculate("mul", lane, 4))
            last = self.calculate("sub", keys, 1)
            there = f.call("i64", "llvm.umin.i64", ("i64", number), ("i64", last))
            source = self.at("%source", self.calculate("mul", there, row))
            is_key = f.emit_value(f"icmp ult i64 {number}, {keys}")

            def dimension(state: list[str], index: str) -> list[str]:
                value = f.emit_value(f"load float, ptr {self.at(source, self.calculate('mul', index, 4))}, align 4")
                value = f.emit_value(f"select i1 {is_key}, float {value}, float 0.0")
                f.emit(f"store float {value}, ptr {self.at(target, self.calculate('mul', index, step))}, align 4")
                return state

            return self.loop("dimensions", dimensions, "1", "0", [], state, dimension)

        self.loop("numbers", padded, "1", "0", [], [], key)
        f.emit("ret void")
        self.define(f"{NAME}.keys", "ptr %words, ptr %work, ptr %source", after="noinline ")

    def _pack_values(self) -> None:
        """Emit the copy of the values of a head into blocks of dimensions, the last one filled up with zeros."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        keys, dimensions, row = map(
            self.word, (AttentionWord.KEYS, AttentionWord.VALUE_DIMENSIONS, AttentionWord.VALUE_ROW)
        )
        start = self.at("%work", self.word(AttentionWord.VALUES))
        step = 4 * self.lanes
        block_step = self.calculate("mul", keys, 4 * self.width)
        padded = self.calculate("mul", self._blocks(dimensions), VECTORS)

        def vector(state: list[str], number: str) -> list[str]:
            block, lane = (self.calculate(how, number, VECTORS) for how in ("udiv", "urem"))
            target = self.at(start, self.calculate("mul", block, block_step))
            target = self.at(target, self.calculate("mul", lane, step))
            done = self.calculate("mul", number, self.lanes)
            left = f.call("i64", "llvm.usub.sat.i64", ("i64", dimensions), ("i64", done))
            (mask,) = self.masks(left, 1)
            source = self.at("%source", self.calculate("mul", number, step))

            def key(state: list[str], index: str) -> list[str]:
                value = self.masked_load(self.at(source, self.calculate("mul", index, row)), mask)
                self.store(value, self.at(target, self.calculate("mul", index, 4 * self.width)))
                return state

            return self.loop("numbers", keys, "1", "0", [], state, key)

        self.loop("vectors", padded, "1", "0", [], [], vector)
        f.emit("ret void")
        self.define(f"{NAME}.values", "ptr %words, ptr %work, ptr %source", after="noinline ")

    # --------------------------------------------------------------------------------------------------------- softmax

    def _softmax(self) -> None:
        """Emit a function that replaces each score in a row of ``%width`` with the exponential of ``score scale +
        mask`` less the maximum of these, and returns one over the sum, or 0 if that is 0. Only the first ``%valid``
        scores count; the others become zeros."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        scale = self._filled("%scale")
        least = f"<{', '.join(['float 0xFFF0000000000000'] * self.lanes)}>"
        vectors = self.calculate("udiv", "%width", self.lanes)
        step = str(4 * self.lanes)
        has_mask = f.emit_value("icmp ne ptr %mask, null")

        def score(state: list[str], offset: str) -> list[str]:
            place = self.at("%row", offset)
            value = f.emit_value(f"fmul {self.vector} {self.load(place)}, {scale}")
            left = f.call("i64", "llvm.usub.sat.i64", ("i64", "%valid"), ("i64", self.calculate("udiv", offset, 4)))
            (there,) = self.masks(left, 1)
            f.emit("br label %scaled")
            f.label("scaled")
            f.emit(f"br i1 {has_mask}, label %masking, label %masked")
            f.label("masking")
            added = self.masked_load(self.at("%mask", offset), there)
            summed = f.emit_value(f"fadd {self.vector} {value}, {added}")
            f.emit("br label %masked")
            f.label("masked")
            value = f.emit_value(f"phi {self.vector} [{value}, %scaled], [{summed}, %masking]")
            lanes = f"<{self.lanes} x i1>"
            value = f.emit_value(f"select {lanes} {there}, {self.vector} {value}, {self.vector} {least}")
            self.store(value, place)
            larger = f.emit_value(f"fcmp ogt {self.vector} {value}, {state[0]}")
            return [f.emit_value(f"select {lanes} {larger}, {self.vector} {value}, {self.vector} {state[0]}")]

        (found,) = self.loop("scores", vectors, step, "0", [self.vector], [least], score)
        most = f.call("float", f"llvm.vector.reduce.fmax.v{self.lanes}f32", (self.vector, found))
        is_none = f.emit_value(f"fcmp oeq float {most}, 0xFFF0000000000000")
        base = self._filled(f.emit_value(f"select i1 {is_none}, float 0.0, float {most}"))

        def power(state: list[str], offset: str) -> list[str]:
            place = self.at("%row", offset)
            shifted = f.emit_value(f"fsub {self.vector} {self.load(place)}, {base}")
            builder = Builder()
            expression = builder.call("exp", builder.load(0, F32))
            value = Expressions(f, HostMachine(self.target), self.lanes, lambda _: shifted).write(expression)
            self.store(value, place)
            return [f.emit_value(f"fadd {self.vector} {state[0]}, {value}")]

        (sums,) = self.loop("powers", vectors, step, "0", [self.vector], ["zeroinitializer"], power)
        total = self._sum(sums)
        is_zero = f.emit_value(f"fcmp oeq float {total}, 0.0")
        factor = f.emit_value(f"fdiv float 1.0, {total}")
        f.emit(f"ret float {f.emit_value(f'select i1 {is_zero}, float 0.0, float {factor}')}")
        parameters = "ptr %row, i64 %valid, i64 %width, float %scale, ptr %mask"
        self.define(f"{NAME}.softmax", parameters, "float", after="noinline ")

    def _sum(self, vector: str) -> str:
        """Emit the sum of the elements of a vector."""
        name = f"llvm.vector.reduce.fadd.v{self.lanes}f32"
        self.module.declare(name, "float", "float", self.vector)
        return self.f.emit_value(f"call reassoc float @{name}(float -0.0, {self.vector} {vector})")

    def _filled(self, number: str) -> str:
        """Emit a vector whose elements are all ``number``."""
        alone = self.f.emit_value(f"insertelement {self.vector} poison, float {number}, i64 0")
        shape = f"{self.vector} poison, <{self.lanes} x i32> zeroinitializer"
        return self.f.emit_value(f"shufflevector {self.vector} {alone}, {shape}")

    # ----------------------------------------------------------------------------------------------- a block of queries

    def _attend(self) -> None:
        """Emit the function that computes the attention of a block of queries, beginning at query ``%first``."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        queries, keys, block = map(self.word, (AttentionWord.QUERIES, AttentionWord.KEYS, AttentionWord.BLOCK))
        left = self.calculate("sub", queries, "%first")
        rows = f.call("i64", "llvm.umin.i64", ("i64", block), ("i64", left))
        is_causal = f.emit_value(f"icmp ne i64 {self.word(AttentionWord.IS_CAUSAL)}, 0")

        def seen(end: str) -> str:
            """Emit the number of keys that the queries before ``end`` may attend to."""
            fewer = f.call("i64", "llvm.umin.i64", ("i64", keys), ("i64", end))
            return f.emit_value(f"select i1 {is_causal}, i64 {fewer}, i64 {keys}")

        limit = seen(self.calculate("add", "%first", rows))
        is_packed = f.emit_value(f"icmp ne i64 {self.word(AttentionWord.IS_PACKED)}, 0")
        f.emit(f"br i1 {is_packed}, label %score_packed, label %score_rows")
        f.label("score_packed")
        self._score(rows, limit)
        f.emit("br label %scored")
        f.label("score_rows")
        self._score_rows(rows, limit)
        f.emit("br label %scored")
        f.label("scored")
        scores, factors = (self.at("%work", self.word(word)) for word in (AttentionWord.SCORES, AttentionWord.FACTORS))
        scores_row, mask_row = self.word(AttentionWord.SCORES_ROW), self.word(AttentionWord.MASK_ROW)
        scale = f.emit_value(
            f"bitcast i32 {f.emit_value(f'trunc i64 {self.word(AttentionWord.SCALE)} to i32')} to float"
        )
        width = self.calculate("mul", self._blocks(limit), self.width)
        has_mask = f.emit_value("icmp ne ptr %mask, null")

        def row(state: list[str], index: str) -> list[str]:
            number = self.calculate("add", "%first", index)
            valid = seen(self.calculate("add", number, 1))
            place = self.at(scores, self.calculate("mul", index, scores_row))
            mask = self.at("%mask", self.calculate("mul", number, mask_row))
            mask = f.emit_value(f"select i1 {has_mask}, ptr {mask}, ptr null")
            factor = f.emit_value(
                f"call float @{NAME}.softmax(ptr {place}, i64 {valid}, i64 {width}, float {scale}, ptr {mask})"
            )
            f.emit(f"store float {factor}, ptr {self.at(factors, self.calculate('mul', index, 4))}, align 4")
            return state

        self.loop("rows", rows, "1", "0", [], [], row)
        f.emit(f"br i1 {is_packed}, label %weigh_packed, label %weigh_rows")
        f.label("weigh_packed")
        self._weigh(rows, limit, scores, scores_row)
        f.emit("br label %weighed")
        f.label("weigh_rows")
        self._weigh_rows(rows, limit, scores, scores_row)
        f.emit("br label %weighed")
        f.label("weighed")
        self._write(rows, factors)
        f.emit("ret void")
        parameters = "ptr %words, ptr %work, ptr %query, ptr %key, ptr %value, ptr %mask, ptr %output, i64 %first"
        self.define(f"{NAME}.attend", parameters, after="noinline ")

    def _score(self, rows: str, limit: str) -> None:
        """Emit the products of queries and keys."""
        dimensions, query_row = self.word(AttentionWord.DIMENSIONS), self.word(AttentionWord.QUERY_ROW)
        scores, scores_row = self.at("%work", self.word(AttentionWord.SCORES)), self.word(AttentionWord.SCORES_ROW)
        query = self.at("%query", self.calculate("mul", "%first", query_row))
        block_step = self.calculate("mul", dimensions, 4 * self.width)

        def block(state: list[str], number: str) -> list[str]:
            keys = self.at("%work", self.calculate("mul", number, block_step))
            place = self.at(scores, self.calculate("mul", number, 4 * self.width))
            self.call_products(query, query_row, keys, place, scores_row, rows, dimensions, "false")
            return state

        self.loop("key_blocks", self._blocks(limit), "1", "0", [], [], block)

    def _score_rows(self, rows: str, limit: str) -> None:
        """Emit the products of queries and keys that are not packed."""
        f = self.f
        dimensions, query_row = self.word(AttentionWord.DIMENSIONS), self.word(AttentionWord.QUERY_ROW)
        scores, scores_row = self.at("%work", self.word(AttentionWord.SCORES)), self.word(AttentionWord.SCORES_ROW)
        key_row = self.word(AttentionWord.KEY_ROW)
        vectors = self.calculate("udiv", self.calculate("add", dimensions, self.lanes - 1), self.lanes)

        def row(state: list[str], index: str) -> list[str]:
            number = self.calculate("add", "%first", index)
            query = self.at("%query", self.calculate("mul", number, query_row))
            place = self.at(scores, self.calculate("mul", index, scores_row))

            def key(state: list[str], number: str) -> list[str]:
                source = self.at("%key", self.calculate("mul", number, key_row))

                def vector(state: list[str], offset: str) -> list[str]:
                    (mask,) = self.masks(self.calculate("sub", dimensions, self.calculate("udiv", offset, 4)), 1)
                    own, other = (self.masked_load(self.at(each, offset), mask) for each in (query, source))
                    return [multiply_add(f, self.target.has("fma"), "float", self.lanes, own, other, state[0])]

                step = str(4 * self.lanes)
                (sums,) = self.loop("key_vectors", vectors, step, "0", [self.vector], ["zeroinitializer"], vector)
                total = self._sum(sums)
                f.emit(f"store float {total}, ptr {self.at(place, self.calculate('mul', number, 4))}, align 4")
                return state

            return self.loop("key_rows", limit, "1", "0", [], state, key)

        self.loop("query_rows", rows, "1", "0", [], [], row)

    def _weigh_rows(self, rows: str, limit: str, scores: str, scores_row: str) -> None:
        """Emit the products of scores and values that are not packed."""
        f = self.f
        results, results_row = self.at("%work", self.word(AttentionWord.RESULTS)), self.word(AttentionWord.RESULTS_ROW)
        dimensions, value_row = self.word(AttentionWord.VALUE_DIMENSIONS), self.word(AttentionWord.VALUE_ROW)
        vectors = self.calculate("udiv", self.calculate("add", dimensions, self.lanes - 1), self.lanes)
        parts = self.calculate("udiv", self.calculate("add", limit, KEYS_AT_A_TIME - 1), KEYS_AT_A_TIME)
        zero = ["zeroinitializer"]

        def row(state: list[str], index: str) -> list[str]:
            weights = self.at(scores, self.calculate("mul", index, scores_row))
            place = self.at(results, self.calculate("mul", index, results_row))

            def vector(state: list[str], offset: str) -> list[str]:
                (mask,) = self.masks(self.calculate("sub", dimensions, self.calculate("udiv", offset, 4)), 1)
                source = self.at("%value", offset)

                def part(state: list[str], first: str) -> list[str]:
                    left = self.calculate("sub", limit, first)
                    count = f.call("i64", "llvm.umin.i64", ("i64", left), ("i64", str(KEYS_AT_A_TIME)))

                    def key(state: list[str], number: str) -> list[str]:
                        weight = self.spread(self.at(weights, self.calculate("mul", number, 4)))
                        value = self.masked_load(self.at(source, self.calculate("mul", number, value_row)), mask)
                        return [multiply_add(f, self.target.has("fma"), "float", self.lanes, weight, value, state[0])]

                    (sums,) = self.loop("value_rows", count, "1", first, [self.vector], zero, key)
                    return [f.emit_value(f"fadd {self.vector} {state[0]}, {sums}")]

                (total,) = self.loop("value_parts", parts, str(KEYS_AT_A_TIME), "0", [self.vector], zero, part)
                self.store(total, self.at(place, offset))
                return state

            return self.loop("value_vectors", vectors, str(4 * self.lanes), "0", [], state, vector)

        self.loop("weight_rows", rows, "1", "0", [], [], row)

    def _weigh(self, rows: str, limit: str, scores: str, scores_row: str) -> None:
        """Emit the products of scores and values."""
        f = self.f
        values, results = (self.at("%work", self.word(word)) for word in (AttentionWord.VALUES, AttentionWord.RESULTS))
        results_row = self.word(AttentionWord.RESULTS_ROW)
        block_step = self.calculate("mul", self.word(AttentionWord.KEYS), 4 * self.width)
        parts = self.calculate("add", limit, KEYS_AT_A_TIME - 1)
        parts = self.calculate("udiv", parts, KEYS_AT_A_TIME)

        def block(state: list[str], number: str) -> list[str]:
            start = self.at(values, self.calculate("mul", number, block_step))
            place = self.at(results, self.calculate("mul", number, 4 * self.width))

            def part(state: list[str], first: str) -> list[str]:
                left = self.calculate("sub", limit, first)
                count = f.call("i64", "llvm.umin.i64", ("i64", left), ("i64", str(KEYS_AT_A_TIME)))
                weights = self.at(scores, self.calculate("mul", first, 4))
                packed = self.at(start, self.calculate("mul", first, 4 * self.width))
                adds = f.emit_value(f"icmp ne i64 {first}, 0")
                self.call_products(weights, scores_row, packed, place, results_row, rows, count, adds)
                return state

            return self.loop("parts", parts, str(KEYS_AT_A_TIME), "0", [], state, part)

        self.loop("value_blocks", self._blocks(self.word(AttentionWord.VALUE_DIMENSIONS)), "1", "0", [], [], block)

    def _write(self, rows: str, factors: str) -> None:
        """Emit the division by the sums, and the stores."""
        f = self.f
        results, results_row = self.at("%work", self.word(AttentionWord.RESULTS)), self.word(AttentionWord.RESULTS_ROW)
        output_row, dimensions = self.word(AttentionWord.OUTPUT_ROW), self.word(AttentionWord.VALUE_DIMENSIONS)
        output = self.at("%output", self.calculate("mul", "%first", output_row))
        vectors = self.calculate("udiv", self.calculate("add", dimensions, self.lanes - 1), self.lanes)

        def row(state: list[str], index: str) -> list[str]:
            factor = self.spread(self.at(factors, self.calculate("mul", index, 4)))
            source = self.at(results, self.calculate("mul", index, results_row))
            target = self.at(output, self.calculate("mul", index, output_row))

            def vector(state: list[str], offset: str) -> list[str]:
                value = f.emit_value(f"fmul {self.vector} {self.load(self.at(source, offset))}, {factor}")
                (mask,) = self.masks(self.calculate("sub", dimensions, self.calculate("udiv", offset, 4)), 1)
                self.masked_store(value, self.at(target, offset), mask)
                return state

            return self.loop("result_vectors", vectors, str(4 * self.lanes), "0", [], state, vector)

        self.loop("result_rows", rows, "1", "0", [], [], row)
