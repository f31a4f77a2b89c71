"""Text -> function schemas: ``aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor``.

The grammar; :mod:`rekindle.ir.text.type_parser` has that of types::

    schema   = name ("." overload)? "(" arguments? ")" "->" returns
    name     = word ("::" word)?
    arguments = (argument | "*") ("," (argument | "*"))* ("," "...")? | "..."
    argument = type word ("=" default)?
    returns  = "..." | result | "(" (result ("," result)* ("," "...")?)? ")" | "(" "..." ")"
    result   = type word?
    default  = number | string | word | "None" | "True" | "False" | "[" (default ("," default)*)? "]"
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import torch

from rekindle.errors import ParseError, Source
from rekindle.ir.operators.schema import MISSING, Argument, FunctionSchema
from rekindle.ir.scalar_types import DTYPE_NUMBERS, LAYOUT_NUMBERS, MEMORY_FORMAT_NUMBERS
from rekindle.ir.text.literals import read_number, read_string
from rekindle.ir.text.type_parser import Annotated, Resolver, TypeReader, parse_type as parse_type
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NUMBER,
    STRING,
    ListType,
    OptionalType,
    Type,
)
from rekindle.syntax.lexer import EOF, IDENT, NUMBER as NUMBER_TOKEN, SCHEMA, STRING as STRING_TOKEN, Lexer, Token


def parse_schema(text: str, resolver: Resolver | None = None) -> FunctionSchema:
    """Parse a schema. ``str()`` of the result is the text, with PyTorch's spacing and numbers.

    ``resolver`` returns the classes of qualified names.

    Raises:
        ParseError: ``text`` is not a schema.
    """
    known = _from_known_parts(text) if resolver is None else None
    return _reader(text, resolver).read() if known is None else known


def _reader(text: str, resolver: Resolver | None = None) -> _SchemaReader:
    return _SchemaReader(Lexer(Source(text), SCHEMA), resolver)


# ------------------------------------------------------------------------------------------- parts that are read once

_WORD: Final = r"[A-Za-z_]\w*"
_SCHEMA: Final = re.compile(rf"({_WORD}(?:::{_WORD})?)(?:\.({_WORD}))?\((.*)\) -> (.+)", re.ASCII)
# Without dotted names: they are classes, which all arguments of a schema share.
_TYPE: Final = r"[\w()\[\]?!*|, >-]+"
_ARGUMENT: Final = re.compile(rf"({_TYPE}) ({_WORD})(?:=([\w.+-]+|\[[\w., +-]*\]|\"\w*\"))?", re.ASCII)
_RESULT: Final = re.compile(_TYPE, re.ASCII)
_COMMA: Final = re.compile(r", (?![^(\[]*[)\]])")
"""A comma outside of brackets, unless these are nested: then a part is read that has unbalanced brackets, and fails."""


def _from_known_parts(text: str) -> FunctionSchema | None:
    """Return the schema that ``text`` spells if its arguments and results can be read one by one; else None.

    Schemas repeat their arguments (``Tensor self``, ``int dim=-1``): each spelling is read once.
    """
    found = _SCHEMA.fullmatch(text)
    if found is None:
        return None
    arguments: dict[str, Argument] = {}
    pieces = _COMMA.split(found[3]) if found[3] else []
    results = found[4]
    is_list = results[0] == "("
    if is_list and results[-1] != ")":
        return None
    kwarg_only = False
    try:
        for piece in pieces:
            if piece == "*" and not kwarg_only:
                kwarg_only = True
                continue
            argument = _argument(piece, kwarg_only)
            if argument is None:
                return None
            arguments[argument.name] = argument
        returns = [_result(each) for each in (_COMMA.split(results[1:-1]) if is_list else (results,)) if each]
    except ParseError:
        return None  # reading the whole text names the place in it
    if len(arguments) + kwarg_only < len(pieces) or None in returns:
        return None
    return FunctionSchema(found[1], found[2] or "", tuple(arguments.values()), tuple(filter(None, returns)))


@lru_cache(maxsize=4096)
def _argument(text: str, kwarg_only: bool) -> Argument | None:
    parts = _ARGUMENT.fullmatch(text)
    if parts is None:
        return None
    type = _annotated(parts[1])
    if parts[3] is None:
        return Argument(parts[2], type.type, MISSING, kwarg_only, type.alias, type.size, type.spelling)
    if parts[3] == "None":
        return Argument(parts[2], type.type, None, kwarg_only, type.alias, type.size, type.spelling)
    reader = _reader(text)
    argument = reader.read_argument(kwarg_only, set())
    reader.expect_end()
    return argument


@lru_cache(maxsize=1024)
def _annotated(text: str) -> Annotated:
    reader = _reader(text)
    found = reader._types.read_annotated()
    reader.expect_end()
    return found


@lru_cache(maxsize=1024)
def _result(text: str) -> Argument | None:
    if _RESULT.fullmatch(text) is None:
        return None
    reader = _reader(text)
    result = reader.read_result()
    reader.expect_end()
    return result


_Default = tuple[object, str | None]
"""The default of an argument, and its text if the value does not determine it."""


class _SchemaReader:
    __slots__ = ("_lexer", "_types")

    def __init__(self, lexer: Lexer, resolver: Resolver | None) -> None:
        self._lexer = lexer
        self._types = TypeReader(lexer, resolver, aliases=True)

    def read(self) -> FunctionSchema:
        lexer = self._lexer
        name = lexer.expect(IDENT).text
        if lexer.next_if("::") is not None:
            name += "::" + lexer.expect(IDENT).text
        overload = ""
        if lexer.next_if(".") is not None:
            overload = lexer.expect(IDENT).text
        arguments, is_vararg = self._arguments()
        lexer.expect("->")
        returns, is_varret = self._returns()
        self.expect_end()
        return FunctionSchema(name, overload, arguments, returns, is_vararg, is_varret)

    def expect_end(self) -> None:
        if self._lexer.cur.kind != EOF:
            self._lexer.fail(f"Expected the end of the schema but found {self._lexer.cur}.")

    def _arguments(self) -> tuple[tuple[Argument, ...], bool]:
        lexer = self._lexer
        lexer.expect("(")
        arguments: list[Argument] = []
        names: set[str] = set()
        kwarg_only = False
        while lexer.cur.kind != ")":
            if lexer.next_if("...") is not None:
                lexer.expect(")")
                return tuple(arguments), True
            if lexer.cur.kind == "*":
                if kwarg_only:
                    lexer.fail("The schema has a second '*'.")
                lexer.next()
                kwarg_only = True
            else:
                arguments.append(self.read_argument(kwarg_only, names))
            if lexer.next_if(",") is None:
                break
        lexer.expect(")")
        return tuple(arguments), False

    def read_argument(self, kwarg_only: bool, names: set[str]) -> Argument:
        lexer = self._lexer
        found = self._types.read_annotated()
        word = lexer.expect(IDENT)
        name = word.text
        if name in names:
            raise ParseError(f"Two arguments are called '{name}'.", word.range)
        names.add(name)
        default: object = MISSING
        spelling: str | None = None
        if lexer.next_if("=") is not None:
            default, spelling = self._default(found)
        return Argument(name, found.type, default, kwarg_only, found.alias, found.size, found.spelling, spelling)

    def _returns(self) -> tuple[tuple[Argument, ...], bool]:
        lexer = self._lexer
        if lexer.next_if("...") is not None:
            return (), True
        if lexer.next_if("(") is None:
            return (self.read_result(),), False
        results: list[Argument] = []
        while lexer.cur.kind != ")":
            if lexer.next_if("...") is not None:
                lexer.expect(")")
                return tuple(results), True
            results.append(self.read_result())
            if lexer.next_if(",") is None:
                break
        lexer.expect(")")
        return tuple(results), False

    def read_result(self) -> Argument:
        found = self._types.read_annotated()
        word = self._lexer.next_if(IDENT)
        name = "" if word is None else word.text
        return Argument(name, found.type, alias=found.alias, size=found.size, spelling=found.spelling)

    # ---------------------------------------------------------------------------------------- defaults

    def _default(self, formal: Annotated) -> _Default:
        lexer = self._lexer
        type = formal.type
        if lexer.cur.text == "None":
            lexer.next()
            return None, None
        while isinstance(type, OptionalType):
            type = type.element
        if not isinstance(type, ListType):
            return self._scalar(type, formal)
        if lexer.cur.kind == "[":
            return self._list(type, formal), None
        if formal.size is None:
            lexer.fail(f"Expected a list for {_spell(formal)} but found {lexer.cur}.")
        start = lexer.cur.start
        value, _ = self._scalar(type.element, formal)
        return [value] * formal.size, lexer.source.text[start : lexer.end]

    def _list(self, type: ListType, formal: Annotated) -> list[object]:
        lexer = self._lexer
        lexer.expect("[")
        values: list[object] = []
        while lexer.cur.kind != "]":
            values.append(self._scalar(type.element, formal)[0])
            if lexer.next_if(",") is None:
                break
        lexer.expect("]")
        return values

    def _scalar(self, type: Type, formal: Annotated) -> _Default:
        lexer = self._lexer
        token = lexer.cur
        if token.kind == STRING_TOKEN:
            lexer.next()
            return self._string(token, type, formal)
        is_negative = lexer.next_if("-") is not None
        word = lexer.cur
        if word.kind == NUMBER_TOKEN:
            lexer.next()
            value = self._number(word, is_negative, type, formal)
            # A whole number can be the default of a float; it is spelled as it was.
            spelling = ("-" if is_negative else "") + word.text if type == FLOAT and word.text.isdigit() else None
            return value, spelling
        if word.kind != IDENT:
            lexer.fail(f"Expected a default for {_spell(formal)} but found {word}.")
        lexer.next()
        return self._word(word, is_negative, type, formal)

    def _string(self, token: Token, type: Type, formal: Annotated) -> _Default:
        if token.text[0] not in "\"'":
            raise ParseError("A string of a schema has no prefix.", token.range)
        value = read_string(token.text)
        if type == STRING:
            return value, None
        if type == DEVICE:
            return torch.device(value), None
        raise _unfit(token, formal)

    def _number(self, token: Token, is_negative: bool, type: Type, formal: Annotated) -> object:
        value = read_number(token.text)
        if is_negative:
            value = -value
        sign = self._lexer.cur.kind
        if sign in ("+", "-") and type in (COMPLEX, NUMBER):
            self._lexer.next()
            imaginary = read_number(self._lexer.expect(NUMBER_TOKEN).text)
            value = value + imaginary if sign == "+" else value - imaginary
        if type == FLOAT and not isinstance(value, complex):
            return float(value)
        if type == COMPLEX:
            return complex(value)
        if type == NUMBER or (type == INT and isinstance(value, int)):
            return value
        if type == BOOL and isinstance(value, int):
            return bool(value)
        raise _unfit(token, formal)

    def _word(self, token: Token, is_negative: bool, type: Type, formal: Annotated) -> _Default:
        text = token.text
        if text in ("inf", "nan") and type in (FLOAT, NUMBER):
            return float(f"-{text}" if is_negative else text), None
        if is_negative:
            raise _unfit(token, formal)
        if text in ("True", "False") and type in (BOOL, NUMBER):
            return text == "True", None
        if type == INT:
            value = _NAMED_NUMBERS.get(formal.spelling.rstrip("[]?") if formal.spelling else "int", {}).get(text)
            if value is not None:
                return value, text
        if text == "None" and isinstance(formal.type, ListType) and formal.type.element.is_optional:
            return None, None
        raise _unfit(token, formal)


def _spell(formal: Annotated) -> str:
    return formal.spelling or str(formal.type)


def _unfit(token: Token, formal: Annotated) -> ParseError:
    return ParseError(f"{token} cannot be the default of {_spell(formal)}.", token.range)


# --------------------------------------------------------------------------------------- named numbers


def _dtype_names() -> dict[str, int]:
    """Return every name under which torch knows a dtype: ``float32`` and ``float``. A newer torch may have others,
    which no schema names."""
    known = {name: getattr(torch, name) for name in dir(torch)}
    dtypes = {name: value for name, value in known.items() if isinstance(value, torch.dtype)}
    return {name: DTYPE_NUMBERS[value] for name, value in dtypes.items() if value in DTYPE_NUMBERS}


_DTYPE_NAMES: Final = _dtype_names()
_LAYOUT_NAMES: Final = {str(layout).rpartition(".")[2]: number for layout, number in LAYOUT_NUMBERS.items()}
_MEMORY_FORMAT_NAMES: Final = {str(form).rpartition(".")[2]: number for form, number in MEMORY_FORMAT_NUMBERS.items()}
_REDUCTION_NAMES: Final = {"Mean": 1, "Sum": 2}

_NAMED_NUMBERS: Final[dict[str, dict[str, int]]] = {
    "ScalarType": _DTYPE_NAMES,
    "Layout": _LAYOUT_NAMES,
    "MemoryFormat": _MEMORY_FORMAT_NAMES,
    "int": {**_DTYPE_NAMES, **_LAYOUT_NAMES, **_MEMORY_FORMAT_NAMES, **_REDUCTION_NAMES},
}
"""Names of the defaults of an argument, by the text of its type."""
