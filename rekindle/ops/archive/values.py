"""Operators on numbers, strings and dicts with TorchScript's semantics, where Python's differ.

Math functions are C's: they return nan or inf where Python raises. Letters beyond ASCII have no case, and ``popitem``
removes the first item. Each operator has the schema of its twin in ``aten``, which has Python's semantics, and takes
precedence over it where the text of an archive calls ``torch.name``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch

from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ops.registration.declare import declare, is_declared


def operators_of_archives(kind: str) -> list[Operator]:
    """Return the operators for ``torch.name`` in an archive, if they differ from those of ``aten::name``; else none."""
    namespace, _, name = kind.partition("::")
    twin = f"archive::{name}"
    return list(REGISTRY.overloads(twin)) if namespace == "aten" and is_declared(twin) else []


def differs_in_archives(operator: Operator) -> bool:
    """Return whether this operator of ``aten`` has other semantics in archives than in Python."""
    overload = operator.schema.overload
    return any(twin.schema.overload == overload for twin in operators_of_archives(operator.name))


# ---------------------------------------------------------------------------------------------------------- mathematics


def _as_in_c(of_python: Callable[[float], float], of_c: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., float]:
    """Return a function that calls ``of_python``, and ``of_c`` if that raises."""

    def apply(a: float) -> float:
        try:
            return of_python(a)
        except (ValueError, OverflowError):
            return float(of_c(torch.tensor(a, dtype=torch.float64)).item())

    return apply


_MATHEMATICS: Final = (
    *("acos", "acosh", "asin", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p"),
    *("sin", "sinh", "sqrt", "tan"),
)
for _name in _MATHEMATICS:
    declare(
        _as_in_c(getattr(math, _name), getattr(torch, _name)),
        f"archive::{_name}.int(int a) -> float",
        f"archive::{_name}.float(float a) -> float",
    )


def _lgamma(a: float) -> float:
    """Return the ``lgamma`` of C, which is rounded differently from Python's."""
    return float(torch.lgamma(torch.tensor(a, dtype=torch.float64)).item())


declare(_lgamma, "archive::lgamma.int(int a) -> float", "archive::lgamma.float(float a) -> float")

# -------------------------------------------------------------------------------------------------------------- strings


def _of_ascii(method: Callable[[bytes], bytes]) -> Callable[[str], str]:
    """Return a method of strings that applies ``method`` to the letters of ASCII. Other characters stay as they are."""
    return lambda self: method(self.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


for _name in ("capitalize", "lower", "swapcase", "title", "upper"):
    declare(_of_ascii(getattr(bytes, _name)), f"archive::{_name}(str self) -> str")


# ---------------------------------------------------------------------------------------------------------------- dicts


def _first_item(self: dict[Any, Any]) -> tuple[Any, Any]:
    """Remove and return the first item of a dict.

    Raises:
        RuntimeError: the dict is empty.
    """
    if not self:
        raise RuntimeError("popitem(): dictionary is empty")
    key = next(iter(self))
    return key, self.pop(key)


for _key in ("str", "int", "bool", "float", "complex", "Tensor"):
    declare(_first_item, f"archive::popitem.{_key}(Dict({_key}, t)(a!) self) -> (({_key}, t))")
