"""Lexer: split text into tokens.

A :class:`Dialect` defines the tokens: :data:`PYTHON` for programs, with NEWLINE, INDENT and DEDENT injected where no
bracket is open, so that a parser can treat them like ``;``, ``{`` and ``}``; :data:`SCHEMA` for function schemas and
types; :data:`GRAPH` for the text form of graphs. The ``kind`` of a token is its text for operators and keywords
(``"+"``, ``"def"``), and one of the names below for other tokens.
"""

from __future__ import annotations

import keyword
import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass
from typing import NoReturn

from rekindle.errors import ParseError, Source, SourceRange
from rekindle.syntax.nesting_limit import MAX_DEPTH, too_deep
from rekindle.syntax.strings import string_end

IDENT = "IDENT"
NUMBER = "NUMBER"
STRING = "STRING"
NEWLINE = "NEWLINE"
INDENT = "INDENT"
DEDENT = "DEDENT"
EOF = "EOF"
TYPE_COMMENT = "TYPE_COMMENT"
"""A ``# type: …`` comment; its text is the part after the colon."""
COMMENT = "COMMENT"
"""Any other comment, with its ``#``; only the graph dialect keeps them."""
VALUE = "VALUE"
"""``%x.1``, the name of a value in a graph."""

KEYWORDS = frozenset(keyword.kwlist)


@dataclass(slots=True, frozen=True)
class Dialect:
    """The rules of a lexer: the pattern of all tokens, the keywords, and whether line ends are tokens."""

    name: str
    pattern: re.Pattern[str]
    keywords: frozenset[str]
    layout: bool


# Repeated groups are bounded: the engine keeps a state for each repetition, until the match ends. Longer numbers are
# refused by their length, and other repetitions are matched a piece at a time.
_AT_ONCE = 1000
_LONGEST_NUMBER = _AT_ONCE
"""Programs know numbers of 64 bits; Python refuses to read those of some thousand digits."""

_MANY = f"{{0,{_AT_ONCE}}}"
_SOME = f"{{1,{_AT_ONCE}}}"
_WORD = r"[^\W\d]\w*"
_DIGITS = rf"[0-9](?:_?[0-9]){_MANY}"
_EXPONENT = rf"(?:[eE][-+]?{_DIGITS})?[jJ]?"
_PREFIXED = rf"0[xX](?:_?[0-9a-fA-F]){_SOME}|0[bB](?:_?[01]){_SOME}|0[oO](?:_?[0-7]){_SOME}"


def _compile(*, operators: str, number: str, blank: str, extra: str = "") -> re.Pattern[str]:
    """Return a pattern that matches blanks followed by one token; the name of the group that matches is the token's
    kind."""
    return re.compile(
        rf"{blank}(?:(?P<STRING>[rRbBuUfFtT]{{0,2}}[\"'])|(?P<IDENT>{_WORD})|(?P<OP>{operators})|(?P<NUMBER>{number})"
        rf"{extra}|(?P<COMMENT>\#[^\r\n]*)|(?P<NEWLINE>\r\n?|\n)|(?P<EOF>\Z)|(?P<ERROR>.))"
    )


PYTHON = Dialect(
    "python",
    _compile(
        # A digit after a dot makes it a number, so the dot must look ahead.
        operators=r"\*\*=?|//=?|>>=?|<<=?|\.\.\.|->|:=|[-+*/%@&|^<>=!]=|[-+*/%@&|^~<>=,:;()\[\]{}!]|\.(?![0-9])",
        number=rf"{_PREFIXED}|(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS}){_EXPONENT}",
        blank=rf"[ \t\f]*(?:\\(?:\r\n?|\n)[ \t\f]*){_MANY}",
    ),
    KEYWORDS,
    layout=True,
)

_PLAIN_OPERATORS = r"::|->|\.\.\.|[-+*/%@&|^~<>=.,:;()\[\]{}!?$]"
# Here a number never begins with its dot: ``add.1`` is a name with an overload.
_PLAIN_NUMBER = rf"{_PREFIXED}|{_DIGITS}(?:\.(?:{_DIGITS})?)?{_EXPONENT}"

SCHEMA = Dialect(
    "schema",
    _compile(operators=_PLAIN_OPERATORS, number=_PLAIN_NUMBER, blank=r"[ \t\f\r\n]*"),
    frozenset(),
    layout=False,
)

GRAPH = Dialect(
    "graph",
    _compile(
        operators=_PLAIN_OPERATORS.replace("%", ""),
        number=_PLAIN_NUMBER,
        blank=r"[ \t\f\r\n]*",
        # A value may be called as an attribute is, and a module as anything: ``%my-key``, ``%a/b``, ``%two words``.
        extra=rf"|(?P<VALUE>%[^\s,:()\[\]{{}}#=]+(?: [^\s,:()\[\]{{}}#=]+){_MANY})",
    ),
    frozenset(),
    layout=False,
)

_BLANK_LINES = re.compile(rf"(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n?|\n)){_SOME}")
_INDENTATION = re.compile(r"([ \t\f]*)(\#[^\r\n]*\Z)?")
_TYPE_COMMENT = re.compile(r"[ \t\f]*#[ \t]*type:(?![ \t]*ignore\b)[ \t]*([^#\r\n]*[^#\s])")
_LINE = re.compile(r"[^\r\n]*[\r\n]*")
_BEHIND_NUMBERS = frozenset(["and", "else", "for", "if", "in", "is", "not", "or"])
_CLOSES = {")": "(", "]": "[", "}": "{"}


class Token:
    """A part of the source with its kind and its range."""

    __slots__ = ("end", "kind", "source", "start", "text")

    def __init__(self, kind: str, text: str, source: Source, start: int, end: int) -> None:
        self.kind = kind
        self.text = text
        self.source = source
        self.start = start
        self.end = end

    @property
    def range(self) -> SourceRange:
        return SourceRange(self.source, self.start, self.end)

    def __str__(self) -> str:
        """Return the token's description in error messages."""
        if self.kind in _SPOKEN:
            return _SPOKEN[self.kind]
        return f"'{self.text}'"

    def __repr__(self) -> str:
        return f"Token({self.kind}, {self.text!r}, {self.start})"


_SPOKEN = {
    NEWLINE: "the end of the line",
    INDENT: "an indented block",
    DEDENT: "the end of the block",
    EOF: "the end of the text",
}
_SPOKEN_KINDS = {**_SPOKEN, IDENT: "a name", NUMBER: "a number", STRING: "a string", VALUE: "a value such as %x"}


class Lexer:
    """The tokens of ``source`` from offset ``start`` to ``end``, and a position among them.

    ``cur`` is the current token; after the last it is EOF. ``type_comments`` are the ``# type:`` comments in order:
    they may occur between any two tokens, so a parser searches them where they are meaningful. All tokens are read when
    the lexer is created, which is faster than one at a time and allows any lookahead.
    """

    __slots__ = ("_index", "cur", "dialect", "end", "source", "tokens", "type_comments")

    def __init__(
        self,
        source: Source,
        dialect: Dialect = PYTHON,
        *,
        start: int = 0,
        end: int | None = None,
        layout: bool | None = None,
    ) -> None:
        """Split ``source`` into tokens. ``layout`` overrides the dialect's: if False, line ends are blanks, and type
        comments are not collected.

        Raises:
            ParseError: the text cannot be split into tokens, brackets or indentation do not match, or it is too long.
        """
        self.source = source
        self.dialect = dialect
        self.type_comments: list[Token] = []
        limit = len(source.text) if end is None else end
        injects = dialect.layout if layout is None else layout
        self.tokens = _tokenize(source, dialect, injects, start, limit, self.type_comments)
        self._index = 0
        self.cur = self.tokens[0]
        self.end = self.cur.start
        """The offset of the end of the last token that :meth:`next` returned."""

    def next(self) -> Token:
        """Return the current token, and advance to the next one; EOF stays the current token."""
        token = self.cur
        self.end = token.end
        if token.kind != EOF:
            self._index += 1
            self.cur = self.tokens[self._index]
        return token

    def lookahead(self, count: int = 1) -> Token:
        """Return the token ``count`` after the current one; EOF if there are fewer."""
        return self.tokens[min(self._index + count, len(self.tokens) - 1)]

    def next_if(self, kind: str) -> Token | None:
        """Return the current token and advance if it is of this kind; otherwise return None."""
        return self.next() if self.cur.kind == kind else None

    def expect(self, kind: str) -> Token:
        """Return the current token and advance.

        Raises:
            ParseError: the token is not of this kind.
        """
        if self.cur.kind != kind:
            self.fail(f"Expected {_SPOKEN_KINDS.get(kind) or repr(kind)} but found {self.cur}.")
        return self.next()

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """Raise a ParseError at the current token.

        Raises:
            ParseError: always.
        """
        raise ParseError(message, self.cur.range, hint=hint)

    def type_comment_between(self, start: int, end: int) -> Token | None:
        """Return the last type comment that begins within ``[start, end)``; None if there is none."""
        comments = self.type_comments
        index = bisect_left(comments, end, key=lambda token: token.start) - 1
        return comments[index] if index >= 0 and comments[index].start >= start else None


def _tokenize(
    source: Source, dialect: Dialect, injects: bool, start: int, end: int, comments: list[Token]
) -> list[Token]:
    """Return all tokens of ``source.text[start:end]``, with EOF as the last. With ``injects``, tokens for newlines and
    indentation are added, and type comments are appended to ``comments``.

    Raises:
        ParseError: the text cannot be split into tokens, brackets or indentation do not match, brackets are nested too
            deeply, or it is too long.
    """
    text = source.text
    most = len(text) if source.limit is None else source.limit.tokens
    match = dialect.pattern.match
    keywords = dialect.keywords
    layout = _Layout(source, end, comments) if injects else None
    tokens: list[Token] = []
    append = tokens.append
    brackets: list[Token] = []
    at = start if layout is None else layout.begin(start)
    while True:
        found = match(text, at, end)
        assert found is not None, "some group matches every character and the end"
        kind = found.lastgroup
        assert kind is not None
        at = found.end()
        begin = found.start(kind)
        if len(tokens) > most:
            raise _too_many(source, begin, at)
        if kind == "IDENT":
            word = text[begin:at]
            if not word.isascii():
                word = _identifier(source, begin, at)
            append(Token(word if word in keywords else IDENT, word, source, begin, at))
        elif kind == "OP":
            op = text[begin:at]
            token = Token(op, op, source, begin, at)
            append(token)
            if op in "([{":
                brackets.append(token)
                if len(brackets) > MAX_DEPTH:
                    # The parser would say so too, but only after all of the text was read.
                    raise too_deep(token.range)
            elif op in _CLOSES:
                _close(brackets, token)
        elif kind == "NUMBER":
            append(Token(NUMBER, _number(source, text, begin, at, end), source, begin, at))
        elif kind == "NEWLINE":
            if layout is not None and not brackets:
                at = layout.line_end(tokens, begin, at)
        elif kind == "STRING":
            at = string_end(source, begin, end, dialect.pattern)
            append(Token(STRING, text[begin:at], source, begin, at))
        elif kind == "VALUE":
            append(Token(VALUE, text[begin:at], source, begin, at))
        elif kind == "COMMENT":
            if layout is not None:
                layout.note_comments(begin, at)
            elif dialect is GRAPH:
                append(Token(COMMENT, text[begin:at], source, begin, at))
        elif kind == "EOF":
            break
        else:
            raise ParseError(f"The character {text[begin:at]!r} has no meaning here.", source.range(begin, at))
    if brackets:
        raise ParseError(f"'{brackets[-1].text}' is never closed.", brackets[-1].range)
    if layout is not None:
        layout.finish(tokens)
    append(Token(EOF, "", source, end, end))
    return tokens


def _too_many(source: Source, begin: int, end: int) -> ParseError:
    """Return the error for a source with more tokens than the limit."""
    assert source.limit is not None
    count = source.limit.tokens
    return ParseError(f"The text has more than {count} tokens.", source.range(begin, end), hint=source.limit.hint)


def _close(brackets: list[Token], token: Token) -> None:
    """Pop the bracket that ``token`` closes from the stack ``brackets``.

    Raises:
        ParseError: the stack is empty, or its top is another kind of bracket.
    """
    if not brackets:
        raise ParseError(f"'{token.text}' closes nothing.", token.range)
    opening = brackets.pop()
    if opening.text != _CLOSES[token.text]:
        raise ParseError(
            f"'{token.text}' does not close '{opening.text}' of line {opening.range.line}.",
            token.range,
        )


def _identifier(source: Source, begin: int, end: int) -> str:
    """Return the name in ``[begin, end)`` in the normal form that Python uses for names (NFKC).

    Raises:
        ParseError: it is not a name.
    """
    word = unicodedata.normalize("NFKC", source.text[begin:end])
    if not word.isidentifier():
        raise ParseError(f"{word!r} is not a name.", source.range(begin, end))
    return word


def _number(source: Source, text: str, begin: int, at: int, end: int) -> str:
    """Return the number in ``[begin, at)``. ``end`` is the end of the text.

    Raises:
        ParseError: characters follow that look like a part of the number, it is too long, or is a decimal integer with
            a leading zero.
    """
    number = text[begin:at]
    if len(number) > _LONGEST_NUMBER:
        raise ParseError(f"A number has more than {_LONGEST_NUMBER} characters.", source.range(begin, at))
    if at < end and (text[at].isalnum() or text[at] == "_"):
        tail = at
        while tail < end and (text[tail].isalnum() or text[tail] == "_"):
            tail += 1
        # Python reads ``1if x else 2``, if with a warning.
        if text[at:tail] not in _BEHIND_NUMBERS:
            raise ParseError(f"'{text[begin:tail]}' is neither a number nor a name.", source.range(begin, tail))
    if len(number) > 1 and number[0] == "0" and number.replace("_", "").isdigit() and number.strip("0_"):
        raise ParseError(
            f"A decimal integer cannot begin with a zero: '{number}'.",
            source.range(begin, at),
            hint="Octal numbers begin with 0o.",
        )
    return number


class _Layout:
    """Inserts NEWLINE, INDENT and DEDENT tokens, which also collects the type comments."""

    __slots__ = ("_comments", "_end", "_indents", "_source")

    def __init__(self, source: Source, end: int, comments: list[Token]) -> None:
        self._source = source
        self._end = end
        self._comments = comments
        self._indents: list[int] = []

    def begin(self, at: int) -> int:
        """Skip to the first line with a token, and return its position. Its indentation is the outermost, since the
        source of a method is indented."""
        column, at = self._next_line(at)
        self._indents.append(column)
        return at

    def line_end(self, tokens: list[Token], begin: int, at: int) -> int:
        """Append the tokens for the line end in ``[begin, at)`` and for the indentation of the next line; return the
        offset of the first token of that line.

        Raises:
            ParseError: the indentation is not that of an enclosing block.
        """
        if tokens and tokens[-1].kind not in (NEWLINE, INDENT, DEDENT):
            tokens.append(Token(NEWLINE, "\n", self._source, begin, begin))
        column, at = self._next_line(at)
        if at < self._end:
            self._indent(tokens, column, at)
        return at

    def finish(self, tokens: list[Token]) -> None:
        """Append the tokens that end the last line and every open block."""
        if tokens and tokens[-1].kind not in (NEWLINE, INDENT, DEDENT):
            tokens.append(Token(NEWLINE, "\n", self._source, self._end, self._end))
        while len(self._indents) > 1:
            self._indents.pop()
            tokens.append(Token(DEDENT, "", self._source, self._end, self._end))

    def note_comments(self, begin: int, end: int) -> None:
        """Record the type comments in ``[begin, end)``, which contains only comments and blanks."""
        text = self._source.text
        if text.find("type:", begin, end) < 0:
            return
        at = begin
        while at < end:
            found = _TYPE_COMMENT.match(text, at, end)
            if found is not None:
                token = Token(TYPE_COMMENT, found.group(1), self._source, found.start(1), found.end(1))
                self._comments.append(token)
            line = _LINE.match(text, at, end)
            assert line is not None
            at = line.end()

    def _next_line(self, at: int) -> tuple[int, int]:
        """Skip blank lines and comments, and record their type comments; return the column (tabs advance to multiples
        of 8) and the offset of the next line's first token."""
        text, begin = self._source.text, at
        while lines := _BLANK_LINES.match(text, at, self._end):
            at = lines.end()
        indentation = _INDENTATION.match(text, at, self._end)
        assert indentation is not None
        if indentation.end() > begin:
            self.note_comments(begin, indentation.end())
        blanks = indentation.group(1)
        if "\t" not in blanks and "\f" not in blanks:
            return len(blanks), indentation.end()
        column = 0
        for blank in blanks:
            column = 0 if blank == "\f" else column // 8 * 8 + 8 if blank == "\t" else column + 1
        return column, indentation.end()

    def _indent(self, tokens: list[Token], column: int, at: int) -> None:
        indents = self._indents
        if column > indents[-1]:
            indents.append(column)
            tokens.append(Token(INDENT, "", self._source, at, at))
            return
        while column < indents[-1] and len(indents) > 1:
            indents.pop()
            tokens.append(Token(DEDENT, "", self._source, at, at))
        if column != indents[-1]:
            raise ParseError(
                "This line is indented like no block around it.",
                self._source.range(at, at + 1),
                hint="Indent it like the line that it belongs with.",
            )
