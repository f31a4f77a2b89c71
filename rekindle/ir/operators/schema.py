"""Schemas: the arguments and results of a function or an operator, and their aliasing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rekindle.ir.text.literals import format_complex, format_schema_float, format_string
from rekindle.ir.types.base import Type
from rekindle.ir.types.containers import ListType, OptionalType


class Missing:
    """Marker: the parameter has no default."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

WILDCARD = "*"


@dataclass(slots=True, frozen=True)
class AliasInfo:
    """An alias annotation: ``(a!)``, ``(a -> *)``, ``(a|b)``.

    ``before`` and ``after`` are the alias sets that the value belongs to before and after the call, ``is_write`` is
    the ``!``. ``contained`` holds the annotation of elements: ``Tensor(a)[]`` has one on its element only.
    """

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    is_write: bool = False
    contained: tuple[AliasInfo, ...] = ()

    @property
    def is_wildcard(self) -> bool:
        return WILDCARD in self.before or WILDCARD in self.after

    def __str__(self) -> str:
        if not self.before and not self.after:
            return ""
        text = _format_sets(self.before)
        if self.is_write:
            text += "!"
        if self.after != self.before:
            text += f" -> {_format_sets(self.after)}"
        return f"({text})"


def _format_sets(names: frozenset[str]) -> str:
    # The last name comes first, as in PyTorch's own texts: ``Tensor(b|a)``.
    return "|".join(sorted(names, key=lambda name: (name == WILDCARD, name), reverse=True))


@dataclass(slots=True, frozen=True)
class Argument:
    """A parameter or a result.

    ``size`` is the 2 of ``int[2]``: one int stands for a list of that length. ``spelling`` is the type as the schema
    writes it where that says more than ``type`` does (``ScalarType``, ``MemoryFormat``, ``Layout`` and ``SymInt`` are
    ints here), without its alias annotation and size; ``default_spelling`` the default, where the schema names a
    number (``contiguous_format``, ``long``) or gives one for a whole list. ``assumed`` is True where nothing declares
    the type, so that it was assumed to be a Tensor.
    """

    name: str
    type: Type
    default: object = field(default=MISSING, hash=False)
    kwarg_only: bool = False
    alias: AliasInfo | None = None
    size: int | None = None
    spelling: str | None = field(default=None, compare=False)
    default_spelling: str | None = field(default=None, compare=False)
    assumed: bool = field(default=False, compare=False)

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.alias is not None and self.alias.is_write


@dataclass(slots=True, frozen=True)
class FunctionSchema:
    """``name.overload(arguments) -> returns``. ``is_vararg`` and ``is_varret`` represent ``...`` in the arguments and
    the returns."""

    name: str
    overload: str = ""
    arguments: tuple[Argument, ...] = ()
    returns: tuple[Argument, ...] = ()
    is_vararg: bool = False
    is_varret: bool = False
    _index: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._index.update((argument.name, i) for i, argument in enumerate(self.arguments))

    @property
    def qualified_name(self) -> str:
        """The name with the overload, such as ``aten::add.Tensor``."""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def argument_index(self, name: str) -> int | None:
        return self._index.get(name)

    @property
    def is_mutable(self) -> bool:
        """Whether a call writes to one of its arguments."""
        return any(argument.alias is not None and argument.alias.is_write for argument in self.arguments)

    @property
    def bound(self) -> FunctionSchema:
        """The schema of a method without the first parameter, the object."""
        return FunctionSchema(self.name, self.overload, self.arguments[1:], self.returns)

    def can_stand_for(self, other: FunctionSchema, *, as_method: bool = True) -> bool:
        """Return whether a function with this schema can be called wherever one with ``other`` is expected: names and
        types fit. Defaults are not compared. With ``as_method``, the first parameter of both, the object, is not
        compared either."""
        first = 1 if as_method else 0
        mine, theirs = self.arguments[first:], other.arguments[first:]
        if len(mine) != len(theirs) or len(self.returns) != len(other.returns):
            return False
        return all(
            a.name == b.name and b.type.is_subtype_of(a.type) for a, b in zip(mine, theirs, strict=True)
        ) and all(a.type.is_subtype_of(b.type) for a, b in zip(self.returns, other.returns, strict=True))

    def __str__(self) -> str:
        parts: list[str] = []
        in_keywords = False
        for argument in self.arguments:
            if argument.kwarg_only and not in_keywords:
                in_keywords = True
                parts.append("*")
            parts.append(_format_argument(argument))
        if self.is_vararg:
            parts.append("...")
        return f"{self.qualified_name}({', '.join(parts)}) -> {self._format_returns()}"

    def _format_returns(self) -> str:
        if self.is_varret and not self.returns:
            return "..."
        parts = [_format_argument(result) for result in self.returns]
        if self.is_varret:
            parts.append("...")
        # One result needs no parentheses, unless it begins with its own: those would read as several results.
        if len(parts) == 1 and not parts[0].startswith("("):
            return parts[0]
        return f"({', '.join(parts)})"


def _format_argument(argument: Argument) -> str:
    text = _annotate(argument.type, argument.spelling or str(argument.type), argument.alias, argument.size)
    if argument.name:
        text += f" {argument.name}"
    if argument.has_default:
        text += f"={argument.default_spelling or _format_default(argument.default)}"
    return text


def _annotate(type: Type, text: str, alias: AliasInfo | None, size: int | None) -> str:
    """Return ``text``, the text of ``type``, with alias annotation and size: ``Tensor(a!)?``, ``Tensor(a)[]``,
    ``int[2]``."""
    if alias is None and size is None:
        return text
    if isinstance(type, OptionalType) and text.endswith("?"):
        return _annotate(type.element, text[:-1], alias, size) + "?"
    parts = () if alias is None else alias.contained
    if isinstance(type, ListType) and text.endswith("[]"):
        element = _annotate(type.element, text[:-2], parts[0] if parts else None, None)
        text = f"{element}[{'' if size is None else size}]"
    elif parts:
        pairs = zip(type.contained, parts, strict=True)
        text = str(type.with_contained([_Annotated(_annotate(part, str(part), info, None)) for part, info in pairs]))
    return text if alias is None else f"{text}{alias}"


class _Annotated(Type):
    """Wraps a part of a type whose text includes its alias annotation."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


def _format_default(value: object) -> str:
    if isinstance(value, str):
        return format_string(value)
    if isinstance(value, float):
        return format_schema_float(value)
    if isinstance(value, complex):
        return format_complex(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_default, value))}]"
    return str(value)
