"""Python code generation from instructions.

Interpreting an instruction costs more than most operations on numbers. Code that runs often is generated as Python
source and compiled once: hot loops, and whole functions. Jumps become ``if`` and ``while`` again::

    JumpIfFalse 2 -> L4                if r2:
    3 = add move(0), 1                   r3 = f1(r0, r1); r0 = None
    Jump -> L5                becomes  else:
    L4: 3 = neg move(0)                  r3 = f3(r0); r0 = None
    L5: …

The generated text contains nothing of a program but numbers and strings as Python's ``repr`` writes them.
"""

from __future__ import annotations

import builtins
import keyword
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import Operation
from rekindle.ir.types import BOOL, COMPLEX, FLOAT, INT, STRING, TENSOR, TensorType, TupleType, Type
from rekindle.ops.python.lists import append, set_item
from rekindle.ops.python.objects import module_table
from rekindle.ops.python.scalars import derive_index, range_length
from rekindle.runtime.interpreter.instructions import Instruction, Opcode, copy_constant
from rekindle.runtime.plans.expression_folding import Uses, foldable

MAX_LOOPS: Final = 15
"""Python's compiler nests no more than 20 blocks that an exception or a ``break`` must know of."""
_MAX_BLOCKS: Final = 60
"""And indents no deeper than 100 times."""

_INFIX: Final[dict[object, str]] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.truediv: "/",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.is_: "is",
    operator.is_not: "is not",
}
_IDENTITY: Final = (operator.is_, operator.is_not)
_PREFIX: Final[dict[object, str]] = {operator.neg: "-", operator.not_: "not "}


class NotCompilable(Exception):
    """Raised if instructions cannot be written as Python, so that the interpreter must run them."""


class PythonWriter:
    """A writer of instructions as lines of Python; subclasses define how registers are read and written. ``lines`` are
    the lines, ``indices`` the index of the instruction that each line runs, and ``names`` the globals that the code
    needs."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        self.instructions = instructions
        self.lines: list[str] = []
        self.indices: list[int] = []
        # The functions of torch that are written in C import what they need by way of the frame's builtins.
        self.names: dict[str, Any] = {"__builtins__": builtins}
        self.indent = 1
        self.open_loops: list[int] = []
        """The jumps back of the loops around."""
        self.open_tries = 0
        self.uses = Uses(instructions)
        self.folding = foldable(instructions, self.uses)
        self.folded: dict[int, tuple[str, bool]] = {}
        """Texts of registers without a variable, and whether each needs parentheses as an operand."""
        self.items: dict[int, list[str]] = {}
        """The elements of those of them that are written as tuples."""
        self.left: list[int] = []
        """Registers that the folded instructions before this one clear."""
        self.jumps_back: dict[int, list[int]] = {}
        """By the start of a loop, the jumps back to it."""
        for index, instruction in enumerate(instructions):
            if 0 <= instruction.target <= index:
                self.jumps_back.setdefault(instruction.target, []).append(index)

    # ------------------------------------------------------------------------------------------------------ registers

    def source(self, register: int | None) -> str:
        """Return the expression that reads a register which has a variable."""
        raise NotImplementedError

    def part(self, register: int | None) -> str:
        """Return the expression that reads a register, in parentheses if needed within a larger expression."""
        text, is_compound = self.folded.get(register, ("", False)) if register is not None else ("", False)
        return (f"({text})" if is_compound else text) or self.source(register)

    def alone(self, register: int | None) -> str:
        """Return the expression that reads a register, for use as a whole expression."""
        return (self.folded.get(register, ("", False))[0] if register is not None else "") or self.source(register)

    def target(self, register: int | None) -> str:
        """Return the assignment target for a register; ``_`` for None."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------------------- lines

    def write(self, index: int, line: str) -> None:
        if self.indent > _MAX_BLOCKS:
            raise NotCompilable
        self.lines.append(" " * self.indent + line)
        self.indices.append(index)

    def inside(self, index: int, head: str, start: int, end: int) -> None:
        """Write ``head``, a line that begins a block, and the instructions from ``start`` to before ``end`` as the
        block.

        Raises:
            NotCompilable: an instruction cannot be written as Python, or blocks nest too deeply.
        """
        self.write(index, head)
        self.indent += 1
        before = len(self.lines)
        self.instructions_from(start, end)
        if len(self.lines) == before:
            self.write(index, "pass")
        self.indent -= 1

    def instructions_from(self, start: int, end: int) -> None:
        index = start
        while index < end:
            index = self.instruction(index, end)

    def instruction(self, index: int, end: int) -> int:
        """Write the instruction at ``index`` and those that belong to it; return the index after them.

        Raises:
            NotCompilable: the instruction cannot be written as Python, or blocks nest too deeply.
        """
        back = self.jump_back_to(index, end)
        if back is not None:
            self.loop(index, back)
            return back + 1
        instruction = self.instructions[index]
        if index in self.folding.inlined or index in self.folding.rematerialized:
            self._fold(index, instruction)
            return index + 1
        match instruction.opcode:
            case Opcode.OPERATION | Opcode.MOVE | Opcode.DROP | Opcode.CONSTANT:
                self.plain(index, instruction)
                return index + 1
            case Opcode.JUMP_IF_TRUE | Opcode.JUMP_IF_FALSE:
                return self._choice(index, instruction)
            case Opcode.LOOP_START:
                return self._counted(index, instruction)
            case _:
                raise NotCompilable

    # --------------------------------------------------------------------------------------------------- control flow

    def loop(self, start: int, end: int) -> None:
        """Write the loop from ``start`` to the jump back at ``end``.

        Raises:
            NotCompilable: blocks nest deeper than Python compiles.
        """
        if len(self.open_loops) + self.open_tries >= MAX_LOOPS:
            raise NotCompilable
        self.open_loops.append(end)
        self.inside(start, "while True:", start, end)
        self.indent += 1
        jump = self.instructions[end]
        if jump.opcode is Opcode.LOOP_NEXT:
            counter = self.target(jump.outputs[0])
            self.write(end, f"{counter} = {counter} + 1")
            self.write(end, f"if {counter} >= {self.part(jump.input)}: break")
        elif jump.opcode is Opcode.JUMP_IF_TRUE:
            self.write(end, f"if not {self.alone(jump.input)}: break")
        self.indent -= 1
        self.open_loops.pop()

    def _counted(self, index: int, start: Instruction) -> int:
        """Write a loop with a known number of iterations as ``for``; return the index after it.

        Raises:
            NotCompilable: blocks nest deeper than Python compiles.
        """
        counter, limit = self.target(start.outputs[0]), self.part(start.input)
        back = start.target - 1
        jump = self.instructions[back]
        if jump.opcode is Opcode.LOOP_NEXT and jump.target == index + 1 and jump.outputs == start.outputs:
            if len(self.open_loops) + self.open_tries >= MAX_LOOPS:
                raise NotCompilable
            numbers = self._range_of(index, start)
            self.open_loops.append(back)
            if numbers:
                counter = self.target(self.instructions[index + 1].outputs[0])
                self.inside(index, f"for {counter} in {numbers}:", index + 2, back)
            else:
                self.inside(index, f"for {counter} in range({limit}):", index + 1, back)
            self.open_loops.pop()
        else:
            self.write(index, f"{counter} = 0")
            self.inside(index, f"if {limit} > 0:", index + 1, start.target)
        return start.target

    def _range_of(self, index: int, start: Instruction) -> str:
        """Return the range that a loop iterates over, if the body starts by computing its element and does not use the
        iteration count otherwise; else an empty string."""
        first = self.instructions[index + 1]
        length = self.uses.writer_of(start.input)
        if first.operation is not derive_index or length is None or length.operation is not range_length:
            return ""
        count, begin, step = first.inputs
        low, high, stride = length.inputs
        is_same = count == start.outputs[0] and (begin, step) == (low, stride)
        if not is_same or not self.uses.is_plain_result(first) or len(self.uses.readers[count]) != 1:
            return ""
        if any(self.uses.writes.get(register, 0) > 1 for register in (low, high, stride)):
            return ""
        return f"range({', '.join(map(self.alone, length.inputs))})"

    def jump_back_to(self, index: int, end: int) -> int | None:
        """Return the jump back of the outermost loop that starts at ``index``, ends before ``end`` and is not open yet;
        None if there is no such loop."""
        inner = [back for back in self.jumps_back.get(index, ()) if back < end and back not in self.open_loops]
        return max(inner, default=None)

    def _choice(self, index: int, test: Instruction) -> int:
        """Write a forward jump that depends on a register as ``if``; return the index after it."""
        condition = self.alone(test.input)
        negated = "" if test.opcode is Opcode.JUMP_IF_FALSE else "not "
        if self.open_loops and test.target == self.open_loops[-1] + 1:
            self.write(index, f"if not {condition}: break")
            return index + 1
        last = self.instructions[test.target - 1]
        has_else = last.opcode is Opcode.JUMP and last.node is test.node and last.target >= test.target > index + 1
        if not has_else:
            self.inside(index, f"if {negated}{condition}:", index + 1, test.target)
            return test.target
        self.inside(index, f"if {negated}{condition}:", index + 1, test.target - 1)
        self.inside(index, "else:", test.target, last.target)
        return last.target

    # ----------------------------------------------------------------------------------------------------- operations

    def plain(self, index: int, instruction: Instruction) -> None:
        """Write an instruction that continues with the next one."""
        value = ""
        if instruction.opcode is Opcode.OPERATION:
            if self.statement(index, instruction):
                return
            value = self.operation(index, instruction)
        elif instruction.opcode is Opcode.MOVE:
            value = ", ".join(map(self.alone, instruction.inputs))
        elif instruction.opcode is Opcode.CONSTANT:
            value = self._fresh(index, instruction.constant)
        self.assign(index, instruction, value)

    def assign(self, index: int, instruction: Instruction, value: str) -> None:
        """Write ``value`` to the outputs of an instruction, and clear its dead registers."""
        targets = [self.target(register) for register in instruction.outputs]
        if value:
            self.write(index, value if not any(t != "_" for t in targets) else f"{', '.join(targets)} = {value}")
        self.clear(index, instruction, ["_"] if len(targets) > 1 and "_" in targets else [])

    def clear(self, index: int, instruction: Instruction, more: Sequence[str] = ()) -> None:
        """Clear the dead registers of an instruction, those of the instructions folded into it, and ``more``."""
        kept = {register for register in instruction.outputs if register is not None}
        registers = dict.fromkeys([*self.left, *instruction.cleared])
        freed = [self.source(each) for each in registers if each not in self.folded and each not in kept]
        self.left.clear()
        if freed or more:
            self.write(index, f"{' = '.join([*freed, *more])} = None")

    def _fold(self, index: int, instruction: Instruction) -> None:
        """Keep the expression of an instruction, to insert it where its result is read."""
        register = instruction.outputs[0]
        assert register is not None
        if index in self.folding.rematerialized:
            constant = instruction.constant
            items = constant if isinstance(constant, list) else ()
            reads = [self.alone(each) for each in instruction.inputs]
            self.items[register] = [*reads, *(str(literal(item)) for item in items)]
            self.folded[register] = f"({''.join(f'{item}, ' for item in self.items[register])})", False
        else:
            text = self.operation(index, instruction)
            self.folded[register] = text, not text.isidentifier()
            self.left += instruction.cleared

    # ----------------------------------------------------------------------------------------------------- operations

    def statement(self, index: int, instruction: Instruction) -> bool:
        """Write an operation that is a Python statement; return whether it was one."""
        form = _STATEMENTS.get(instruction.operation)
        if form is not None and all(output is None for output in instruction.outputs):
            self.write(index, form.format(*map(self.part, instruction.inputs)))
            self.clear(index, instruction)
            return True
        if instruction.node.kind != "prim::GetAttr":
            return False
        owner = self.part(instruction.input)
        name = instruction.node.get_string("name")
        table = module_table(instruction.node.input.type, name)
        target = self.target(instruction.outputs[0])
        if table is None or target == "_":
            return False
        self.write(index, f"try: {target} = {owner}.{table}[{name!r}]")
        self.write(index, f"except KeyError: {target} = getattr({owner}, {name!r})")
        self.clear(index, instruction)
        return True

    def operation(self, index: int, instruction: Instruction) -> str:
        """Return the Python expression that computes an operation."""
        reads = [self.part(register) for register in instruction.inputs]
        function = instruction.operation
        if len(reads) == 2 and function in _INFIX and not (function in _IDENTITY and any(map(_is_literal, reads))):
            return f"{reads[0]} {_INFIX[function]} {reads[1]}"
        if len(reads) == 2 and function is operator.getitem:
            _, index = instruction.inputs
            return f"{reads[0]}[{self.alone(index)}]"
        if len(reads) == 1 and function in _PREFIX:
            return f"{_PREFIX[function]}{reads[0]}"
        if instruction.node.kind == "prim::isinstance":
            self.names["Tensor"] = torch.Tensor
        form = _FORMS.get(instruction.node.kind)
        text = form(instruction.node, reads) if form is not None else None
        return self._call(index, instruction) if text is None else text

    def _call(self, index: int, instruction: Instruction) -> str:
        found = instruction.node.operator
        function: Operation | None = instruction.operation
        reads = [self.alone(register) for register in instruction.inputs]
        arguments = reads
        if found is not None and found.invocation_for_node is not None:
            shortest = found.invocation_of(instruction.node)
            function = shortest.function
            for i, constant in shortest.objects:
                reads[i] = self._name_of(constant)
            for i, table in shortest.tables:
                name = f"torch_{type(table[0]).__name__}s"
                self.names[name] = table
                reads[i] = f"{name}[{reads[i]}]"
            arguments = [reads[i] for i in shortest.positional]
            if shortest.spreads:
                arguments[-1:] = self.items.get(instruction.inputs[shortest.positional[-1]]) or arguments[-1:]
            arguments += [*map(str, shortest.constants), *(f"{name}={reads[i]}" for name, i in shortest.named)]
        self.names[f"f{index}"] = function
        return f"f{index}({', '.join(arguments)})"

    def _name_of(self, constant: object) -> str:
        """Return a name for a dtype, a layout, a memory format or a device (``torch_float32``, ``cuda_0``), which the
        code may use from now on."""
        name = str(constant).replace(".", "_").replace(":", "_")
        self.names[name] = constant
        return name

    def _fresh(self, index: int, constant: object) -> str:
        """Return the expression of a new copy of a constant that programs can write to."""
        if isinstance(constant, list):
            items = [literal(item) for item in constant]
            if None not in items:
                return f"[{', '.join(map(str, items))}]"
        self.names[f"v{index}"] = constant
        self.names["copy"] = copy_constant
        return f"copy(v{index})"


def literal(value: object) -> str | None:
    """Return a constant as a Python literal; None if it has none."""
    if value is None or type(value) in (bool, str):  # members of an enum of strings are strings, too
        return repr(value)
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return repr(value) if not repr(value).startswith("-") else f"({value!r})"
    return None


def _is_literal(text: str) -> bool:
    """Return whether ``text`` begins like a literal: Python warns of ``is`` with a literal."""
    return text[0] in "'\"(0123456789"


# ---------------------------------------------------------------------------------------------------------------- forms


_STATEMENTS: Final[dict[Any, str]] = {
    append: "{0}.append({1})",
    set_item: "{0}[{1}] = {2}",
    operator.setitem: "{0}[{1}] = {2}",
    operator.delitem: "del {0}[{1}]",
}
"""Operations whose results are unused, as statements."""


def _list(node: Node, reads: Sequence[str]) -> str:
    return f"[{', '.join(reads)}]"


def _derived_index(node: Node, reads: Sequence[str]) -> str:
    index, start, step = reads
    return f"{start} + {index}" if step == "1" else f"{start} + {index} * {step}"


def _slice(node: Node, reads: Sequence[str]) -> str | None:
    """Return a slice of a tensor as Python programs write it, ``x[1:3]``, which is faster than a call of the operator;
    None for other dimensions and steps."""
    base, *_ = node.inputs
    if not isinstance(base.type, TensorType) or len(reads) != 5 or reads[4] != "1":
        return None
    if reads[1] not in _FIRST_DIMENSIONS:
        return None
    start, end = ("" if each == "None" else each for each in reads[2:4])
    return f"{reads[0]}[{':, ' * int(reads[1])}{start}:{end}]"


def _select(node: Node, reads: Sequence[str]) -> str | None:
    base, *_ = node.inputs
    if not isinstance(base.type, TensorType) or len(reads) != 3 or reads[1] != "0":
        return None
    if node.range.text.endswith(".select"):  # whose errors have other texts
        return f"{reads[0]}.select(0, {reads[2]})"
    return f"{reads[0]}[{reads[2]}]"


def _dict(node: Node, reads: Sequence[str]) -> str:
    return f"{{{', '.join(f'{key}: {value}' for key, value in zip(reads[::2], reads[1::2], strict=True))}}}"


def _tuple(node: Node, reads: Sequence[str]) -> str | None:
    type = node.output.type
    if isinstance(type, TupleType) and type.fields is not None:
        return None
    return f"({''.join(f'{item}, ' for item in reads)})"


def _attribute(node: Node, reads: Sequence[str]) -> str | None:
    name = node.get_string("name")
    if not name.isascii() or not name.isidentifier() or keyword.iskeyword(name):
        return None
    return f"{reads[0]}.{name}" if module_table(node.input.type, name) is None else None


def _several(node: Node, reads: Sequence[str]) -> str | None:
    """Return the expression of a value that Python unpacks by an assignment to several names; None for a node with a
    single output, or without a used one."""
    return reads[0] if len(node.outputs) > 1 and any(output.has_uses for output in node.outputs) else None


_CLASS_NAMES: Final[dict[Type, str]] = {
    TENSOR: "Tensor",
    INT: "int",
    FLOAT: "float",
    BOOL: "bool",
    COMPLEX: "complex",
    STRING: "str",
}


def _type_test(node: Node, reads: Sequence[str]) -> str | None:
    types = node["types"]
    names = [_CLASS_NAMES.get(type, "") for type in types if isinstance(type, Type)] if isinstance(types, list) else []
    if not names or not all(names):
        return None
    return f"isinstance({reads[0]}, {names[0] if len(names) == 1 else '(' + ', '.join(names) + ')'})"


def _itself(node: Node, reads: Sequence[str]) -> str:
    return reads[0]


_FIRST_DIMENSIONS: Final = ("0", "1", "2", "3")

_FORMS: Final[dict[str, Callable[[Node, Sequence[str]], str | None]]] = {
    "prim::ListConstruct": _list,
    "prim::DictConstruct": _dict,
    "prim::TupleConstruct": _tuple,
    "prim::GetAttr": _attribute,
    "prim::TupleUnpack": _several,
    "prim::ListUnpack": _several,
    "aten::__derive_index": _derived_index,
    "aten::select": _select,
    "aten::slice": _slice,
    "prim::isinstance": _type_test,
    "prim::unchecked_cast": _itself,
    "prim::unchecked_unwrap_optional": _itself,
}
"""Forms of Python without a call."""
