"""String literals: their end, their value, and the fields of f-strings.

No literal is evaluated by Python, since literals come from archives too.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from rekindle.errors import ParseError, Source

_OPENING = re.compile(r"""([rRbBuUfFtT]{0,2})(\"{3}|'{3}|"|')""")
_BODIES = {
    '"': re.compile(r'[^"\\\r\n]*(?:\\(?:\r\n|[\s\S])[^"\\\r\n]*){0,1000}'),
    "'": re.compile(r"[^'\\\r\n]*(?:\\(?:\r\n|[\s\S])[^'\\\r\n]*){0,1000}"),
    '"""': re.compile(r'[^"\\]*(?:(?:\\[\s\S]|"(?!""))[^"\\]*){0,1000}'),
    "'''": re.compile(r"[^'\\]*(?:(?:\\[\s\S]|'(?!''))[^'\\]*){0,1000}"),
}
"""Contents of literals with up to a thousand escapes: the regex engine stores a state for each until the match ends."""
_PREFIXES = frozenset(["", "r", "u", "b", "br", "f", "fr", "t", "rt"])


def _opening(source: Source, start: int) -> tuple[str, str, int]:
    """Return the prefix (in lower case, sorted) and the quotes of the literal at ``start``, and the offset of its
    contents.

    Raises:
        ParseError: strings have no such prefix.
    """
    found = _OPENING.match(source.text, start)
    assert found is not None
    prefix = "".join(sorted(found.group(1).lower()))
    if prefix not in _PREFIXES:
        raise ParseError(f"A string has no prefix '{found.group(1)}'.", source.range(start, found.end()))
    return prefix, found.group(2), found.end()


def string_end(source: Source, start: int, end: int, tokens: re.Pattern[str]) -> int:
    """Return the offset after the literal that begins at ``start``, in a text that ends at ``end``. ``tokens`` is the
    pattern of tokens within the fields of an f-string.

    Raises:
        ParseError: the literal has an invalid prefix, is never closed, or is an f-string with an invalid field.
    """
    prefix, quotes, begin = _opening(source, start)
    if "f" in prefix or "t" in prefix:
        return _Fields(source, tokens, start, quotes, "r" in prefix, end).read(begin)[1]
    body, at = _BODIES[quotes], -1
    while at < begin:
        at = begin
        found = body.match(source.text, begin, end)
        assert found is not None
        begin = found.end()
    if not source.text.startswith(quotes, at, end):
        raise _unterminated(source, start, at)
    return at + len(quotes)


def _unterminated(source: Source, start: int, end: int) -> ParseError:
    return ParseError("This string is never closed.", source.range(start, end))


# ------------------------------------------------------------------------------------------------------- plain literals

_ESCAPE = re.compile(
    r"\\(?:(?P<newline>\r\n?|\n)|N\{(?P<name>[^}]*)\}|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    r"|U(?P<U>[0-9a-fA-F]{8})|(?P<octal>[0-7]{1,3})|(?P<char>[\s\S]))"
)
_SIMPLE = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def _resolve(source: Source, start: int, end: int) -> str:
    """Return the characters of ``[start, end)`` with escapes resolved. Unknown escapes such as ``\\d`` stay, as in
    Python.

    Raises:
        ParseError: an escape for a character is incomplete, or names no character.
    """

    def replace(found: re.Match[str]) -> str:
        kind = found.lastgroup
        assert kind is not None
        value = found.group(kind)
        if kind == "newline":
            return ""
        if kind == "char":
            if value in "xuUN":
                raise ParseError(f"The escape '\\{value}' is cut short.", source.range(start, end))
            return _SIMPLE.get(value, "\\" + value)
        if kind == "name":
            try:
                return unicodedata.lookup(value)
            except KeyError:
                raise ParseError(f"No character is named {value!r}.", source.range(start, end)) from None
        code = int(value, 8 if kind == "octal" else 16)
        if code > 0x10FFFF:
            raise ParseError(f"There is no character \\U{value}.", source.range(start, end))
        return chr(code)

    text = source.text[start:end]
    return _ESCAPE.sub(replace, text) if "\\" in text else text


def _text(source: Source, start: int, end: int, raw: bool) -> str:
    """Return the string in ``[start, end)`` of a literal. Line ends of the file count as newlines. Escapes are not
    resolved in a ``raw`` string."""
    text = source.text[start:end] if raw else _resolve(source, start, end)
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in source.text[start:end] else text


@dataclass(slots=True)
class Literal:
    """A parsed string literal: a plain one has one text and no fields, an f-string texts and fields in order."""

    kind: str
    """Empty, ``b``, ``f`` or ``t``."""
    parts: list[str | Field] = field(default_factory=list)


@dataclass(slots=True)
class Field:
    """A field ``{expression!conversion:spec}`` of an f-string. The expression is in ``[start, end)`` of the source."""

    start: int
    end: int
    conversion: str = ""
    spec: list[str | Field] | None = None


def read_literal(source: Source, start: int, end: int, tokens: re.Pattern[str]) -> Literal:
    """Return the literal in ``[start, end)``. ``tokens`` is the pattern of tokens within the fields of an f-string.

    Raises:
        ParseError: the literal has an invalid prefix, escape or field.
    """
    prefix, quotes, begin = _opening(source, start)
    kind = prefix.strip("ru")
    if kind in ("f", "t"):
        return Literal(kind, _Fields(source, tokens, start, quotes, "r" in prefix, end).read(begin)[0])
    return Literal(kind, [_text(source, begin, end - len(quotes), "r" in prefix)])


# ------------------------------------------------------------------------------------------------------------ f-strings


class _Fields:
    """A parser of the contents of one f-string. Its fields may contain any expression, including strings with the same
    quotes."""

    __slots__ = ("_end", "_quotes", "_raw", "_source", "_start", "_stops", "_tokens")

    def __init__(self, source: Source, tokens: re.Pattern[str], start: int, quotes: str, raw: bool, end: int) -> None:
        self._source = source
        self._tokens = tokens
        self._start = start
        self._quotes = quotes
        self._raw = raw
        self._end = end
        escape = "" if raw else r"|\\N\{[^}]*\}"
        line_end = "" if len(quotes) == 3 else r"|[\r\n]"
        self._stops = re.compile(rf"\{{\{{?|\}}\}}?|{quotes}{line_end}{escape}|\\(?:\r\n|[^{{}}])")

    def read(self, at: int, depth: int = 0) -> tuple[list[str | Field], int]:
        """Return the parts from ``at`` up to the closing quotes, or, with ``depth``, up to the brace that closes a
        format specification, and the offset after it.

        Raises:
            ParseError: the f-string is never closed, or a brace is missing or superfluous.
        """
        text = self._source.text
        parts: list[str | Field] = []
        begin = at
        while True:
            found = self._stops.search(text, at, self._end)
            if found is None:
                raise _unterminated(self._source, self._start, self._end)
            stop = found.group()
            if stop[0] == "\\":
                at = found.end()
            elif stop[0] in "\r\n":
                raise _unterminated(self._source, self._start, found.start())
            elif stop == self._quotes:
                if depth:
                    raise ParseError(
                        "Expected '}' within the f-string.", self._source.range(found.start(), found.end())
                    )
                self._add(parts, begin, found.start())
                return parts, found.end()
            elif stop == "{{" or (stop == "}}" and not depth):
                self._add(parts, begin, found.start() + 1)
                begin = at = found.end()
            elif stop[0] == "}":
                if not depth:
                    raise ParseError(
                        "An f-string has a single '}'.",
                        self._source.range(found.start(), found.end()),
                        hint="Write '}}' for the character itself.",
                    )
                self._add(parts, begin, found.start())
                return parts, found.start() + 1
            else:
                self._add(parts, begin, found.start())
                begin = at = self._field(parts, found.end(), depth)

    def _add(self, parts: list[str | Field], begin: int, end: int) -> None:
        if end > begin:
            parts.append(_text(self._source, begin, end, self._raw))

    def _field(self, parts: list[str | Field], start: int, depth: int) -> int:
        """Read the field whose expression begins at ``start`` into ``parts``; return the offset after its brace.

        Raises:
            ParseError: the conversion is not valid, or the brace is missing.
        """
        text = self._source.text
        end, stop = self._expression_end(start)
        at = end
        result = Field(start, end)
        if stop == "=":
            at = end + 1
            while text[at : at + 1].isspace():
                at += 1
            parts.append(text[start:at])  # the text of ``{x = }`` is in the result verbatim
        if text.startswith("!", at):
            result.conversion = text[at + 1 : at + 2]
            if result.conversion not in ("r", "s", "a"):
                raise ParseError("A conversion in an f-string is one of !r, !s and !a.", self._source.range(at, at + 2))
            at += 2
        elif stop == "=" and not text.startswith(":", at):
            result.conversion = "r"
        parts.append(result)
        if text.startswith(":", at):
            result.spec, at = self.read(at + 1, depth + 1)
            return at
        if not text.startswith("}", at):
            raise ParseError("Expected '}' within the f-string.", self._source.range(at, at + 1))
        return at + 1

    def _expression_end(self, at: int) -> tuple[int, str]:
        """Return the position after the expression of a field, and the delimiter there: ``}``, ``!``, ``:`` or
        ``=``.

        Raises:
            ParseError: the text ends before, or a string in the expression is not valid.
        """
        source = self._source
        depth = 0
        while True:
            found = self._tokens.match(source.text, at, self._end)
            kind = None if found is None else found.lastgroup
            if found is None or kind is None or kind == "EOF":
                raise _unterminated(source, self._start, self._end)
            begin = found.start(kind)
            at = found.end()
            if kind == "STRING":
                at = string_end(source, begin, self._end, self._tokens)
            elif kind == "OP":
                op = found.group(kind)
                if depth == 0 and op in ("}", "!", ":", ":=", "="):
                    return begin, op[0]
                if op in "([{":
                    depth += 1
                elif op in ")]}":
                    depth -= 1
