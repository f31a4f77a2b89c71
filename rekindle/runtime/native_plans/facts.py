"""Facts about a Code that a native plan needs: which nodes C++ functions run, which lists need not be Python lists, how
often instructions run."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, TypeAlias

from rekindle.codegen.aten.functions import AtenFunction, aten_function
from rekindle.codegen.fusion import KIND as FUSION_GROUP
from rekindle.codegen.launched_operation import LaunchedOperation
from rekindle.codegen.plan_runtime.frame import Kind
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import Operator
from rekindle.ir.types import INT, ListType, TensorType
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Instruction, Opcode

_ITERATIONS: Final = 10
"""Assumed trip count of loops."""


def function_of(node: Node) -> AtenFunction | None:
    """Return the C++ function that runs a node; None if only Python can call its operator."""
    if not node.kind.startswith("aten::"):
        return None
    found = node.operator
    function = None if found is None else _function_of_operator(found)
    return function if function is not None and len(function.parameters) == len(node.inputs) else None


@lru_cache(maxsize=4096)
def _function_of_operator(operator_: Operator) -> AtenFunction | None:
    function = aten_function(operator_.schema.qualified_name) if operator_.is_dispatched else None
    return None if function is None or returned_form(function) is None else function


@cache
def returned_form(function: AtenFunction) -> str | None:
    """Return a name for the C++ return type of a function, such as ``tensor``, ``vector`` or ``nothing``; None if
    native plans do not support the type."""
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


def written_arguments(node: Node) -> list[bool]:
    """Return for each argument of the operator of a node whether it is written to."""
    found = node.operator
    assert found is not None
    return [each.alias is not None and each.alias.is_write for each in found.schema.arguments]


def weights_of(code: Code) -> list[int]:
    """Return for each instruction how often it is expected to run in one call."""
    weights = [1] * len(code.instructions)
    for end, instruction in enumerate(code.instructions):
        if 0 <= instruction.target <= end:
            for index in range(instruction.target, end + 1):
                weights[index] *= _ITERATIONS
    return weights


def _readers(code: Code) -> _Readers:
    found: _Readers = {}
    for instruction in code.instructions:
        for position, register in enumerate(instruction.inputs):
            if instruction.opcode is not Opcode.DROP:
                found.setdefault(register, []).append((instruction, position))
    return found


def _writers(code: Code) -> _Writers:
    found: _Writers = {number: [] for number in range(code.argument_count)}
    for instruction in code.instructions:
        for register in instruction.outputs:
            if register is not None:
                found.setdefault(register, []).append(instruction)
    return found


LIST_READERS: Final = frozenset({"aten::list", "aten::str", "aten::format"})
"""Operators of Python that read a list and keep nothing of it, so that each may be given one of its own."""
_ARRAY_READERS: Final = (operator.getitem, operator.eq, operator.ne, len)
"""Operations on arrays of ints."""


def _only_native_calls(readers: Sequence[tuple[Instruction, int]]) -> bool:
    """Return whether all instructions that read a list are calls of ATen functions, unpackings, operations on arrays or
    :data:`LIST_READERS`, none of them writes to it or returns it, and there is one at least."""
    for instruction, position in readers:
        if instruction.opcode is not Opcode.OPERATION:
            return False
        kind = instruction.node.kind
        if instruction.operation in _ARRAY_READERS or kind == "prim::ListUnpack" or kind in LIST_READERS:
            continue
        if function_of(instruction.node) is None:
            return False
        found = instruction.node.operator
        assert found is not None
        if found.schema.arguments[position].alias is not None:
            return False
    return bool(readers)


@dataclass(frozen=True, slots=True)
class UnboxedLists:
    """The lists of a Code that need not be Python lists, by their registers: only C++ functions, operations on arrays
    and :data:`LIST_READERS` read them. ``constants`` are constant lists; ``arrays`` are lists of ints and of tensors,
    with the kinds of their registers."""

    constants: dict[int, object]
    arrays: dict[int, Kind]

    @classmethod
    def of(cls, code: Code) -> UnboxedLists:
        """Return the lists of ``code``."""
        readers, writers = _readers(code), _writers(code)
        return cls(_constant_lists(code, readers, writers), _arrays_of(readers, writers))

    def without(self, registers: Set[int]) -> UnboxedLists:
        """Return these lists except those in ``registers``."""
        constants = {register: value for register, value in self.constants.items() if register not in registers}
        return UnboxedLists(constants, {each: kind for each, kind in self.arrays.items() if each not in registers})


_Readers: TypeAlias = "dict[int, list[tuple[Instruction, int]]]"
_Writers: TypeAlias = "dict[int, list[Instruction]]"


def _constant_lists(code: Code, readers: _Readers, writers: _Writers) -> dict[int, object]:
    found: dict[int, object] = {}
    for instruction in code.instructions:
        if instruction.opcode is not Opcode.CONSTANT or instruction.outputs[0] is None:
            continue
        register = instruction.outputs[0]
        if isinstance(instruction.constant, list) and len(writers[register]) == 1:
            if _only_native_calls(readers.get(register, [])):
                found[register] = instruction.constant
    return found


def _makes_array(instruction: Instruction) -> bool:
    """Return whether an output of an instruction may be an array."""
    if instruction.opcode is not Opcode.OPERATION:
        return False
    if instruction.node.kind in ("prim::ListConstruct", "aten::size"):
        return True
    function = function_of(instruction.node)
    return function is not None and returned_form(function) == "vector"


def _arrays_of(readers: _Readers, writers: _Writers) -> dict[int, Kind]:
    found: dict[int, Kind] = {}
    for register, written in writers.items():
        if len(written) != 1 or not _makes_array(written[0]):
            continue
        type = written[0].node.output.type
        if not isinstance(type, ListType):
            continue
        kind = Kind.INTS if type.element == INT else Kind.TENSORS if isinstance(type.element, TensorType) else None
        if kind is not None and _only_native_calls(readers.get(register, [])):
            found[register] = kind
    return found


def writes_natively(instruction: Instruction, arrays: Mapping[int, Kind]) -> bool:
    """Return whether an instruction is expected to write Tensors without Python."""
    kind = instruction.node.kind
    if kind == "prim::ListUnpack" or instruction.operation is operator.getitem:
        return arrays.get(instruction.inputs[0]) is Kind.TENSORS
    if isinstance(instruction.operation, LaunchedOperation):
        return True
    return kind in ("prim::ConstantChunk", FUSION_GROUP) or function_of(instruction.node) is not None
