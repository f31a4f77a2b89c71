"""Kernels of fused groups, launched without Python where one is known for the inputs."""

from __future__ import annotations

from typing import Final

from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.llvm.call_sites import SCALAR_CLASSES
from rekindle.codegen.plan_runtime.frame import Kind
from rekindle.codegen.plan_runtime.kernel_ir import DROPPED, TENSOR_INPUT
from rekindle.ir.types import TensorType
from rekindle.runtime.interpreter.instructions import Instruction
from rekindle.runtime.native_plans.aten_arguments import NotNative, tensor_word
from rekindle.runtime.native_plans.instruction_table import EntryLabel, KernelSite, Operand
from rekindle.runtime.native_plans.words import content
from rekindle.runtime.native_plans.writer import PlanWriter

_NUMBERS: Final = {Kind.INT: int, Kind.FLOAT: float, Kind.BOOL: bool}


def write_kernel_call(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the launch of the kernel of a fused group, and the call of the group for when there is none.

    It adds to neither count that decides whether a native plan pays: a plan in Python calls a kernel as fast.
    """
    operation = instruction.operation
    if not isinstance(operation, FusionExecutor):
        return False
    outputs = [DROPPED if each is None else _output(writer, each) for each in instruction.outputs]
    inputs = [
        word
        for register, value in zip(instruction.inputs, instruction.node.inputs, strict=True)
        for word in _input(writer, register, is_tensor=isinstance(value.type, TensorType))
    ]
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


def _input(writer: PlanWriter, register: int, *, is_tensor: bool) -> tuple[int, ...]:
    """Return the class and the words of an input."""
    if is_tensor:
        return TENSOR_INPUT, *tensor_word(writer, register)
    found = writer.register(register)
    if found.kind not in _NUMBERS:
        raise NotNative
    return SCALAR_CLASSES[_NUMBERS[found.kind]], *content(found.offset)
