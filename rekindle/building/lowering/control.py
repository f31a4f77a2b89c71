"""Lowering of errors, None, casts and tuples."""

from __future__ import annotations

from typing import Final

from rekindle.analysis.constants import is_constant
from rekindle.building.internal_operators import SETTLED, UNDEFINED
from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.representation import NotBuildable, descriptor_of, fields_of_class, is_object
from rekindle.building.lowering.writer import ProgramWriter, empty_register
from rekindle.building.lowlevel.compiler import field_index
from rekindle.building.runtime import values
from rekindle.building.runtime.dicts import new_record
from rekindle.building.runtime.memory import fields_of_record
from rekindle.building.runtime.objects import Context, ErrorCode, Kind, fail, retain
from rekindle.building.runtime.texts import data_of, fail_by_text
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import (
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    COMPLEX,
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    LAYOUT,
    MEMORY_FORMAT,
    NUMBER,
    QSCHEME_NUMBER,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    ListType,
    NoneType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from rekindle.ops.python.exceptions import exception_class

_CODES: Final = (
    (AssertionError, ErrorCode.ASSERTION_ERROR),
    (IndexError, ErrorCode.INDEX_ERROR),
    (KeyError, ErrorCode.KEY_ERROR),
    (ZeroDivisionError, ErrorCode.ZERO_DIVISION_ERROR),
    (OverflowError, ErrorCode.OVERFLOW_ERROR),
    (ValueError, ErrorCode.VALUE_ERROR),
    (TypeError, ErrorCode.TYPE_ERROR),
    (MemoryError, ErrorCode.MEMORY_ERROR),
    (NotImplementedError, ErrorCode.NOT_IMPLEMENTED_ERROR),
)


def error_code(name: str) -> ErrorCode:
    """Return the error code of the exception class of this name, such as ``builtins.ValueError``, or of its nearest
    known base class; that of RuntimeError for other names."""
    found = exception_class(name)
    if found is not None:
        for cls, code in _CODES:
            if issubclass(found, cls):
                return code
    return ErrorCode.RUNTIME_ERROR


@emits("prim::RaiseException")
def raise_exception(w: ProgramWriter, node: Node) -> None:
    message, cls = node.inputs[:2]
    name = cls.to_python() if is_constant(cls) else None
    if isinstance(name, str):
        w.call(fail, "%context", str(int(error_code(name))), w.call(data_of, w.name(message)))
        set_name(w, name, is_exact=True)
    else:
        w.call(fail_by_text, "%context", w.name(message))
    w.unwind()


@emits("prim::RaiseException.arguments")
def raise_with_arguments(w: ProgramWriter, node: Node) -> None:
    """Emit a raise of an exception with arguments, with the message that TorchScript gives it.

    Raises:
        NotBuildable: the class is known only at run time.
    """
    message, cls, values = node.inputs
    name = cls.to_python() if is_constant(cls) else None
    if not isinstance(name, str):
        raise NotBuildable("an exception of a class that is known only at run time", node.range)
    w.call(fail, "%context", str(int(error_code(name))), w.call(data_of, w.name(message)))
    texts = [STRING] if isinstance(values.type, TupleType) else []
    set_name(w, name, is_exact=list(values.type.contained) == texts and bool(texts))
    w.unwind()


def qualified_class(name: str) -> str:
    """Return the name of an exception class with its module."""
    return name if "." in name else f"builtins.{name}"


def set_name(w: ProgramWriter, name: str, *, is_exact: bool) -> None:
    """Emit code that stores the name of the class of the current error in the context, and ``is_exact``: whether
    ``str`` of the exception is its message."""
    place = w.parts.constants.bytes(qualified_class(name).encode())
    w.line(f"store ptr {place}, ptr {w.emit(f'getelementptr i64, ptr %context, i64 {_NAME}')}")
    w.line(f"store i64 {int(is_exact)}, ptr {w.emit(f'getelementptr i64, ptr %context, i64 {_IS_EXACT}')}")


_NAME: Final = field_index(Context, "name")
_IS_EXACT: Final = field_index(Context, "is_exact")


@emits("aten::wait", SETTLED)
def same_value(w: ProgramWriter, node: Node) -> None:
    """Define the result as the argument. A Future is represented by the value of its task, which ran at the fork."""
    w.define_borrowed(node.output, w.name(node.input))


@emits("prim::Uninitialized", UNDEFINED)
def uninitialized(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, empty_register(node.output.type))


@emits("prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional")
def cast(w: ProgramWriter, node: Node) -> None:
    given, result = node.input, node.output
    register = w.name(given)
    if node.kind == "aten::_unwrap_optional":
        w.fail_if(is_none(w, given), ErrorCode.RUNTIME_ERROR, "Unwrapping null optional")
    w.define(result, _unboxed(w, register, given.type, result.type))
    if is_object(result.type):
        w.call(retain, w.names[result])


def _unboxed(w: ProgramWriter, register: str, given: Type, wanted: Type) -> str:
    """Emit the conversion of a value to a narrower type: a boxed number is unboxed, objects are unchanged."""
    have, want = descriptor_of(given), descriptor_of(wanted)
    if have[0] in "ifb" or want[0] not in "ifb":
        return w.converted(register, given, wanted)
    return w.of_word(word_in_box(w, register), wanted)


def word_in_box(w: ProgramWriter, register: str) -> str:
    """Emit a read of the 64 bits of a boxed number."""
    return w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {register}, i64 2')}")


def kind_of(w: ProgramWriter, register: str) -> str:
    """Emit a read of the kind (:class:`Kind`) of an object."""
    return w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {register}, i64 1')}")


def is_none(w: ProgramWriter, value: Value) -> str:
    """Emit a test whether a value is None; return the constant ``false`` for types without None."""
    if not is_object(value.type):
        return "false"
    return w.emit(f"icmp eq ptr {w.name(value)}, null")


@emits("aten::__is__", "aten::__isnot__")
def is_same(w: ProgramWriter, node: Node) -> None:
    a, b = node.inputs
    if isinstance(b.type, NoneType) or isinstance(a.type, NoneType):
        found = is_none(w, a if isinstance(b.type, NoneType) else b)
    elif isinstance(a.type, EnumType) and a.type == b.type:
        found = w.emit(f"icmp eq i64 {w.name(a)}, {w.name(b)}")
    elif a.type == BOOL and b.type == BOOL:
        found = w.emit(f"icmp eq i1 {w.name(a)}, {w.name(b)}")
    elif BOOL in (a.type, b.type) and not is_object(a.type) and not is_object(b.type):
        found = "false"  # a number is never True or False itself
    elif is_object(a.type) and is_object(b.type):
        found = w.emit(f"icmp eq ptr {w.name(a)}, {w.name(b)}")
    else:
        raise NotBuildable("'is' compares objects in native libraries, and this compares numbers", node.range)
    w.define(node.output, found if node.kind == "aten::__is__" else w.emit(f"xor i1 {found}, true"))


_KINDS: Final[tuple[tuple[Type, Kind], ...]] = (
    (INT, Kind.INT),
    (FLOAT, Kind.FLOAT),
    (BOOL, Kind.BOOL),
    (STRING, Kind.TEXT),
    (COMPLEX, Kind.COMPLEX),
)


@emits("prim::isinstance")
def is_instance(w: ProgramWriter, node: Node) -> None:
    value = node.input
    types = node["types"]
    assert isinstance(types, list)
    wanted = [each for each in types if isinstance(each, Type)]
    if not is_object(value.type):
        raise NotBuildable(f"whether a {value.type} is an instance is known to the compiler alone", node.range)
    register = w.name(value)
    none = w.emit(f"icmp eq ptr {register}, null")
    takes_none = any(isinstance(each, NoneType | OptionalType) for each in wanted)
    result = w.alloca("i1")
    w.line(f"store i1 {'true' if takes_none else 'false'}, ptr {result}")
    check, after = w.fresh("check"), w.fresh("after")
    w.line(f"br i1 {none}, label %{after}, label %{check}")
    w.start_block(check)
    kind = kind_of(w, register)
    found = "false"
    for each in wanted:
        for test in _tests(w, each, value, kind):
            found = w.emit(f"or i1 {found}, {test}")
    w.line(f"store i1 {found}, ptr {result}")
    w.line(f"br label %{after}")
    w.start_block(after)
    w.define(node.output, w.emit(f"load i1, ptr {result}"))


def _tests(w: ProgramWriter, type: Type, value: Value, kind: str) -> list[str]:
    """Emit tests whether an object, whose ``kind`` is a register, is of ``type``: it is if one of them holds. None
    needs no test.

    Raises:
        NotBuildable: native libraries have no test for this type.
    """
    if isinstance(type, NoneType):
        return []
    if isinstance(type, OptionalType):
        return _tests(w, type.element, value, kind)
    if isinstance(type, UnionType):
        return [test for each in type.contained for test in _tests(w, each, value, kind)]
    if type == NUMBER:
        return [w.emit(f"icmp eq i64 {kind}, {int(each)}") for each in (Kind.INT, Kind.FLOAT, Kind.COMPLEX)]
    for known, number in (*_KINDS, (TENSOR, Kind.TENSOR)):
        if type == known or (isinstance(type, TensorType) and known == TENSOR):
            kinds = (number, Kind.BOOL) if number is Kind.INT else (number,)  # a bool is an int
            return [w.emit(f"icmp eq i64 {kind}, {int(each)}") for each in kinds]
    if type == ANY_LIST:
        return [w.emit(f"icmp eq i64 {kind}, {int(Kind.LIST)}")]
    if type == ANY_TUPLE:
        descriptor = "("
    elif isinstance(type, ListType | DictType | TupleType) and not _is_special(type):
        descriptor = descriptor_of(type)
    elif isinstance(type, ClassType) and not type.is_module:
        descriptor = fields_of_class(type)
    else:
        raise NotBuildable(f"native libraries cannot test whether a value is a {type}", value.node.range)
    place = w.parts.constants.bytes(descriptor.encode())
    number_found = w.call(values.conforms, "%context", w.name(value), place)
    w.unwind_if(w.emit(f"icmp slt i64 {number_found}, 0"))
    return [w.emit(f"icmp ne i64 {number_found}, 0")]


def _is_special(type: Type) -> bool:
    """Return whether values of a type are represented like those of another type: sets, named tuples, members of
    enums, dtypes."""
    if isinstance(type, ListType | DictType) and type.python:
        return True
    if isinstance(type, EnumType) or type in (DTYPE, DEVICE, LAYOUT, MEMORY_FORMAT, QSCHEME_NUMBER):
        return True
    if isinstance(type, TupleType) and type.name:
        return True
    return any(map(_is_special, type.contained))


# -------------------------------------------------------------------------------------------------------------- tuples


@emits("prim::TupleConstruct")
def construct_tuple(w: ProgramWriter, node: Node) -> None:
    type = node.output.type
    record = w.call(new_record, w.parts.constants.descriptor(type), str(len(node.inputs)))
    fields = w.call(fields_of_record, record)
    for index, (value, part) in enumerate(zip(node.inputs, type.contained, strict=True)):
        place = w.emit(f"getelementptr i64, ptr {fields}, i64 {index}")
        w.line(f"store i64 {w.owned_word(value, part)}, ptr {place}")
    w.define(node.output, record)


def _field(w: ProgramWriter, record: str, index: int, value: Value) -> None:
    """Define a value as field number ``index`` of a tuple or instance."""
    fields = w.call(fields_of_record, record)
    word = w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {fields}, i64 {index}')}")
    w.define_borrowed(value, w.of_word(word, value.type))


@emits("prim::TupleUnpack")
def unpack_tuple(w: ProgramWriter, node: Node) -> None:
    record = w.name(node.input)
    for index, value in enumerate(node.outputs):
        _field(w, record, index, value)


@emits("prim::TupleIndex")
def index_tuple(w: ProgramWriter, node: Node) -> None:
    given, index = node.inputs
    number = index.to_python() if is_constant(index) else None
    if not isinstance(number, int):
        raise NotBuildable("a tuple is indexed by a constant in native libraries", node.range)
    count = len(given.type.contained)
    if not -count <= number < count:
        w.fail_if("true", ErrorCode.INDEX_ERROR, "tuple index out of range")
    _field(w, w.name(given), number % count, node.output)
