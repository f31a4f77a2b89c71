"""Lower a region's graph to a function in LLVM IR: basic blocks for blocks of the graph.

The function returns 0 on success, 1 to fall back to the plan (an int overflows 64 bits, or an error), and 2 if a Python
exception is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rekindle.analysis.constants import constant_bool
from rekindle.analysis.integer_ranges import FULL, Interval, difference_range, product_range, sum_range
from rekindle.codegen.llvm.vector_ir_builder import hexadecimal
from rekindle.codegen.native.native_types import NativeType, native_type_of
from rekindle.errors import InternalError
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value

OK: Final = 0
FALLBACK: Final = 1
RAISED: Final = 2

_INTERRUPT_CHECK_INTERVAL: Final = 1 << 20
"""Number of backward jumps after which a loop checks for interrupts."""


_POISON: Final = "poison"

_CHECKED: Final = {"sadd": ("add", sum_range), "ssub": ("sub", difference_range), "smul": ("mul", product_range)}
"""Instructions of the intrinsics that report overflow, and the ranges of their results."""


class Number(NamedTuple):
    """The registers of a value of the kind NUMBER. ``float`` is its value as a float, rounded if it is an int, so that
    operators on floats need not distinguish. ``int`` is poison if it is a float."""

    is_float: str
    int: str
    float: str

    @staticmethod
    def of_float(name: str) -> Number:
        """Return a float in a register as a number of open type."""
        return Number("true", _POISON, name)

    @property
    def kind(self) -> NativeType:
        """INT or FLOAT if that is known when the code is emitted, else NUMBER."""
        return {"true": NativeType.FLOAT, "false": NativeType.INT}.get(self.is_float, NativeType.NUMBER)


class RegionWriter:
    """Emitter of a region's LLVM IR into ``lines``. ``names`` maps values of the graph to registers; ``numbers`` maps
    numbers of open type to theirs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[Value, str] = {}
        self.numbers: dict[Value, Number] = {}
        self.ranges: dict[str, Interval] = {}
        """The ranges of ints in registers, as far as they are known."""
        self._conditions: list[str] | None = None
        """The conditions to leave the region that a speculated block has; None outside of such blocks."""
        self.block = "start"
        """The label of the current block: the source of a phi's value."""
        self._count = 0

    # ----------------------------------------------------------------------------------------------------------- lines

    def fresh(self, stem: str = "v") -> str:
        self._count += 1
        return f"{stem}{self._count}"

    def emit(self, expression: str) -> str:
        """Emit an instruction; return the name of its result."""
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {expression}")
        return name

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def start_block(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def leave_if(self, condition: str) -> None:
        """Emit an exit from the region to the plan, taken if ``condition`` holds. In a speculated block the exit comes
        later."""
        if self._conditions is not None:
            self._conditions.append(condition)
            return
        label = self.fresh("l")
        self.line(f"br i1 {condition}, label %left, label %{label}, !prof !1")
        self.start_block(label)

    def leave_unless(self, condition: str) -> None:
        if self._conditions is not None:
            self._conditions.append(self.emit(f"xor i1 {condition}, true"))
            return
        label = self.fresh("l")
        self.line(f"br i1 {condition}, label %{label}, label %left, !prof !0")
        self.start_block(label)

    def leave_unless_exact(self, condition: str) -> None:
        """Emit an exit from the region, taken unless ``condition`` holds: a test whether an int is exact as a float."""
        self.leave_unless(condition)

    def checked(self, intrinsic: str, a: str, b: str) -> str:
        """Emit ``sadd``, ``ssub`` or ``smul`` (the ``intrinsic``) of two 64-bit ints. On overflow the code leaves the
        region, which the plan then runs from its start. Where the operands' ranges rule overflow out, there is no
        test."""
        instruction, of_ranges = _CHECKED[intrinsic]
        if of_ranges(self.range(a), self.range(b)).fits:
            return self.emit(f"{instruction} {self.nsw} i64 {a}, {b}")
        pair = self.emit(f"call {{ i64, i1 }} @llvm.{intrinsic}.with.overflow.i64(i64 {a}, i64 {b})")
        overflow = self.emit(f"extractvalue {{ i64, i1 }} {pair}, 1")
        self.leave_if(overflow)
        return self.emit(f"extractvalue {{ i64, i1 }} {pair}, 0")

    def name(self, value: Value) -> str:
        known = self.names.get(value)
        if known is not None:
            return known
        if value.node.kind != "prim::Constant":
            raise InternalError(f"{value.name} is not known in native code")
        return literal(value.to_python())

    @property
    def nsw(self) -> str:
        """The flag of an instruction that cannot overflow. In a speculated block that another instruction may have left
        already it can, and its result must not be poison, which the exit would depend on."""
        return "nsw" if self._conditions is None else ""

    def range(self, operand: str) -> Interval:
        """Return an interval that the int in a register, or a constant, lies in."""
        if operand.lstrip("-").isdecimal():
            return Interval(int(operand), int(operand))
        return self.ranges.get(operand, FULL)

    # -------------------------------------------------------------------------------------------------------- registers

    def number_of(self, name: str, kind: NativeType) -> Number:
        """Return an int or a float in a register as a number of open type."""
        if kind is NativeType.FLOAT:
            return Number.of_float(name)
        return Number("false", name, self.emit(f"sitofp i64 {name} to double"))

    def number(self, value: Value) -> Number:
        """Return an int, a float or a number of open type as a number of open type.

        Raises:
            InternalError: ``value`` is none of these.
        """
        known = self.numbers.get(value)
        if known is not None:
            return known
        kind = known_kind(value)
        if kind is NativeType.NUMBER and value.node.kind == "prim::Constant":
            constant = value.to_python()
            return self.number_of(
                literal(constant), NativeType.FLOAT if isinstance(constant, float) else NativeType.INT
            )
        if kind not in (NativeType.INT, NativeType.FLOAT):
            raise InternalError(f"{value.name} is not a number in native code")
        return self.number_of(self.name(value), kind)

    def registers(self, value: Value, kind: NativeType) -> tuple[str, ...]:
        """Return the registers of a value, widened to ``kind``."""
        return self.number(value) if kind is NativeType.NUMBER else (self.name(value),)

    def bind(self, value: Value, registers: Sequence[str]) -> None:
        """Define a value of the graph by its registers."""
        if known_kind(value) is NativeType.NUMBER:
            self.numbers[value] = Number(*registers)
        else:
            (self.names[value],) = registers

    def meet(self, kind: NativeType, ends: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
        """Emit the phis of a value with the predecessors ``ends``: their labels, and its registers there."""
        if not ends:
            return Number.of_float(_POISON) if kind is NativeType.NUMBER else (_POISON,)
        return tuple(
            self.emit(f"phi {type} {', '.join(f'[{registers[index]}, %{label}]' for label, registers in ends)}")
            for index, type in enumerate(kind.registers)
        )

    # ----------------------------------------------------------------------------------------------------- control flow

    def branch(self, node: Node) -> None:
        """Emit ``prim::If`` as two basic blocks, whose outputs meet in phi nodes; without branches if it is short."""
        if self.is_speculated(node):
            self._select(node)
            return
        condition = self.name(node.input)
        first, second, joined = self.fresh("then"), self.fresh("else"), self.fresh("join")
        self.line(f"br i1 {condition}, label %{first}, label %{second}")
        kinds = kinds_of(node.outputs)
        ends = []
        for label, block in zip((first, second), node.blocks, strict=True):
            self.start_block(label)
            if raises(block):
                self.line("br label %left")
                continue
            self.nodes(block)
            ends.append((self.block, list(map(self.registers, block.outputs, kinds))))
            self.line(f"br label %{joined}")
        self.start_block(joined)
        for index, (output, kind) in enumerate(zip(node.outputs, kinds, strict=True)):
            self.bind(output, self.meet(kind, [(label, values[index]) for label, values in ends]))

    def is_speculated(self, node: Node) -> bool:
        """Return whether both blocks of a ``prim::If`` are run, and their outputs selected."""
        return False

    def _select(self, node: Node) -> None:
        """Emit both blocks of a ``prim::If``, and select between their outputs. An exit of a block is taken if the
        block is the one that is selected, which is tested last: exits are rare."""
        condition = self.name(node.input)
        # The comparison goes next to the selects, so that the processor's flags are free before it.
        last = self.lines[-1]
        is_moved = len(node.input.uses) == 1 and last.startswith((f"  {condition} = icmp", f"  {condition} = fcmp"))
        if is_moved:
            self.lines.pop()
        exits = []
        for block in node.blocks:
            self._conditions = []
            self.nodes(block)
            exits.append(self._conditions)
            self._conditions = None
        if is_moved:
            self.lines.append(last)
        for output, *values in zip(node.outputs, *(block.outputs for block in node.blocks), strict=True):
            type = known_kind(output).llvm
            first, second = map(self.name, values)
            self.names[output] = self.emit(f"select i1 {condition}, {type} {first}, {type} {second}")
        for conditions, (chosen, other) in zip(exits, (("left", "{}"), ("{}", "left")), strict=True):
            for leaves in conditions:
                rare, on = self.fresh("rare"), self.fresh("on")
                self.line(f"br i1 {leaves}, label %{rare}, label %{on}, !prof !1")
                self.start_block(rare)
                self.line(f"br i1 {condition}, label %{chosen.format(on)}, label %{other.format(on)}")
                self.start_block(on)

    def loop(self, node: Node) -> None:
        """Emit ``prim::Loop``: phis at its head hold the iteration number, the condition and the carried values."""
        loop = LoopView(node)
        body = loop.body
        head, inside, behind = self.fresh("loop"), self.fresh("body"), self.fresh("end")
        limit = self.name(loop.trip_count)
        kinds = [NativeType.BOOL, *kinds_of(loop.parameters)]
        self.before_loop(loop)
        before, first = self.block, list(map(self.registers, (loop.condition, *loop.initial), kinds))
        self.line(f"br label %{head}")
        self.start_block(head)
        place = len(self.lines)  # the phis go here, when it is known where the body ends
        counter = f"%{self.fresh()}"
        (condition,), *carried = [tuple(f"%{self.fresh()}" for _ in kind.registers) for kind in kinds]
        again = condition
        if not loop.is_endless:
            left = self.emit(f"icmp slt i64 {counter}, {limit}")
            again = self.emit(f"and i1 {left}, {condition}")
        self.line(f"br i1 {again}, label %{inside}, label %{behind}")
        self.start_block(inside)
        for value, registers in zip(body.inputs, [(counter,), *carried], strict=True):
            self.bind(value, registers)
        self.nodes(body)
        next_condition = self._check_interrupts_if(self.name(loop.next_condition))
        following = self.emit(f"add i64 {counter}, 1")
        next_ones = [(next_condition,), *map(self.registers, loop.following, kinds[1:])]
        last = self.block
        self.line(f"br label %{head}")
        phis = [f"  {counter} = phi i64 [0, %{before}], [{following}, %{last}]"]
        for names, kind, starts, nexts in zip([(condition,), *carried], kinds, first, next_ones, strict=True):
            for name, type, start, next_one in zip(names, kind.registers, starts, nexts, strict=True):
                phis.append(f"  {name} = phi {type} [{start}, %{before}], [{next_one}, %{last}]")
        self.lines[place:place] = phis
        self.start_block(behind)
        for output, registers in zip(node.outputs, carried, strict=True):
            self.bind(output, registers)

    def before_loop(self, loop: LoopView) -> None:
        """Emit preparations before a loop; none by default."""

    def _check_interrupts_if(self, condition: str) -> str:
        """Emit a check for interrupts, made if another iteration follows by ``condition``; return the condition after
        it. Where the condition is false, as after a ``break``, LLVM then connects the exit with the code after the
        loop, and does not test the condition again."""
        if condition == "true":
            self._check_interrupts()
            return condition
        more, done = self.fresh("more"), self.fresh("done")
        ended = self.block
        self.line(f"br i1 {condition}, label %{more}, label %{done}")
        self.start_block(more)
        self._check_interrupts()
        checked = self.block
        self.line(f"br label %{done}")
        self.start_block(done)
        return self.emit(f"phi i1 [false, %{ended}], [true, %{checked}]")

    def _check_interrupts(self) -> None:
        rest, pause, on = self.fresh("rest"), self.fresh("pause"), self.fresh("on")
        fuel = self.emit("load i64, ptr %fuel")
        less = self.emit(f"sub i64 {fuel}, 1")
        self.line(f"store i64 {less}, ptr %fuel")
        empty = self.emit(f"icmp eq i64 {less}, 0")
        self.line(f"br i1 {empty}, label %{rest}, label %{on}, !prof !1")
        self.start_block(rest)
        self.line(f"store i64 {_INTERRUPT_CHECK_INTERVAL}, ptr %fuel")
        fine = self.emit("call i1 @check_interrupts()")
        self.line(f"br i1 {fine}, label %{pause}, label %raised")
        self.start_block(pause)
        self.line(f"br label %{on}")
        self.start_block(on)

    # ------------------------------------------------------------------------------------------------------------ whole

    def nodes(self, block: Block) -> None:
        for node in block.nodes:
            match node.kind:
                case "prim::Constant":
                    pass  # written where it is used
                case "prim::If":
                    self.branch(node)
                case "prim::Loop":
                    self.loop(node)
                case _:
                    self.operation(node)

    def operation(self, node: Node) -> None:
        """Emit a node other than control flow, by the table of operators."""
        raise NotImplementedError

    def function(self, graph: Graph, name: str) -> str:
        """Emit the function ``@name`` of a graph; return its text. Its parameters are an arena, the inputs, and the
        address of the outputs' words."""
        parameters = ["ptr %arena"]
        for index, value in enumerate(graph.inputs):
            self.bind(value, argument_names(index, known_kind(value)))
            parameters.append(arguments_text(index, known_kind(value)))
        self.lines = []
        self.start_block("start")
        self.line("%fuel = alloca i64")
        self.line(f"store i64 {_INTERRUPT_CHECK_INTERVAL}, ptr %fuel")
        self.nodes(graph.block)
        words = [word for value in graph.outputs for word in self._words_of(value)]
        for index, word in enumerate(words):
            place = self.emit(f"getelementptr i64, ptr %results, i64 {index}")
            self.line(f"store i64 {word}, ptr {place}")
        self.line(f"ret i32 {OK}")
        self.lines += ["left:", f"  ret i32 {FALLBACK}", "raised:", f"  ret i32 {RAISED}"]
        body = "\n".join(self.lines)
        return f"define internal i32 @{name}({', '.join([*parameters, 'ptr %results'])}) noinline {{\n{body}\n}}\n"

    # ----------------------------------------------------------------------------------------------------------- words

    def _words_of(self, value: Value) -> list[str]:
        """Return the words of a result: a number of open type is followed by its kind."""
        kind = known_kind(value)
        if kind is not NativeType.NUMBER:
            return [self.as_word(self.name(value), kind)]
        number = self.number(value)
        bits = self.as_word(number.float, NativeType.FLOAT)
        word = self.emit(f"select i1 {number.is_float}, i64 {bits}, i64 {number.int}")
        return [word, self.as_word(number.is_float, NativeType.BOOL)]

    def as_word(self, name: str, kind: NativeType) -> str:
        """Emit the conversion of a value to a 64-bit word; a list is its address."""
        match kind:
            case NativeType.INT:
                return name
            case NativeType.FLOAT:
                return self.emit(f"bitcast double {name} to i64")
            case NativeType.BOOL:
                return self.emit(f"zext i1 {name} to i64")
            case _:
                return self.emit(f"ptrtoint ptr {name} to i64")

    def from_word(self, word: str, kind: NativeType) -> str:
        match kind:
            case NativeType.INT:
                return word
            case NativeType.FLOAT:
                return self.emit(f"bitcast i64 {word} to double")
            case NativeType.BOOL:
                return self.emit(f"trunc i64 {word} to i1")
            case _:
                return self.emit(f"inttoptr i64 {word} to ptr")


def is_counted(loop: LoopView) -> bool:
    """Return whether the number of iterations of a loop is known when it begins."""
    return not loop.is_endless and bool(constant_bool(loop.condition) and constant_bool(loop.next_condition))


def raises(block: Block) -> bool:
    """Return whether a block raises an exception. Native code leaves such blocks to the plan."""
    return any(node.kind == "prim::RaiseException" for node in block.nodes)


def known_kind(value: Value) -> NativeType:
    """Return the native type of a value of a region.

    Raises:
        InternalError: native code does not support the value's type.
    """
    kind = native_type_of(value.type)
    if kind is None:
        raise InternalError(f"native code was to work on {value.name}, which is of type {value.type}")
    return kind


def argument_names(index: int, kind: NativeType) -> tuple[str, ...]:
    """Return the registers of the region's argument ``index``: three for a number of open type, else one."""
    return Number(*(f"%{part}{index}" for part in ("f", "n", "x"))) if kind is NativeType.NUMBER else (f"%a{index}",)


def arguments_text(index: int, kind: NativeType) -> str:
    """Return the registers of an argument with their types, as parameters and calls list them."""
    return ", ".join(f"{type} {name}" for type, name in zip(kind.registers, argument_names(index, kind), strict=True))


def literal(value: object) -> str:
    """Return a number, a bool or a character as a constant in LLVM IR.

    Raises:
        InternalError: ``value`` is of another kind.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return hexadecimal(value)
    if isinstance(value, str) and len(value) == 1:
        return f"inttoptr (i64 {2 * ord(value) + 1} to ptr)"
    raise InternalError(f"native code was to hold the constant {value!r}")


def kinds_of(values: Sequence[Value]) -> list[NativeType]:
    return [known_kind(value) for value in values]
