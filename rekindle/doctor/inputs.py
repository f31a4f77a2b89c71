"""Generated inputs: arguments for a program of which only the schema is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import torch

from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.types import (
    BoolType,
    DeviceType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NumberType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
)

_SHAPES: Final[tuple[tuple[int, ...], ...]] = ((4, 4), (2, 3, 8, 8), (2, 4, 4), (5,), (1, 3, 32, 32), (2, 16), (6, 4))
_DTYPES: Final = (torch.float32, torch.int64, torch.bool)


class NotGenerated(Exception):
    """No value can be generated for the type of a parameter."""


def generated(schema: FunctionSchema) -> Iterator[list[Any]]:
    """Yield lists of positional arguments that fit a schema. Parameters with a default are omitted.

    If a parameter takes Tensors, there is one list for each combination of 3 dtypes and 7 shapes, and all Tensors in it
    have that dtype and shape. Otherwise there is a single list.

    Raises:
        NotGenerated: a parameter without a default is keyword-only, or has a type for which there is no value.
    """
    needed = [argument for argument in schema.arguments if not argument.has_default]
    if any(argument.kwarg_only for argument in needed):
        raise NotGenerated("it has parameters that are given by name")
    has_tensors = any(_has_tensor(argument.type) for argument in needed)
    for dtype in _DTYPES if has_tensors else _DTYPES[:1]:
        for shape in _SHAPES if has_tensors else _SHAPES[:1]:
            yield [_value(argument.type, argument.name, shape, dtype) for argument in needed]


def _value(type: Type, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> Any:
    """Return a value of ``type`` for the parameter ``name``; Tensors in it have the shape and the dtype.

    Raises:
        NotGenerated: there is no value for the type.
    """
    match type:
        case TensorType():
            return _tensor(shape, dtype)
        case BoolType():
            return True
        case IntType() if not type.python_name:
            return 1
        case FloatType() | NumberType():
            return 0.5
        case StringType():
            return "a"
        case DeviceType():
            return torch.device("cpu")
        case OptionalType():
            return _value(type.element, name, shape, dtype)
        case ListType():
            return [_value(type.element, name, shape, dtype) for _ in range(2)]
        case TupleType() if type.name is None:
            return tuple(_value(each, name, shape, dtype) for each in type.elements)
        case DictType():
            return {_value(type.key, name, shape, dtype): _value(type.value, name, shape, dtype)}
    raise NotGenerated(f"no value of the type {type.annotation} is made up, which the parameter '{name}' has")


def _tensor(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if dtype == torch.float32:
        return torch.rand(shape, generator=generator) + 0.1
    return torch.randint(0, 2 if dtype == torch.bool else 4, shape, generator=generator).to(dtype)


def _has_tensor(type: Type) -> bool:
    return isinstance(type, TensorType) or any(map(_has_tensor, getattr(type, "contained", ())))
