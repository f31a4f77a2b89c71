"""The instructions of a native plan, from those of a Code."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Final

from rekindle.codegen.aten.functions import AtenFunction, aten_function
from rekindle.codegen.plan_runtime.conversion_ir import MOST_ITEMS
from rekindle.codegen.plan_runtime.frame import WORD, FrameField, Kind
from rekindle.ir.graph import Node
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import INT, ListType, TensorType, TupleType
from rekindle.ops.python.objects import module_table
from rekindle.ops.python.scalars import derive_index
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Instruction, Opcode, copy_constant
from rekindle.runtime.native_plans.aten_arguments import UNKNOWN, NotNative, passed_argument, tensor_word
from rekindle.runtime.native_plans.instruction_table import InstructionTable, Label, Operand, Reference
from rekindle.runtime.native_plans.registers import FrameLayout, Register
from rekindle.runtime.native_plans.words import (
    ArgumentPlacement,
    Integers,
    TooManyArguments,
    Word,
    address,
    content,
)

_MOST_PYTHON_CALLS: Final = 4
"""How many calls of Python a plan may have for each that needs none."""
_ITERATIONS: Final = 10
"""How often the body of a loop is expected to run."""
_MOST_WORDS: Final = 1 << 16
"""How large a frame may be: it lies on the stack of the thread."""
UNLOCKING_SIZE: Final = 4096
"""From how many elements on an operator lets other threads of Python run."""

_SUPPORTED: Final = frozenset(
    {
        *(Opcode.OPERATION, Opcode.CONSTANT, Opcode.MOVE, Opcode.DROP, Opcode.STORE),
        *(Opcode.JUMP, Opcode.JUMP_IF_TRUE, Opcode.JUMP_IF_FALSE, Opcode.LOOP_START, Opcode.LOOP_NEXT),
    }
)
_WITH: Final = frozenset({"prim::Enter", "prim::Exit"})

_NUMBERS: Final = {
    (operator.add, Kind.INT): "int_add",
    (operator.sub, Kind.INT): "int_sub",
    (operator.mul, Kind.INT): "int_mul",
    (operator.floordiv, Kind.INT): "int_floordiv",
    (operator.mod, Kind.INT): "int_mod",
    **{
        (getattr(operator, name), kind): f"{prefix}_{name}"
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
        for kind, prefix in ((Kind.INT, "int"), (Kind.FLOAT, "float"))
    },
    (operator.add, Kind.FLOAT): "float_add",
    (operator.sub, Kind.FLOAT): "float_sub",
    (operator.mul, Kind.FLOAT): "float_mul",
    (operator.truediv, Kind.FLOAT): "float_truediv",
}
"""The handlers of operations on two numbers of one kind."""
_UNARY: Final[dict[tuple[Any, Kind], tuple[str, Kind]]] = {
    (operator.not_, Kind.BOOL): ("not", Kind.BOOL),
    (operator.neg, Kind.INT): ("int_neg", Kind.INT),
    (operator.neg, Kind.FLOAT): ("float_neg", Kind.FLOAT),
    (float, Kind.INT): ("int_to_float", Kind.FLOAT),
    (math.sqrt, Kind.FLOAT): ("float_sqrt", Kind.FLOAT),
    (len, Kind.INTS): ("array_length", Kind.INT),
}
"""The handlers of operations on one value, and the kinds of their results."""
_COMPARISONS: Final = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_RETURNED_KINDS: Final = {"bool": Kind.BOOL, "int64_t": Kind.INT, "c10::SymInt": Kind.INT, "double": Kind.FLOAT}


class Unsuitable(Exception):
    """A Code that the interpreter, or a plan in Python, has to run."""


class _Demoted(Exception):
    """A list that was to be an array has to be a list of Python."""

    def __init__(self, register: int) -> None:
        self.register = register


def written_plan(code: Code, tensor_offset: int) -> PlanWriter:
    """Return what has written the instructions of ``code``.

    Raises:
        Unsuitable: the Code has instructions that native plans do not run.
    """
    for instruction in code.instructions:
        if instruction.opcode not in _SUPPORTED or instruction.node.kind in _WITH:
            raise Unsuitable
    demoted = set[int]()
    while True:
        writer = PlanWriter(code, tensor_offset, demoted)
        try:
            writer.write()
        except _Demoted as error:
            demoted.add(error.register)
            continue
        if writer.layout.words > _MOST_WORDS:
            raise Unsuitable
        return writer


class PlanWriter:
    """Writes ``table`` and ``layout`` for ``code``.

    ``native_calls`` and ``python_calls`` count the calls of operators, those in loops as :data:`_ITERATIONS`.
    """

    def __init__(self, code: Code, tensor_offset: int, demoted: set[int]) -> None:
        self.code = code
        self.tensor_offset = tensor_offset
        self.table = InstructionTable()
        self.temporaries: list[tuple[Kind, int]] = []
        self.native_calls = 0
        self.python_calls = 0
        self.index = 0
        self.weights = _weights(code)
        self.lists = _constant_lists(code, demoted)
        arrays = dict.fromkeys(self.lists, Kind.CONSTANT) | _arrays(code, demoted)
        self.layout = FrameLayout(code, self._writes_natively, arrays)
        self.sret = self.layout.reserve(2, Kind.TENSOR)

    def write(self) -> None:
        """Write all instructions.

        Raises:
            Unsuitable: the Code has something that native plans do not run.
        """
        for index, instruction in enumerate(self.code.instructions):
            self.index = index
            self.table.begin(index)
            self._write(instruction)

    @property
    def pays(self) -> bool:
        """Whether the plan is faster than one in Python, where operators on objects are a part of the language."""
        return self.native_calls > 0 and self.python_calls <= _MOST_PYTHON_CALLS * self.native_calls

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

    def _register(self, number: int) -> Register:
        return self.layout.registers[number]

    def _clear(self, numbers: Sequence[int]) -> None:
        owned = [self._register(number) for number in numbers]
        self._drop([(each.kind, each.offset) for each in owned if each.kind.owns])

    def _drop(self, owned: Sequence[tuple[Kind, int]]) -> None:
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
                register = self._register(instruction.input)
                if register.kind is not Kind.BOOL:
                    raise Unsuitable
                choices = (target, following) if instruction.opcode is Opcode.JUMP_IF_TRUE else (following, target)
                self.emit("branch", register.offset, *choices)
            case _:
                (counter,) = instruction.outputs
                assert counter is not None
                limit = self._register(instruction.input)
                if limit.kind is not Kind.INT or self._register(counter).kind is not Kind.INT:
                    raise Unsuitable
                is_start = instruction.opcode is Opcode.LOOP_START
                behind, body = (target, following) if is_start else (following, target)
                handler = "loop_start" if is_start else "loop_next"
                self.emit(handler, self._register(counter).offset, behind, body, *content(limit.offset))

    def _return(self, instruction: Instruction) -> None:
        if len(instruction.inputs) == 1:
            self.emit("return", *self._boxed(instruction.inputs[0]))
        elif instruction.inputs:
            self._construct("new_tuple", instruction.inputs)
            self.emit("return_result")
        else:
            self.emit("return", int(Kind.CONSTANT), Reference(None))

    def _construct(self, handler: str, registers: Sequence[int]) -> None:
        items = [operand for register in registers for operand in self._boxed(register)]
        self.emit(handler, len(registers), *items)

    def _boxed(self, number: int) -> tuple[Operand, Operand]:
        """Return the kind and the place of an operand that an object of Python is made of."""
        register = self._register(number)
        reads_only = self.code.instructions[self.index].node.kind in _LIST_READERS
        if number in self.lists or (register.kind in (Kind.INTS, Kind.TENSORS) and not reads_only):
            raise _Demoted(number)
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
            to = self._register(target)
            if target in sources and len(pairs) > 1:  # another move reads what this one writes
                kind = to.kind
                offset = self.layout.reserve(kind.words, kind)
                temporary = Register(-1, kind, offset, to.is_tensor)
                self._copy(source, temporary, is_moved, moved, instruction)
                staged.append((target, temporary))
            else:
                self._copy(source, to, is_moved, moved, instruction)
        for target, temporary in staged:
            self._transfer(temporary, self._register(target))
        self._clear([register for register in instruction.cleared if register not in moved])

    def _copy(self, source: int, to: Register, is_moved: bool, moved: set[int], instruction: Instruction) -> None:
        register = self._register(source)
        if source in self.lists or register.kind in (Kind.INTS, Kind.TENSORS):
            raise _Demoted(source)
        if is_moved and source in instruction.cleared and register.kind is to.kind and to.kind.owns:
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
        """Write the value of a register to another place.

        Raises:
            NotNative: the place is of a kind that does not hold it.
        """
        register = self._register(source)
        match register.kind, to.kind:
            case Kind.CONSTANT, Kind.OBJECT:
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
        self._store_result(target)

    # ----------------------------------------------------------------------------------------------------- operations

    def _operation(self, instruction: Instruction) -> None:
        for write in (self._by_kind, self._arithmetic, self._aten_call):
            mark, temporaries = len(self.table.entries), len(self.temporaries)
            try:
                if write(instruction):
                    return
            except NotNative:
                pass
            except TooManyArguments:
                pass
            del self.table.entries[mark:]
            del self.temporaries[temporaries:]
        self._python_call(instruction)

    def _by_kind(self, instruction: Instruction) -> bool:
        write = _WRITERS.get(instruction.node.kind)
        return write is not None and bool(write(self, instruction))

    def _arithmetic(self, instruction: Instruction) -> bool:
        if len(instruction.inputs) == 1:
            return self._unary(instruction)
        if len(instruction.inputs) != 2 or len(instruction.outputs) != 1 or instruction.outputs[0] is None:
            return False
        first, second = map(self._register, instruction.inputs)
        to = self._register(instruction.outputs[0])
        if instruction.operation in (operator.is_, operator.is_not):
            return self._identity(instruction, first, second, to)
        if first.kind is Kind.INTS:
            return self._array_operation(instruction, first, second, to)
        handler = _NUMBERS.get((instruction.operation, first.kind)) if first.kind is second.kind else None
        result = Kind.BOOL if instruction.operation in _COMPARISONS else first.kind
        if handler is None or to.kind is not result:
            return False
        self.emit(handler, to.offset, first.offset, second.offset)
        return True

    def _unary(self, instruction: Instruction) -> bool:
        if len(instruction.outputs) != 1 or instruction.outputs[0] is None:
            return False
        source, to = self._register(instruction.input), self._register(instruction.outputs[0])
        handler, result = _UNARY.get((instruction.operation, source.kind), ("", None))
        if not handler or to.kind is not result:
            return False
        self.emit(handler, to.offset, source.offset)
        return True

    def _identity(self, instruction: Instruction, first: Register, second: Register, to: Register) -> bool:
        negated = int(instruction.operation is operator.is_not)
        if to.kind is not Kind.BOOL:
            return False
        if self.constant_of(second.number) is None and first.kind is Kind.OBJECT:
            self.emit("is_none", to.offset, first.offset, negated)
            return True
        if first.kind is second.kind and first.kind in (Kind.OBJECT, Kind.TENSOR):
            self.emit("same_word", to.offset, first.offset, second.offset, negated)
            return True
        return False

    def _array_operation(self, instruction: Instruction, array: Register, other: Register, to: Register) -> bool:
        if instruction.operation is operator.getitem and other.kind is Kind.INT and to.kind is Kind.INT:
            self.emit("array_item", to.offset, array.offset, other.offset)
            return True
        if instruction.operation in (operator.eq, operator.ne) and other.kind is Kind.INTS and to.kind is Kind.BOOL:
            self.emit("arrays_equal", to.offset, array.offset, other.offset, int(instruction.operation is operator.ne))
            return True
        return False

    # -------------------------------------------------------------------------------------------------------- C++ calls

    def _writes_natively(self, index: int) -> bool:
        return _function_of(self.code.instructions[index].node) is not None

    def _aten_call(self, instruction: Instruction) -> bool:
        node = instruction.node
        function = _function_of(node)
        if function is None:
            return False
        placement = ArgumentPlacement()
        returned = _returned(function)
        area = self._result_area(function)
        if area is not None:
            placement.add(Integers((address(area),)))
        for type, register in zip(function.parameters, instruction.inputs, strict=True):
            placement.add(passed_argument(self, type, register))
        handler, words = placement.handler("double" if returned == "double" else "i64")
        probe = self._probe(instruction, function)
        if probe is not None:
            self.emit("yield_gil", *probe, UNLOCKING_SIZE)
        self.emit(handler, function.address, *(field for word in words for field in word))
        self._take_results(instruction, function, area)
        self._drop(self.temporaries)
        self.temporaries.clear()
        self.native_calls += self.weights[self.index]
        return True

    def _probe(self, instruction: Instruction, function: AtenFunction) -> Word | None:
        """Return the Tensor whose size says whether other threads may run; None for operators that take no time."""
        operator_ = instruction.node.operator
        if operator_ is None or Trait.VIEW in operator_.traits:
            return None
        for type, register in zip(function.parameters, instruction.inputs, strict=True):
            if type in ("const at::Tensor &", "at::Tensor &"):
                return tensor_word(self, register)
        return None

    def _result_area(self, function: AtenFunction) -> int | None:
        """Return where in the frame the function writes what it returns; None where it returns a word."""
        match _returned(function):
            case "tensor":
                return self.sret
            case "c10::SymInt":
                return self.layout.reserve(1)
            case "tensors":
                return self.layout.reserve(len(function.returns))
            case "vector":
                return self.layout.reserve(3)
        return None

    def _take_results(self, instruction: Instruction, function: AtenFunction, area: int | None) -> None:
        outputs = instruction.outputs
        match _returned(function):
            case "tensor":
                assert area is not None
                self._take_tensor(outputs[0], area)
            case "tensors":
                assert area is not None
                for number, output in enumerate(outputs):  # a std::tuple begins with its last element
                    self._take_tensor(output, area + 8 * (len(outputs) - 1 - number))
            case "vector":
                assert area is not None
                self.emit("list_of_vector", area)
                self._store_result(outputs[0])
            case "reference":
                self._take_argument(instruction, function)
            case "c10::SymInt" | "bool" | "int64_t" | "double" as word:
                self._take_word(outputs[0], word, area)

    def _take_word(self, output: int | None, returned: str, area: int | None) -> None:
        if output is None:
            return
        to = self._register(output)
        if to.kind is not _RETURNED_KINDS[returned]:
            raise NotNative
        if area is not None:
            self.emit("copy_word", to.offset, area)
        else:
            self.emit("take_bool" if returned == "bool" else "take_word", to.offset)

    def _take_tensor(self, output: int | None, offset: int) -> None:
        if output is None:
            self._drop([(Kind.TENSOR, offset)])
            return
        to = self._register(output)
        self.emit("take_tensor" if to.kind is Kind.TENSOR else "take_tensor_object", to.offset, offset)

    def _take_argument(self, instruction: Instruction, function: AtenFunction) -> None:
        """The result is the argument that was written to."""
        (output,) = instruction.outputs
        if output is None:
            return
        written = next(index for index, each in enumerate(_schema_writes(instruction.node)) if each)
        source, to = instruction.inputs[written], self._register(output)
        if source == output:
            return
        self.copy(source, to)

    # ----------------------------------------------------------------------------------------------------- Python calls

    def _python_call(self, instruction: Instruction) -> None:
        function, positional, named = _python_function(instruction)
        operands: list[Operand] = []
        for each in (*positional, *(value for _, value in named)):
            if isinstance(each, Reference):
                operands += [int(Kind.CONSTANT), each]
            else:
                operands += self._boxed(each)
        names = Reference(tuple(name for name, _ in named)) if named else 0
        self.emit("call_python", Reference(function), len(operands) // 2, names, *operands)
        self.python_calls += self.weights[self.index]
        outputs = instruction.outputs
        if len(instruction.node.outputs) <= 1:
            self._store_result(outputs[0] if outputs else None)
        else:
            self._unpack_result(outputs)

    def _store_result(self, output: int | None) -> None:
        """Write what a call has returned to a register."""
        if output is None:
            self.emit("drop_result")
            return
        to = self._register(output)
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
                raise _Demoted(output)

    def _unpack_result(self, outputs: Sequence[int | None]) -> None:
        """Write the items of the tuple or the list that a call has returned to registers."""
        self._check_items(FrameField.RESULT * WORD, outputs, has_run=True)
        scratch = self.layout.reserve(1, Kind.OBJECT)
        self.emit("take_result", scratch)
        self._take_items(scratch, outputs)
        self._drop([(Kind.OBJECT, scratch)])

    def _check_items(self, offset: int, outputs: Sequence[int | None], *, has_run: bool) -> None:
        self.emit("check_length", offset, len(outputs), int(has_run))
        for number, output in enumerate(outputs):
            if output is None:
                continue
            to = self._register(output)
            if to.kind is not Kind.OBJECT or to.is_tensor:
                self.emit("check_item", offset, number, int(to.kind), int(to.is_tensor), int(has_run))

    def _take_items(self, offset: int, outputs: Sequence[int | None]) -> None:
        for number, output in enumerate(outputs):
            if output is not None:
                self.emit("item", offset, number)
                self._store_result(output)

    # ---------------------------------------------------------------------------------------------- kinds of nodes

    def list_construct(self, instruction: Instruction) -> bool:
        """Write a list: an array where only native calls read it."""
        (output,) = instruction.outputs
        if output is None:
            return False
        to = self._register(output)
        if to.kind is Kind.INTS:
            items = self.layout.reserve(max(len(instruction.inputs), 1))
            for number, source in enumerate(instruction.inputs):
                self.copy(source, Register(-1, Kind.INT, items + 8 * number))
            self.emit("array", to.offset, items, len(instruction.inputs))
            return True
        if to.kind is Kind.TENSORS:
            items = self.layout.reserve(max(len(instruction.inputs), 1))
            self.emit("array", to.offset, items, len(instruction.inputs))
            for number, source in enumerate(instruction.inputs):
                self.copy(source, Register(-1, Kind.TENSOR, items + 8 * number, True))
            return True
        self._construct("new_list", instruction.inputs)
        self._store_result(output)
        return True

    def tuple_construct(self, instruction: Instruction) -> bool:
        """Write a tuple without names."""
        type = instruction.node.output.type
        (output,) = instruction.outputs
        if output is None or (isinstance(type, TupleType) and type.fields is not None):
            return False
        self._construct("new_tuple", instruction.inputs)
        self._store_result(output)
        return True

    def unpack(self, instruction: Instruction) -> bool:
        """Take a tuple or a list apart."""
        source = self._register(instruction.input)
        if source.kind is Kind.INTS:
            targets = [None if each is None else self._register(each) for each in instruction.outputs]
            if any(to is not None and to.kind is not Kind.INT for to in targets):
                return False
            self.emit("check_array_length", source.offset, len(targets))
            for number, to in enumerate(targets):
                if to is not None:
                    self.emit("known_array_item", to.offset, source.offset, number)
            return True
        if source.kind is not Kind.OBJECT:
            return False
        self._check_items(source.offset, instruction.outputs, has_run=False)
        self._take_items(source.offset, instruction.outputs)
        return True

    def attribute(self, instruction: Instruction) -> bool:
        """Read an attribute."""
        source = self._register(instruction.input)
        if source.kind is not Kind.OBJECT:
            return False
        name = instruction.node.get_string("name")
        table = module_table(instruction.node.input.type, name)
        table_name: Operand = 0 if table is None else Reference(table)
        self.emit("attribute", source.offset, Reference(name), table_name)
        self._store_result(instruction.outputs[0])
        return True

    def uninitialized(self, instruction: Instruction) -> bool:
        """Leave the register empty: nobody reads what has no value."""
        return True

    def cast(self, instruction: Instruction) -> bool:
        """Write a value as one of another static type."""
        source, (output,) = self._register(instruction.input), instruction.outputs
        if output is None or instruction.input in self.lists:
            return False
        to = self._register(output)
        if source.kind is Kind.OBJECT:
            self.emit("load_result", source.offset)
            self._store_result(output)
            return True
        self.copy(instruction.input, to)
        return True

    def size(self, instruction: Instruction) -> bool:
        """Read one size of a Tensor, or all of them as an array."""
        (output,) = instruction.outputs
        if output is None:
            return False
        to = self._register(output)
        if len(instruction.inputs) == 1 and to.kind is Kind.INTS:
            items = self.layout.reserve(MOST_ITEMS)
            self.emit("sizes", to.offset, items, *tensor_word(self, instruction.input))
            return True
        if len(instruction.inputs) != 2 or to.kind is not Kind.INT:
            return False
        tensor, dimension = instruction.inputs
        if self._register(dimension).kind is not Kind.INT:
            return False
        word = content(self._register(dimension).offset)
        self.emit("size", to.offset, *tensor_word(self, tensor), *word)
        return True

    def dtype(self, instruction: Instruction) -> bool:
        """Read the number of the dtype of a Tensor."""
        (output,) = instruction.outputs
        if output is None or self._register(output).kind is not Kind.INT:
            return False
        self.emit("dtype", self._register(output).offset, *tensor_word(self, instruction.input))
        return True

    def rank(self, instruction: Instruction) -> bool:
        """Read the number of dimensions of a Tensor."""
        (output,) = instruction.outputs
        if output is None or len(instruction.inputs) != 1 or self._register(output).kind is not Kind.INT:
            return False
        self.emit("rank", self._register(output).offset, *tensor_word(self, instruction.input))
        return True

    def derived_index(self, instruction: Instruction) -> bool:
        """Compute ``start + index * step``."""
        (output,) = instruction.outputs
        registers = [self._register(each) for each in instruction.inputs]
        if output is None or instruction.operation is not derive_index:
            return False
        if any(each.kind is not Kind.INT for each in (*registers, self._register(output))):
            return False
        index, start, step = registers
        product = self.layout.reserve(1)
        self.emit("int_mul", product, index.offset, step.offset)
        self.emit("int_add", self._register(output).offset, start.offset, product)
        return True


_WRITERS: Final[dict[str, Any]] = {
    "prim::ListConstruct": PlanWriter.list_construct,
    "prim::TupleConstruct": PlanWriter.tuple_construct,
    "prim::TupleUnpack": PlanWriter.unpack,
    "prim::ListUnpack": PlanWriter.unpack,
    "prim::GetAttr": PlanWriter.attribute,
    "prim::Uninitialized": PlanWriter.uninitialized,
    "prim::unchecked_cast": PlanWriter.cast,
    "prim::unchecked_unwrap_optional": PlanWriter.cast,
    "aten::size": PlanWriter.size,
    "aten::dim": PlanWriter.rank,
    "prim::dtype": PlanWriter.dtype,
    "aten::__derive_index": PlanWriter.derived_index,
}
"""What writes nodes of these kinds; it returns whether it could."""


# --------------------------------------------------------------------------------------------------------------- facts


def _function_of(node: Node) -> AtenFunction | None:
    """Return the C++ function that runs a node; None where Python has to."""
    found = node.operator
    if found is None or not found.is_dispatched or not node.kind.startswith("aten::"):
        return None
    function = aten_function(found.schema.qualified_name)
    if function is None or len(function.parameters) != len(node.inputs) or _returned(function) is None:
        return None
    return function


def _returned(function: AtenFunction) -> str | None:
    """Return how a function returns what it does; None where native plans cannot take it."""
    match function.returns:
        case ():
            return "nothing"
        case ("at::Tensor",):
            return "tensor"
        case ("at::Tensor &" | "const at::Tensor &",):
            return "reference"
        case ("::std::vector<at::Tensor>",):
            return "vector"
        case ("bool" | "int64_t" | "double" | "c10::SymInt" as word,):
            return word
        case returns if len(returns) > 1 and all(each == "at::Tensor" for each in returns):
            return "tensors"
    return None


def _schema_writes(node: Node) -> list[bool]:
    found = node.operator
    assert found is not None
    return [each.alias is not None and each.alias.is_write for each in found.schema.arguments]


def _python_function(
    instruction: Instruction,
) -> tuple[Any, list[int | Reference], list[tuple[str, int | Reference]]]:
    """Return what Python calls, and its arguments: registers, or objects in their place."""
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


def _weights(code: Code) -> list[int]:
    """Return how often each instruction is expected to run."""
    weights = [1] * len(code.instructions)
    for end, instruction in enumerate(code.instructions):
        if 0 <= instruction.target <= end:
            for index in range(instruction.target, end + 1):
                weights[index] *= _ITERATIONS
    return weights


def _readers(code: Code) -> dict[int, list[tuple[Instruction, int]]]:
    found: dict[int, list[tuple[Instruction, int]]] = {}
    for instruction in code.instructions:
        for position, register in enumerate(instruction.inputs):
            if instruction.opcode is not Opcode.DROP:
                found.setdefault(register, []).append((instruction, position))
    return found


def _writers(code: Code) -> dict[int, list[Instruction]]:
    found: dict[int, list[Instruction]] = {number: [] for number in range(code.argument_count)}
    for instruction in code.instructions:
        for register in instruction.outputs:
            if register is not None:
                found.setdefault(register, []).append(instruction)
    return found


_LIST_READERS: Final = frozenset({"aten::list", "aten::str", "aten::format"})
"""Operators of Python that read a list and keep nothing of it, so that each may be given one of its own."""
_ARRAY_READERS: Final = (operator.getitem, operator.eq, operator.ne, len)
"""Operations on arrays of ints."""


def _only_native_calls(readers: Sequence[tuple[Instruction, int]]) -> bool:
    """Return whether only operators of ATen, and operations on arrays, read a list, and none writes to it or returns
    it."""
    for instruction, position in readers:
        if instruction.opcode is not Opcode.OPERATION:
            return False
        kind = instruction.node.kind
        if instruction.operation in _ARRAY_READERS or kind == "prim::ListUnpack" or kind in _LIST_READERS:
            continue
        if _function_of(instruction.node) is None:
            return False
        found = instruction.node.operator
        assert found is not None
        if found.schema.arguments[position].alias is not None:
            return False
    return bool(readers)


def _constant_lists(code: Code, demoted: set[int]) -> dict[int, object]:
    """Return the lists that are constant and that only native calls read, by their registers."""
    readers, writers = _readers(code), _writers(code)
    found: dict[int, object] = {}
    for instruction in code.instructions:
        if instruction.opcode is not Opcode.CONSTANT or instruction.outputs[0] is None:
            continue
        register = instruction.outputs[0]
        is_list = isinstance(instruction.constant, list)
        if is_list and register not in demoted and len(writers[register]) == 1:
            if _only_native_calls(readers.get(register, [])):
                found[register] = instruction.constant
    return found


def _arrays(code: Code, demoted: set[int]) -> dict[int, Kind]:
    """Return the lists of ints and of Tensors that only native calls read, with the kinds of their registers."""
    readers, writers = _readers(code), _writers(code)
    found: dict[int, Kind] = {}
    for register, written in writers.items():
        if (
            register in demoted
            or len(written) != 1
            or written[0].node.kind not in ("prim::ListConstruct", "aten::size")
        ):
            continue
        type = written[0].node.output.type
        if not isinstance(type, ListType):
            continue
        kind = Kind.INTS if type.element == INT else Kind.TENSORS if isinstance(type.element, TensorType) else None
        if kind is not None and _only_native_calls(readers.get(register, [])):
            found[register] = kind
    return found
