"""What a function or an operator takes and returns, and how that aliases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rekindle.ir.types import Type


class Missing:
    """The default of an argument that has none."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

WILDCARD = "*"


@dataclass(slots=True, frozen=True)
class AliasInfo:
    """An alias annotation: ``(a!)``, ``(a -> *)``, ``(a|b)``.

    ``before`` and ``after`` are the alias sets that the value belongs to before and after the call, ``is_write`` is the ``!``.
    ``contained`` holds the annotation of elements: ``Tensor(a)[]`` has one on its element only.
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
        text = "|".join(sorted(self.before))
        if self.is_write:
            text += "!"
        if self.after != self.before:
            text += " -> " + "|".join(sorted(self.after))
        return f"({text})"


@dataclass(slots=True, frozen=True)
class Argument:
    """A parameter or a result.

    ``size`` is the 2 of ``int[2]``: one int stands for a list of that length. ``spelling`` is the type as the schema writes it where
    that says more than ``type`` does (``ScalarType``, ``MemoryFormat``, ``Layout`` and ``SymInt`` are ints here).
    """

    name: str
    type: Type
    default: object = MISSING
    kwarg_only: bool = False
    alias: AliasInfo | None = None
    size: int | None = None
    spelling: str | None = None

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.alias is not None and self.alias.is_write


@dataclass(slots=True, frozen=True)
class FunctionSchema:
    """``name.overload(arguments) -> returns``. ``is_vararg`` and ``is_varret`` stand for ``...`` in either place."""

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
        """``aten::add.Tensor``"""
        return f"{self.name}.{self.overload}" if self.overload else self.name

    def argument_index(self, name: str) -> int | None:
        return self._index.get(name)

    @property
    def is_mutable(self) -> bool:
        """Whether a call writes to one of its arguments."""
        return any(argument.alias is not None and argument.alias.is_write for argument in self.arguments)

    def can_stand_for(self, other: FunctionSchema, *, as_method: bool = True) -> bool:
        """Whether a function with this schema can be called wherever one with ``other`` is expected."""
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
        returns = [_format_argument(result) for result in self.returns]
        if self.is_varret:
            returns.append("...")
        single = len(returns) == 1 and not self.is_varret and " " not in _strip_type(returns[0])
        result = returns[0] if single and not self.returns[0].name else f"({', '.join(returns)})"
        return f"{self.qualified_name}({', '.join(parts)}) -> {result}"


def _strip_type(text: str) -> str:
    return text if text.startswith("(") else ""


def _format_argument(argument: Argument) -> str:
    text = _format_type(argument)
    if argument.name:
        text += f" {argument.name}"
    if argument.has_default:
        text += f"={_format_default(argument.default)}"
    return text


def _format_type(argument: Argument) -> str:
    """The type with its alias annotation: ``Tensor(a!)``, ``Tensor(a)[]``, ``int[2]``."""
    text = argument.spelling or str(argument.type)
    alias = argument.alias
    if argument.size is not None:
        text = text.replace("[]", f"[{argument.size}]", 1)
    if alias is None:
        return text
    # An annotation stands behind the element type that it belongs to: in front of the suffixes [] and ?.
    cut = len(text)
    while text[:cut].endswith(("[]", "?")):
        cut -= 2 if text[:cut].endswith("[]") else 1
    inner, suffix = text[:cut], text[cut:]
    element = str(alias.contained[0]) if alias.contained else ""
    if "[]" in suffix:
        head, tail = suffix.split("[]", 1)
        return f"{inner}{element}{head}[]{alias}{tail}" if element or head else f"{inner}{element}[]{alias}{tail}"
    return f"{inner}{alias}{suffix}"


def _format_default(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_format_default, value))}]"
    return repr(value)
