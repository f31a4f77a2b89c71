"""Parser of the attributes of nodes, including constants.

The interpretation of a constant's text depends on the type of the constant: ``1`` is an int, a float or a bool, ``(1,
2)`` a tuple or the beginning of a tensor. The text of a tensor is not exact; the caller passes the tensors themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import torch

from rekindle.errors import ParseError
from rekindle.ir.attributes import ConstantObject, constant_attribute
from rekindle.ir.constants import EnumMember, OpaqueConstant
from rekindle.ir.graph import AttributeValue
from rekindle.ir.text.literals import read_number, read_string
from rekindle.ir.text.tensor_printer import format_tensor, is_tensor_text
from rekindle.ir.text.type_parser import MAX_DEPTH, TypeReader
from rekindle.ir.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    STRING,
    DictType,
    EnumType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
)
from rekindle.syntax.lexer import IDENT, NUMBER, STRING as STRING_TOKEN, Lexer, Token

GivenTensors = Sequence[object] | Mapping[str, object]
"""The tensors of a graph's constants: in the order of the text, or by the name of the value that the constant
defines.
"""

_SCALAR_TENSOR: Final = re.compile(r"\{([^{}]*)\}\Z")
_PAIR: Final = re.compile(r"\(([^,]*),([^,]*)\)\Z")
_CLOSES: Final = {")", "]", "}"}
_OPENS: Final = {"(", "[", "{"}


class ConstantReader:
    """Reads the values of attributes from the tokens of ``lexer``."""

    __slots__ = ("_by_name", "_depth", "_in_order", "_taken", "_types", "lexer")

    def __init__(self, lexer: Lexer, types: TypeReader, tensors: GivenTensors | None) -> None:
        self.lexer = lexer
        self._types = types
        self._by_name: Mapping[str, object] = tensors if isinstance(tensors, Mapping) else {}
        self._in_order: Sequence[object] | None = None if isinstance(tensors, Mapping) else tensors
        self._taken = 0
        self._depth = 0

    def constant(self, name: str, type: Type) -> AttributeValue:
        """Parse the attribute ``value`` of the ``prim::Constant`` that defines ``%name : type``.

        Raises:
            ParseError: the text is not a constant of this type, or differs from the text of the tensor passed for it.
        """
        lexer = self.lexer
        if name in self._by_name:
            token = lexer.cur
            text = self._raw()
            value = self._by_name[name]
            if isinstance(value, torch.Tensor):
                _check_text(value, text, token, name)
            attribute = constant_attribute(value)[0]
            if attribute is None:
                raise ParseError(f"None is given for the constant %{name}, which has a value here.", token.range)
            return attribute
        while isinstance(type, OptionalType):
            type = type.element
        if lexer.cur.kind == STRING_TOKEN:
            return self._string()
        value = self._value(type)
        if isinstance(value, (bool, int, float, complex, torch.Tensor)):
            return int(value) if isinstance(value, bool) else value
        return ConstantObject(value)

    def attribute(self) -> AttributeValue:
        """Parse an attribute of any other node: a number, string, type or tensor, or a list of these.

        Raises:
            ParseError: the text is not an attribute.
        """
        lexer = self.lexer
        token = lexer.cur
        if token.kind == "[" and not self._is_tensor_text():
            return self._attribute_list()
        if token.kind == IDENT and token.text not in _WORDS and token.text not in _CALLS:
            return self._types.read()
        if token.kind == "(" and self._is_tuple_type():
            return self._types.read()
        if token.kind == "<" and lexer.lookahead().text == "Graph":
            return ConstantObject(OpaqueConstant(self._raw()))
        value = self._value(ANY)
        if isinstance(value, (bool, int, float, complex, str, torch.Tensor)):
            return value
        return ConstantObject(value)

    def _is_tuple_type(self) -> bool:
        """Return whether the parentheses here contain types, judging by the first token in them."""
        ahead = 1
        while self.lexer.lookahead(ahead).kind == "(":
            ahead += 1
        first = self.lexer.lookahead(ahead)
        return first.kind == ")" or (first.kind == IDENT and first.text not in (*_WORDS, *_CALLS))

    def arguments(self) -> str:
        """Skip constant arguments in parentheses, and return the text between the parentheses."""
        lexer = self.lexer
        start = lexer.expect("(").end
        depth = 0
        while depth or lexer.cur.kind != ")":
            depth += (lexer.cur.kind in _OPENS) - (lexer.cur.kind in _CLOSES)
            lexer.next()
        return lexer.source.text[start : lexer.next().start]

    def finish(self) -> None:
        """Check that all tensors that were passed in order were used.

        Raises:
            ParseError: more tensors were passed than the text has.
        """
        if self._in_order is not None and self._taken < len(self._in_order):
            given = len(self._in_order)
            message = f"{given} tensors are given, but the text has only {self._taken} tensor constants."
            raise ParseError(message, self.lexer.cur.range)

    def _attribute_list(self) -> AttributeValue:
        lexer = self.lexer
        self._depth += 1
        if self._depth > MAX_DEPTH:
            lexer.fail(f"Constants nest at most {MAX_DEPTH} deep.")
        lexer.expect("[")
        items: list[AttributeValue] = []
        while lexer.cur.kind != "]":
            items.append(self.attribute())
            if lexer.next_if(",") is None:
                break
        lexer.expect("]")
        self._depth -= 1
        if any(isinstance(item, (ConstantObject, list)) for item in items):
            return ConstantObject([item.value if isinstance(item, ConstantObject) else item for item in items])
        if any(isinstance(item, float) for item in items):
            # A whole number of 1e10 and more has no dot in a list of floats.
            items = [float(item) if isinstance(item, int) else item for item in items]
        return items  # type: ignore[return-value]

    # ----------------------------------------------------------------------------------------------------------- values

    def _value(self, type: Type) -> object:
        """Parse a constant of this type; ANY if it is unknown."""
        lexer = self.lexer
        while isinstance(type, OptionalType):
            type = type.element
        token = lexer.cur
        if token.kind == IDENT and token.text == "None":
            lexer.next()
            return None
        if isinstance(type, TensorType) or (type == ANY and self._is_tensor_text()):
            return self._tensor(type)
        if token.kind == STRING_TOKEN:
            return self._string()
        if token.kind in _OPENS:
            return self._container(token.kind, type)
        if token.kind in (NUMBER, "-") or token.text in ("inf", "nan"):
            return self._number(type)
        if token.kind == IDENT:
            return self._word(type)
        return OpaqueConstant(self._raw())

    def _container(self, opening: str, type: Type) -> object:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.lexer.fail(f"Constants nest at most {MAX_DEPTH} deep.")
        value = self._list(type) if opening == "[" else self._tuple(type) if opening == "(" else self._dict(type)
        self._depth -= 1
        return value

    def _string(self) -> str:
        token = self.lexer.next()
        if token.text[0] != '"':
            raise ParseError("A string of a graph is written in double quotes.", token.range)
        return read_string(token.text)

    def _list(self, type: Type) -> object:
        lexer = self.lexer
        element = type.element if isinstance(type, ListType) else ANY
        if isinstance(element, TensorType):
            return self._tensor_list()
        lexer.expect("[")
        items: list[object] = []
        while lexer.cur.kind != "]":
            items.append(self._value(element))
            if lexer.next_if(",") is None:
                break
        lexer.expect("]")
        return items

    def _tuple(self, type: Type) -> object:
        lexer = self.lexer
        types = type.elements if isinstance(type, TupleType) else ()
        lexer.expect("(")
        items: list[object] = []
        while lexer.cur.kind != ")":
            items.append(self._value(types[len(items)] if len(items) < len(types) else ANY))
            if lexer.next_if(",") is None:
                break
        lexer.expect(")")
        return tuple(items)

    def _dict(self, type: Type) -> object:
        lexer = self.lexer
        key, item = (type.key, type.value) if isinstance(type, DictType) else (ANY, ANY)
        lexer.expect("{")
        pairs: dict[object, object] = {}
        while lexer.cur.kind != "}":
            name = self._value(key)
            lexer.expect(":")
            pairs[name] = self._value(item)
            if lexer.next_if(",") is None:
                break
        lexer.expect("}")
        return pairs

    def _number(self, type: Type) -> object:
        lexer = self.lexer
        value = self._real()
        sign = lexer.cur.kind
        if sign in ("+", "-"):
            lexer.next()
            imaginary = self._real()
            value = complex(value.real, imaginary.imag if sign == "+" else -imaginary.imag)
        if type == FLOAT and not isinstance(value, complex):
            return float(value)
        if type == BOOL and isinstance(value, int):
            return bool(value)
        return complex(value) if type == COMPLEX else value

    def _real(self) -> int | float | complex:
        lexer = self.lexer
        is_negative = lexer.next_if("-") is not None
        token = lexer.cur
        if token.kind == NUMBER:
            value = read_number(token.text)
        elif token.kind == IDENT and token.text in ("inf", "nan", "infj", "nanj"):
            value = float(token.text) if token.text[-1] != "j" else complex(token.text)
        else:
            lexer.fail(f"Expected a number but found {token}.")
        lexer.next()
        return -value if is_negative else value

    def _word(self, type: Type) -> object:
        lexer = self.lexer
        token = lexer.cur
        if token.text in ("True", "False"):
            lexer.next()
            return token.text == "True"
        if token.text == "annotate":
            lexer.next()
            lexer.expect("(")
            self._raw()  # the type, which is known: it is written at the value that the constant defines
            lexer.expect(",")
            value = self._value(type)
            lexer.expect(")")
            return value
        text = self._raw()
        device = re.fullmatch(r'torch\.device\("([^"]*)"\)', text)
        if device is not None and type in (DEVICE, ANY):
            return torch.device(device.group(1))
        if isinstance(type, EnumType):
            return self._member(text, type, token)
        if type in (INT, BOOL, FLOAT, COMPLEX, STRING):
            raise ParseError(f"Expected a constant of type {type} but found '{text}'.", token.range)
        return OpaqueConstant(text)

    def _member(self, text: str, type: EnumType, token: Token) -> object:
        name, _, member = text.rpartition(".")
        if name != type.name:
            raise ParseError(f"Expected a member of {type.name} but found '{text}'.", token.range)
        if type.python_class is None:
            return EnumMember(type, member)
        if member not in type.members:
            raise ParseError(f"{type.name} has no member '{member}'.", token.range)
        return getattr(type.python_class, member)

    # ---------------------------------------------------------------------------------------------------------- tensors

    def _is_tensor_text(self) -> bool:
        """Return whether a tensor is written out at the current token."""
        kind = self.lexer.cur.kind
        return kind in (NUMBER, "-", "(", "[", "{", "<", IDENT) and is_tensor_text(self._peek_raw())

    def _tensor(self, type: Type) -> object:
        token = self.lexer.cur
        text = self._raw()
        given = self._take(text, token)
        if given is not None:
            return given
        scalar = _SCALAR_TENSOR.match(text)
        found = _scalar_tensor(scalar.group(1), type) if scalar is not None else None
        return OpaqueConstant(text) if found is None else found

    def _tensor_list(self) -> object:
        token = self.lexer.cur
        text = self._raw()
        given = self._take(text, token)
        return OpaqueConstant(text) if given is None else given

    def _take(self, text: str, token: Token) -> object:
        """Return the next of the tensors that the caller passed in order, for the tensor at ``token``; None if they
        were not passed in order.

        Raises:
            ParseError: no tensor is left, or its text is not ``text``.
        """
        if self._in_order is None:
            return None
        if self._taken == len(self._in_order):
            raise ParseError(f"The text has more tensor constants than the {self._taken} that are given.", token.range)
        value = self._in_order[self._taken]
        self._taken += 1
        if isinstance(value, torch.Tensor):
            _check_text(value, text, token, None)
        return value

    # -------------------------------------------------------------------------------------------------------- raw texts

    def _raw(self) -> str:
        """Skip a value, up to the comma or bracket that ends it, and return its text with the blanks before it, except
        one after a comma or colon."""
        text = self._peek_raw()
        lexer = self.lexer
        depth = 0
        while True:
            kind = lexer.cur.kind
            if depth == 0 and (kind == "," or kind in _CLOSES or kind == "EOF"):
                return text
            depth += (kind in _OPENS) - (kind in _CLOSES)
            lexer.next()

    def _peek_raw(self) -> str:
        lexer = self.lexer
        depth = ahead = 0
        while True:
            token = lexer.lookahead(ahead)
            kind = token.kind
            if depth == 0 and (kind == "," or kind in _CLOSES or kind == "EOF"):
                break
            depth += (kind in _OPENS) - (kind in _CLOSES)
            ahead += 1
        text = lexer.source.text
        start = lexer.end
        # One blank after a comma or a colon separates; the others belong to the text of a tensor.
        if text[start - 1] in ",:" and text[start : start + 1] == " ":
            start += 1
        return text[start : token.start]


_WORDS: Final = ("True", "False", "None", "inf", "nan")
_CALLS: Final = ("annotate", "torch", "object")


def _scalar_tensor(text: str, type: Type) -> torch.Tensor | None:
    """Return the one-element tensor that ``{text}`` denotes; None if ``text`` is not a number, or if the dtype of
    ``type`` is quantized, or complex for a real number, or real for a complex one."""
    pair = _PAIR.match(text)
    try:
        value = complex(float(pair.group(1)), float(pair.group(2))) if pair is not None else _read_real(text)
    except ValueError:
        return None
    dtype = type.dtype if isinstance(type, TensorType) else None
    sizes = type.sizes if isinstance(type, TensorType) else None
    shape = [1] * len(sizes or ())
    if dtype is not None and (dtype.is_complex != isinstance(value, complex) or dtype in _NO_ITEMS):
        return None
    return torch.full(shape, value, dtype=dtype)


_NO_ITEMS: Final = frozenset((torch.qint8, torch.quint8, torch.qint32, torch.quint4x2, torch.quint2x4))


def _read_real(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _check_text(tensor: torch.Tensor, text: str, token: Token, name: str | None) -> None:
    shown = format_tensor(tensor)
    if shown != text:
        what = "A tensor" if name is None else f"The tensor for %{name}"
        raise ParseError(f"{what} is given that prints as '{shown}', but '{text}' is here.", token.range)
