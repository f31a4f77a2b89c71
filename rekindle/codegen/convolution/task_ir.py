"""Emission of functions that divide their work into tasks, which threads share, and that read sizes from a table of
words.

A function is ``@name(ptr given, arguments…, i64 threads)``. It copies the words to its stack, since several Python
threads may call it with one table. It stores its arguments in the copy, and runs ``@name.tasks(ptr words, i64 begin,
i64 end, i64 thread)`` for all tasks, or for a share of them on each thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final

from rekindle.codegen.convolution.activations import ACTIVATIONS, NONE, RELU, Activation
from rekindle.codegen.convolution.launch_ir import launch_text
from rekindle.codegen.emission.expressions import multiply_add
from rekindle.codegen.emission.ir_builder import FunctionBuilder, ModuleBuilder
from rekindle.codegen.llvm import vector_math
from rekindle.codegen.llvm.target import Target

VECTORS: Final = 2
"""Number of vectors of channels in a block."""
_UNROLL: Final = 4
"""Number of steps in an iteration of the loop of a product."""
_SHARES: Final = 8
"""Number of tiles of rows that prefetch the next matrix together."""


def lanes_of(target: Target) -> int:
    """Return the number of floats in a vector."""
    return target.vector_bits // 32


def rows_of(target: Target) -> tuple[int, ...]:
    """Return the numbers of rows that a tile of results may have, in descending order. Vector registers limit the
    first."""
    most = {512: 8, 256: 6, 128: 6}[target.vector_bits]
    return (most, 4, 2, 1)


def finished(module: ModuleBuilder) -> str:
    """Return the LLVM IR of a module."""
    declarations = "\n".join(module.declarations[name] for name in sorted(module.declarations))
    functions = vector_math.texts(list(module.functions.values()))
    return "\n\n".join([declarations, functions, *module.definitions, "!0 = !{}"]) + "\n"


class TaskWriter:
    """Base of writers of a function that threads share. ``arguments`` are the parameter words that are overwritten by
    arguments; ``tasks`` is the word with the number of tasks; ``result`` is the word that the function returns, None
    for a function without a result."""

    def __init__(
        self,
        module: ModuleBuilder,
        target: Target,
        name: str,
        words: type[IntEnum],
        arguments: Sequence[IntEnum],
        tasks: IntEnum,
        result: IntEnum | None = None,
    ) -> None:
        self.module = module
        self.target = target
        self.name = name
        self.lanes = lanes_of(target)
        self.vector = f"<{self.lanes} x float>"
        self.f = FunctionBuilder(module)
        self._words = words
        self._arguments = arguments
        self._task_count = tasks
        self._result = result

    # ----------------------------------------------------------------------------------------------------- parallelism

    def entry(self) -> None:
        """Emit the function: run all tasks here, or a share of them on each thread."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        f.emit(f"%words = alloca [{len(self._words)} x i64], align 8")
        f.call(
            "void",
            "llvm.memcpy.p0.p0.i64",
            ("ptr", "%words"),
            ("ptr", "%given"),
            ("i64", str(8 * len(self._words))),
            ("i1", "false"),
        )
        names = [f"%argument{number}" for number in range(len(self._arguments))]
        for word, name in zip(self._arguments, names, strict=True):
            f.emit(f"store ptr {name}, ptr {self.place_of(word)}, align 8")
        place = f.emit_value(f"getelementptr i64, ptr %given, i64 {int(self._task_count)}")
        tasks = f.emit_value(f"load i64, ptr {place}, align 8")
        inside = f.emit_value(f"icmp ne i32 {f.call('i32', 'omp_in_parallel')}, 0")
        single = f.emit_value("icmp ult i64 %threads, 2")
        f.emit(f"br i1 {f.emit_value(f'or i1 {inside}, {single}')}, label %one, label %several")
        f.label("one")
        f.emit(f"call void @{self.name}.tasks(ptr %words, i64 0, i64 {tasks}, i64 0)")
        self._return()
        f.label("several")
        count = f.emit_value("trunc i64 %threads to i32")
        body = ("ptr", f"@{self.name}.share")
        f.call("void", "GOMP_parallel", body, ("ptr", "%words"), ("i32", count), ("i32", "0"))
        self._return()
        parameters = ", ".join(["ptr %given", *(f"ptr {name}" for name in names), "i64 %threads"])
        self.define(self.name, parameters, "" if self._result is None else "i64", "")

    def launch(self, *, pads: bool = False) -> None:
        """Emit the function by which native code launches this one, unless this build of PyTorch lacks what that
        needs; see :mod:`rekindle.codegen.convolution.launch_ir`."""
        returns = self._result is not None
        text = launch_text(self.name, len(self._arguments), len(self._words), returns=returns, pads=pads)
        if text is not None:
            self.module.definitions.append(text)

    def _return(self) -> None:
        if self._result is None:
            self.f.emit("ret void")
        else:
            self.f.emit(f"ret i64 {self.f.emit_value(f'load i64, ptr {self.place_of(self._result)}, align 8')}")

    def share(self) -> None:
        """Emit the function that each thread runs: its share of the tasks."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        tasks = self.word(self._task_count)
        thread = f.emit_value(f"sext i32 {f.call('i32', 'omp_get_thread_num')} to i64")
        threads = f.emit_value(f"sext i32 {f.call('i32', 'omp_get_num_threads')} to i64")
        begin, end = (
            f.emit_value(f"udiv i64 {f.emit_value(f'mul i64 {tasks}, {each}')}, {threads}")
            for each in (thread, f.emit_value(f"add i64 {thread}, 1"))
        )
        f.emit(f"call void @{self.name}.tasks(ptr %words, i64 {begin}, i64 {end}, i64 {thread})")
        f.emit("ret void")
        self.define(f"{self.name}.share", "ptr %words")

    def define(self, name: str, parameters: str, result: str = "", linkage: str = "internal ", after: str = "") -> None:
        """Add the emitted function to the module."""
        head = f"define {linkage}{result or 'void'} @{name}({parameters}) {after}{{"
        self.module.definitions.append("\n".join([head, *self.f.lines, "}"]))

    # ----------------------------------------------------------------------------------------------------------- words

    def place_of(self, word: IntEnum) -> str:
        """Emit the address of a parameter word."""
        return self.f.emit_value(f"getelementptr i64, ptr %words, i64 {int(word)}")

    def word(self, word: IntEnum) -> str:
        """Emit the load of a parameter word as a number. The load is not invariant: the function itself writes the copy
        of the words."""
        return self.f.emit_value(f"load i64, ptr {self.place_of(word)}, align 8")

    def pointer(self, word: IntEnum) -> str:
        """Emit the load of a parameter word as an address."""
        return self.f.emit_value(f"load ptr, ptr {self.place_of(word)}, align 8")

    # ----------------------------------------------------------------------------------------------------------- loops

    def loop(
        self,
        tag: str,
        count: str,
        step: str,
        start: str,
        types: Sequence[str],
        state: list[str],
        body: Callable[[list[str], str], list[str]],
    ) -> list[str]:
        """Emit a loop that runs ``count`` times, at least once. ``body`` takes the state, values of these ``types``,
        and an offset, and returns the next state. The offset starts at ``start`` and increases by ``step``. Return the
        final state."""
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

    def _optional_loop(
        self,
        tag: str,
        before: str,
        count: str,
        step: str,
        start: str,
        types: Sequence[str],
        state: list[str],
        body: Callable[[list[str], str], list[str]],
    ) -> list[str]:
        """Emit :meth:`loop` from the block ``before``, if ``count`` is not 0. Code is then emitted to the block
        ``tag.done``."""
        f = self.f
        f.emit(f"br i1 {f.emit_value(f'icmp eq i64 {count}, 0')}, label %{tag}.done, label %{tag}.some")
        f.label(f"{tag}.some")
        found = self.loop(tag, count, step, start, types, state, body)
        f.emit(f"br label %{tag}.done")
        f.label(f"{tag}.done")
        return [
            f.emit_value(f"phi {type} [{known}, %{before}], [{new}, %{tag}.end]")
            for type, known, new in zip(types, state, found, strict=True)
        ]

    # --------------------------------------------------------------------------------------------------------- vectors

    def at(self, base: str, offset: str) -> str:
        """Emit the address that is ``offset`` bytes after ``base``."""
        return self.f.emit_value(f"getelementptr i8, ptr {base}, i64 {offset}")

    def calculate(self, operation: str, a: str, b: str | int) -> str:
        """Emit an operation on 64-bit integers."""
        return self.f.emit_value(f"{operation} i64 {a}, {b}")

    def load(self, place: str) -> str:
        """Emit the load of a vector."""
        return self.f.emit_value(f"load {self.vector}, ptr {place}, align 4")

    def store(self, value: str, place: str) -> None:
        """Emit the store of a vector."""
        self.f.emit(f"store {self.vector} {value}, ptr {place}, align 4")

    def spread(self, place: str) -> str:
        """Emit the load of a number into all lanes of a vector."""
        one = self.f.emit_value(f"load float, ptr {place}, align 4")
        alone = self.f.emit_value(f"insertelement {self.vector} poison, float {one}, i64 0")
        shape = f"{self.vector} poison, <{self.lanes} x i32> zeroinitializer"
        return self.f.emit_value(f"shufflevector {self.vector} {alone}, {shape}")

    def masks(self, rest: str, vectors: int) -> list[str]:
        """Emit the masks of ``vectors`` vectors, of which the first ``rest`` lanes exist, fewer than 2³¹."""
        f = self.f
        numbers = f"<{self.lanes} x i32>"
        one = f.emit_value(f"trunc i64 {rest} to i32")
        spread = f.emit_value(f"insertelement {numbers} poison, i32 {one}, i64 0")
        spread = f.emit_value(
            f"shufflevector {numbers} {spread}, {numbers} poison, <{self.lanes} x i32> zeroinitializer"
        )
        found = []
        for vector in range(vectors):
            lanes = ", ".join(f"i32 {vector * self.lanes + lane}" for lane in range(self.lanes))
            found.append(f.emit_value(f"icmp ult {numbers} <{lanes}>, {spread}"))
        return found

    def masked_load(self, place: str, mask: str) -> str:
        """Emit the load of some lanes of a vector; the others are 0."""
        return self.f.call(
            self.vector,
            f"llvm.masked.load.v{self.lanes}f32.p0",
            ("ptr", place),
            ("i32", "4"),
            (f"<{self.lanes} x i1>", mask),
            (self.vector, "zeroinitializer"),
        )

    def masked_store(self, value: str, place: str, mask: str) -> None:
        """Emit the store of some lanes of a vector."""
        self.f.call(
            "void",
            f"llvm.masked.store.v{self.lanes}f32.p0",
            (self.vector, value),
            ("ptr", place),
            ("i32", "4"),
            (f"<{self.lanes} x i1>", mask),
        )

    # --------------------------------------------------------------------------------------------- products of matrices

    def call_products(
        self, left: str, left_row: str, right: str, result: str, result_row: str, rows: str, depth: str, adds: str
    ) -> None:
        """Emit the call of the function that :meth:`products` emits."""
        self.f.emit(
            f"call void @{self.name}.products(ptr {left}, i64 {left_row}, ptr {right}, ptr {result}, "
            f"i64 {result_row}, i64 {rows}, i64 {depth}, i1 {adds})"
        )

    def products(self, *, fetches: bool = False) -> None:
        """Emit the function that multiplies a matrix of ``rows`` rows and ``depth`` columns with a packed one, whose
        rows are adjacent in memory and a block of columns wide. With ``adds``, the product is added to the result
        matrix. If ``fetches``, the function prefetches what follows the packed matrix in memory, as much as that has:
        the matrix of the next call."""
        for rows in rows_of(self.target):
            self._tile_of_products(rows, fetches)
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        f.emit("br label %next")
        f.label("next")
        sizes, width = rows_of(self.target), 4 * self.lanes * VECTORS
        phis = ", ".join(f"[%row.after{size}, %rows{size}]" for size in sizes)
        f.emit(f"%row = phi i64 [0, %entry], {phis}")
        left = self.calculate("sub", "%rows", "%row")
        start = self.at("%left", self.calculate("mul", "%row", "%left.row"))
        place = self.at("%result", self.calculate("mul", "%row", "%result.row"))
        share = self.calculate("and", self.calculate("udiv", "%row", sizes[0]), _SHARES - 1)
        share = self.calculate("add", self.calculate("mul", share, width // _SHARES), width)
        ahead = self.at("%right", self.calculate("mul", share, "%depth"))
        for size in sizes:
            f.emit(f"%fits{size} = icmp uge i64 {left}, {size}")
            f.emit(f"br i1 %fits{size}, label %rows{size}, label %fewer{size}")
            f.label(f"rows{size}")
            f.emit(
                f"call void @{self.name}.products{size}(ptr {start}, i64 %left.row, ptr %right, ptr {place}, "
                f"i64 %result.row, i64 %depth, i1 %adds, ptr {ahead})"
            )
            f.emit(f"%row.after{size} = add i64 %row, {size}")
            f.emit("br label %next")
            f.label(f"fewer{size}")
        f.emit("ret void")
        parameters = (
            "ptr %left, i64 %left.row, ptr %right, ptr %result, i64 %result.row, i64 %rows, i64 %depth, i1 %adds"
        )
        self.define(f"{self.name}.products", parameters, after="noinline ")

    def _tile_of_products(self, rows: int, fetches: bool) -> None:
        """Emit the function that computes a product of ``rows`` rows, whose sums stay in registers. If ``fetches``, it
        prefetches a share of the next matrix, at ``%ahead``."""
        f = self.f = FunctionBuilder(self.module)
        f.label("entry")
        starts, places = ["%left"], ["%result"]
        for _ in range(rows - 1):
            starts.append(self.at(starts[-1], "%left.row"))
            places.append(self.at(places[-1], "%result.row"))
        count = rows * VECTORS

        def step(state: list[str], offset: str) -> list[str]:
            right, ahead, *sums = state
            factors = [self.load(self.at(right, str(4 * self.lanes * vector))) for vector in range(VECTORS)]
            found = [self.at(right, str(4 * self.lanes * VECTORS)), ahead]
            for row, start in enumerate(starts):
                number = self.spread(self.at(start, offset))
                for vector, factor in enumerate(factors):
                    known = sums[row * VECTORS + vector]
                    found.append(multiply_add(f, self.target.has("fma"), "float", self.lanes, number, factor, known))
            return found

        def steps(state: list[str], offset: str) -> list[str]:
            if fetches:
                f.call("void", "llvm.prefetch.p0", ("ptr", state[1]), ("i32", "0"), ("i32", "2"), ("i32", "1"))
            for number in range(_UNROLL):
                state = step(state, self.calculate("add", offset, 4 * number))
            return [state[0], self.at(state[1], str(4 * self.lanes * VECTORS * _UNROLL // _SHARES)), *state[2:]]

        types = ["ptr", "ptr", *[self.vector] * count]
        state = ["%right", "%ahead", *["zeroinitializer"] * count]
        whole, rest = self.calculate("udiv", "%depth", _UNROLL), self.calculate("urem", "%depth", _UNROLL)
        done = self.calculate("sub", "%depth", rest)
        state = self._optional_loop("whole", "entry", whole, str(4 * _UNROLL), "0", types, state, steps)
        state = self._optional_loop("rest", "whole.done", rest, "4", self.calculate("mul", done, 4), types, state, step)
        _, _, *sums = state
        f.emit("br i1 %adds, label %adding, label %storing")
        targets = [(place, str(4 * self.lanes * vector)) for place in places for vector in range(VECTORS)]
        for label in ("adding", "storing"):
            f.label(label)
            for value, (place, offset) in zip(sums, targets, strict=True):
                at = self.at(place, offset)
                if label == "adding":
                    value = f.emit_value(f"fadd {self.vector} {self.load(at)}, {value}")
                self.store(value, at)
            f.emit("ret void")
        parameters = (
            "ptr %left, i64 %left.row, ptr %right, ptr %result, i64 %result.row, i64 %depth, i1 %adds, ptr %ahead"
        )
        self.define(f"{self.name}.products{rows}", parameters, after="noinline ")

    # ------------------------------------------------------------------------------------------------------ activations

    def relu(self, value: str, is_relu: str) -> str:
        """Emit ``relu`` of a vector if ``is_relu``, else the vector unchanged. NaN remains NaN."""
        f, zero = self.f, f"{self.vector} zeroinitializer"
        below = f.emit_value(f"fcmp olt {self.vector} {value}, zeroinitializer")
        active = f.emit_value(f"select <{self.lanes} x i1> {below}, {zero}, {self.vector} {value}")
        return f.emit_value(f"select i1 {is_relu}, {self.vector} {active}, {self.vector} {value}")

    def call_activate(self, start: str, rows: str, step: str, channels: str, activation: str) -> None:
        """Emit the call of the function that :meth:`activate` emits."""
        self.f.emit(
            f"call void @{self.name}.activate(ptr {start}, i64 {rows}, i64 {step}, i64 {channels}, i64 {activation})"
        )

    def activate(self) -> None:
        """Emit the function that applies an activation other than ``relu`` to rows of channels in memory."""
        f = self.f = FunctionBuilder(self.module)
        formulas = [each for each in ACTIVATIONS.values() if each not in (NONE, RELU)]
        f.label("entry")
        whole = self.calculate("udiv", "%channels", self.lanes)
        rest = self.calculate("urem", "%channels", self.lanes)
        has_whole, has_rest = (f.emit_value(f"icmp ne i64 {each}, 0") for each in (whole, rest))
        (mask,) = self.masks(rest, 1)
        end = self.calculate("mul", whole, 4 * self.lanes)
        cases = " ".join(f"i64 {each.number}, label %{each.name}" for each in formulas)
        f.emit(f"switch i64 %activation, label %done [{cases}]")
        for each in formulas:
            f.label(each.name)
            self._activate_rows(each, whole, end, mask, has_whole, has_rest)
            f.emit("br label %done")
        f.label("done")
        f.emit("ret void")
        parameters = "ptr %start, i64 %count, i64 %step, i64 %channels, i64 %activation"
        self.define(f"{self.name}.activate", parameters, after="noinline ")

    def _activate_rows(
        self, activation: Activation, whole: str, end: str, mask: str, has_whole: str, has_rest: str
    ) -> None:
        """Emit the loop over rows: ``whole`` vectors, which end at the offset ``end``, then the lanes of ``mask``."""
        f, tag = self.f, activation.name

        def rows(state: list[str], start: str) -> list[str]:
            line = self.at("%start", start)

            def vectors(state: list[str], offset: str) -> list[str]:
                place = self.at(line, offset)
                self.store(activation.emit(f, self.target, self.lanes, self.load(place)), place)
                return state

            f.emit(f"br i1 {has_whole}, label %{tag}.whole, label %{tag}.tail")
            f.label(f"{tag}.whole")
            self.loop(f"{tag}.vectors", whole, str(4 * self.lanes), "0", [], [], vectors)
            f.emit(f"br label %{tag}.tail")
            f.label(f"{tag}.tail")
            f.emit(f"br i1 {has_rest}, label %{tag}.rest, label %{tag}.row")
            f.label(f"{tag}.rest")
            place = self.at(line, end)
            value = activation.emit(f, self.target, self.lanes, self.masked_load(place, mask))
            self.masked_store(value, place, mask)
            f.emit(f"br label %{tag}.row")
            f.label(f"{tag}.row")
            return state

        self.loop(f"{tag}.rows", "%count", "%step", "0", [], [], rows)
