"""Strings, and printing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rekindle.analysis.constants import is_constant
from rekindle.building.lowering.containers import bounds
from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.representation import NotBuildable, descriptor_of, is_object
from rekindle.building.lowering.try_statements import text_of_exception
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime import printing, texts, values
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import ErrorCode
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import (
    DEVICE,
    DTYPE,
    LAYOUT,
    MEMORY_FORMAT,
    QSCHEME_NUMBER,
    DictType,
    EnumType,
    ListType,
    TupleType,
    Type,
)

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "aten::add.str": texts.text_concat,
    "aten::mul.str_int": texts.text_repeat,
    "aten::__contains__.str": texts.text_contains,
    "aten::startswith": texts.text_startswith,
    "aten::endswith": texts.text_endswith,
    "aten::join": texts.text_join,
    "aten::eq.str": texts.text_equal,
    "aten::count": texts.text_count,
}


@emits(*(name for name in _FUNCTIONS if name != "aten::__contains__.str"))
def call(w: ProgramWriter, node: Node) -> None:
    name = node.kind if node.schema is None else node.schema.qualified_name
    count = len(_parameters(_FUNCTIONS[name]))
    given = [w.name(value) for value in node.inputs[:count]]
    for value, default in zip(node.inputs[count:], (0, -1), strict=False):
        if not is_constant(value) or value.to_python() != default:
            raise NotBuildable(f"'{node.kind}' with bounds", node.range)
    w.define(node.output, w.call(_FUNCTIONS[name], *given))


def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(function.__annotations__)[:-1]


@emits("aten::ne.str")
def differs(w: ProgramWriter, node: Node) -> None:
    found = w.call(texts.text_equal, *(w.name(value) for value in node.inputs))
    w.define(node.output, w.emit(f"xor i1 {found}, true"))


_ORDER: Final = {"lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}


@emits(*(f"aten::{name}.str" for name in _ORDER))
def compare(w: ProgramWriter, node: Node) -> None:
    found = w.call(texts.text_compare, *(w.name(value) for value in node.inputs))
    w.define(node.output, w.emit(f"icmp {_ORDER[node.kind.partition('::')[2]]} i64 {found}, 0"))


@emits("aten::len.str")
def length(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {w.name(node.input)}, i64 3')}"))


@emits("aten::__getitem__.str")
def get(w: ProgramWriter, node: Node) -> None:
    text, index = (w.name(value) for value in node.inputs)
    w.define(node.output, w.call_or_fail(texts.text_index, "%context", text, index))


@emits("aten::slice.str")
def slice_text(w: ProgramWriter, node: Node) -> None:
    text, start, end, step = node.inputs
    low, high = bounds(w, start, end, step)
    w.define(node.output, w.call_or_fail(texts.text_slice, "%context", w.name(text), low, high, w.name(step)))


@emits("aten::find", "aten::rfind")
def find(w: ProgramWriter, node: Node) -> None:
    function = texts.text_find if node.kind == "aten::find" else texts.text_rfind
    text, wanted, start, end = node.inputs
    # TorchScript writes -1 for the end of the text.
    whole = w.emit(f"icmp eq i64 {w.name(end)}, -1")
    last = w.emit(f"select i1 {whole}, i64 {2**63 - 1}, i64 {w.name(end)}")
    w.define(node.output, w.call(function, w.name(text), w.name(wanted), w.name(start), last))


@emits("aten::split.str")
def split(w: ProgramWriter, node: Node) -> None:
    text, separator, most = node.inputs
    if is_constant(separator) and separator.to_python() is None:
        if not is_constant(most) or most.to_python() != -1:
            raise NotBuildable("'split' at spaces with a limit", node.range)
        ascii_only(w, w.name(text), node)
        w.define(node.output, w.call(texts.text_split_spaces, w.name(text)))
        return
    w.define(node.output, w.call_or_fail(texts.text_split, "%context", w.name(text), w.name(separator), w.name(most)))


def ascii_only(w: ProgramWriter, text: str, node: Node) -> None:
    """Raise an error where a text has other characters than those of ASCII."""
    found = w.call(texts.is_ascii, text)
    message = f"'{node.kind.partition('::')[2]}' of a string with characters beyond ASCII"
    w.fail_if(w.emit(f"xor i1 {found}, true"), ErrorCode.NOT_BUILT, message)


@emits("aten::strip", "aten::lstrip", "aten::rstrip")
def strip(w: ProgramWriter, node: Node) -> None:
    text, characters = (w.name(value) for value in node.inputs)
    ascii_only(w, characters, node)
    left, right = node.kind != "aten::rstrip", node.kind != "aten::lstrip"
    flags = ["true" if each else "false" for each in (left, right)]
    w.define(node.output, w.call(texts.text_strip, text, characters, *flags))


@emits("aten::lower", "aten::upper")
def change_case(w: ProgramWriter, node: Node) -> None:
    ascii_only(w, w.name(node.input), node)
    flag = "true" if node.kind == "aten::upper" else "false"
    w.define(node.output, w.call(texts.text_with_case, w.name(node.input), flag))


_CLASSES: Final = {"isdigit": 1, "isalpha": 2, "isalnum": 3, "isupper": 4, "islower": 5, "isspace": 6}


@emits(*(f"aten::{name}" for name in _CLASSES))
def test_characters(w: ProgramWriter, node: Node) -> None:
    ascii_only(w, w.name(node.input), node)
    number = _CLASSES[node.kind.partition("::")[2]]
    w.define(node.output, w.call(texts.text_is_of, w.name(node.input), str(number)))


@emits("aten::replace")
def replace(w: ProgramWriter, node: Node) -> None:
    text, old, new, most = node.inputs
    if not is_constant(most) or most.to_python() != -1:
        raise NotBuildable("'replace' with a limit", node.range)
    empty = w.emit(f"icmp eq i64 {w.emit(f'load i64, ptr {_bytes(w, old)}')}, 0")
    w.fail_if(empty, ErrorCode.NOT_BUILT, "'replace' of the empty string")
    w.define(node.output, w.call(texts.text_replace, w.name(text), w.name(old), w.name(new)))


def _bytes(w: ProgramWriter, value: Value) -> str:
    return w.emit(f"getelementptr i64, ptr {w.name(value)}, i64 2")


@emits("aten::ord")
def code_point(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call_or_fail_below_zero(texts.text_ord, "%context", w.name(node.input)))


@emits("aten::chr")
def character(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call_or_fail(texts.text_chr, "%context", w.name(node.input)))


@emits("aten::Int.str", "aten::Float.str")
def parse(w: ProgramWriter, node: Node) -> None:
    slot = w.alloca("i64")
    function = texts.parse_int if node.kind == "aten::Int" else texts.parse_float
    w.call_or_fail(function, "%context", w.name(node.input), slot)
    w.define(node.output, w.of_word(w.emit(f"load i64, ptr {slot}"), node.output.type))


class Operand(NamedTuple):
    """A value in a register, and its type."""

    register: str
    type: Type


def operand_of(w: ProgramWriter, value: Value) -> Operand:
    return Operand(w.name(value), value.type)


def text_of(w: ProgramWriter, given: Operand, node: Node, *, quoted: bool = False) -> str:
    """Return the text of a value, with a reference of its own.

    Raises:
        NotBuildable: native libraries do not write values of the type.
    """
    descriptor = descriptor_of(given.type)
    if any(letter in descriptor for letter in "tao") or _is_written_otherwise(given.type):
        raise NotBuildable(f"native libraries do not write a {given.type} as text", node.range)
    if node.kind.startswith("archive::") and descriptor != "s" and any(letter in descriptor for letter in "fs"):
        raise NotBuildable(f"native libraries do not write a {given.type} as text in the form of archives", node.range)
    place = w.parts.constants.descriptor(given.type)
    return w.call(values.text_of_word, place, w.word_of(*given), "true" if quoted else "false")


def _is_written_otherwise(type: Type) -> bool:
    """Return whether Python formats a value otherwise than its descriptor specifies: a dtype is not an int."""
    if isinstance(type, EnumType) or (isinstance(type, ListType | DictType) and type.python):
        return True
    if type in (DTYPE, DEVICE, LAYOUT, MEMORY_FORMAT, QSCHEME_NUMBER) or (isinstance(type, TupleType) and type.name):
        return True
    return any(map(_is_written_otherwise, type.contained))


@emits("aten::str", "archive::str")
def to_text(w: ProgramWriter, node: Node) -> None:
    if node.input.node.kind == "prim::Try":
        text_of_exception(w, node)
        return
    w.define(node.output, text_of(w, operand_of(w, node.input), node))


@emits("prim::Print")
def print_values(w: ProgramWriter, node: Node) -> None:
    for index, value in enumerate(node.inputs):
        if index:
            w.call(printing.print_text, w.parts.constants.string(" "))
        if is_object(value.type) and descriptor_of(value.type) == "s":
            w.call(printing.print_text, w.name(value))
            continue
        text = text_of(w, operand_of(w, value), node)
        w.call(printing.print_text, text)
        w.call(release, text)
    w.call(printing.print_text, w.parts.constants.string("\n"))


@emits("aten::warn")
def warn(w: ProgramWriter, node: Node) -> None:
    """Emit nothing for a warning: a library has no way to suppress it."""
