"""Kernels of fused groups and of packed weights, launched without Python where one is known for the inputs."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.launched_operation import LaunchedOperation
from rekindle.codegen.llvm.call_sites import SCALAR_CLASSES
from rekindle.codegen.llvm.tensor_boxing_ir import FIXED
from rekindle.codegen.plan_runtime.frame import Kind
from rekindle.codegen.plan_runtime.kernel_ir import CONSTANT_INPUT, DROPPED, TENSOR_INPUT
from rekindle.ir.types import TensorType
from rekindle.runtime.interpreter.instructions import Instruction
from rekindle.runtime.native_plans.aten_arguments import UNKNOWN, NotNative, tensor_word
from rekindle.runtime.native_plans.instruction_table import EntryLabel, KernelSite, Operand
from rekindle.runtime.native_plans.words import content, immediate
from rekindle.runtime.native_plans.writer import PlanWriter

_NUMBERS: Final = {Kind.INT: int, Kind.FLOAT: float, Kind.BOOL: bool}


def write_kernel_call(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the launch of the kernel of an operation, and a call of the operation that runs as long as there is no
    kernel; return True. Return False for operations without kernels.

    The call of a fused group is counted neither as native nor as Python, since a plan in Python calls a kernel as fast.
    A call with packed weights is counted, since a plan in Python needs more time for it.

    Raises:
        NotNative: an input or output has no form for a kernel.
    """
    operation = instruction.operation
    inputs: list[int] = []
    if isinstance(operation, FusionExecutor):
        for register, value in zip(instruction.inputs, instruction.node.inputs, strict=True):
            inputs += _input(writer, register, is_tensor=isinstance(value.type, TensorType))
    elif isinstance(operation, LaunchedOperation):
        for position, register in enumerate(instruction.inputs):
            if position in operation.read and writer.constant_of(register) is not None:
                inputs += _input(writer, register, is_tensor=True)
            else:
                inputs += _fixed(writer, register)
        writer.native_calls += writer.weights[writer.index]
    else:
        return False
    outputs = [DROPPED if each is None else _output(writer, each) for each in instruction.outputs]
    done = EntryLabel()
    operands: list[Operand] = [KernelSite(operation), done, len(instruction.inputs), len(outputs), *outputs, *inputs]
    writer.emit("launch", *operands)
    writer.call_python(instruction)
    writer.table.place(done)
    return True


def _output(writer: PlanWriter, register: int) -> int:
    found = writer.register(register)
    if found.kind is not Kind.TENSOR:
        raise NotNative
    return found.offset


def _fixed(writer: PlanWriter, register: int) -> tuple[int, ...]:
    """Return the class and the words of an input that the kernel does not read: a constant, or an object of which the
    launch checks that it is the one that the kernel was compiled with.

    Raises:
        NotNative: the register holds neither a constant nor a Python object.
    """
    if writer.constant_of(register) is not UNKNOWN:
        return CONSTANT_INPUT, *immediate(0)
    found = writer.register(register)
    if found.kind is not Kind.OBJECT:
        raise NotNative
    return FIXED, *content(found.offset)


def _input(writer: PlanWriter, register: int, *, is_tensor: bool) -> tuple[int, ...]:
    """Return the class and the words of an input. ``is_tensor`` is whether the kernel takes a Tensor there, or else a
    number.

    Raises:
        NotNative: it is of a kind that kernels do not take.
    """
    if is_tensor:
        return TENSOR_INPUT, *tensor_word(writer, register)
    found = writer.register(register)
    if found.kind not in _NUMBERS:
        raise NotNative
    return SCALAR_CLASSES[_NUMBERS[found.kind]], *content(found.offset)
