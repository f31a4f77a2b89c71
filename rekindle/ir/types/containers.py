"""Types made of other types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Final

from rekindle.ir.types.base import COMPLEX, FLOAT, INT, NONE, NUMBER, IntType, NoneType, NumberType, Type, UnionBase


@dataclass(slots=True, frozen=True)
class ListType(Type):
    """A mutable list; its element type is invariant, because a list can be written to. Only what is known about Tensors
    may differ: a list of Tensors of known sizes is accepted as a ``List[Tensor]``.

    ``python`` names Python's class if that is not a list: a ``deque``, a ``tuple`` of data-dependent length, or a
    ``Size`` (``torch.Size``). Such a value is accepted wherever a list is expected: in the IR, and in archives, it is a
    list.
    """

    kind: ClassVar[str] = "ListType"
    element: Type
    python: str = ""

    def __str__(self) -> str:
        return f"{self.element}[]"

    @property
    def is_tuple(self) -> bool:
        """Whether the list is a tuple in Python."""
        return self.python in ("tuple", "Size")

    @property
    def is_deque(self) -> bool:
        return self.python.startswith("deque")

    @property
    def annotation(self) -> str:
        if self.is_tuple:
            return "torch.Size" if self.python == "Size" else f"Tuple[{self.element.annotation}, ...]"
        most = self.python.partition(":")[2]
        limit = f" of {most} at most" if most else ""
        return f"{'Deque' if self.is_deque else 'List'}[{self.element.annotation}]{limit}"

    @property
    def contained(self) -> tuple[Type, ...]:
        return (self.element,)

    def with_contained(self, contained: Sequence[Type]) -> Type:
        return ListType(contained[0], self.python)

    def accepts(self, other: Type) -> bool:
        return isinstance(other, ListType) and _same_but_refinement(self.element, other.element)


@dataclass(slots=True, frozen=True)
class DictType(Type):
    """A mutable dict that keeps the order of insertion.

    ``python`` names the Python class if that is not a dict: the elements of a ``set`` or a ``frozenset`` are the keys
    of a dict of bools; a ``defaultdict`` makes the zero of its values' type. Such a value is accepted wherever a dict
    is expected: in the IR, and in archives, it is a dict.
    """

    kind: ClassVar[str] = "DictType"
    key: Type
    value: Type
    python: str = ""

    @property
    def is_set(self) -> bool:
        return self.python in ("set", "frozenset")

    def __str__(self) -> str:
        return f"Dict({self.key}, {self.value})"

    @property
    def annotation(self) -> str:
        if self.is_set:
            return f"{'Set' if self.python == 'set' else 'FrozenSet'}[{self.key.annotation}]"
        if self.python == "Counter":
            return f"Counter[{self.key.annotation}]"
        return f"{_DICTS[self.python.partition(':')[0]]}[{self.key.annotation}, {self.value.annotation}]"

    @property
    def contained(self) -> tuple[Type, ...]:
        return (self.key, self.value)

    def with_contained(self, contained: Sequence[Type]) -> Type:
        return DictType(contained[0], contained[1], self.python)

    def accepts(self, other: Type) -> bool:
        return (
            isinstance(other, DictType)
            and _same_but_refinement(self.key, other.key)
            and _same_but_refinement(self.value, other.value)
        )


_DICTS: Final = {"": "Dict", "defaultdict": "DefaultDict", "OrderedDict": "OrderedDict", "Counter": "Counter"}


def _same_but_refinement(wide: Type, narrow: Type) -> bool:
    """Return whether the types are equal, except that a Tensor type in ``narrow`` may be more refined than the one at
    its position in ``wide``. Python classes of lists, dicts and ints are not compared."""
    if wide.kind == "TensorType":
        return narrow.is_subtype_of(wide)
    if wide.kind == "IntType":
        return narrow.kind == "IntType"
    if wide.kind != narrow.kind or len(wide.contained) != len(narrow.contained) or not wide.contained:
        return wide == narrow
    if isinstance(wide, TupleType) and isinstance(narrow, TupleType):
        if not (wide.is_class_of(narrow) and narrow.is_class_of(wide)):
            return False
    return all(_same_but_refinement(a, b) for a, b in zip(wide.contained, narrow.contained, strict=True))


@dataclass(slots=True, frozen=True)
class TupleType(Type):
    """A tuple of known length, or a NamedTuple, which has a name and names for its fields.

    A NamedTuple is a subtype of the tuple of its fields' types. ``defaults`` belong to the last fields, as in Python;
    ``python_class`` makes values that Python's user sees, where there is one. A NamedTuple without a name is any
    that has these fields, whatever its ``python_class``: where ``x.max(1)`` and ``x.min(1)`` join, and in a list that
    holds both, the class of a value is known only at run time.
    """

    kind: ClassVar[str] = "TupleType"
    elements: tuple[Type, ...]
    name: str | None = None
    fields: tuple[str, ...] | None = None
    defaults: tuple[object, ...] = field(default=(), compare=False)
    python_class: type | None = field(default=None, repr=False)

    def __str__(self) -> str:
        if self.fields is not None:
            body = ", ".join(f"{name} : {type}" for name, type in zip(self.fields, self.elements, strict=True))
            return f"NamedTuple({body})" if self.name is None else self.name
        return f"({', '.join(map(str, self.elements))})"

    @property
    def annotation(self) -> str:
        if self.name is not None:
            return self.name
        if not self.elements:
            return "Tuple[()]"
        return f"Tuple[{', '.join(element.annotation for element in self.elements)}]"

    @property
    def contained(self) -> tuple[Type, ...]:
        return self.elements

    def with_contained(self, contained: Sequence[Type]) -> Type:
        return TupleType(tuple(contained), self.name, self.fields, self.defaults, self.python_class)

    def is_class_of(self, other: TupleType) -> bool:
        """Return whether ``other`` is a NamedTuple of this class; if this one has no name, whether it has the same
        fields."""
        if self.name is None:
            return self.fields == other.fields
        return self.name == other.name and self.fields == other.fields and self.python_class is other.python_class

    def accepts(self, other: Type) -> bool:
        if not isinstance(other, TupleType) or len(self.elements) != len(other.elements):
            return False
        if self.fields is not None and not self.is_class_of(other):
            return False
        return all(b.is_subtype_of(a) for a, b in zip(self.elements, other.elements, strict=True))


@dataclass(slots=True, frozen=True)
class OptionalType(UnionBase):
    """A value of ``element``, or None. Made by :func:`optional`, which does not nest."""

    kind: ClassVar[str] = "OptionalType"
    element: Type
    is_optional = True

    def __str__(self) -> str:
        return f"{self.element}?"

    @property
    def annotation(self) -> str:
        return f"Optional[{self.element.annotation}]"

    @property
    def contained(self) -> tuple[Type, ...]:
        return (self.element,)

    def with_contained(self, contained: Sequence[Type]) -> Type:
        return optional(contained[0])

    def accepts(self, other: Type) -> bool:
        if isinstance(other, NoneType):
            return True
        if isinstance(other, OptionalType):
            return other.element.is_subtype_of(self.element)
        if isinstance(other, UnionType):
            return all(member.is_subtype_of(self) for member in other.members)
        return other.is_subtype_of(self.element)


@dataclass(slots=True, frozen=True, eq=False)
class UnionType(UnionBase):
    """A value of one of ``members``. Made by :func:`union`, which removes members that others cover."""

    kind: ClassVar[str] = "UnionType"
    members: tuple[Type, ...]

    def __str__(self) -> str:
        return f"Union({', '.join(map(str, self.members))})"

    @property
    def annotation(self) -> str:
        return f"Union[{', '.join(member.annotation for member in self.members)}]"

    @property
    def contained(self) -> tuple[Type, ...]:
        return self.members

    def with_contained(self, contained: Sequence[Type]) -> Type:
        return union(contained)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnionType) and set(self.members) == set(other.members)

    def __hash__(self) -> int:
        return hash(frozenset(self.members))

    def accepts(self, other: Type) -> bool:
        if isinstance(other, UnionBase):
            parts = union_members(other)
            return all(any(part.is_subtype_of(member) for member in self.members) for part in parts)
        if isinstance(other, NumberType) and all(number in self.members for number in _NUMBERS):
            return True
        return any(other.is_subtype_of(member) for member in self.members)

    @property
    def is_optional(self) -> bool:
        return NONE in self.members


@dataclass(slots=True, frozen=True)
class FutureType(Type):
    """A future: what ``fork`` returns. ``wait`` returns its result, of type ``element``."""

    kind: ClassVar[str] = "FutureType"
    element: Type

    def __str__(self) -> str:
        return f"Future({self.element})"

    @property
    def annotation(self) -> str:
        return f"Future[{self.element.annotation}]"

    @property
    def contained(self) -> tuple[Type, ...]:
        return (self.element,)

    def with_contained(self, contained: Sequence[Type]) -> Type:
        return FutureType(contained[0])

    def accepts(self, other: Type) -> bool:
        return isinstance(other, FutureType) and other.element.is_subtype_of(self.element)


@dataclass(slots=True, frozen=True)
class AwaitType(Type):
    """A result that is computed when it is first needed."""

    kind: ClassVar[str] = "AwaitType"
    element: Type

    def __str__(self) -> str:
        return f"Await({self.element})"

    @property
    def annotation(self) -> str:
        return f"Await[{self.element.annotation}]"

    @property
    def contained(self) -> tuple[Type, ...]:
        return (self.element,)

    def with_contained(self, contained: Sequence[Type]) -> Type:
        return AwaitType(contained[0])

    def accepts(self, other: Type) -> bool:
        return isinstance(other, AwaitType) and other.element.is_subtype_of(self.element)


@dataclass(slots=True, frozen=True)
class RRefType(Type):
    """A remote reference. The type only exists so that archives that mention it can be read."""

    kind: ClassVar[str] = "RRefType"
    element: Type

    def __str__(self) -> str:
        return f"RRef({self.element})"

    @property
    def annotation(self) -> str:
        return f"RRef[{self.element.annotation}]"

    @property
    def contained(self) -> tuple[Type, ...]:
        return (self.element,)

    def with_contained(self, contained: Sequence[Type]) -> Type:
        return RRefType(contained[0])


def optional(element: Type) -> Type:
    """Return the Optional of ``element``, for a Union the Union with None; ``element`` itself if it is an Optional or
    another type that admits None. For NoneType, an Optional of it is returned."""
    if element.is_optional and not isinstance(element, NoneType):
        return element
    if isinstance(element, UnionType):
        return union((*element.members, NONE))
    return OptionalType(element)


def union_members(type: Type) -> tuple[Type, ...]:
    """Return the members of a Union; of an Optional its element and None; else the type alone."""
    if isinstance(type, UnionType):
        return type.members
    if isinstance(type, OptionalType):
        return (*union_members(type.element), NONE)
    return (type,)


def open_tuple_in(type: Type) -> ListType | None:
    """Return the only member of a Union that is a tuple of variable length; None if there is not exactly one."""
    found = [m for m in type.contained if isinstance(m, ListType) and m.is_tuple] if isinstance(type, UnionType) else []
    return found[0] if len(found) == 1 else None


def union(members: Iterable[Type]) -> Type:
    """Return the union of ``members``: flattened, without members that another one covers, in TorchScript's order.

    One member stays itself, one member and None become Optional; int, float and complex together are a Scalar.
    """
    flat = [part for member in members for part in union_members(member)]
    kept: list[Type] = []
    for part in flat:
        if any(_covers(other, part) for other in kept):
            continue
        kept = [other for other in kept if not _covers(part, other)]
        kept.append(part)
    if all(number in kept for number in _NUMBERS):
        kept = [NUMBER, *(part for part in kept if part not in _NUMBERS)]
    if len(kept) == 1:
        return kept[0]
    if len(kept) == 2 and NONE in kept:
        return optional(kept[0] if kept[1] == NONE else kept[1])
    return UnionType(tuple(sorted(kept, key=_rank)))


def _covers(wide: Type, narrow: Type) -> bool:
    return narrow.is_subtype_of(wide) and not are_apart_in_python(wide, narrow)


def are_apart_in_python(a: Type, b: Type) -> bool:
    """Return whether values of the two types, or parts of them, have different classes in Python that their join in the
    IR would not distinguish: a set, a frozenset or a deque, and another list or dict. Return False for a Union of
    several types besides None."""
    if a == b or not a.contained or not b.contained:
        return False
    if isinstance(a, UnionBase) or isinstance(b, UnionBase):
        return are_apart_in_python(without_none(a), without_none(b)) if a.is_optional or b.is_optional else False
    if isinstance(a, ListType) and isinstance(b, ListType) and a.is_deque != b.is_deque:
        return True
    if isinstance(a, DictType) and isinstance(b, DictType) and a.python != b.python and (a.is_set or b.is_set):
        return True
    if a.kind != b.kind or len(a.contained) != len(b.contained):
        return False
    return any(are_apart_in_python(one, other) for one, other in zip(a.contained, b.contained, strict=True))


_NUMBERS = (INT, FLOAT, COMPLEX)

_ORDER = (
    *("AnyEnumType", "EnumType", "TensorType", "StorageType", "TupleType", "ListType", "DictType", "NumberType"),
    *("FloatType", "ComplexType", "FutureType", "AwaitType", "RRefType", "IntType", "NoneType", "StringType"),
    *("GeneratorType", "BoolType", "VarType", "DeviceObjType", "StreamObjType", "FunctionType", "ClassType"),
    *("CapsuleType", "InterfaceType", "QSchemeType", "AnyClassType"),
)


def _rank(member: Type) -> tuple[int, str]:
    """Return the sort key of a member in its union: as in TorchScript, by its kind, then by its text."""
    return (_ORDER.index(member.kind) if member.kind in _ORDER else len(_ORDER), str(member))


def without_none(type: Type) -> Type:
    """Return the type of the values of an Optional or a Union that are not None; other types unchanged."""
    if isinstance(type, OptionalType):
        return type.element
    if isinstance(type, UnionType):
        return union(member for member in type.members if member != NONE)
    return type


def is_open_named_tuple(type: Type) -> bool:
    """Return whether only the fields of a NamedTuple are known, and its class only at run time, since several operators
    may have returned it."""
    return isinstance(type, TupleType) and type.fields is not None and type.name is None


@cache
def differs_in_python(type: Type) -> bool:
    """Return whether values of the type, or values in them, have another class in Python than in the IR: NamedTuples,
    sets."""
    is_named = isinstance(type, TupleType) and type.fields is not None
    is_other = isinstance(type, (ListType, DictType)) and type.python != ""
    is_no_int = isinstance(type, IntType) and type.python_name != ""
    return is_named or is_other or is_no_int or any(map(differs_in_python, type.contained))
