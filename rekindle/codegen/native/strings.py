"""Lowering of operators on strings and their characters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.codegen.native.lists import NativeWriter, emits
from rekindle.codegen.native.native_types import NativeType
from rekindle.ir.graph import Node

_LAST: Final = 0x10FFFF
"""The last code point."""


@emits("aten::len.str")
def length(w: NativeWriter, node: Node) -> None:
    w.names[node.output] = w.emit(f"call i64 @string_length(ptr {w.name(node.input)})")


@emits("aten::__getitem__.str", "prim::StringIndex")
def get(w: NativeWriter, node: Node) -> None:
    string, index = map(w.name, node.inputs)
    word = w.taken(f"@string_get(ptr %arena, ptr {string}, i64 {index})")
    w.names[node.output] = w.from_word(word, NativeType.STRING)


@emits("aten::eq.str")
def equal(w: NativeWriter, node: Node) -> None:
    a, b = map(w.name, node.inputs)
    w.names[node.output] = w.emit(f"call i1 @string_equal(ptr {a}, ptr {b})")


@emits("aten::ne.str")
def differ(w: NativeWriter, node: Node) -> None:
    equal(w, node)
    w.names[node.output] = w.emit(f"xor i1 {w.names[node.output]}, true")


def _code_point(w: NativeWriter, string: str) -> str:
    """Emit the code point of a string of one character; for other strings the code leaves the region."""
    w.leave_unless(w.emit(f"call i1 @is_character(ptr {string})"))
    return w.emit(f"call i64 @code_point(ptr {string})")


@emits("aten::ord")
def code_point(w: NativeWriter, node: Node) -> None:
    w.names[node.output] = _code_point(w, w.name(node.input))


@emits("aten::chr")
def character(w: NativeWriter, node: Node) -> None:
    code = w.name(node.input)
    w.leave_unless(w.emit(f"icmp ule i64 {code}, {_LAST}"))
    w.names[node.output] = w.emit(f"call ptr @character(i64 {code})")


def _order(name: str, predicate: str) -> None:
    @emits(name)
    def order(w: NativeWriter, node: Node) -> None:
        a, b = (_code_point(w, w.name(value)) for value in node.inputs)
        w.names[node.output] = w.emit(f"icmp {predicate} i64 {a}, {b}")


for _name in ("lt", "le", "gt", "ge"):
    _order(f"aten::{_name}.str", f"u{_name}")


def _class(name: str, ranges: Sequence[str]) -> None:
    """Register the emitter of a test of characters, such as ``isdigit``. It is for ASCII; other characters leave the
    region."""

    @emits(f"aten::{name}")
    def is_of_class(w: NativeWriter, node: Node) -> None:
        code = _code_point(w, w.name(node.input))
        w.leave_unless(w.emit(f"icmp ult i64 {code}, 128"))
        found = "false"
        for first, last in ((ord(span[0]), ord(span[1])) for span in ranges):
            within = w.emit(f"icmp ule i64 {w.emit(f'sub i64 {code}, {first}')}, {last - first}")
            found = w.emit(f"or i1 {found}, {within}")
        w.names[node.output] = found


_class("isdigit", ["09"])
_class("isdecimal", ["09"])
_class("isnumeric", ["09"])
_class("isalpha", ["az", "AZ"])
_class("isalnum", ["09", "az", "AZ"])
_class("isupper", ["AZ"])
_class("islower", ["az"])
_class("isspace", ["\t\r", "\x1c "])
