"""Strings: Python's methods of ``str``, and the building of text from values.

Two defaults of the schemas stand for what Python writes as None, and are read so: the ``end=-1`` of searches is the
end of the string, and ``chars=" \\n\\t\\f\\v"`` is all that is white.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from rekindle.ops.registration.declare import declare, implements

# ------------------------------------------------------------------------------------------------------------ elements

declare(
    operator.getitem,
    "aten::__getitem__.str(str s, int index) -> str",
    "prim::StringIndex(str string, int index) -> str",
)
declare(len, "aten::len.str(str s) -> int")
declare(list, "aten::list(str t) -> str[]")
declare(operator.add, "aten::add.str(str a, str b) -> str")


@implements("aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str")
def slice_string(string: str, start: int | None = None, end: int | None = None, step: int = 1) -> str:
    """Return the characters that the slice selects."""
    return string[start:end:step]


# ------------------------------------------------------------------------------------------- methods without surprises

for _name in (
    *("isalnum", "isalpha", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric"),
    *("isprintable", "isspace", "istitle", "isupper"),
):
    declare(getattr(str, _name), f"aten::{_name}(str self) -> bool")

for _name in ("capitalize", "lower", "swapcase", "title", "upper"):
    declare(getattr(str, _name), f"aten::{_name}(str self) -> str")

declare(str.center, 'aten::center(str self, int width, str fillchar=" ") -> str')
declare(str.ljust, 'aten::ljust(str self, int width, str fillchar=" ") -> str')
declare(str.rjust, 'aten::rjust(str self, int width, str fillchar=" ") -> str')
declare(str.zfill, "aten::zfill(str self, int width) -> str")
declare(str.expandtabs, "aten::expandtabs(str self, int tabsize=8) -> str")
declare(str.join, "aten::join(str self, str[] values) -> str")
declare(str.replace, "aten::replace(str self, str old, str new, int max=-1) -> str")
declare(str.partition, "aten::partition(str self, str separator) -> (str, str, str)")
declare(str.rpartition, "aten::rpartition(str self, str separator) -> (str, str, str)")
declare(str.split, "aten::split.str(str self, str? separator=None, int max=-1) -> str[]")
declare(str.rsplit, 'aten::rsplit(str self, str separator=" ", int max=-1) -> str[]')
declare(str.splitlines, "aten::splitlines(str self, bool keepends=False) -> str[]")

# -------------------------------------------------------------------------------------------------- searching, cutting

Search = Callable[[str, str, int | None, int | None], object]


def _search(method: Search) -> Callable[[str, str, int, int], object]:
    """Return ``method`` with an end as in TorchScript, where -1 is the end of the string, and -2 is before the last
    character."""

    def search(self: str, substr: str, start: int = 0, end: int = -1) -> object:
        return method(self, substr, start, end if end >= 0 else max(len(self) + end + 1, 0))

    return search


for _name, _result in (
    *(("find", "int"), ("rfind", "int"), ("index", "int"), ("rindex", "int"), ("count", "int")),
    *(("startswith", "bool"), ("endswith", "bool")),
):
    _overload = ".str" if _name == "index" else ""
    declare(
        _search(getattr(str, _name)),
        f"aten::{_name}{_overload}(str self, str substr, int start=0, int end=-1) -> {_result}",
    )

WHITE: Final = " \n\t\f\v"
"""The characters that operators strip by default. They strip all white space then, as Python does."""


def _strip(method: Callable[[str, str | None], str]) -> Callable[[str, str], str]:
    """Return ``method`` with the schema's default read as None."""

    def strip(self: str, chars: str = WHITE) -> str:
        return method(self, None if chars == WHITE else chars)

    return strip


for _name in ("strip", "lstrip", "rstrip"):
    declare(_strip(getattr(str, _name)), f'aten::{_name}(str self, str chars=" \\n\\t\\f\\v") -> str')

# --------------------------------------------------------------------------------------------------------- from values

declare(str, "aten::str(t elem) -> str")
declare(ord, "aten::ord(str string) -> int")
declare(chr, "aten::chr(int i) -> str")
declare(bin, "aten::bin(int i) -> str")
declare(hex, "aten::hex(int i) -> str")
declare(oct, "aten::oct(int i) -> str")
declare(str.format, "aten::format(str self, ...) -> str")


@implements("aten::percentFormat(str self, ...) -> str")
def percent_format(self: str, *values: object) -> str:
    """Return ``self % values``; a single value is the right operand itself, so that a tuple supplies its elements."""
    return self % (values[0] if len(values) == 1 else values)
