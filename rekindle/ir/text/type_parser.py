"""Text -> types, with the alias annotations of schemas.

The grammar, in which a type of a schema may be followed by an alias annotation, and one of a graph may not::

    type       = base annotation? (("[" size? "]" annotation?) | "?")*
    base       = name | "(" types? ")" | "Dict(" type "," type ")" | "Union(" types ")" | "NamedTuple(" fields? ")"
               | ("Future" | "Await" | "RRef") ("(" type ")" | "[" type "]") | ("Enum" | "InterfaceType") "<" dotted ">"
               | tensor | dotted
    fields     = name ":" type ("=" default)? ("," name ":" type ("=" default)?)*
    tensor     = "Float" facts | "FloatTensor" facts? | "Tensor" facts?         (and so for every dtype)
    facts      = "(" (size | "*" | "strides=[" … "]" | "requires_grad=" 0/1 | "device=" name (":" index)?),* ")"
    annotation = "(" sets "!"? ("->" sets)? ")"
    sets       = ("*" | name) ("|" ("*" | name))*

A single lower-case word that names no type is a type variable. A dotted name is a class: the resolver knows it, or it
becomes a class of which nothing but the name is known.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, NoReturn

import torch

from rekindle.errors import ParseError, Source
from rekindle.ir.constants import OpaqueConstant
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import WILDCARD, AliasInfo
from rekindle.ir.text.literals import read_number, read_string
from rekindle.ir.types import (
    ANY,
    ANY_CLASS,
    ANY_ENUM,
    ANY_LIST,
    ANY_TUPLE,
    BOOL,
    CAPSULE,
    COMPLEX,
    DEVICE,
    DTYPE_NAMES,
    FLOAT,
    GENERATOR,
    INT,
    LIBRARY_CLASSES,
    NONE,
    NUMBER,
    QSCHEME,
    STORAGE,
    STREAM,
    STRING,
    TENSOR,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    RRefType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    VarType,
    union,
)
from rekindle.syntax.lexer import EOF, IDENT, NUMBER as NUMBER_TOKEN, SCHEMA, Lexer, Token

Resolver = Callable[[str], Type | None]
"""Returns the class, interface, enum or NamedTuple of a qualified name; None if there is none."""

_PLAIN: Final[Mapping[str, Type]] = {
    type.text: type
    for type in (
        *(INT, FLOAT, COMPLEX, BOOL, NUMBER, STRING, NONE, DEVICE, STREAM, GENERATOR, STORAGE, QSCHEME, CAPSULE),
        *(ANY, ANY_CLASS, ANY_ENUM, ANY_LIST, ANY_TUPLE),
    )
} | {"number": NUMBER}

_SPELLED: Final[dict[str, Type]] = {
    "ScalarType": INT,
    "Layout": INT,
    "MemoryFormat": INT,
    "DeviceIndex": INT,
    "SymInt": INT,
    "SymFloat": FLOAT,
    "SymBool": BOOL,
    "Dimname": STRING,
    "PyObject": ANY,
}
"""Names that only schemas have, which say more of an argument than its type here does."""

_DTYPES: Final = {name: dtype for dtype, name in DTYPE_NAMES.items()}
_UNRANKED: Final = {f"{name}Tensor": dtype for name, dtype in _DTYPES.items()}
_WITH_PARTS: Final = ("Dict", "Future", "Await", "RRef", "Union", "NamedTuple", "Enum", "InterfaceType", "Function")

_CONSTANTS: Final[Mapping[str, object]] = {"True": True, "False": False, "None": None}

_custom_classes: dict[str, ClassType] = {}


def custom_class(name: str) -> ClassType:
    """Return the class of objects that are written in C++, ``__torch__.torch.classes.…``: one for each name in the
    process."""
    found = _custom_classes.get(name)
    if found is None:
        found = _custom_classes[name] = ClassType(name)
    return found


MAX_DEPTH: Final = 100
"""How deep types may nest: far more than any program has, far less than Python can recurse."""


class Annotated(NamedTuple):
    """A type as a schema writes it: see :class:`rekindle.ir.operators.schema.Argument` for the rest."""

    type: Type
    alias: AliasInfo | None = None
    size: int | None = None
    spelling: str | None = None


class TypeReader:
    """Reads types from the tokens of ``lexer``. ``aliases`` specifies whether annotations may follow them."""

    __slots__ = ("_aliases", "_classes", "_depth", "_resolver", "lexer")

    def __init__(self, lexer: Lexer, resolver: Resolver | None = None, *, aliases: bool = False) -> None:
        self.lexer = lexer
        self._resolver = resolver
        self._aliases = aliases
        self._classes: dict[str, Type] = {}
        self._depth = 0

    def read(self) -> Type:
        """Parse a type, and return it without its annotations.

        Raises:
            ParseError: there is no type at the current token, or it nests more than ``MAX_DEPTH`` deep.
        """
        return self.read_annotated().type

    def read_annotated(self) -> Annotated:
        """Parse a type with its annotations.

        Raises:
            ParseError: there is no type at the current token, or it nests more than ``MAX_DEPTH`` deep.
        """
        lexer = self.lexer
        self._depth += 1
        if self._depth > MAX_DEPTH:
            lexer.fail(f"Types nest at most {MAX_DEPTH} deep.")
        type, spelling, alias = self._base()
        if self._aliases and lexer.cur.kind == "(":
            alias = self._alias(alias)
        size: int | None = None
        suffixes = 0
        while lexer.cur.kind in ("[", "?"):
            suffixes += 1
            if self._depth + suffixes > MAX_DEPTH:
                lexer.fail(f"Types nest at most {MAX_DEPTH} deep.")
            if lexer.next_if("?") is not None:
                # The text is taken at its word, so that it is printed as it was: `optional` would fold `Any?` and
                # unions.
                type = type if isinstance(type, OptionalType) else OptionalType(type)
                if spelling is not None and not spelling.endswith("?"):
                    spelling += "?"
                continue
            if size is not None:
                lexer.fail("A list of lists of a fixed size is not a type.")
            lexer.next()
            size = self._whole_number() if lexer.cur.kind == NUMBER_TOKEN else None
            lexer.expect("]")
            type = ListType(type)
            if spelling is not None:
                spelling += "[]"
            alias = self._list_alias(alias)
        self._depth -= 1
        return Annotated(type, alias, size, spelling)

    def read_facts(self, dtype: torch.dtype | None, ranked: bool) -> TensorType:
        """Parse the properties in parentheses after the name of a tensor type. Return the type of this dtype. Without
        ``ranked``, a missing list of sizes means that the rank is unknown.

        Raises:
            ParseError: the text is not a list of sizes and properties.
        """
        lexer = self.lexer
        lexer.expect("(")
        sizes: list[int | None] = []
        strides: tuple[int | None, ...] | None = None
        requires_grad: bool | None = None
        device: torch.device | None = None
        while lexer.cur.kind != ")":
            word = lexer.next_if(IDENT)
            if word is None:
                sizes.append(self._size())
            elif word.text == "SS":
                self._symbolic_size()
                sizes.append(None)
            elif word.text == "strides":
                strides = self._strides()
            elif word.text == "requires_grad":
                lexer.expect("=")
                requires_grad = lexer.expect(NUMBER_TOKEN).text != "0"
            elif word.text == "device":
                device = self._device()
            else:
                _fail_at(word, f"'{word.text}' is nothing that a tensor type can say.")
            if lexer.next_if(",") is None:
                break
        lexer.expect(")")
        known = tuple(sizes) if sizes or ranked else None
        return TensorType(dtype, device, known, strides, requires_grad)

    # ------------------------------------------------------------------------------------------- bases

    def _base(self) -> tuple[Type, str | None, AliasInfo | None]:
        """Return a type up to its suffixes, its text if that is more specific, and the annotations within it."""
        lexer = self.lexer
        token = lexer.cur
        if token.kind == "(":
            lexer.next()
            parts = self._list_of(")")
            return TupleType(tuple(part.type for part in parts)), None, _alias_of_parts(parts)
        if token.kind != IDENT:
            lexer.fail(f"Expected a type but found {token}.")
        lexer.next()
        name = token.text
        if name == "Tensor" and self._aliases:
            return TENSOR, None, None
        found = _PLAIN.get(name)
        if found is not None:
            return found, None, None
        found = _SPELLED.get(name)
        if found is not None:
            return found, name, None
        tensor = self._tensor(name)
        if tensor is not None:
            return tensor, None, None
        if name in _WITH_PARTS and lexer.cur.kind in ("(", "[", "<"):
            return self._with_parts(token)
        if name == "Function":
            return FunctionType(GraphFunction("")), None, None
        return self._named(token), None, None

    def _tensor(self, name: str) -> Type | None:
        """Parse the rest of a tensor type whose first word is ``name``, and return the type. Return None if ``name`` is
        another word."""
        lexer = self.lexer
        dtype = _DTYPES.get(name)
        if dtype is not None:
            type = self.read_facts(dtype, True)
        elif name == "Tensor" or name in _UNRANKED:
            dtype = _UNRANKED.get(name)
            has_facts = lexer.cur.kind == "(" and not self._aliases
            type = self.read_facts(dtype, lexer.lookahead().kind == ")") if has_facts else TensorType(dtype)
        else:
            return None
        if lexer.cur.kind == "[" and lexer.lookahead().text == "Undefined":
            lexer.next()
            lexer.next()
            lexer.expect("]")
            return replace(type, undefined=True)
        return type

    def _with_parts(self, token: Token) -> tuple[Type, str | None, AliasInfo | None]:
        lexer, name = self.lexer, token.text
        if name == "Enum":
            return self._in_angles(EnumType, lambda known: EnumType(known, ANY)), None, None
        if name == "InterfaceType":
            return self._in_angles(InterfaceType, InterfaceType), None, None
        if name == "NamedTuple":
            return self._named_tuple(), None, None
        square = lexer.cur.kind == "[" and name in ("Future", "RRef", "Await")
        closing = "]" if square else ")"
        lexer.expect("[" if square else "(")
        parts = self._list_of(closing)
        types = [part.type for part in parts]
        alias = _alias_of_parts(parts)
        if name == "Union":
            if not types:
                _fail_at(token, "A Union needs a member.")
            whole = union(types)
            # `Union(int, NoneType)` stays one, so that it is printed as it was.
            return whole if isinstance(whole, UnionType) else UnionType(tuple(types)), None, alias
        wanted = 2 if name == "Dict" else 1
        if len(types) != wanted:
            _fail_at(token, f"{name} takes {wanted} type{'s' * (wanted - 1)}, not {len(types)}.")
        if name == "Dict":
            return DictType(types[0], types[1]), None, alias
        return {"Future": FutureType, "Await": AwaitType, "RRef": RRefType}[name](types[0]), None, alias

    def _list_of(self, closing: str) -> list[Annotated]:
        """Parse types that are separated by commas, up to the closing bracket."""
        lexer = self.lexer
        parts: list[Annotated] = []
        while lexer.cur.kind != closing:
            parts.append(self.read_annotated())
            if lexer.next_if(",") is None:
                break
        lexer.expect(closing)
        return parts

    def _named_tuple(self) -> Type:
        lexer = self.lexer
        lexer.expect("(")
        names: list[str] = []
        types: list[Type] = []
        defaults: list[object] = []
        while lexer.cur.kind != ")":
            names.append(lexer.expect(IDENT).text)
            lexer.expect(":")
            types.append(self.read())
            if lexer.next_if("=") is not None:
                defaults.append(self._field_default(types[-1]))
            elif defaults:
                lexer.fail("A field without a default follows one that has a default.")
            if lexer.next_if(",") is None:
                break
        lexer.expect(")")
        return TupleType(tuple(types), None, tuple(names), tuple(defaults))

    def _field_default(self, type: Type) -> object:
        """Return the default of a NamedTuple's field: a number, a string, True, False or None; the text of anything
        else."""
        lexer = self.lexer
        start = lexer.cur.start
        depth = 0
        while depth or lexer.cur.kind not in (",", ")"):
            depth += (lexer.cur.kind in ("(", "[", "{")) - (lexer.cur.kind in (")", "]", "}"))
            lexer.next()
        if lexer.cur.start == start:
            lexer.fail(f"Expected the default of a field but found {lexer.cur}.")
        text = lexer.source.text[start : lexer.end]
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text[:1] == '"':
            return read_string(text)
        try:
            value = read_number(text)
        except ValueError:
            return OpaqueConstant(text)
        return float(value) if type == FLOAT and isinstance(value, int) else value

    # ------------------------------------------------------------------------------------------- names

    def _dotted(self, first: Token) -> str:
        lexer = self.lexer
        parts = [first.text]
        while lexer.next_if(".") is not None:
            parts.append(lexer.expect(IDENT).text)
        return ".".join(parts)

    def _named(self, token: Token) -> Type:
        name = self._dotted(token)
        if "." not in name and not name.startswith("__torch__"):
            if name[0].islower():
                return VarType(name)
            known = self._resolver(name) if self._resolver is not None else None
            if known is None:
                close = difflib.get_close_matches(name, ["Tensor", *_PLAIN, *_SPELLED, *_DTYPES, *_WITH_PARTS], 1)
                hint = f"Did you mean '{close[0]}'?" if close else None
                _fail_at(token, f"There is no type '{name}'.", hint)
            return known
        if name.startswith(LIBRARY_CLASSES):
            return custom_class(name)
        found = self._classes.get(name)
        if found is None:
            found = self._resolver(name) if self._resolver is not None else None
            found = self._classes[name] = ClassType(name) if found is None else found
        return found

    def _in_angles(self, kind: type[Type], make: Callable[[str], Type]) -> Type:
        """Parse ``<name>`` after Enum or InterfaceType, and return the type of that name."""
        lexer = self.lexer
        lexer.expect("<")
        name = self._dotted(lexer.expect(IDENT))
        lexer.expect(">")
        found = self._classes.get(name)
        if not isinstance(found, kind):
            known = self._resolver(name) if self._resolver is not None else None
            found = self._classes[name] = known if isinstance(known, kind) else make(name)
        return found

    # ------------------------------------------------------------------------------------ tensor facts

    def _size(self) -> int | None:
        lexer = self.lexer
        if lexer.next_if("*") is not None:
            return None
        sign = -1 if lexer.next_if("-") is not None else 1
        return sign * self._whole_number()

    def _whole_number(self) -> int:
        token = self.lexer.expect(NUMBER_TOKEN)
        if not token.text.isdecimal():
            _fail_at(token, f"Expected a whole number but found {token}.")
        return int(token.text)

    def _symbolic_size(self) -> None:
        lexer = self.lexer
        lexer.expect("(")
        self._size()
        lexer.expect(")")

    def _strides(self) -> tuple[int | None, ...]:
        lexer = self.lexer
        lexer.expect("=")
        lexer.expect("[")
        strides: list[int | None] = []
        while lexer.cur.kind != "]":
            strides.append(self._size())
            if lexer.next_if(",") is None:
                break
        lexer.expect("]")
        return tuple(strides)

    def _device(self) -> torch.device:
        lexer = self.lexer
        lexer.expect("=")
        word = lexer.expect(IDENT)
        name = word.text
        if lexer.next_if(":") is not None:
            name += ":" + lexer.expect(NUMBER_TOKEN).text
        try:
            return torch.device(name)
        except RuntimeError:
            _fail_at(word, f"There is no device '{name}'.")

    # ------------------------------------------------------------------------------------- annotations

    def _alias(self, within: AliasInfo | None) -> AliasInfo:
        """Parse an alias annotation such as ``(a! -> *)``. ``within`` has the annotations of the element types."""
        lexer = self.lexer
        lexer.expect("(")
        before = self._alias_sets()
        is_write = lexer.next_if("!") is not None
        after = before if lexer.next_if("->") is None else self._alias_sets()
        lexer.expect(")")
        return AliasInfo(before, after, is_write, () if within is None else within.contained)

    def _alias_sets(self) -> frozenset[str]:
        lexer = self.lexer
        names: list[str] = []
        while True:
            names.append(WILDCARD if lexer.next_if("*") is not None else lexer.expect(IDENT).text)
            if lexer.next_if("|") is None:
                return frozenset(names)

    def _list_alias(self, element: AliasInfo | None) -> AliasInfo | None:
        """Return the annotation of a list type whose brackets were just parsed. A write to an element counts as one to
        the list. None if neither has an annotation."""
        contained = () if element is None else (element,)
        if self._aliases and self.lexer.cur.kind == "(":
            alias = self._alias(None)
            return AliasInfo(alias.before, alias.after, alias.is_write, contained)
        return AliasInfo(is_write=element.is_write, contained=contained) if element is not None else None


def _alias_of_parts(parts: list[Annotated]) -> AliasInfo | None:
    """Return the annotation of a type whose element types have annotations: none of its own, but theirs; None if no
    element type has one."""
    if all(part.alias is None for part in parts):
        return None
    found = tuple(AliasInfo() if part.alias is None else part.alias for part in parts)
    return AliasInfo(is_write=any(alias.is_write for alias in found), contained=found)


def _fail_at(token: Token, message: str, hint: str | None = None) -> NoReturn:
    raise ParseError(message, token.range, hint=hint)


def parse_type(text: str, resolver: Resolver | None = None) -> Type:
    """Return the type that ``text`` spells as graphs do: ``Tensor``, ``int[]``, ``Dict(str, int)?``, ``Float(2, *,
    device=cpu)``.

    ``resolver`` returns the classes, enums and NamedTuples of qualified names.

    Raises:
        ParseError: ``text`` is not a type.
    """
    lexer = Lexer(Source(text), SCHEMA)
    type = TypeReader(lexer, resolver).read()
    if lexer.cur.kind != EOF:
        lexer.fail(f"Expected the end of the type but found {lexer.cur}.")
    return type
