"""Lowering of operators on strings, conversions to strings, and printing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from rekindle.analysis.constants import is_constant
from rekindle.building.internal_operators import LETTER_AT
from rekindle.building.lowering.containers import MAX_REPEATS, bounds
from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.representation import NotBuildable, descriptor_of, is_object
from rekindle.building.lowering.try_statements import text_of_exception
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime import cases, formatting, lists, printing, text_methods, texts, values
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import ErrorCode
from rekindle.ir.graph import Node, Value
from rekindle.ir.scalar_types import DTYPES
from rekindle.ir.types import (
    DEVICE,
    DTYPE,
    LAYOUT,
    MEMORY_FORMAT,
    QSCHEME_NUMBER,
    STRING,
    AnyType,
    ClassType,
    DictType,
    EnumType,
    ListType,
    TensorType,
    TupleType,
    Type,
)

_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "aten::add.str": texts.text_concat,
    "aten::__contains__.str": texts.text_contains,
    "aten::join": texts.text_join,
    "aten::eq.str": texts.text_equal,
}


@emits(*(name for name in _FUNCTIONS if name != "aten::__contains__.str"))
def call(w: ProgramWriter, node: Node) -> None:
    name = node.kind if node.schema is None else node.schema.qualified_name
    w.define(node.output, w.call(_FUNCTIONS[name], *(w.name(value) for value in node.inputs)))


@emits("aten::mul.str_int")
def repeat(w: ProgramWriter, node: Node) -> None:
    text, count = (w.name(value) for value in node.inputs)
    check_width(w, count, "a string is repeated too often")
    w.define(node.output, w.call(texts.text_repeat, text, count))


def check_width(w: ProgramWriter, width: str, message: str) -> None:
    """Emit a MemoryError with ``message``, raised at run time if ``width`` exceeds 2^31."""
    w.fail_if(w.emit(f"icmp sgt i64 {width}, {MAX_REPEATS}"), ErrorCode.MEMORY_ERROR, message)


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


@emits(LETTER_AT)
def letter(w: ProgramWriter, node: Node) -> None:
    text, index = (w.name(value) for value in node.inputs)
    w.define(node.output, w.call_or_fail_below_zero(texts.letter_at, "%context", text, index))


@emits("aten::slice.str")
def slice_text(w: ProgramWriter, node: Node) -> None:
    text, start, end, step = node.inputs
    low, high = bounds(w, start, end, step)
    w.define(node.output, w.call_or_fail(texts.text_slice, "%context", w.name(text), low, high, w.name(step)))


_SEARCHES: Final[dict[str, Callable[..., Any]]] = {
    "find": texts.text_find,
    "rfind": texts.text_rfind,
    "index": texts.text_find,
    "rindex": texts.text_rfind,
    "count": texts.text_count,
    "startswith": texts.text_startswith,
    "endswith": texts.text_endswith,
}


@emits("aten::index.str", *(f"aten::{name}" for name in _SEARCHES if name != "index"))
def search(w: ProgramWriter, node: Node) -> None:
    """Lower a search in a part of a string: ``find``, ``rfind``, ``index``, ``rindex``, ``count``, ``startswith``,
    ``endswith``."""
    name = node.kind.partition("::")[2]
    text, wanted, start, end = node.inputs
    # In TorchScript -1 is the end of the text, and -2 is before the last character.
    whole = w.emit(f"icmp eq i64 {w.name(end)}, -1")
    is_negative = w.emit(f"icmp slt i64 {w.name(end)}, 0")
    following = w.emit(f"add i64 {w.name(end)}, 1")
    last = w.emit(f"select i1 {is_negative}, i64 {following}, i64 {w.name(end)}")
    last = w.emit(f"select i1 {whole}, i64 {2**63 - 1}, i64 {last}")
    found = w.call(_SEARCHES[name], w.name(text), w.name(wanted), w.name(start), last)
    if name in ("index", "rindex"):
        w.fail_if(w.emit(f"icmp slt i64 {found}, 0"), ErrorCode.VALUE_ERROR, "substring not found")
    w.define(node.output, found)


@emits("aten::split.str")
def split(w: ProgramWriter, node: Node) -> None:
    text, separator, most = node.inputs
    if is_constant(separator) and separator.to_python() is None:
        w.define(node.output, w.call(texts.text_split_spaces, w.name(text), w.name(most)))
        return
    if descriptor_of(separator.type) != "s":
        raise NotBuildable("'split' at a separator that may be None at run time", node.range)
    w.define(node.output, w.call_or_fail(texts.text_split, "%context", w.name(text), w.name(separator), w.name(most)))


@emits("aten::rsplit")
def split_from_the_right(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call_or_fail(text_methods.text_rsplit, "%context", *map(w.name, node.inputs)))


@emits("aten::splitlines")
def split_lines(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(text_methods.text_splitlines, *map(w.name, node.inputs)))


@emits("aten::partition", "aten::rpartition")
def partition(w: ProgramWriter, node: Node) -> None:
    last = "true" if node.kind == "aten::rpartition" else "false"
    text, separator = map(w.name, node.inputs)
    parts = w.alloca("[3 x i64]")
    w.call_or_fail(text_methods.text_partition, "%context", text, separator, parts, last)
    for index, value in enumerate(node.outputs):
        word = w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {parts}, i64 {index}')}")
        w.define(value, w.of_word(word, value.type))


@emits("aten::ljust", "aten::rjust", "aten::center")
def justify(w: ProgramWriter, node: Node) -> None:
    text, width, fill = map(w.name, node.inputs)
    check_width(w, width, "a string is padded to too many characters")
    align = {"aten::ljust": "<", "aten::rjust": ">", "aten::center": "^"}[node.kind]
    found = w.call_or_fail(text_methods.text_justify, "%context", text, width, fill, str(ord(align)))
    w.define(node.output, found)


@emits("aten::zfill", "aten::expandtabs")
def fill_with_zeros(w: ProgramWriter, node: Node) -> None:
    text, width = map(w.name, node.inputs)
    check_width(w, width, "a string is padded to too many characters")
    function = text_methods.text_zfill if node.kind == "aten::zfill" else text_methods.text_expandtabs
    w.define(node.output, w.call(function, text, width))


_WHITE: Final = " \n\t\f\v"
"""The default argument of ``strip`` in schemas, which means all whitespace."""


@emits("aten::strip", "aten::lstrip", "aten::rstrip")
def strip(w: ProgramWriter, node: Node) -> None:
    text, characters = (w.name(value) for value in node.inputs)
    is_default = w.call(texts.text_equal, characters, w.parts.constants.string(_WHITE))
    chosen = w.emit(f"select i1 {is_default}, ptr null, ptr {characters}")
    left, right = node.kind != "aten::rstrip", node.kind != "aten::lstrip"
    flags = ["true" if each else "false" for each in (left, right)]
    w.define(node.output, w.call(texts.text_strip, text, chosen, *flags))


@emits(*(f"aten::{each.name.lower()}" for each in cases.Case if each is not cases.Case.CASEFOLD), "python::casefold")
def change_case(w: ProgramWriter, node: Node) -> None:
    how = cases.Case[node.kind.partition("::")[2].upper()]
    w.define(node.output, w.call(cases.text_with_case, w.name(node.input), str(int(how))))


@emits(*(f"aten::{each.name.lower()}" for each in cases.Predicate))
def test_characters(w: ProgramWriter, node: Node) -> None:
    wanted = cases.Predicate[node.kind.partition("::")[2].upper()]
    text = w.name(node.input)
    if wanted is cases.Predicate.ISIDENTIFIER:
        w.define(node.output, w.call(cases.text_is_identifier, text))
        return
    is_of_case = wanted in (cases.Predicate.ISUPPER, cases.Predicate.ISLOWER, cases.Predicate.ISTITLE)
    function = cases.text_is_cased if is_of_case else cases.text_is_of
    w.define(node.output, w.call(function, text, str(int(wanted))))


@emits("aten::replace")
def replace(w: ProgramWriter, node: Node) -> None:
    w.define(node.output, w.call(texts.text_replace, *map(w.name, node.inputs)))


@emits("aten::hex", "aten::oct", "aten::bin")
def digits(w: ProgramWriter, node: Node) -> None:
    """Lower ``bin``, ``hex`` or ``oct`` of an int: digits in a base, with its prefix."""
    base = {"aten::hex": 16, "aten::oct": 8, "aten::bin": 2}[node.kind]
    w.define(node.output, w.call(formatting.prefixed_digits, w.name(node.input), str(base), "false"))


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
    """Emit ``str`` of a value, or ``repr`` if ``quoted``; return a string object, which the caller owns.

    Raises:
        NotBuildable: native libraries do not format values of this type.
    """
    is_of_archive = node.kind.startswith("archive::")
    special = None if is_of_archive else _special_text(w, given)
    if special is not None:
        return special
    if _is_written_otherwise(given.type):
        raise NotBuildable(f"native libraries do not write a {given.type} as text", node.range)
    descriptor = descriptor_of(given.type)
    if is_of_archive and descriptor != "s" and any(letter in descriptor for letter in "fsac"):
        raise NotBuildable(f"native libraries do not write a {given.type} as text in the form of archives", node.range)
    place = w.parts.constants.descriptor(given.type)
    return w.call(values.text_of_word, place, w.word_of(*given), "true" if quoted else "false")


def _special_text(w: ProgramWriter, given: Operand) -> str | None:
    """Emit ``str`` of a dtype, a device or a ``torch.Size``; return None for other types."""
    constants = w.parts.constants
    if given.type == DTYPE:
        names = constants.object(["" if each is None else str(each) for each in DTYPES], ListType(STRING))
        return w.of_word(w.call(lists.list_get, names, given.register), STRING)
    if given.type == DEVICE:
        return w.call(texts.text_of_device, given.register)
    if isinstance(given.type, ListType) and given.type.python == "Size":
        return w.call(values.text_of_size, given.register)
    return None


def _is_written_otherwise(type: Type) -> bool:
    """Return whether Python formats a value of this type otherwise than its descriptor specifies: a dtype is not an
    int. A boxed value is formatted by its kind."""
    if isinstance(type, TensorType | AnyType | ClassType):
        return True
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
    """Emit nothing for a warning, since callers of a library could not suppress it."""
