"""The instructions of a native plan, from those of a Code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from rekindle.codegen.plan_runtime.frame import WORD, FrameField, Kind
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Instruction, Opcode, copy_constant
from rekindle.runtime.native_plans.aten_arguments import UNKNOWN, NotNative, tensor_word
from rekindle.runtime.native_plans.facts import LIST_READERS, UnboxedLists, weights_of, writes_natively
from rekindle.runtime.native_plans.instruction_table import InstructionTable, Label, Operand, Reference
from rekindle.runtime.native_plans.registers import FrameLayout, Register
from rekindle.runtime.native_plans.words import TooManyArguments, content

_MAX_PYTHON_CALLS: Final = 4
"""Maximum number of calls of Python in a plan for each call that needs none."""


class Unsuitable(Exception):
    """Raised for a Code that only the interpreter or a plan in Python can run."""


class Demoted(Exception):
    """Raised if lists that were planned as arrays must be Python lists: those in ``registers``."""

    def __init__(self, *registers: int) -> None:
        self.registers = registers


class PlanWriter:
    """A writer of the instruction ``table`` and the frame ``layout`` for ``code``. ``ways`` are functions that may
    write an operator: each returns whether it did, or raises NotNative. ``unboxed`` are the lists that are not Python
    lists. ``native_calls`` and ``python_calls`` count the calls of operators, those in loops several times."""

    def __init__(
        self,
        code: Code,
        tensor_offset: int,
        unboxed: UnboxedLists,
        ways: Sequence[Callable[[PlanWriter, Instruction], bool]],
    ) -> None:
        self.code = code
        self.ways = ways
        self.tensor_offset = tensor_offset
        self.table = InstructionTable()
        self.temporaries: list[tuple[Kind, int]] = []
        self.native_calls = 0
        self.python_calls = 0
        self.index = 0
        self.weights = weights_of(code)
        self.lists = unboxed.constants
        native = [writes_natively(each, unboxed.arrays) for each in code.instructions]
        self.layout = FrameLayout(code, native, dict.fromkeys(self.lists, Kind.CONSTANT) | unboxed.arrays)
        # Where functions construct the Tensor that they return. It is not an owner: what a function that throws leaves
        # there is destroyed already.
        self.sret = self.layout.reserve(2)

    def write(self) -> None:
        """Write all instructions.

        Raises:
            Unsuitable: the Code has something that native plans do not run.
            Demoted: lists that were planned as arrays must be Python lists: all of which that is known.
        """
        demoted: list[int] = []
        for index, instruction in enumerate(self.code.instructions):
            self.index = index
            self.table.begin(index)
            try:
                self._write(instruction)
            except Demoted as error:
                demoted += error.registers
            except Unsuitable:
                if demoted:
                    break  # it may be suitable with other lists
                raise
        if demoted:
            raise Demoted(*demoted)

    @property
    def pays(self) -> bool:
        """Whether the native plan is expected to be faster than a plan in Python, whose interpreter has instructions
        for operations on objects."""
        return self.native_calls > 0 and self.python_calls <= _MAX_PYTHON_CALLS * self.native_calls

    # --------------------------------------------------------------------------------------------------- instructions

    def emit(self, handler: str, *operands: Operand, next: Label | None = None) -> None:
        """Append an instruction."""
        self.table.add(self.index, handler, *operands, next=next)

    def constant_of(self, register: int) -> object:
        """Return the constant that a register holds; ``UNKNOWN`` where it holds none."""
        if register in self.lists:
            return self.lists[register]
        found, value = self.layout.constant(register)
        return value if found else UNKNOWN

    def _write(self, instruction: Instruction) -> None:
        match instruction.opcode:
            case Opcode.OPERATION:
                self._operation(instruction)
                self._clear(instruction.cleared)
            case Opcode.CONSTANT:
                self._fresh_constant(instruction)
            case Opcode.MOVE:
                self._move(instruction)
            case Opcode.DROP:
                self._clear(instruction.cleared)
            case Opcode.STORE:
                self._return(instruction)
            case _:
                self._jump(instruction)

    def register(self, number: int) -> Register:
        return self.layout.registers[number]

    def _clear(self, numbers: Sequence[int]) -> None:
        owned = [self.register(number) for number in numbers]
        self.drop([(each.kind, each.offset) for each in owned if each.kind.owns])

    def drop(self, owned: Sequence[tuple[Kind, int]]) -> None:
        if owned:
            self.emit("drop", len(owned), *(word for kind, offset in owned for word in (int(kind), offset)))

    # -------------------------------------------------------------------------------------------------------- control

    def _jump(self, instruction: Instruction) -> None:
        target, following = Label(instruction.target), Label(self.index + 1)
        if instruction.target <= self.index:
            self.emit("safepoint")
        match instruction.opcode:
            case Opcode.JUMP:
                self.emit("proceed", next=target)
            case Opcode.JUMP_IF_TRUE | Opcode.JUMP_IF_FALSE:
                register = self.register(instruction.input)
                if register.kind is not Kind.BOOL:
                    raise Unsuitable
                choices = (target, following) if instruction.opcode is Opcode.JUMP_IF_TRUE else (following, target)
                self.emit("branch", register.offset, *choices)
            case _:
                (counter,) = instruction.outputs
                assert counter is not None
                limit = self.register(instruction.input)
                if limit.kind is not Kind.INT or self.register(counter).kind is not Kind.INT:
                    raise Unsuitable
                is_start = instruction.opcode is Opcode.LOOP_START
                behind, body = (target, following) if is_start else (following, target)
                handler = "loop_start" if is_start else "loop_next"
                self.emit(handler, self.register(counter).offset, behind, body, *content(limit.offset))

    def _return(self, instruction: Instruction) -> None:
        if len(instruction.inputs) == 1:
            self.emit("return", *self._boxed(instruction.inputs[0]))
        elif instruction.inputs:
            self.construct("new_tuple", instruction.inputs)
            self.emit("return_result")
        else:
            self.emit("return", int(Kind.CONSTANT), Reference(None))

    def construct(self, handler: str, registers: Sequence[int]) -> None:
        items = [operand for register in registers for operand in self._boxed(register)]
        self.emit(handler, len(registers), *items)

    def _boxed(self, number: int) -> tuple[Operand, Operand]:
        """Return the kind and the frame position of an operand that is converted to a Python object.

        Raises:
            Demoted: the operand is an array, and must be a Python list instead.
        """
        register = self.register(number)
        reads_only = self.code.instructions[self.index].node.kind in LIST_READERS
        if number in self.lists or (register.kind in (Kind.INTS, Kind.TENSORS) and not reads_only):
            raise Demoted(number)
        if register.kind is Kind.CONSTANT:
            return int(Kind.CONSTANT), Reference(self.code.template[number])
        return int(register.kind), register.offset

    # ---------------------------------------------------------------------------------------------------------- moves

    def _move(self, instruction: Instruction) -> None:
        pairs = list(zip(instruction.inputs, instruction.outputs, instruction.moves, strict=True))
        moved = set[int]()
        sources = {source for source, _, _ in pairs}
        staged: list[tuple[int, Register]] = []
        for source, target, is_moved in pairs:
            if target is None:
                continue
            to = self.register(target)
            if target in sources and len(pairs) > 1:  # another move reads what this one writes
                kind = to.kind
                offset = self.layout.reserve(kind.words, kind)
                temporary = Register(-1, kind, offset, to.is_tensor)
                self._copy(source, temporary, is_moved, moved, instruction)
                staged.append((target, temporary))
            else:
                self._copy(source, to, is_moved, moved, instruction)
        for target, temporary in staged:
            self._transfer(temporary, self.register(target))
        self._clear([register for register in instruction.cleared if register not in moved])

    def _copy(self, source: int, to: Register, is_moved: bool, moved: set[int], instruction: Instruction) -> None:
        register = self.register(source)
        if source in self.lists or register.kind in (Kind.INTS, Kind.TENSORS):
            raise Demoted(source)
        is_checked = register.is_tensor or not to.is_tensor
        if is_moved and source in instruction.cleared and register.kind is to.kind and to.kind.owns and is_checked:
            self._transfer(register, to)
            moved.add(source)
        else:
            try:
                self.copy(source, to)
            except NotNative:
                raise Unsuitable from None

    def _transfer(self, source: Register, to: Register) -> None:
        handler = {Kind.TENSOR: "take_tensor", Kind.OBJECT: "take_object"}.get(to.kind, "copy_word")
        self.emit(handler, to.offset, source.offset)

    def copy(self, source: int, to: Register) -> None:
        """Write the copy of a register's value to another frame position.

        Raises:
            NotNative: the frame position is of a kind that cannot hold the value.
        """
        register = self.register(source)
        match register.kind, to.kind:
            case Kind.CONSTANT, Kind.OBJECT:
                if to.is_tensor:
                    tensor_word(self, source)  # which refuses subclasses of Tensor
                self.emit("store_object", to.offset, Reference(self.code.template[source]))
            case Kind.CONSTANT, Kind.TENSOR:
                self.emit("copy_tensor_at_word", to.offset, *tensor_word(self, source))
            case Kind.TENSOR, Kind.TENSOR:
                self.emit("copy_tensor", to.offset, register.offset)
            case Kind.OBJECT, Kind.OBJECT:
                self.emit("copy_object", to.offset, register.offset)
                if to.is_tensor and not register.is_tensor:
                    raise NotNative
            case Kind.OBJECT, Kind.TENSOR if register.is_tensor:
                self.emit("copy_object_tensor", to.offset, register.offset)
            case ((Kind.TENSOR | Kind.INT | Kind.FLOAT | Kind.BOOL), Kind.OBJECT):
                self.emit("box", to.offset, register.offset, int(register.kind))
            case (Kind.INT, Kind.INT) | (Kind.FLOAT, Kind.FLOAT) | (Kind.BOOL, Kind.BOOL):
                self.emit("copy_word", to.offset, register.offset)
            case _:
                raise NotNative

    def _fresh_constant(self, instruction: Instruction) -> None:
        (target,) = instruction.outputs
        if target is None or target in self.lists:
            return
        self.emit("call_python", Reference(copy_constant), 1, 0, int(Kind.CONSTANT), Reference(instruction.constant))
        self.store_result(target)

    # ----------------------------------------------------------------------------------------------------- operations

    def _operation(self, instruction: Instruction) -> None:
        for write in self.ways:
            mark, temporaries = len(self.table.entries), len(self.temporaries)
            try:
                if write(self, instruction):
                    return
            except NotNative:
                pass
            except TooManyArguments:
                pass
            del self.table.entries[mark:]
            del self.temporaries[temporaries:]
        self.call_python(instruction)
        self.python_calls += self.weights[self.index]

    # ----------------------------------------------------------------------------------------------------- Python calls

    def call_python(self, instruction: Instruction) -> None:
        """Write a call of the operation of an instruction by Python, and the move of its results to registers.

        Raises:
            Demoted: an argument or a result that was planned as an array must be a Python list.
        """
        function, positional, named = _python_function(instruction)
        operands: list[Operand] = []
        for each in (*positional, *(value for _, value in named)):
            if isinstance(each, Reference):
                operands += [int(Kind.CONSTANT), each]
            else:
                operands += self._boxed(each)
        names = Reference(tuple(name for name, _ in named)) if named else 0
        self.emit("call_python", Reference(function), len(operands) // 2, names, *operands)
        outputs = instruction.outputs
        if len(instruction.node.outputs) <= 1:
            self.store_result(outputs[0] if outputs else None)
        else:
            self._unpack_result(outputs)

    def store_result(self, output: int | None) -> None:
        """Write the move of a call's result to a register; None drops the result.

        Raises:
            Demoted: the register was planned as an array, and must hold a Python list.
        """
        if output is None:
            self.emit("drop_result")
            return
        to = self.register(output)
        match to.kind:
            case Kind.OBJECT if not to.is_tensor:
                self.emit("take_result", to.offset)
            case Kind.OBJECT:
                self.emit("take_result_tensor", to.offset, 0, output)
            case Kind.TENSOR:
                self.emit("unbox_result_tensor", to.offset, 0, output)
            case Kind.INT | Kind.FLOAT | Kind.BOOL:
                self.emit("unbox_result", to.offset, int(to.kind), output)
            case _:
                raise Demoted(output)

    def _unpack_result(self, outputs: Sequence[int | None]) -> None:
        """Write the moves of the items of a returned tuple or list to registers."""
        self.check_items(FrameField.RESULT * WORD, outputs, has_run=True)
        scratch = self.layout.reserve(1, Kind.OBJECT)
        self.emit("take_result", scratch)
        self.take_items(scratch, outputs)
        self.drop([(Kind.OBJECT, scratch)])

    def check_items(self, offset: int, outputs: Sequence[int | None], *, has_run: bool) -> None:
        self.emit("check_length", offset, len(outputs), int(has_run))
        for number, output in enumerate(outputs):
            if output is None:
                continue
            to = self.register(output)
            if to.kind is not Kind.OBJECT or to.is_tensor:
                self.emit("check_item", offset, number, int(to.kind), int(to.is_tensor), int(has_run))

    def take_items(self, offset: int, outputs: Sequence[int | None]) -> None:
        for number, output in enumerate(outputs):
            if output is not None:
                self.emit("item", offset, number)
                self.store_result(output)


def _python_function(
    instruction: Instruction,
) -> tuple[Any, list[int | Reference], list[tuple[str, int | Reference]]]:
    """Return the function that Python calls for an instruction, and its positional and keyword arguments: registers, or
    objects that are constants."""
    found = instruction.node.operator
    if found is None or found.invocation_for_node is None:
        return instruction.operation, list(instruction.inputs), []
    shortest = found.invocation_of(instruction.node)
    if shortest.tables:
        return instruction.operation, list(instruction.inputs), []
    values: dict[int, int | Reference] = dict(enumerate(instruction.inputs))
    values.update((index, Reference(value)) for index, value in shortest.objects)
    positional = [values[index] for index in shortest.positional] + [Reference(each) for each in shortest.constants]
    return shortest.function, positional, [(name, values[index]) for name, index in shortest.named]
