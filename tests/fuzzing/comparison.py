"""Exact comparison of what two executions of a program return, raise and change."""

from __future__ import annotations

import copy
import dataclasses
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

_TOLERANCES: Final = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float64: 1e-8, torch.complex128: 1e-8}


@dataclass(slots=True, frozen=True)
class Difference:
    """``kind`` names what differs, without values and places; ``text`` says it in full."""

    kind: str
    text: str


def difference(actual: Any, expected: Any, exact: bool, where: str = "result") -> Difference | None:
    """The first difference between two values: types, structure, numbers (NaN equals NaN, 0.0 is not -0.0).

    With ``exact``, numbers are equal to the last bit; otherwise floats are within the tolerance of their dtype.
    """
    if isinstance(expected, torch.Tensor) and isinstance(actual, torch.Tensor):
        return _of_tensors(actual, expected, exact, where)
    if _class(actual) != _class(expected):
        return Difference(
            f"{_class(actual)} instead of {_class(expected)}", f"{where} is {_shown(actual)}, not {_shown(expected)}"
        )
    if isinstance(expected, (float, complex)):
        return _of_floats(actual, expected, exact, where)
    if dataclasses.is_dataclass(expected) and not isinstance(expected, type):
        fields = [each.name for each in dataclasses.fields(expected)]
        return _first(
            difference(getattr(actual, name, None), getattr(expected, name, None), exact, f"{where}.{name}")
            for name in fields
        )
    if isinstance(expected, (list, tuple)):
        if len(actual) != len(expected):
            return Difference("length", f"{where} is {_shown(actual)}, not {_shown(expected)}")
        pairs = enumerate(zip(actual, expected, strict=True))
        return _first(difference(a, e, exact, f"{where}[{index}]") for index, (a, e) in pairs)
    if isinstance(expected, dict):
        found = difference(list(actual), list(expected), exact, f"the keys of {where}")
        if found is not None:
            return found
        pairs = zip(actual.values(), expected.items(), strict=True)  # keys may be equal but for the name of a grad_fn
        return _first(difference(item, wanted, exact, f"{where}[{key!r}]") for item, (key, wanted) in pairs)
    if isinstance(expected, (int, str, bool, bytes, type(None), set, frozenset, torch.dtype, torch.device)):
        if actual == expected or (isinstance(expected, str) and _without_grad_fn(actual) == _without_grad_fn(expected)):
            return None
        return Difference(f"{_class(expected)} value", f"{where} is {_shown(actual)}, not {_shown(expected)}")
    if hasattr(expected, "__dict__") and type(expected).__module__.startswith("fuzzed_"):
        return difference(dict(vars(actual)), dict(vars(expected)), exact, f"vars({where})")
    return None


def _without_grad_fn(text: str) -> str:
    """``text`` without the names of ``grad_fn`` that Tensors show: docs/differences.md has a row for them."""
    return _GRAD_FN.sub("grad_fn=<>", text)


_GRAD_FN: Final = re.compile(r"\bgrad_fn=<\w+>")


def _first(found: Iterator[Difference | None]) -> Difference | None:
    return next((each for each in found if each is not None), None)


def _class(value: Any) -> str:
    name = type(value).__qualname__
    return name.rpartition(".")[2]


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 300 else f"{text[:300]} …"


def _of_floats(actual: Any, expected: Any, exact: bool, where: str) -> Difference | None:
    if isinstance(expected, complex):
        return _of_floats(actual.real, expected.real, exact, f"{where}.real") or _of_floats(
            actual.imag, expected.imag, exact, f"{where}.imag"
        )
    if math.isnan(expected) and math.isnan(actual):
        return None
    if actual == expected:
        if exact and actual == 0.0 and math.copysign(1.0, actual) != math.copysign(1.0, expected):
            return Difference("sign of zero", f"{where} is {actual!r}, not {expected!r}")
        return None
    if not exact and math.isclose(actual, expected, rel_tol=2e-4, abs_tol=2e-5):
        return None
    return Difference("float value", f"{where} is {actual!r}, not {expected!r}")


def _of_tensors(actual: torch.Tensor, expected: torch.Tensor, exact: bool, where: str) -> Difference | None:
    if type(actual) is not type(expected):
        kind = f"{type(actual).__name__} instead of {type(expected).__name__}"
        return Difference(kind, f"{where} is a {type(actual).__name__}, not a {type(expected).__name__}")
    for name in ("dtype", "shape", "requires_grad"):
        if getattr(actual, name) != getattr(expected, name):
            text = f"the {name} of {where} is {getattr(actual, name)}, not {getattr(expected, name)}"
            return Difference(f"Tensor {name}", text)
    if actual.layout != expected.layout:
        return Difference("Tensor layout", f"the layout of {where} is {actual.layout}, not {expected.layout}")
    a, e = actual.detach(), expected.detach()
    if e.layout != torch.strided:
        a, e = a.to_dense(), e.to_dense()
    if _same_elements(a, e, exact):
        return None
    return Difference("Tensor value", f"{where} is {_shown(a)}, not {_shown(e)}")


def _same_elements(a: torch.Tensor, e: torch.Tensor, exact: bool) -> bool:
    if not (e.is_floating_point() or e.is_complex()):
        return torch.equal(a, e)
    if exact:
        same = torch.allclose(a, e, rtol=0.0, atol=0.0, equal_nan=True)
        return same and (e.is_complex() or bool((a.signbit() == e.signbit())[~e.isnan()].all()))
    tolerance = tolerance_of(e.dtype)
    return torch.allclose(a, e, rtol=tolerance, atol=tolerance / 10, equal_nan=True)


def tolerance_of(dtype: torch.dtype) -> float:
    """By what part floats may differ where they need not be equal."""
    return _TOLERANCES.get(dtype, 2e-4)


def sharing(values: Sequence[Any]) -> list[list[int]]:
    """Which of the tensors, lists and dicts in ``values`` share memory: their numbers, in order of appearance."""
    owners: dict[tuple[str, int], list[int]] = {}
    for number, value in enumerate(_flat(values)):
        if isinstance(value, torch.Tensor):
            if value.numel():
                owners.setdefault(("tensor", value.untyped_storage().data_ptr()), []).append(number)
        else:
            owners.setdefault(("object", id(value)), []).append(number)
    return [numbers for numbers in owners.values() if len(numbers) > 1]


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (torch.Tensor, list, dict)):
            yield value
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        elif isinstance(value, dict):
            yield from _flat(list(value.values()))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples, dicts and fields of dataclasses."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for each in dataclasses.fields(value):
            yield from tensors_in(getattr(value, each.name, None))


def snapshot(value: Any) -> Any:
    """A copy that later calls do not change: tensors are clones, with ``requires_grad`` as it was."""
    if isinstance(value, torch.Tensor):
        copied = value.detach().clone()
        return copied.requires_grad_() if value.requires_grad else copied
    if type(value) in (list, tuple):
        return type(value)(snapshot(item) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(snapshot(item) for item in value))
    if type(value) is dict:
        return {key: snapshot(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        copied = copy.copy(value)
        for each in dataclasses.fields(value):
            object.__setattr__(copied, each.name, snapshot(getattr(value, each.name, None)))
        return copied
    return value
