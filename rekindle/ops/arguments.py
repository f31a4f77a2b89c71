"""Arguments that come from Python: checked against the types of a function's parameters, and converted where Python's
user expects it.

An int stands for a float, a tuple or ``torch.Size`` for a list, a ``torch.dtype`` for its number, a str for a device,
what has ``__index__`` or ``__float__`` (NumPy's scalars, 0-dimensional Tensors) for an int or float. A list or dict
that fits as it is is passed on as itself, so that the caller sees what the program writes to it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from rekindle.ir.scalar_types import number_of
from rekindle.ir.types import (
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NumberType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from rekindle.ops.values import describe, named_tuple_class, value_matches

Converter = Callable[[Any], Any]
"""Returns the value as the program takes it. Raises :class:`ValueMismatch`."""


class ValueMismatch(Exception):
    """A value that does not fit a type. The message says what was expected and what was given, and where within a
    container."""


def mismatch(type: Type, value: object) -> ValueMismatch:
    return ValueMismatch(f"expected a value of type {type.annotation}, got {describe(value)}")


def convert_argument(value: object, type: Type) -> Any:
    """``value`` as a program takes it where ``type`` is expected.

    Raises:
        ValueMismatch: it does not fit.
    """
    return converter(type)(value)


def converter(type: Type) -> Converter:
    """What converts arguments to ``type``. Worth keeping by those who call often."""
    make = _MAKERS.get(type.kind)
    return _checker(type) if make is None else make(type)


def _checker(type: Type) -> Converter:
    def convert(value: object) -> object:
        if value_matches(value, type):
            return value
        raise mismatch(type, value)

    return convert


def _tensor(type: TensorType) -> Converter:
    if type.is_refined:
        return _checker(type)

    def convert(value: object) -> object:
        if isinstance(value, torch.Tensor):
            return value
        raise mismatch(type, value)

    return convert


def _int(type: IntType) -> Converter:
    def convert(value: Any) -> int:
        if isinstance(value, int):
            return value
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return number_of(value)
        if hasattr(value, "__index__"):
            try:
                return operator.index(value)
            except TypeError:
                pass
        raise mismatch(type, value)

    return convert


def _float(type: FloatType) -> Converter:
    def convert(value: Any) -> float:
        if isinstance(value, float):
            return value
        if hasattr(value, "__float__") and not isinstance(value, bool):
            try:
                return float(value)
            except (TypeError, ValueError, RuntimeError):
                pass
        raise mismatch(type, value)

    return convert


def _complex(type: ComplexType) -> Converter:
    def convert(value: Any) -> complex:
        if isinstance(value, (complex, float, int)) and not isinstance(value, bool):
            return complex(value)
        raise mismatch(type, value)

    return convert


def _bool(type: BoolType) -> Converter:
    def convert(value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if hasattr(value, "dtype") and value.dtype == "bool" and not isinstance(value, torch.Tensor):
            return bool(value)  # NumPy's
        raise mismatch(type, value)

    return convert


def _number(type: NumberType) -> Converter:
    def convert(value: Any) -> int | float | complex:
        if isinstance(value, (int, float, complex)):
            return value
        if hasattr(value, "item") and getattr(value, "shape", None) == ():
            item = value.item()
            if isinstance(item, (int, float, complex)):
                return item
        raise mismatch(type, value)

    return convert


def _device(type: DeviceType) -> Converter:
    def convert(value: Any) -> torch.device:
        if isinstance(value, torch.device):
            return value
        if isinstance(value, str):
            try:
                return torch.device(value)
            except RuntimeError:
                pass
        raise mismatch(type, value)

    return convert


def _list(type: ListType) -> Converter:
    element = converter(type.element)

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise mismatch(type, value)
        items = [_within(element, item, f"element {index}") for index, item in enumerate(value)]
        return value if isinstance(value, list) and _same(items, value) else items

    return convert


def _dict(type: DictType) -> Converter:
    key, item = converter(type.key), converter(type.value)

    def convert(value: Any) -> dict[Any, Any]:
        if not isinstance(value, Mapping):
            raise mismatch(type, value)
        keys = [_within(key, name, f"key {name!r}") for name in value]
        items = [_within(item, found, f"the value of {name!r}") for name, found in value.items()]
        if isinstance(value, dict) and _same(keys, value) and _same(items, value.values()):
            return value
        return dict(zip(keys, items, strict=True))

    return convert


def _same(converted: list[Any], given: Any) -> bool:
    return all(a is b for a, b in zip(converted, given, strict=True))


def _within(convert: Converter, value: Any, where: str) -> Any:
    try:
        return convert(value)
    except ValueMismatch as error:
        raise ValueMismatch(f"{where}: {error}") from None


def _tuple(type: TupleType) -> Converter:
    elements = [converter(element) for element in type.elements]

    def convert(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, tuple):
            raise mismatch(type, value)
        if len(value) != len(elements):
            raise ValueMismatch(f"expected a tuple of {len(elements)} elements, got one of {len(value)}")
        items = [
            _within(element, item, f"element {index}")
            for index, (element, item) in enumerate(zip(elements, value, strict=True))
        ]
        if type.fields is not None and not isinstance(value, named_tuple_class(type)):
            return named_tuple_class(type)(*items)  # type: ignore[no-any-return]
        if _same(items, value):
            return value
        return tuple(items) if type.fields is None else named_tuple_class(type)(*items)

    return convert


def _optional(type: OptionalType) -> Converter:
    element = converter(type.element)

    def convert(value: Any) -> Any:
        return None if value is None else element(value)

    return convert


def _union(type: UnionType) -> Converter:
    members = [converter(member) for member in type.members]

    def convert(value: Any) -> Any:
        if value_matches(value, type):
            return value
        for member in members:
            try:
                return member(value)
            except ValueMismatch:
                pass
        raise mismatch(type, value)

    return convert


_MAKERS: Final[dict[str, Callable[[Any], Converter]]] = {
    TensorType.kind: _tensor,
    IntType.kind: _int,
    FloatType.kind: _float,
    ComplexType.kind: _complex,
    BoolType.kind: _bool,
    NumberType.kind: _number,
    DeviceType.kind: _device,
    ListType.kind: _list,
    DictType.kind: _dict,
    TupleType.kind: _tuple,
    OptionalType.kind: _optional,
    UnionType.kind: _union,
}
