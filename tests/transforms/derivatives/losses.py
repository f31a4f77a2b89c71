"""Any program made one that a gradient can be taken of: it returns the sum of all floats that the other returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

import rekindle
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.types import DictType, ListType, OptionalType, TensorType, TupleType, Type


def loss_of(function: Any, count: int | None = None) -> Any:
    """The compiled function, if what it returns holds tensors; else None. It takes the first ``count`` arguments."""
    compiled = rekindle.script(function)
    schema = compiled.schema
    lines = list(_adding("found", schema.returns[0].type, 1))
    if not lines:
        return None
    return rekindle.CompilationUnit(_text(schema, lines, "compiled", count)).loss  # type: ignore[attr-defined]


def _text(schema: FunctionSchema, lines: list[str], name: str, count: int | None) -> str:
    parameters = ", ".join(f"{a.name}: {a.type.annotation}" for a in schema.arguments[:count])
    arguments = ", ".join(a.name for a in schema.arguments[:count])
    head = [f"def loss({parameters}) -> Tensor:", f"    found = {name}({arguments})"]
    return "\n".join([*head, "    total = torch.zeros([], dtype=torch.float64)", *lines, "    return total", ""])


def _adding(value: str, type: Type, depth: int) -> Iterator[str]:
    """Statements that add the floats in ``value`` to the total."""
    indent = "    " * depth
    inner: list[str]
    if isinstance(type, TensorType):
        yield f"{indent}if {value}.is_floating_point():"
        yield f"{indent}    total = total + {value}.sum().double()"
    elif isinstance(type, TupleType):
        for index, element in enumerate(type.elements):
            yield from _adding(f"{value}[{index}]", element, depth)
    elif isinstance(type, ListType):
        inner = list(_adding(f"item{depth}", type.element, depth + 1))
        if inner:
            yield from (f"{indent}for item{depth} in {value}:", *inner)
    elif isinstance(type, DictType):
        inner = list(_adding(f"{value}[key{depth}]", type.value, depth + 1))
        if inner:
            yield from (f"{indent}for key{depth} in {value}:", *inner)
    elif isinstance(type, OptionalType):
        inner = list(_adding(f"some{depth}", type.element, depth + 1))
        if inner:
            yield from (f"{indent}some{depth} = {value}", f"{indent}if some{depth} is not None:", *inner)


def eager_loss(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Tensor:
    """The same sum of what the Python function returns."""
    total = torch.zeros([], dtype=torch.float64)
    for item in flat(function(*arguments)):
        if isinstance(item, Tensor) and item.is_floating_point():
            total = total + item.sum().double()
    return total


def flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from flat(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from flat(item)
    else:
        yield value


def float_tensors(arguments: tuple[Any, ...]) -> list[int]:
    """The arguments that are tensors of floats."""
    return [i for i, value in enumerate(arguments) if isinstance(value, Tensor) and value.is_floating_point()]
