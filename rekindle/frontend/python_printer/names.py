"""Names of variables and of types in printed text."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from rekindle.ir.types import (
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    FutureType,
    InterfaceType,
    IntType,
    ListType,
    OptionalType,
    RRefType,
    TupleType,
    Type,
    UnionType,
)

NamedType: TypeAlias = "ClassType | InterfaceType | EnumType | TupleType | FunctionType"
"""Types that have a definition in an archive. A TupleType is one if it has a name."""

TypeNames = Callable[[NamedType], str]
"""Function that returns the name of a named type in the text."""

_RESERVED: Final = frozenset(
    {
        # Names that readers of archives reserve; ``_`` would look like an unused value.
        *("_", "as", "aten", "attribute", "CONSTANTS", "fork", "getattr", "inf", "nan", "infj", "nanj", "ops"),
        *("__torch__", "uninitialized", "unchecked_cast"),
        # Names of functions and modules that the text itself uses: a variable would hide them.
        *("torch", "int", "float", "complex", "bool", "range", "print", "annotate", "isinstance", "NoneType"),
        *keyword.kwlist,
    }
)

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NOT_IN_IDENTIFIERS = re.compile(r"[^A-Za-z0-9_]")


def is_identifier(name: str) -> bool:
    """Return whether ``name`` consists of ASCII letters, digits and underscores, as an identifier does. It may be a
    keyword of Python."""
    return _IDENTIFIER.fullmatch(name) is not None


def as_identifier(name: str) -> str:
    """Return ``name`` with each character that identifiers exclude replaced by an underscore, and with an underscore in
    front if it is empty or begins with a digit."""
    text = _NOT_IN_IDENTIFIERS.sub("_", name)
    return f"_{text}" if not text or text[0].isdigit() else text


class Names:
    """The names in use in one function. The numeric suffixes of new names continue from function to function."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: Counter[str] = Counter()

    def forget(self) -> None:
        """Free all names, so that the next function can use them."""
        self._used.clear()

    def fresh(self, candidate: str) -> str:
        """Reserve and return ``candidate``, or ``candidateN`` if it is in use: N continues from earlier calls."""
        name = candidate
        while name in self._used or name in _RESERVED:
            name = f"{candidate}{self._next[candidate]}"
            self._next[candidate] += 1
        self._used.add(name)
        return name


def as_named(type: Type) -> NamedType | None:
    """Return ``type`` if it has a definition of its own, such as a class; else None."""
    if isinstance(type, (ClassType, InterfaceType, EnumType, FunctionType)):
        return type
    return type if isinstance(type, TupleType) and type.name is not None else None


def qualified_name(type: NamedType) -> str:
    """Return the qualified name of a type in this process, before it is renamed for an archive."""
    if isinstance(type, FunctionType):
        return type.function.name
    assert type.name is not None
    return type.name


def named_types_in(type: Type) -> Iterator[NamedType]:
    """Yield the named types that occur in ``type``; if it is one itself, only this. The types of a NamedTuple's fields
    are thus excluded: they belong to its definition."""
    named = as_named(type)
    if named is not None:
        yield named
        return
    for part in type.contained:
        yield from named_types_in(part)


def spell(type: Type, name_of: TypeNames) -> str:
    """Return ``type`` as source text, with the names that ``name_of`` gives to named types:
    ``Optional[List[__torch__.m.Net]]``."""
    named = as_named(type)
    if named is not None:
        return name_of(named)
    generic = _GENERIC.get(type.kind)
    if generic is None or not type.contained:
        return str(type) if isinstance(type, IntType) else type.annotation
    return f"{generic}[{', '.join(spell(part, name_of) for part in type.contained)}]"


_GENERIC: Final = {
    ListType.kind: "List",
    DictType.kind: "Dict",
    TupleType.kind: "Tuple",
    OptionalType.kind: "Optional",
    UnionType.kind: "Union",
    FutureType.kind: "Future",
    AwaitType.kind: "Await",
    RRefType.kind: "RRef",
}
