"""Values of the symbolic interpreter.

=====================================  ===============================================================================
Tensor                                 a FakeTensor that PyTorch's tracer follows
int, float, bool                       Python's, or a SymInt, SymFloat, SymBool, or a :class:`UnbackedScalar` one
str, None, devices, enums, tuples      Python's, as when the program runs
List, Dict                             Python's own, which the program may change
module, object of a class              an :class:`SymbolicObject`, whose slots the program may change
Future                                 a :class:`CompletedFuture` one
=====================================  ===============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

import torch
from torch import SymBool, SymFloat, SymInt, Tensor
from torch.fx.experimental.symbolic_shapes import statically_known_true

from rekindle.ir.types import ClassType

NumberKind = Literal["int", "float", "bool", "rows"]
"""Kinds of unbacked values. "rows" is not a number: in a list, it represents one tensor for each row of its tensor."""

DTYPE_OF_KIND: Final[dict[str, torch.dtype]] = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}


@dataclass(slots=True, eq=False)
class UnbackedScalar:
    """A number that is known only when the exported program runs: the element of a tensor without dimensions. It is
    converted to a SymInt, SymFloat or SymBool if an operator needs a number; conditions and carried values remain
    tensors."""

    kind: NumberKind
    tensor: Tensor
    limit: Any = None
    """For a non-negative int: an exclusive upper bound, or -1 if unknown. For rows that a loop still appends to: -2."""
    symbol: Callable[[], Any] | None = None
    """Function that computes the number from the symbols of other scalars, such as their sum, so that PyTorch knows how
    sizes that depend on it are related. None if the number is read from the tensor."""
    is_copy: bool = False
    """Whether the scalar is a copy, within a branch or a loop, of an earlier one. Its number is read again there, from
    a clone of the tensor."""
    _number: Any = None

    @property
    def number(self) -> Any:
        """The number as a symbol. The exported program reads it from the tensor, or computes it from other such
        numbers; it asserts that a number with a ``limit`` is not negative, and below the limit if that is above 0."""
        if self._number is None:
            self._number = number = self._read() if self.symbol is None else self.symbol()
            if self.limit is not None:
                torch._check(number >= 0)
                # What is checked within a branch or a loop PyTorch takes for true outside too: that a limit is above 0
                # must not be learnt from that.
                if statically_known_true(self.limit > 0):
                    torch._check(number < self.limit)
        return self._number

    def _read(self) -> Any:
        tensor: Tensor = torch.ops.aten.clone.default(self.tensor) if self.is_copy else self.tensor
        return tensor.item()


@dataclass(slots=True, eq=False)
class SymbolicObject:
    """A module, or an object of a script class, with its attributes by name. ``path`` is the path of the module; None
    for other objects."""

    type: ClassType
    slots: dict[str, Any] = field(default_factory=dict)
    path: str | None = None
    python_class: Any = None

    @property
    def script_type(self) -> ClassType:
        """The type with which type tests of the object compare."""
        return self.type


@dataclass(slots=True, frozen=True)
class CompletedFuture:
    """A future whose value is known, because exported programs run sequentially."""

    value: Any


class _Unset:
    """Placeholder of a variable on paths that never read it."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()

UNKNOWN_TEXT: Final = "the program computes with or returns a text of a number that is not known when it is exported"
KNOWN_TEXT: Final = "return the number, and make the text of it outside of the exported program"


class UnknownText(str):
    """A text of numbers that are not known at export time: it shows the names of symbols instead. It may be the message
    of an error that the program raises."""

    __slots__ = ()


def holds_unknown(value: Any) -> bool:
    """Return whether ``value`` is or contains a number or a text that is not known at export time."""
    if isinstance(value, (list, tuple)):
        return any(map(holds_unknown, value))
    return isinstance(value, (UnbackedScalar, UnknownText, *SYMBOLS))


def holds_unknown_text(value: Any) -> bool:
    """Return whether ``value`` is or contains a text of numbers that are not known at export time."""
    if isinstance(value, (list, tuple)):
        return any(map(holds_unknown_text, value))
    return isinstance(value, UnknownText)


SYMBOLS: Final = (SymInt, SymFloat, SymBool)

LeafKey: TypeAlias = "tuple[str, Any]"


def leaf_key(value: Any) -> LeafKey | None:
    """Return the identity of a leaf (a tensor or a symbol) as a key; None for other values."""
    if isinstance(value, Tensor):
        return ("tensor", id(value))
    if isinstance(value, SYMBOLS):
        return (type(value).__name__, value.node.expr)
    return None


def key_of(leaf: Any) -> LeafKey:
    """Return :func:`leaf_key` of a value known to be a leaf."""
    key = leaf_key(leaf)
    assert key is not None
    return key


def kind_of(value: Any) -> NumberKind | None:
    """Return the kind of a number, known or not; None for other values."""
    if isinstance(value, UnbackedScalar):
        return value.kind
    if isinstance(value, (bool, SymBool)):
        return "bool"
    if isinstance(value, (int, SymInt)):
        return "int"
    if isinstance(value, (float, SymFloat)):
        return "float"
    return None


def is_rows(value: Any) -> bool:
    """Return whether ``value`` stands for a data-dependent number of elements of a list."""
    return isinstance(value, UnbackedScalar) and value.kind == "rows"


def has_rows(value: Any) -> bool:
    """Return whether ``value`` is a list of data-dependent length."""
    return isinstance(value, list) and any(is_rows(item) for item in value)


def is_known(value: Any) -> bool:
    """Return whether the value of a number is known during the export."""
    return not isinstance(value, (UnbackedScalar, *SYMBOLS))


def is_same_number(a: Any, b: Any) -> bool:
    """Return whether two known numbers of one kind are the same: NaN is the same as NaN, and 0.0 is not -0.0."""
    if isinstance(a, float) and isinstance(b, float):
        return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)
    return bool(a == b)


def number_as_tensor(value: Any) -> Tensor:
    """Return a number as a tensor without dimensions, of the dtype of its kind."""
    if isinstance(value, UnbackedScalar):
        return value.tensor
    kind = kind_of(value)
    assert kind is not None
    return full(value, DTYPE_OF_KIND[kind])


def full(value: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Return a tensor without dimensions on the CPU that holds ``value``. ``torch.tensor`` is not used: the
    tracer would treat its result as a constant, which nested graphs cannot hold."""
    made: Tensor = torch.ops.aten.full.default([], value, dtype=dtype, device=torch.device("cpu"))
    return made


def with_symbols(value: Any) -> Any:
    """Return an unbacked scalar as a symbol, which operators accept; a copy of a list or tuple that has unbacked items,
    with each item converted likewise. Other values are returned unchanged, also a list with unbacked scalars only in
    nested lists."""
    if isinstance(value, UnbackedScalar):
        return value.number
    if isinstance(value, list) and any(isinstance(item, UnbackedScalar) for item in value):
        return [with_symbols(item) for item in value]
    if isinstance(value, tuple) and any(isinstance(item, UnbackedScalar) for item in value):
        return tuple(with_symbols(item) for item in value)
    return value


class StateCopier:
    """Copier of values with all mutable containers in them, which replaces leaves (tensors and symbols) by
    ``replacements``. A container that occurs several times is copied once: ``copies`` has the original and its copy by
    the id of the original."""

    def __init__(self, replacements: Mapping[LeafKey, Any]) -> None:
        self.replacements = replacements
        self.copies: dict[int, tuple[Any, Any]] = {}
        self.originals: dict[int, Any] = {}
        """The original of each copy, by the id of the copy."""

    def copy(self, value: Any) -> Any:
        """Return the copy of ``value``: containers are new, leaves are replaced or the same."""
        key = leaf_key(value)
        if key is not None:
            return self.replacements.get(key, value)
        if isinstance(value, UnbackedScalar):
            limit = -1 if isinstance(value.limit, SymInt) else value.limit
            return UnbackedScalar(value.kind, self.copy(value.tensor), limit, is_copy=True)
        if isinstance(value, CompletedFuture):
            return CompletedFuture(self.copy(value.value))
        if isinstance(value, tuple):
            return with_items(value, [self.copy(item) for item in value])
        if isinstance(value, (list, dict, SymbolicObject)):
            known = self.copies.get(id(value))
            return self._container(value) if known is None else known[1]
        return value

    def _note(self, value: Any, new: Any) -> None:
        self.copies[id(value)] = (value, new)
        self.originals[id(new)] = value

    def _container(self, value: Any) -> Any:
        if isinstance(value, list):
            new: Any = []
            self._note(value, new)
            new.extend(self.copy(item) for item in value)
        elif isinstance(value, dict):
            new = {}
            self._note(value, new)
            new.update((key, self.copy(item)) for key, item in value.items())
        else:
            new = SymbolicObject(value.type, {}, value.path, value.python_class)
            self._note(value, new)
            new.slots.update((name, self.copy(item)) for name, item in value.slots.items())
        return new


def with_items(value: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    """Return a tuple like ``value`` with other items, of the same class if it is a NamedTuple."""
    if type(value) is tuple:
        return tuple(items)
    make: Callable[..., tuple[Any, ...]] = type(value)
    if hasattr(value, "_fields"):
        return make(*items)
    return make(items)


def parts(value: Any) -> list[Any]:
    """Return the elements of a container in order, of a dict the values; empty for a leaf."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, SymbolicObject):
        return list(value.slots.values())
    if isinstance(value, UnbackedScalar):
        return [value.tensor]
    if isinstance(value, CompletedFuture):
        return [value.value]
    return []


def leaves(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Yield all tensors and symbols in ``value``, including those of unbacked scalars. Each container is visited
    once; those whose ids are in ``seen`` not at all, and the others are added to it."""
    seen = set() if seen is None else seen
    if leaf_key(value) is not None:
        yield value
        return
    if isinstance(value, (list, dict, SymbolicObject)):
        if id(value) in seen:
            return
        seen.add(id(value))
    for part in parts(value):
        yield from leaves(part, seen)
