"""Calls of C++ functions of ATen, and what becomes of their results."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.aten.functions import AtenFunction
from rekindle.codegen.plan_runtime.conversion_ir import MAX_ITEMS
from rekindle.codegen.plan_runtime.frame import Kind
from rekindle.ir.operators.traits import Trait
from rekindle.runtime.interpreter.instructions import Instruction
from rekindle.runtime.native_plans.aten_arguments import NotNative, passed_argument, tensor_word
from rekindle.runtime.native_plans.facts import function_of, returned_form, written_arguments
from rekindle.runtime.native_plans.words import ArgumentPlacement, Integers, Word, address, immediate
from rekindle.runtime.native_plans.wrapped_numbers import overload_for_tensors, saves_number, wrapped_number
from rekindle.runtime.native_plans.writer import PlanWriter

UNLOCKING_SIZE: Final = 4096
"""From how many elements on an operator lets other threads of Python run."""
_RETURNED_KINDS: Final = {"bool": Kind.BOOL, "int64_t": Kind.INT, "c10::SymInt": Kind.INT, "double": Kind.FLOAT}


def write_aten_call(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the call of the C++ function of a node, and return True. Return False, without writing anything, if native
    code cannot call it.

    Raises:
        NotNative: an argument or a result needs Python. Instructions may have been written.
        TooManyArguments: no handler passes so many words.
    """
    function = function_of(instruction.node)
    if function is None:
        return False
    numbers: dict[int, Word] = {}
    with_tensors = overload_for_tensors(function)
    if with_tensors is not None:
        number = wrapped_number(writer.constant_of(instruction.inputs[1]))
        if number is not None:
            function, numbers[1] = with_tensors, immediate(id(number) + writer.tensor_offset)
            writer.table.kept.append(number)
        elif saves_number(function):
            return False
    placement = ArgumentPlacement()
    returned = returned_form(function)
    area = _result_area(writer, function)
    if area is not None:
        placement.add(Integers((address(area),)))
    for index, (type, register) in enumerate(zip(function.parameters, instruction.inputs, strict=True)):
        placement.add(Integers((numbers[index],)) if index in numbers else passed_argument(writer, type, register))
    handler, words = placement.handler("double" if returned == "double" else "i64")
    probe = _probe(writer, instruction, function)
    if probe is not None:
        writer.emit("yield_gil", *probe, UNLOCKING_SIZE)
    writer.emit(handler, function.address, *(field for word in words for field in word))
    _take_results(writer, instruction, function, area)
    writer.drop(writer.temporaries)
    writer.temporaries.clear()
    writer.native_calls += writer.weights[writer.index]
    return True


def _probe(writer: PlanWriter, instruction: Instruction, function: AtenFunction) -> Word | None:
    """Return the word of the tensor whose size decides whether the call releases the GIL; None for operators that take
    negligible time or have no tensor argument."""
    operator_ = instruction.node.operator
    if operator_ is None or Trait.VIEW in operator_.traits:
        return None
    for type, register in zip(function.parameters, instruction.inputs, strict=True):
        if type in ("const at::Tensor &", "at::Tensor &"):
            return tensor_word(writer, register)
    return None


def _result_area(writer: PlanWriter, function: AtenFunction) -> int | None:
    """Return the offset in the frame at which the function writes its result; None if it writes none."""
    match returned_form(function):
        case "tensor":
            return writer.sret
        case "c10::SymInt":
            return writer.layout.reserve(1)
        case "tensors":
            return writer.layout.reserve(len(function.returns))
        case "vector":
            return writer.layout.reserve(3)
    return None


def _take_results(writer: PlanWriter, instruction: Instruction, function: AtenFunction, area: int | None) -> None:
    outputs = instruction.outputs
    match returned_form(function):
        case "tensor":
            assert area is not None
            _take_tensor(writer, outputs[0], area)
        case "tensors":
            assert area is not None
            for number, output in enumerate(outputs):  # a std::tuple begins with its last element
                _take_tensor(writer, output, area + 8 * (len(outputs) - 1 - number))
        case "vector":
            assert area is not None
            _take_vector(writer, outputs[0], area)
        case "reference":
            _take_argument(writer, instruction, function)
        case "c10::SymInt" | "bool" | "int64_t" | "double" as word:
            _take_word(writer, outputs[0], word, area)


def _take_word(writer: PlanWriter, output: int | None, returned: str, area: int | None) -> None:
    if output is None:
        return
    to = writer.register(output)
    if to.kind is not _RETURNED_KINDS[returned]:
        raise NotNative
    if area is not None:
        writer.emit("copy_word", to.offset, area)
    else:
        writer.emit("take_bool" if returned == "bool" else "take_word", to.offset)


def _take_vector(writer: PlanWriter, output: int | None, area: int) -> None:
    if output is not None and writer.register(output).kind is Kind.TENSORS:
        items = writer.layout.reserve(MAX_ITEMS)
        writer.emit("tensors_of_vector", writer.register(output).offset, items, area)
        return
    writer.emit("list_of_vector", area)
    writer.store_result(output)


def _take_tensor(writer: PlanWriter, output: int | None, offset: int) -> None:
    if output is None:
        writer.drop([(Kind.TENSOR, offset)])
        return
    to = writer.register(output)
    writer.emit("take_tensor" if to.kind is Kind.TENSOR else "take_tensor_object", to.offset, offset)


def _take_argument(writer: PlanWriter, instruction: Instruction, function: AtenFunction) -> None:
    """Store the argument that the operator wrote to as its result."""
    (output,) = instruction.outputs
    if output is None:
        return
    written = next(index for index, each in enumerate(written_arguments(instruction.node)) if each)
    source, to = instruction.inputs[written], writer.register(output)
    if source == output:
        return
    writer.copy(source, to)
