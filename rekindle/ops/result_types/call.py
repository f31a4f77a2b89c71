"""One call of an operator, as its rule sees it: facts about the arguments, by their names in the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.scalar_types import DTYPES
from rekindle.ir.types import TENSOR, ListType, OptionalType, TensorType
from rekindle.ops.result_types.facts import Constant, Every, Fact, Unknown

Sizes = tuple[int | None, ...]


@dataclass(slots=False, frozen=True)
class Call:
    """A call for which result types are inferred: what is known about each argument of ``schema``. The default dtype
    and device are None if unknown. Names that the schema lacks read as None, since rules serve all overloads of a kind.
    """

    schema: FunctionSchema
    arguments: Sequence[Fact]
    default_dtype: torch.dtype | None
    default_device: torch.device | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def facts(self) -> dict[str, Fact]:
        """Facts by argument name."""
        named = self.schema.arguments
        return {argument.name: fact for argument, fact in zip(named, self.arguments, strict=False)}

    def has(self, name: str) -> bool:
        """Return whether the overload has the argument ``name``."""
        return self.schema.argument_index(name) is not None

    def fact(self, name: str) -> Fact:
        """Return what is known about the argument ``name``; Constant(None) if the overload has no such argument."""
        return self.facts[name] if self.has(name) else Constant(None)

    def tensor(self, name: str) -> TensorType:
        """Return the type of a tensor argument; the type of any tensor if nothing is known."""
        fact = self.fact(name)
        return fact if isinstance(fact, TensorType) else TENSOR

    @property
    def first(self) -> TensorType:
        """The type of the first argument."""
        fact = self.arguments[0] if self.arguments else None
        return fact if isinstance(fact, TensorType) else TENSOR

    def is_none(self, name: str) -> bool | None:
        """Return whether the argument is None; None if that is not known."""
        fact = self.fact(name)
        if isinstance(fact, Constant):
            return fact.value is None
        return False if fact is not None else None

    def is_known(self, name: str) -> bool:
        """Return whether the argument is a known Python value, None included."""
        return isinstance(self.fact(name), Constant)

    def value(self, name: str) -> Any:
        """Return the known Python value of an argument; None if it is not known, or is None."""
        fact = self.fact(name)
        return fact.value if isinstance(fact, Constant) else None

    def int(self, name: str) -> int | None:
        """Return the argument ``name`` if it is a known int, or a known bool as an int; None otherwise."""
        found = self.value(name)
        return int(found) if isinstance(found, int) else None

    def flag(self, name: str) -> bool | None:
        """Return the argument ``name`` as a bool if it is a known bool or int; None otherwise."""
        found = self.value(name)
        return bool(found) if isinstance(found, (bool, int)) else None

    def ints(self, name: str) -> Sizes | None:
        """Return the ints of a list, None for each that is not known; None if the length is not known. A single int
        counts as a list of one."""
        fact = self.fact(name)
        if isinstance(fact, tuple):
            return tuple(_known_int(item) for item in fact)
        if isinstance(fact, Constant) and isinstance(fact.value, (list, tuple)):
            return tuple(item if isinstance(item, int) else None for item in fact.value)
        number = _known_int(fact)
        return None if number is None else (number,)

    def items(self, name: str) -> Sequence[Fact] | None:
        """Return facts about the items of a list; None if the length is not known."""
        fact = self.fact(name)
        if isinstance(fact, tuple):
            return fact
        values = fact.value if isinstance(fact, Constant) else None
        return [Constant(item) for item in values] if isinstance(values, (list, tuple)) else None

    def list_of_tensors(self, name: str) -> Sequence[TensorType] | None:
        """Return the types of the tensors in a list; None if the length is not known."""
        items = self.items(name)
        return None if items is None else [item if isinstance(item, TensorType) else TENSOR for item in items]

    def dtype(self, name: str = "dtype") -> torch.dtype | None:
        """Return the dtype that an argument names; None if it is None, unknown or not a dtype."""
        number = self.int(name)
        return DTYPES[number] if number is not None and 0 <= number < len(DTYPES) else None

    @cached_property
    def tensors(self) -> Sequence[TensorType]:
        """The types of all tensors among the arguments, including items of lists, without those to which results are
        written. An argument that may be a tensor counts as an unknown one."""
        found: list[TensorType] = []
        for argument, fact in zip(self.schema.arguments, self.arguments, strict=False):
            if not argument.is_out and _may_hold_tensor(argument.type):
                found += _tensors_in(fact)
        for fact in self.arguments[len(self.schema.arguments) :]:
            found += _tensors_in(fact)
        return found


def _may_hold_tensor(type: Any) -> bool:
    if isinstance(type, (ListType, OptionalType)):
        return _may_hold_tensor(type.element)
    return type is None or isinstance(type, TensorType) or type.kind in ("VarType", "AnyType")


def _tensors_in(fact: Fact) -> Iterator[TensorType]:
    if isinstance(fact, TensorType):
        yield fact
    elif isinstance(fact, tuple):
        for item in fact:
            yield from _tensors_in(item)
    elif isinstance(fact, Every):
        yield from _tensors_in(fact.item)
    elif fact is None:
        yield TENSOR


def _known_int(fact: Fact) -> int | None:
    return fact.value if isinstance(fact, Constant) and isinstance(fact.value, int) else None


def number_kind(fact: Fact) -> str | None:
    """Return the class of a number: ``bool``, ``int``, ``float``, ``complex``, or ``number`` if it may be any; None if
    the fact is not about a number."""
    if isinstance(fact, Unknown):
        return fact.kind
    if isinstance(fact, Constant) and isinstance(fact.value, (bool, int, float, complex)):
        return type(fact.value).__name__
    return None
