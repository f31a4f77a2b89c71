"""Lowering of ``str.format``, f-strings and ``%`` with a constant format string.

A format string is parsed when the library is built: literal pieces, and fields with a value, a conversion and a
specification (https://docs.python.org/3/library/string.html#format-specification-mini-language).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rekindle.analysis.constants import is_constant
from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.representation import NotBuildable, descriptor_of
from rekindle.building.lowering.strings import Operand, operand_of, text_of
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime import formatting, texts, values
from rekindle.building.runtime.memory import fields_of_record, release
from rekindle.building.runtime.objects import ErrorCode
from rekindle.ir.graph import Node
from rekindle.ir.types import FLOAT, INT, TupleType, UnionType

_SPECIFICATION: Final = re.compile(
    r"(?:(?P<fill>.)?(?P<align>[<>=^]))?(?P<sign>[+\- ])?(?P<prefix>#)?(?P<zero>0)?(?P<width>\d+)?(?P<comma>,)?"
    r"(?:\.(?P<precision>\d+))?(?P<type>[a-zA-Z%])?"
)
_PERCENT: Final = re.compile(r"%(?P<flags>[-+ 0]*)(?P<width>\d+)?(?:\.(?P<precision>\d+))?(?P<type>[a-zA-Z%])")


@dataclass(slots=True, frozen=True)
class FieldFormat:
    """The format of a field. ``kind`` is Python's presentation type, or empty; ``precision`` is -1 if there is none;
    ``align`` is empty by default, and ``0`` pads with zeros. ``quoted``: the value is formatted by ``repr``."""

    kind: str = ""
    fill: str = " "
    align: str = ""
    sign: str = "-"
    width: int = 0
    comma: bool = False
    precision: int = -1
    quoted: bool = False
    prefixed: bool = False
    """Whether an int has the prefix of its base."""
    is_text: bool = False
    """Whether the value is converted to a string first, by ``!s`` or ``!r``."""


def parse_specification(text: str, conversion: str | None = None) -> FieldFormat | None:
    """Parse a format specification of ``str.format``, such as ``>8.2f``. Return None if it is unsupported here."""
    found = _SPECIFICATION.fullmatch(text)
    if found is None or conversion not in (None, "", "s", "r"):
        return None
    zero = found["zero"] is not None
    if zero and found["comma"]:
        return None
    return FieldFormat(
        found["type"] or "",
        found["fill"] or ("0" if zero else " "),
        found["align"] or ("0" if zero else ""),
        found["sign"] or "-",
        int(found["width"] or 0),
        found["comma"] is not None,
        int(found["precision"]) if found["precision"] is not None else -1,
        conversion == "r",
        found["prefix"] is not None,
        conversion in ("s", "r"),
    )


Piece = str | tuple[Operand, FieldFormat]


def _pieces_of_form(node: Node, form: str, given: Sequence[Operand]) -> Iterator[Piece]:
    """Yield the pieces of a format string of ``str.format``: literal text, and fields with their values ``given``.

    Raises:
        NotBuildable: a field is not supported.
    """
    number = 0
    for literal, name, specification, conversion in string.Formatter().parse(form):
        if literal:
            yield literal
        if name is None:
            continue
        index = number if name == "" else int(name) if name.isdecimal() else -1
        number += 1
        parsed = parse_specification(specification or "", conversion)
        if parsed is None or not 0 <= index < len(given):
            raise NotBuildable(f"'format' with the field '{{{name}:{specification}}}'", node.range)
        yield given[index], parsed


def _pieces_of_percent(node: Node, form: str, given: Sequence[Operand]) -> Iterator[Piece]:
    """Yield the pieces of a format string of ``%``: literal text, and fields with their values ``given``.

    Raises:
        NotBuildable: a field is not supported, or fields and values do not fit together.
    """
    at, number = 0, 0
    for found in _PERCENT.finditer(form):
        if found.start() > at:
            yield form[at : found.start()]
        at = found.end()
        kind, flags = found["type"], found["flags"]
        if kind == "%":
            yield "%"
            continue
        if kind not in "sdifeEgGxXrc" or number == len(given):
            raise NotBuildable(f"'%' with the field '{found[0]}'", node.range)
        is_text = kind in "src"
        zero = "0" in flags and "-" not in flags and not is_text
        yield (
            given[number],
            FieldFormat(
                "d" if kind == "i" else "s" if kind == "r" else kind,
                "0" if zero else " ",
                "<" if "-" in flags else "=" if zero else ">",
                "-" if is_text else "+" if "+" in flags else " " if " " in flags else "-",
                int(found["width"] or 0),
                precision=-1 if found["precision"] is None else int(found["precision"]),
                quoted=kind == "r",
                is_text=kind in "sr",
            ),
        )
        number += 1
    if "%" in form[at:] or number != len(given):
        raise NotBuildable("'%' with a form and values that do not fit together", node.range)
    if form[at:]:
        yield form[at:]


def _pieces_of_archived_form(node: Node, form: str, given: Sequence[Operand]) -> Iterator[Piece]:
    """Yield the pieces of a format string in an archive, where every ``{}`` is a field, and other braces are literal
    text.

    Raises:
        NotBuildable: there are more fields than values.
    """
    first, *others = form.split("{}")
    if len(others) > len(given):
        raise NotBuildable("'format' with more fields than values", node.range)
    yield first
    for value, literal in zip(given, others, strict=False):
        yield value, FieldFormat()
        yield literal


_PIECES: Final = {
    "aten::format": _pieces_of_form,
    "aten::percentFormat": _pieces_of_percent,
    "archive::format": _pieces_of_archived_form,
}


@emits(*_PIECES)
def format_text(w: ProgramWriter, node: Node) -> None:
    """Emit the formatting of a constant format string.

    Raises:
        NotBuildable: the format string is not constant, or a field is not supported.
    """
    form = node.inputs[0].to_python() if is_constant(node.inputs[0]) else None
    if not isinstance(form, str):
        raise NotBuildable("'format' of a string that is not a constant", node.range)
    constants = w.parts.constants
    result = w.call(texts.text_concat, constants.string(""), constants.string(""))
    for piece in _PIECES[node.kind](node, form, _operands(w, node)):
        if isinstance(piece, str):
            longer = w.call(texts.text_concat, result, constants.string(piece))
            w.call(release, result)
            result = longer
        else:
            result = w.call(values.joined, result, _formatted(w, node, *piece))
    w.define(node.output, result)


def _operands(w: ProgramWriter, node: Node) -> list[Operand]:
    """Return the values of the fields. The right operand of ``%`` may be a tuple of them."""
    given = [operand_of(w, value) for value in node.inputs[1:]]
    if node.kind != "aten::percentFormat" or len(given) != 1 or not isinstance(given[0].type, TupleType):
        return given
    fields = w.call(fields_of_record, given[0].register)
    found = []
    for index, part in enumerate(given[0].type.contained):
        word = w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {fields}, i64 {index}')}")
        found.append(Operand(w.of_word(word, part), part))
    return found


def _formatted(w: ProgramWriter, node: Node, value: Operand, how: FieldFormat) -> str:
    """Emit the formatting of one field; return a string object, which the caller owns.

    Raises:
        NotBuildable: the format specification is not supported for values of this type.
    """
    letter = descriptor_of(value.type)[0]
    if how == FieldFormat(quoted=how.quoted, is_text=how.is_text):
        return text_of(w, value, node, quoted=how.quoted)
    if how.is_text or (letter == "s" and how.kind in ("", "s")):
        return _formatted_text(w, node, value, how)
    if how.kind == "c" and node.kind == "aten::percentFormat" and how.precision < 0:
        return _padded(w, _character(w, node, value), how, ">", "false")
    if letter in ("i", "b") and how.kind in _BASES and how.precision < 0:
        base, upper = _BASES[how.kind], "true" if how.kind == "X" else "false"
        word = w.word_of(*value)
        if how.prefixed and base != 10:
            if how.comma:
                raise NotBuildable("a prefix and commas in one format specification", node.range)
            return _padded(w, w.call(formatting.prefixed_digits, word, str(base), upper), how, ">", "true", "2")
        comma = "true" if how.comma else "false"
        return _padded(w, w.call(formatting.digits_of_int, word, str(base), upper, comma), how, ">", "true")
    is_real = letter == "f" or (isinstance(value.type, UnionType) and set(value.type.contained) == {FLOAT, INT})
    if is_real and how.kind == "" and how.precision < 0 and not how.comma and not how.prefixed:
        return _padded(w, text_of(w, value, node), how, ">", "true")
    if (
        letter in ("i", "f", "b")
        and how.kind in ("f", "F", "e", "E", "g", "G", "%")
        and not (how.comma and how.kind not in "fF")
        and not how.prefixed
    ):
        number = w.converted(value.register, value.type, FLOAT) if letter == "f" else _as_float(w, value)
        form = printf_format(how.kind)
        precision = 6 if how.precision < 0 else how.precision
        if precision > 60:
            raise NotBuildable("a format specification with more than 60 digits", node.range)
        factor = "true" if how.kind == "%" else "false"
        comma = "true" if how.comma else "false"
        place = w.parts.constants.bytes(form.encode())
        text = w.call(formatting.text_of_real, place, str(precision), number, factor, comma)
        return _padded(w, text, how, ">", "true")
    raise NotBuildable(f"a {value.type} with a format specification of kind '{how.kind}'", node.range)


_BASES: Final = {"": 10, "d": 10, "x": 16, "X": 16, "o": 8, "b": 2}


def _as_float(w: ProgramWriter, value: Operand) -> str:
    return w.emit(f"sitofp i64 {w.word_of(*value)} to double")


def _formatted_text(w: ProgramWriter, node: Node, value: Operand, how: FieldFormat) -> str:
    """Emit the formatting of a value as a string: cut to its precision, and padded.

    Raises:
        NotBuildable: the format specification is one for numbers.
    """
    if how.kind not in ("", "s") or how.sign != "-" or how.comma or how.prefixed or how.align == "=":
        raise NotBuildable("a string with the format specification of a number", node.range)
    text = text_of(w, value, node, quoted=how.quoted)
    if how.precision >= 0:
        text = w.call(formatting.cut, text, str(how.precision))
    return _padded(w, text, how, "<", "false")


def _character(w: ProgramWriter, node: Node, value: Operand) -> str:
    """Emit the formatting of ``%c``: a character, from a string or a code point.

    Raises:
        NotBuildable: the value is neither a string nor an int.
    """
    letter = descriptor_of(value.type)
    if letter == "i":
        return w.call_or_fail(texts.text_chr, "%context", value.register)
    if letter != "s":
        raise NotBuildable(f"'%c' of a {value.type}", node.range)
    count = w.emit(f"load i64, ptr {w.emit(f'getelementptr i64, ptr {value.register}, i64 3')}")
    w.fail_if(w.emit(f"icmp ne i64 {count}, 1"), ErrorCode.TYPE_ERROR, "%c requires int or char")
    return text_of(w, value, node)


def printf_format(kind: str) -> str:
    """Return the format of C's ``printf`` for a float that Python formats as ``kind``: ``%.*e`` for ``e``."""
    return f"%.*{'f' if kind == '%' else kind}"


def _padded(w: ProgramWriter, text: str, how: FieldFormat, default: str, is_number: str, prefix: str = "0") -> str:
    """Emit the sign and the padding of a formatted string; return the string. ``default`` is the alignment if the
    format has none. ``prefix`` is the number of characters between sign and digits, such as ``0x``."""
    sign = str(ord(how.sign))
    if is_number == "true" and how.sign != "-":
        text = w.call(formatting.with_sign, text, sign)
    if how.width == 0:
        return text
    chosen = how.align or default
    if chosen == "0":
        chosen = "=" if is_number == "true" else "<"
    align = str(ord(chosen))
    return w.call(formatting.padded, text, str(how.width), w.parts.constants.string(how.fill), align, prefix)
