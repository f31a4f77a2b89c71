"""How the inputs of a node become the arguments of ``at::_ops::<op>::call``, by the C++ type of the parameter.

What an argument needs beside words (an ``optional``, a ``Scalar``, an array) lies in scratch memory of the frame and is
made by instructions before the call, or is constant and lies in memory of the plan.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import torch

from rekindle.codegen.plan_runtime.conversion_ir import MAX_ITEMS
from rekindle.codegen.plan_runtime.frame import Kind
from rekindle.ir.scalar_types import DTYPES, LAYOUTS, MEMORY_FORMATS
from rekindle.ir.types import NumberType
from rekindle.runtime.native_plans.instruction_table import InstructionTable
from rekindle.runtime.native_plans.registers import FrameLayout, Register
from rekindle.runtime.native_plans.words import Floating, InMemory, Integers, Passed, Word, address, content, immediate

UNKNOWN: Final = object()


class NotNative(Exception):
    """Raised if native code cannot call the operator of the node without Python."""


class CallContext(Protocol):
    """Services of the writer of a plan for conversions."""

    layout: FrameLayout
    table: InstructionTable
    tensor_offset: int
    temporaries: list[tuple[Kind, int]]
    """Temporaries to release after the call."""

    def emit(self, handler: str, *operands: int) -> None:
        """Append an instruction."""

    def constant_of(self, register: int) -> object:
        """Return the constant that a register holds; ``UNKNOWN`` where it holds none."""


def passed_argument(context: CallContext, type: str, register: int) -> Passed:
    """Return the 64-bit words that pass the value of ``register`` as a parameter of the C++ type ``type``; emit the
    instructions that fill the memory to which these words point.

    Raises:
        NotNative: the value cannot be passed without Python.
    """
    convert = _CONVERSIONS.get(type)
    if convert is None:
        raise NotNative
    return convert(context, register)


def tensor_word(context: CallContext, register: int) -> Word:
    """Return the 64-bit word that is the address of the ``at::Tensor`` in a register.

    Raises:
        NotNative: the register holds something other than a Tensor.
    """
    found = context.layout.registers[register]
    if found.kind is Kind.TENSOR:
        return address(found.offset)
    if found.kind is Kind.OBJECT and found.is_tensor:
        return content(found.offset, context.tensor_offset)
    constant = context.constant_of(register)
    if type(constant) in (torch.Tensor, torch.nn.Parameter):
        context.table.kept.append(constant)
        return immediate(id(constant) + context.tensor_offset)
    raise NotNative


# ------------------------------------------------------------------------------------------------------------- tensors


def _tensor(context: CallContext, register: int) -> Passed:
    return Integers((tensor_word(context, register),))


def _optional_tensor(context: CallContext, register: int) -> Passed:
    constant, found = context.constant_of(register), context.layout.registers[register]
    if constant is None:
        return Integers((immediate(context.table.static(bytes(16))),))
    if found.is_tensor:
        word = tensor_word(context, register)
        scratch = context.layout.reserve(2)
        context.emit("some_tensor_at", scratch, *word)
        return Integers((address(scratch),))
    if found.kind is not Kind.OBJECT:
        raise NotNative
    scratch = context.layout.reserve(2)
    context.emit("optional_tensor", scratch, found.offset)
    return Integers((address(scratch),))


def _tensor_array(context: CallContext, register: int) -> int:
    """Return the offset of a ``c10::ArrayRef`` of the Tensors of a list: two words, a pointer and a length.

    Raises:
        NotNative: the register does not hold a list.
    """
    found = context.layout.registers[register]
    if found.kind is Kind.TENSORS:
        return found.offset
    if found.kind is not Kind.OBJECT:
        raise NotNative
    items = context.layout.reserve(MAX_ITEMS)
    array = context.layout.reserve(Kind.TENSORS.words, Kind.TENSORS)
    context.emit("tensors_of_object", array, found.offset, items)
    context.temporaries.append((Kind.TENSORS, array))
    return array


def _tensors(context: CallContext, register: int) -> Passed:
    array = _tensor_array(context, register)
    return Integers((content(array), content(array + 8)))


def _tensor_list_ref(context: CallContext, register: int) -> Passed:
    """Return the argument for a ``c10::IListRef``: an array, followed by a tag, which is 0 for an array."""
    array = _tensor_array(context, register)
    scratch = context.layout.reserve(3)
    context.emit("copy_word", scratch, array)
    context.emit("copy_word", scratch + 8, array + 8)
    return Integers((address(scratch),))


# ------------------------------------------------------------------------------------------------------------- numbers

_SCALAR_TAGS: Final = {Kind.FLOAT: 0, Kind.INT: 1, Kind.BOOL: 4}
_SCALAR_WORDS: Final = 4


def _word_of(context: CallContext, register: int, kind: Kind) -> Word:
    """Return the 64-bit word of the number of kind ``kind`` in a register.

    Raises:
        NotNative: the register holds a number of another kind.
    """
    constant = context.constant_of(register)
    if constant is not UNKNOWN:
        return immediate(_constant_word(constant, kind))
    found = context.layout.registers[register]
    if found.kind is not kind:
        raise NotNative
    return content(found.offset)


def _constant_word(constant: object, kind: Kind) -> int:
    if kind is Kind.FLOAT and type(constant) in (int, float):
        return int(struct.unpack("<q", struct.pack("<d", float(constant)))[0])  # type: ignore[arg-type]
    if kind is Kind.BOOL and isinstance(constant, bool):
        return int(constant)
    if kind is Kind.INT and type(constant) is int and -(1 << 62) <= constant < 1 << 62:
        return constant
    raise NotNative


def _static_scalar(constant: object) -> bytes:
    if isinstance(constant, bool):
        return struct.pack("<qqqq", _SCALAR_TAGS[Kind.BOOL], 0, int(constant), 0)
    if type(constant) is int and -(1 << 63) <= constant < 1 << 63:
        return struct.pack("<qqqq", _SCALAR_TAGS[Kind.INT], 0, constant, 0)
    if type(constant) is float:
        return struct.pack("<qqdq", _SCALAR_TAGS[Kind.FLOAT], 0, constant, 0)
    raise NotNative


def _fill_scalar(context: CallContext, register: int, scratch: int) -> None:
    found = context.layout.registers[register]
    if found.kind in _SCALAR_TAGS:
        context.emit("scalar", scratch, _SCALAR_TAGS[found.kind], found.offset)
    elif found.kind is Kind.OBJECT and _are_numbers(context, found):
        context.emit("scalar_of_object", scratch, found.offset)
    else:
        raise NotNative


def _are_numbers(context: CallContext, register: Register) -> bool:
    return all(isinstance(value.type, NumberType) for value in context.layout.code.values[register.number])


def _scalar(context: CallContext, register: int) -> Passed:
    constant = context.constant_of(register)
    if constant is not UNKNOWN:
        return Integers((immediate(context.table.static(_static_scalar(constant))),))
    scratch = context.layout.reserve(_SCALAR_WORDS)
    _fill_scalar(context, register, scratch)
    return Integers((address(scratch),))


def _optional_scalar(context: CallContext, register: int) -> Passed:
    constant = context.constant_of(register)
    if constant is None:
        return Integers((immediate(context.table.static(bytes(48))),))
    if constant is not UNKNOWN:
        return Integers((immediate(context.table.static(_static_scalar(constant) + struct.pack("<qq", 1, 0))),))
    scratch = context.layout.reserve(_SCALAR_WORDS + 2)
    _fill_scalar(context, register, scratch)
    context.emit("store_word", scratch + 8 * _SCALAR_WORDS, 1)
    return Integers((address(scratch),))


def _number(kind: Kind) -> Callable[[CallContext, int], Passed]:
    def convert(context: CallContext, register: int) -> Passed:
        word = _word_of(context, register, kind)
        return Floating(word) if kind is Kind.FLOAT else Integers((word,))

    return convert


def _optional_number(kind: Kind) -> Callable[[CallContext, int], Passed]:
    def convert(context: CallContext, register: int) -> Passed:
        absent = context.constant_of(register) is None
        value = immediate(0) if absent else _word_of(context, register, kind)
        if kind is Kind.FLOAT:
            return Floating(value, immediate(not absent))
        if kind is Kind.BOOL:
            if not absent and context.constant_of(register) is UNKNOWN:
                raise NotNative
            return Integers((immediate(0 if absent else value[3] | 1 << 8),))
        return Integers((value, immediate(not absent)))

    return convert


def _sym_int(context: CallContext, register: int) -> Passed:
    """Pass a ``c10::SymInt`` by the address of a copy. The top bits of its word mark a symbol: ints that have them
    are left to Python."""
    word = _word_of(context, register, Kind.INT)
    return Integers((_memory_of(context, word, register, engaged=False),))


def _optional_sym_int(context: CallContext, register: int) -> Passed:
    if context.constant_of(register) is None:
        return Integers((immediate(context.table.static(bytes(16))),))
    word = _word_of(context, register, Kind.INT)
    return Integers((_memory_of(context, word, register, engaged=True),))


def _memory_of(context: CallContext, word: Word, register: int, *, engaged: bool) -> Word:
    if context.constant_of(register) is not UNKNOWN:
        return immediate(context.table.static(struct.pack("<qq", word[3], engaged)))
    scratch = context.layout.reserve(2)
    context.emit("sym_int", scratch, context.layout.registers[register].offset)
    context.emit("store_word", scratch + 8, int(engaged))
    return address(scratch)


# -------------------------------------------------------------------------------------------------------------- arrays


def _int_array(context: CallContext, register: int, *, symbolic: bool) -> tuple[Word, Word]:
    constant, found = context.constant_of(register), context.layout.registers[register]
    if isinstance(constant, (list, tuple)):
        words = [_constant_word(item, Kind.INT) for item in constant]
        return immediate(context.table.static(struct.pack(f"<{len(words)}q", *words))), immediate(len(words))
    if found.kind is Kind.INTS:
        array = found.offset
    elif found.kind is Kind.OBJECT and constant is UNKNOWN:
        items = context.layout.reserve(MAX_ITEMS)
        array = context.layout.reserve(2)
        context.emit("ints_of_object", array, found.offset, items)
    else:
        raise NotNative
    if symbolic:
        context.emit("check_sym_ints", array)
    return content(array), content(array + 8)


def _ints(context: CallContext, register: int) -> Passed:
    return Integers(_int_array(context, register, symbolic=False))


def _sym_ints(context: CallContext, register: int) -> Passed:
    return Integers(_int_array(context, register, symbolic=True))


def _optional_ints(context: CallContext, register: int) -> Passed:
    """Return the argument for a ``c10::OptionalArrayRef``: in memory, an array and a flag that states whether there is
    one."""
    if context.constant_of(register) is None:
        return InMemory((immediate(0), immediate(0), immediate(0)))
    return InMemory((*_int_array(context, register, symbolic=True), immediate(1)))


def _optional_floats(context: CallContext, register: int) -> Passed:
    constant = context.constant_of(register)
    if constant is None:
        return InMemory((immediate(0), immediate(0), immediate(0)))
    if not isinstance(constant, (list, tuple)) or not all(type(item) is float for item in constant):
        raise NotNative
    start = context.table.static(struct.pack(f"<{len(constant)}d", *constant))
    return InMemory((immediate(start), immediate(len(constant)), immediate(1)))


def _bools(context: CallContext, register: int) -> Passed:
    """Return the argument for a ``std::array<bool, N>`` of at most eight bools: one 64-bit word.

    Raises:
        NotNative: the argument is not a constant list of bools.
    """
    constant = context.constant_of(register)
    if not isinstance(constant, (list, tuple)) or not all(isinstance(item, bool) for item in constant):
        raise NotNative
    return Integers((immediate(sum(int(item) << 8 * index for index, item in enumerate(constant))),))


# ---------------------------------------------------------------------------------------------------- other properties


def _enumeration(members: Sequence[object]) -> Callable[[CallContext, int], Passed]:
    """Return the function that converts a constant argument of an 8-bit C++ enumeration to its value.

    Programs represent a member by an int, the value in C++, which is an index into ``members``. The function raises
    NotNative for an int without a member, and if the argument is not constant.
    """

    def convert(context: CallContext, register: int) -> Passed:
        return Integers((immediate(_member(members, context.constant_of(register))),))

    return convert


def _optional_enumeration(members: Sequence[object]) -> Callable[[CallContext, int], Passed]:
    def convert(context: CallContext, register: int) -> Passed:
        constant = context.constant_of(register)
        return Integers((immediate(0 if constant is None else _member(members, constant) | 1 << 8),))

    return convert


def _member(members: Sequence[object], constant: object) -> int:
    if type(constant) is not int or not 0 <= constant < len(members) or members[constant] is None:
        raise NotNative
    return constant


_CPU: Final = 0xFF00
"""A ``c10::Device``: the type 0, and the index -1."""


def _device(context: CallContext, register: int) -> Passed:
    if context.constant_of(register) != torch.device("cpu"):
        raise NotNative
    return Integers((immediate(_CPU),))


def _optional_device(context: CallContext, register: int) -> Passed:
    constant = context.constant_of(register)
    if constant is None:
        return Integers((immediate(0),))
    if constant != torch.device("cpu"):
        raise NotNative
    return Integers((immediate(_CPU | 1 << 16),))


def _generator(context: CallContext, register: int) -> Passed:
    if context.constant_of(register) is not None:
        raise NotNative
    return Integers((immediate(context.table.static(bytes(16))),))


def _string_words(context: CallContext, constant: object) -> tuple[Word, Word]:
    if not isinstance(constant, str):
        raise NotNative
    data = constant.encode()
    return immediate(len(data)), immediate(context.table.static(data + b"\0"))


def _string(context: CallContext, register: int) -> Passed:
    return Integers(_string_words(context, context.constant_of(register)))


def _optional_string(context: CallContext, register: int) -> Passed:
    constant = context.constant_of(register)
    if constant is None:
        return InMemory((immediate(0), immediate(0), immediate(0)))
    return InMemory((*_string_words(context, constant), immediate(1)))


_CONVERSIONS: Final[dict[str, Callable[[CallContext, int], Passed]]] = {
    "const at::Tensor &": _tensor,
    "at::Tensor &": _tensor,
    "const ::std::optional<at::Tensor> &": _optional_tensor,
    "at::TensorList": _tensors,
    "const at::ITensorListRef &": _tensor_list_ref,
    "const at::Scalar &": _scalar,
    "const ::std::optional<at::Scalar> &": _optional_scalar,
    "int64_t": _number(Kind.INT),
    "::std::optional<int64_t>": _optional_number(Kind.INT),
    "c10::SymInt": _sym_int,
    "::std::optional<c10::SymInt>": _optional_sym_int,
    "bool": _number(Kind.BOOL),
    "::std::optional<bool>": _optional_number(Kind.BOOL),
    "double": _number(Kind.FLOAT),
    "::std::optional<double>": _optional_number(Kind.FLOAT),
    "at::IntArrayRef": _ints,
    "c10::SymIntArrayRef": _sym_ints,
    "at::OptionalIntArrayRef": _optional_ints,
    "at::OptionalSymIntArrayRef": _optional_ints,
    "::std::optional<at::ArrayRef<double>>": _optional_floats,
    **{f"::std::array<bool,{count}>": _bools for count in range(1, 9)},
    "at::ScalarType": _enumeration(DTYPES),
    "::std::optional<at::ScalarType>": _optional_enumeration(DTYPES),
    "::std::optional<at::Layout>": _optional_enumeration(LAYOUTS),
    "at::MemoryFormat": _enumeration(MEMORY_FORMATS),
    "::std::optional<at::MemoryFormat>": _optional_enumeration(MEMORY_FORMATS),
    "at::Device": _device,
    "::std::optional<at::Device>": _optional_device,
    "::std::optional<at::Generator>": _generator,
    "c10::string_view": _string,
    "::std::optional<c10::string_view>": _optional_string,
}
