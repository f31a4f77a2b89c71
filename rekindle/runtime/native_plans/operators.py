"""Lowering of operators other than calls: arithmetic on numbers, lists, tuples, attributes, sizes.

Each function emits the instructions of one kind of node, and returns whether it is supported.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from rekindle.codegen.aten.functions import aten_function
from rekindle.codegen.plan_runtime.conversion_ir import MAX_ITEMS
from rekindle.codegen.plan_runtime.frame import Kind
from rekindle.ir.types import TupleType
from rekindle.ops.python.objects import module_table
from rekindle.ops.python.scalars import derive_index
from rekindle.ops.registration.declare import int_attribute
from rekindle.runtime.interpreter.instructions import Instruction
from rekindle.runtime.native_plans.aten_arguments import tensor_word
from rekindle.runtime.native_plans.instruction_table import Operand, Reference
from rekindle.runtime.native_plans.registers import Register
from rekindle.runtime.native_plans.words import ArgumentPlacement, Integers, address, content, immediate
from rekindle.runtime.native_plans.writer import PlanWriter

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
    (len, Kind.TENSORS): ("array_length", Kind.INT),
}
"""The handlers of operations on one value, and the kinds of their results."""
_ITEMS: Final = {
    (Kind.INTS, Kind.INT): "array_item",
    (Kind.TENSORS, Kind.TENSOR): "tensor_array_item",
}
"""The handlers that read an item of an array into a register."""
_COMPARISONS: Final = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def write_by_kind(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the instruction if this module has a function for its node's kind; return whether it could."""
    write = _WRITERS.get(instruction.node.kind)
    return write is not None and write(writer, instruction)


def list_construct(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the construction of a list: an array if only calls of C++ functions read it, otherwise a Python list."""
    (output,) = instruction.outputs
    if output is None:
        return False
    to = writer.register(output)
    if to.kind is Kind.INTS:
        items = writer.layout.reserve(max(len(instruction.inputs), 1))
        for number, source in enumerate(instruction.inputs):
            writer.copy(source, Register(-1, Kind.INT, items + 8 * number))
        writer.emit("array", to.offset, items, len(instruction.inputs))
        return True
    if to.kind is Kind.TENSORS:
        items = writer.layout.reserve(max(len(instruction.inputs), 1))
        writer.emit("array", to.offset, items, len(instruction.inputs))
        for number, source in enumerate(instruction.inputs):
            writer.copy(source, Register(-1, Kind.TENSOR, items + 8 * number, True))
        return True
    writer.construct("new_list", instruction.inputs)
    writer.store_result(output)
    return True


def tuple_construct(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the construction of a tuple without field names."""
    type = instruction.node.output.type
    (output,) = instruction.outputs
    if output is None or (isinstance(type, TupleType) and type.fields is not None):
        return False
    writer.construct("new_tuple", instruction.inputs)
    writer.store_result(output)
    return True


def unpack(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the unpacking of a tuple or a list into registers."""
    source = writer.register(instruction.input)
    if source.kind in (Kind.INTS, Kind.TENSORS):
        return _unpack_array(writer, source, instruction.outputs)
    if source.kind is not Kind.OBJECT:
        return False
    writer.check_items(source.offset, instruction.outputs, has_run=False)
    writer.take_items(source.offset, instruction.outputs)
    return True


def _unpack_array(writer: PlanWriter, array: Register, outputs: Sequence[int | None]) -> bool:
    item, handler = Kind.INT, "known_array_item"
    if array.kind is Kind.TENSORS:
        item, handler = Kind.TENSOR, "known_tensor_array_item"
    targets = [None if output is None else writer.register(output) for output in outputs]
    if any(to is not None and to.kind is not item for to in targets):
        return False
    writer.emit("check_array_length", array.offset, len(targets))
    for number, to in enumerate(targets):
        if to is not None:
            writer.emit(handler, to.offset, array.offset, number)
    return True


def chunk(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the split of a tensor into chunks, one for each output."""
    function = aten_function("aten::chunk")
    if function is None or any(
        output is not None and writer.register(output).kind is not Kind.TENSOR for output in instruction.outputs
    ):
        return False
    node = instruction.node
    area = writer.layout.reserve(3)
    placement = ArgumentPlacement()
    words = (
        address(area),
        tensor_word(writer, instruction.input),
        *(immediate(int_attribute(node, name)) for name in ("chunks", "dim")),
    )
    for word in words:
        placement.add(Integers((word,)))
    handler, passed = placement.handler("i64")
    writer.emit(handler, function.address, *(field for word in passed for field in word))
    array = Register(-1, Kind.TENSORS, writer.layout.reserve(Kind.TENSORS.words, Kind.TENSORS))
    writer.emit("tensors_of_vector", array.offset, writer.layout.reserve(MAX_ITEMS), area)
    _unpack_array(writer, array, instruction.outputs)
    writer.drop([(Kind.TENSORS, array.offset)])
    writer.native_calls += writer.weights[writer.index]
    return True


def attribute(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the read of an attribute."""
    source = writer.register(instruction.input)
    if source.kind is not Kind.OBJECT:
        return False
    name = instruction.node.get_string("name")
    table = module_table(instruction.node.input.type, name)
    table_name: Operand = 0 if table is None else Reference(table)
    writer.emit("attribute", source.offset, Reference(name), table_name)
    writer.store_result(instruction.outputs[0])
    return True


def uninitialized(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write None to a register that can hold it, as the interpreter does: transforms may test whether a value that no
    path defines is None. Registers of other kinds stay empty and are not read."""
    (output,) = instruction.outputs
    if output is not None:
        to = writer.register(output)
        if to.kind is Kind.OBJECT and not to.is_tensor:
            writer.emit("store_object", to.offset, Reference(None))
    return True


def cast(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the copy of a value to a register of another static type."""
    source, (output,) = writer.register(instruction.input), instruction.outputs
    if output is None or instruction.input in writer.lists:
        return False
    to = writer.register(output)
    if source.kind is Kind.OBJECT:
        writer.emit("load_result", source.offset)
        writer.store_result(output)
        return True
    writer.copy(instruction.input, to)
    return True


def size(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the read of one size of a tensor, or of all sizes as an array."""
    (output,) = instruction.outputs
    if output is None:
        return False
    to = writer.register(output)
    if len(instruction.inputs) == 1 and to.kind is Kind.INTS:
        items = writer.layout.reserve(MAX_ITEMS)
        writer.emit("sizes", to.offset, items, *tensor_word(writer, instruction.input))
        return True
    if len(instruction.inputs) != 2 or to.kind is not Kind.INT:
        return False
    tensor, dimension = instruction.inputs
    if writer.register(dimension).kind is not Kind.INT:
        return False
    word = content(writer.register(dimension).offset)
    writer.emit("size", to.offset, *tensor_word(writer, tensor), *word)
    return True


def dtype(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the read of the number that denotes the dtype of a tensor."""
    (output,) = instruction.outputs
    if output is None or writer.register(output).kind is not Kind.INT:
        return False
    writer.emit("dtype", writer.register(output).offset, *tensor_word(writer, instruction.input))
    return True


def _count(handler: str, writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the read of the number of dimensions or of elements of a tensor, by ``handler``."""
    (output,) = instruction.outputs
    if output is None or len(instruction.inputs) != 1 or writer.register(output).kind is not Kind.INT:
        return False
    writer.emit(handler, writer.register(output).offset, *tensor_word(writer, instruction.input))
    return True


def derived_index(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write the computation of ``start + index * step``."""
    (output,) = instruction.outputs
    registers = [writer.register(each) for each in instruction.inputs]
    if output is None or instruction.operation is not derive_index:
        return False
    if any(each.kind is not Kind.INT for each in (*registers, writer.register(output))):
        return False
    index, start, step = registers
    product = writer.layout.reserve(1)
    writer.emit("int_mul", product, index.offset, step.offset)
    writer.emit("int_add", writer.register(output).offset, start.offset, product)
    return True


def write_arithmetic(writer: PlanWriter, instruction: Instruction) -> bool:
    """Write an operation on one or two numbers or arrays, or an identity test of objects. Return whether a handler
    exists for it."""
    if len(instruction.inputs) == 1:
        return _unary(writer, instruction)
    if len(instruction.inputs) != 2 or len(instruction.outputs) != 1 or instruction.outputs[0] is None:
        return False
    first, second = map(writer.register, instruction.inputs)
    to = writer.register(instruction.outputs[0])
    if instruction.operation in (operator.is_, operator.is_not):
        return _identity(writer, instruction, first, second, to)
    if first.kind in (Kind.INTS, Kind.TENSORS):
        return _array_operation(writer, instruction, first, second, to)
    handler = _NUMBERS.get((instruction.operation, first.kind)) if first.kind is second.kind else None
    result = Kind.BOOL if instruction.operation in _COMPARISONS else first.kind
    if handler is None or to.kind is not result:
        return False
    writer.emit(handler, to.offset, first.offset, second.offset)
    return True


def _unary(writer: PlanWriter, instruction: Instruction) -> bool:
    if len(instruction.outputs) != 1 or instruction.outputs[0] is None:
        return False
    source, to = writer.register(instruction.input), writer.register(instruction.outputs[0])
    handler, result = _UNARY.get((instruction.operation, source.kind), ("", None))
    if not handler or to.kind is not result:
        return False
    writer.emit(handler, to.offset, source.offset)
    return True


def _identity(writer: PlanWriter, instruction: Instruction, first: Register, second: Register, to: Register) -> bool:
    negated = int(instruction.operation is operator.is_not)
    if to.kind is not Kind.BOOL:
        return False
    if first.number == second.number:
        writer.emit("store_word", to.offset, 1 - negated)
        return True
    if writer.constant_of(second.number) is None and first.kind is Kind.OBJECT:
        writer.emit("is_none", to.offset, first.offset, negated)
        return True
    if first.kind is second.kind and first.kind in (Kind.OBJECT, Kind.TENSOR):
        writer.emit("same_word", to.offset, first.offset, second.offset, negated)
        return True
    return False


def _array_operation(
    writer: PlanWriter, instruction: Instruction, array: Register, other: Register, to: Register
) -> bool:
    if instruction.operation is operator.getitem and other.kind is Kind.INT:
        handler = _ITEMS.get((array.kind, to.kind))
        if handler is not None:
            writer.emit(handler, to.offset, array.offset, other.offset)
        return handler is not None
    if (
        instruction.operation in (operator.eq, operator.ne)
        and array.kind is other.kind is Kind.INTS
        and to.kind is Kind.BOOL
    ):
        writer.emit("arrays_equal", to.offset, array.offset, other.offset, int(instruction.operation is operator.ne))
        return True
    return False


_WRITERS: Final[dict[str, Callable[[PlanWriter, Instruction], bool]]] = {
    "prim::ListConstruct": list_construct,
    "prim::TupleConstruct": tuple_construct,
    "prim::TupleUnpack": unpack,
    "prim::ListUnpack": unpack,
    "prim::ConstantChunk": chunk,
    "prim::GetAttr": attribute,
    "prim::Uninitialized": uninitialized,
    "prim::unchecked_cast": cast,
    "prim::unchecked_unwrap_optional": cast,
    "aten::size": size,
    "aten::dim": partial(_count, "rank"),
    "aten::numel": partial(_count, "numel"),
    "prim::dtype": dtype,
    "aten::__derive_index": derived_index,
}
"""Writers of nodes by kind; each returns whether the node is supported."""
