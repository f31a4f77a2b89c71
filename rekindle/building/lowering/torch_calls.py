"""Calls of PyTorch's operators, for operators that the library does not implement itself."""

from __future__ import annotations

from typing import Final

import torch

from rekindle.building.lowering.constants import scalar_type
from rekindle.building.lowering.representation import NotBuildable, descriptor_of, is_object
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime import aten
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import Kind
from rekindle.ir.graph import Node, Value
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.types import (
    BOOL,
    DEVICE,
    DTYPE,
    FLOAT,
    GENERATOR,
    INT,
    LAYOUT,
    MEMORY_FORMAT,
    NUMBER,
    QSCHEME_NUMBER,
    STRING,
    TENSOR,
    ListType,
    OptionalType,
    TensorType,
    Type,
    UnionType,
)

_RESIZING: Final = (
    "resize_",
    "resize_as_",
    "set_",
    "as_strided_",
    "swapdims_",
    "squeeze_",
    "unsqueeze_",
    "t_",
    "transpose_",
    "swapaxes_",
)
"""In-place operators that change sizes or strides, of which tensors of the runtime would not be informed."""
_OF_TORCHSCRIPT: Final = "native libraries have no operator"


def call_torch(w: ProgramWriter, node: Node) -> None:
    """Emit a call of the operator of a node through PyTorch's stable C ABI, and record the operator in ``w.parts``.

    Raises:
        NotBuildable: the operator is not in PyTorch's dispatcher, changes sizes in place, has an argument ``out``,
            needs gradients or the offset of a tensor in its storage, is called in a ``try``, or has arguments or
            results that the ABI cannot pass.
    """
    schema = node.schema
    if schema is None or not schema.name.startswith("aten::") or not _is_dispatched(schema):
        raise NotBuildable(f"{_OF_TORCHSCRIPT} '{node.kind}' of these types", node.range)
    if w.is_tried:
        raise NotBuildable(
            f"'{schema.name}' in a 'try': PyTorch does not say of which class its errors are", node.range
        )
    if schema.name == "aten::requires_grad_":
        raise NotBuildable("native libraries record no gradients", node.range)
    if schema.name == "aten::_neg_view":
        raise NotBuildable("native libraries have no tensors that are negated when they are read", node.range)
    if schema.name in ("aten::as_strided", "aten::storage_offset"):
        raise NotBuildable(
            f"'{schema.name}': a tensor of a library does not know its offset in its storage", node.range
        )
    if any(argument.is_out for argument in schema.arguments):
        raise NotBuildable(f"'{schema.name}' with an argument 'out', whose sizes may change", node.range)
    if schema.name.partition("::")[2] in _RESIZING:
        raise NotBuildable(f"'{schema.name}' changes the sizes of a tensor in place", node.range)
    if schema.name in _SUMS and schema.overload in ("Tensor", "Scalar"):
        _sum(w, node)
        return
    schema = _with_tensors_for_numbers(schema)
    words = w.alloca(f"[{max(len(schema.arguments), len(schema.returns), 1)} x i64]")
    given: list[str] = []
    made: list[str] = []
    for index, (argument, value) in enumerate(zip(schema.arguments, node.inputs, strict=True)):
        if isinstance(argument.type, TensorType) and _is_number(value.type):
            made.append(_number_as_tensor(w, node, value))
            word = w.call(aten.tensor_argument, "%context", w.emit(f"load ptr, ptr {made[-1]}"))
        else:
            word = _argument(w, node, argument.type, value)
        w.line(f"store i64 {word}, ptr {w.emit(f'getelementptr i64, ptr {words}, i64 {index}')}")
        if is_object(value.type) and descriptor_of(value.type) in ("t", "?t", "[t", "[?t"):
            given.append(w.emit(f"ptrtoint ptr {w.name(value)} to i64"))
    w.parts.uses_torch.add(schema.qualified_name)
    constants = w.parts.constants
    name, overload = constants.bytes(schema.name.encode()), constants.bytes(schema.overload.encode())
    w.call_or_fail(aten.call_operator, "%context", name, overload, words, str(ABI_VERSION))
    for slot in made:
        w.call(release, w.take(slot))
    known = w.words(given)
    for index, (result, value) in enumerate(zip(schema.returns, node.outputs, strict=True)):
        word = w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {words}, i64 {index}')}")
        _result(w, node, result.type, value, word, known, len(given))


_SUMS: Final = ("aten::add", "aten::sub", "aten::rsub")


def _sum(w: ProgramWriter, node: Node) -> None:
    """Emit a sum or a difference of tensors by PyTorch's C function, which takes ``alpha`` as a float.

    Raises:
        NotBuildable: an operand, or the factor ``alpha``, has an unsupported type.
    """
    first, second, alpha = node.inputs
    if alpha.type not in (INT, FLOAT):
        raise NotBuildable(f"'{node.kind}' with a factor that is not an int or a float", node.range)
    made: list[str] = []
    registers = []
    for value in (first, second):
        if _is_number(value.type):
            made.append(_number_as_tensor(w, node, value))
            registers.append(w.emit(f"load ptr, ptr {made[-1]}"))
        elif descriptor_of(value.type) == "t":
            registers.append(w.name(value))
        else:
            raise NotBuildable(f"'{node.kind}' of a {value.type}", node.range)
    factor = w.converted(w.name(alpha), alpha.type, FLOAT)
    if node.kind != "aten::add":
        factor = w.emit(f"fneg double {factor}")
    if node.kind == "aten::rsub":
        registers.reverse()
    w.parts.uses_torch.add("aten::add.Tensor")
    w.define(node.output, w.call_or_fail(aten.add_tensors, "%context", *registers, factor, str(ABI_VERSION)))
    for slot in made:
        w.call(release, w.take(slot))


def _with_tensors_for_numbers(schema: FunctionSchema) -> FunctionSchema:
    """Return the overload that takes tensors where this one takes Scalars, which the ABI does not pass; the schema
    itself if there is none."""
    if not any(argument.type == NUMBER for argument in schema.arguments):
        return schema
    for operator in REGISTRY.overloads(schema.name):
        other = operator.schema
        pairs = list(zip(schema.arguments, other.arguments, strict=False))
        if (
            len(pairs) == len(schema.arguments) == len(other.arguments)
            and [each.type for each in other.returns] == [each.type for each in schema.returns]
            and all(a.type == b.type or (a.type == NUMBER and b.type == TENSOR) for a, b in pairs)
            and not any(each.type == NUMBER or each.is_out for each in other.arguments)
            and any(a.type == b.type == TENSOR for a, b in pairs)
            and _is_dispatched(other)
        ):
            return other
    return schema


_KINDS: Final = {"i": Kind.INT, "f": Kind.FLOAT, "b": Kind.BOOL, "c": Kind.COMPLEX}


def _is_number(type: Type) -> bool:
    """Return whether values of a type are numbers, boxed ones included."""
    if isinstance(type, UnionType):
        return all(map(_is_number, type.contained))
    return type == NUMBER or descriptor_of(type) in _KINDS


def _number_as_tensor(w: ProgramWriter, node: Node, value: Value) -> str:
    """Emit a new tensor without dimensions for ``value``, a number that is an operand of ``node`` beside a tensor. Its
    dtype is promoted with that tensor's as the number would be. Return its slot, which the caller releases."""
    like = next(each for each in node.inputs if isinstance(each.type, TensorType))
    letter, register = descriptor_of(value.type), w.name(value)
    slot = w.owned_slot()
    default = str(scalar_type(torch.get_default_dtype()))
    if letter in ("a", "c"):
        made = w.call_or_fail(aten.boxed_number_as_tensor, "%context", w.name(like), register, default)
    else:
        kind, word = str(int(_KINDS[letter])), w.word_of(register, value.type)
        made = w.call_or_fail(aten.number_as_tensor, "%context", w.name(like), kind, word, default)
    w.line(f"store ptr {made}, ptr {slot}")
    return slot


ABI_VERSION: Final = 2 << 56 | 13 << 48
"""The version of PyTorch's stable ABI that libraries use: that of PyTorch 2.13."""

_NUMBERS: Final = (INT, FLOAT, BOOL, DTYPE, LAYOUT, MEMORY_FORMAT, QSCHEME_NUMBER)


def _argument(w: ProgramWriter, node: Node, wanted: Type, value: Value) -> str:
    """Emit the conversion of an argument to a 64-bit word of PyTorch's stable C ABI.

    Raises:
        NotBuildable: the ABI cannot pass this type.
    """
    if isinstance(wanted, OptionalType):
        return _optional(w, node, wanted.element, value)
    register = w.name(value)
    if wanted in (*_NUMBERS, DEVICE) and not is_object(value.type):
        return w.word_of(w.converted(register, value.type, wanted), wanted)
    if isinstance(wanted, TensorType) and isinstance(value.type, TensorType):
        return w.call(aten.tensor_argument, "%context", register)
    if wanted == STRING and value.type == STRING:
        return w.call(aten.text_argument, register)
    if isinstance(wanted, ListType) and isinstance(value.type, ListType):
        element = wanted.element
        if isinstance(element, OptionalType) and isinstance(element.element, TensorType):
            return w.call(aten.list_argument, "%context", register, "true")
        if descriptor_of(value.type.element) in ("i", "f", "b", "t") and element != NUMBER:
            return w.call(aten.list_argument, "%context", register, "false")
    raise NotBuildable(
        f"'{node.schema.qualified_name if node.schema else node.kind}' takes a {wanted}, which the stable ABI of "
        "PyTorch does not pass",
        node.range,
    )


def _optional(w: ProgramWriter, node: Node, element: Type, value: Value) -> str:
    if value.node.kind == "prim::Constant" and value.to_python() is None:
        return "0"
    if element == GENERATOR:
        raise NotBuildable("native libraries have no generators of random numbers", node.range)
    if isinstance(element, TensorType) and descriptor_of(value.type) in ("t", "?t"):
        return w.call(aten.optional_tensor_argument, "%context", w.name(value))
    if element in (INT, FLOAT, BOOL) and descriptor_of(value.type) == "?" + descriptor_of(element):
        return w.call(aten.optional_number_argument, w.name(value))
    if not isinstance(value.type, OptionalType) and descriptor_of(value.type) != "n":
        return w.call(aten.some, _argument(w, node, element, value))
    raise NotBuildable(f"'{node.kind}' takes an optional {element} that may be None at run time", node.range)


def _result(w: ProgramWriter, node: Node, type: Type, value: Value, word: str, given: str, count: int) -> None:
    """Define a result of the node from its word of the ABI. ``given`` is the address of the ``count`` arguments that
    are or hold tensors.

    Raises:
        NotBuildable: the ABI cannot pass this type.
    """
    if isinstance(type, TensorType) and not value.has_uses:  # it may be undefined
        w.call(aten.drop_tensor, word)
    elif isinstance(type, TensorType):
        w.define(value, w.call_or_fail(aten.tensor_result, "%context", word, given, str(count), str(ABI_VERSION)))
    elif isinstance(type, ListType) and isinstance(type.element, TensorType):
        w.define(value, w.call_or_fail(aten.list_result, "%context", word, given, str(count), str(ABI_VERSION)))
    elif type in _NUMBERS:
        w.define(value, w.of_word(word, value.type))
    else:
        raise NotBuildable(f"'{node.kind}' returns a {type}, which the stable ABI of PyTorch does not pass", node.range)


def _is_dispatched(schema: FunctionSchema) -> bool:
    """Return whether PyTorch's dispatcher has the operator of this schema."""
    try:
        torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload)
    except RuntimeError:
        return False
    return True
