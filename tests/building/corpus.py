"""Build every program of the corpora as a native library, and call it from C: same values, same errors?"""

from __future__ import annotations

import copy
import subprocess
import tempfile
from collections import deque
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

import rekindle
from rekindle.building.lowering.constants import member_number
from rekindle.building.lowering.control import error_code
from rekindle.building.runtime.objects import ErrorCode
from rekindle.ir.scalar_types import number_of
from rekindle.ir.types import ClassType, DictType, ListType, OptionalType, TupleType, Type
from tests.building.c_process import Answer, run
from tests.differential import subjects

_LIMITS = (ErrorCode.NOT_BUILT, ErrorCode.ARGUMENT_ERROR, ErrorCode.INT_LIMIT)
"""Sizes that no example has, values that C has no form of, ints of more than 64 bits."""

RANDOM = (
    "language.modules.Training",
    "language.operators_past.ints_as_floats",
    "language.operators_past.ints_as_floats_from_variables",
)
"""Programs that draw random numbers: two runs differ."""

Verdict = Literal["same", "not built", "refused", "differs"]


class Outcome(NamedTuple):
    """What came of a program.

    ``same`` if the library does what the program does; ``not built`` with the reason; ``refused`` if a call goes beyond
    a limit of the library, which says so; else what ``differs``. ``torch_operators`` counts those left to PyTorch."""

    verdict: Verdict
    detail: str = ""
    torch_operators: int = 0


class Case(NamedTuple):
    """A program and its calls."""

    program: Any
    calls: list[tuple[Any, ...]]
    expected: list[Any]
    """The result of each call, or the exception that it raises."""
    given: list[tuple[Any, ...]]
    """The arguments of the calls as C has them."""


def case_of(name: str) -> Case:
    """Return the first subject of this name, and what its calls come to, one after the other."""
    subject = next(iter(subjects.of(name)))
    program, reference = subject.compiled(), subject.compiled()
    is_module = isinstance(program, torch.nn.Module)
    record = (program.forward if is_module else program)._record
    parameters, result = record.schema.arguments[int(is_module) :], record.schema.returns[0].type
    calls = [_bound(parameters, *sample) for sample in subject.samples]
    expected: list[Any] = []
    for call in calls:
        with torch.no_grad():
            try:
                expected.append(in_c(reference(*copy.deepcopy(call)), result))
            except Exception as error:
                expected.append(error)
    given = [tuple(in_c(each, p.type) for each, p in zip(call, parameters, strict=True)) for call in calls]
    return Case(program, calls, expected, given)


def in_c(value: Any, type: Type) -> Any:
    """Return a value with tuples of attributes in place of instances of classes, as C has them."""
    if isinstance(type, OptionalType):
        return None if value is None else in_c(value, type.element)
    if isinstance(type, ClassType) and not type.is_module and value is not None:
        return tuple(in_c(getattr(value, name), each.type) for name, each in type.attributes.items())
    if isinstance(type, ListType) and isinstance(value, list):
        return [in_c(each, type.element) for each in value]
    if isinstance(type, DictType) and isinstance(value, dict):
        return {key: in_c(each, type.value) for key, each in value.items()}
    if isinstance(type, TupleType) and isinstance(value, tuple) and not type.name:
        return tuple(in_c(each, part) for each, part in zip(value, type.contained, strict=True))
    return value


def _bound(parameters: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return all arguments by position."""
    rest = [kwargs.get(each.name, each.default) for each in parameters[len(args) :]]
    return (*args, *rest)


def attempt(name: str) -> Outcome:
    """Build a program, and call it from C."""
    case = case_of(name)
    examples = [call for call, each in zip(case.calls, case.expected, strict=True) if not isinstance(each, Exception)]
    with tempfile.TemporaryDirectory() as folder:
        try:
            built = rekindle.build(case.program, folder, copy.deepcopy(examples))
        except rekindle.NotBuildable as error:
            return Outcome("not built", error.reason)
        try:
            answers = run(built, built.methods[0], case.given, Path(folder))
        except subprocess.CalledProcessError as error:
            return Outcome("differs", f"the process ended with {error.returncode}: {error.stderr.strip()}")
        except TypeError as error:
            return Outcome("not built", str(error))
    count = len(built.torch_operators)
    for answer, expected in zip(answers, case.expected, strict=True):
        if answer.code in _LIMITS and not isinstance(expected, Exception):
            return Outcome("refused", answer.message, count)
        difference = _difference(answer, expected)
        if difference:
            return Outcome("differs", difference, count)
    return Outcome("same", torch_operators=count)


def _difference(answer: Answer, expected: Any) -> str:
    """Return how an answer differs from what is expected; nothing if it does not."""
    if not isinstance(expected, Exception):
        if answer.code:
            return f"code {answer.code} ({answer.message}) instead of {expected!r}"
        return "" if same(answer.value, expected) else f"{answer.value!r} instead of {expected!r}"
    if not answer.code:
        return f"{answer.value!r} instead of {type(expected).__name__}: {expected}"
    cls = type(expected)
    wanted = error_code(f"{cls.__module__}.{cls.__qualname__}")
    # What only the library raises, for want of a kernel or of 64 bits, is an error where the program raises one.
    if answer.code in (wanted, *_LIMITS):
        return ""
    return f"code {answer.code} ({answer.message}) instead of {type(expected).__name__}: {expected}"


def same(value: Any, expected: Any) -> bool:
    """Return whether a value is the one that is expected: numbers up to rounding, a dtype as its number."""
    match expected:
        case Enum():
            return bool(value == member_number(expected))
        case torch.Tensor():
            if not isinstance(value, torch.Tensor) or value.dtype != expected.dtype:
                return False
            return value.shape == expected.shape and torch.allclose(
                value, expected, rtol=1e-4, atol=1e-5, equal_nan=True
            )
        case bool() | int() | str() | None:
            return type(value) is type(expected) and value == expected
        case float():
            return type(value) is float and (
                value == expected
                or (value != value and expected != expected)
                or abs(value - expected) <= 1e-6 * abs(expected)
            )
        case complex():
            return type(value) is complex and same(value.real, expected.real) and same(value.imag, expected.imag)
        case set() | frozenset():
            return type(value) is dict and set(value) == expected and all(each is True for each in value.values())
        case torch.Size() | list() | deque():  # a tuple whose length is not known is a list, too
            return type(value) is list and len(value) == len(expected) and all(map(same, value, expected))
        case tuple():
            return type(value) in (tuple, list) and len(value) == len(expected) and all(map(same, value, expected))
        case dict():
            return (
                type(value) is dict
                and len(value) == len(expected)
                and all(map(same, value.keys(), expected.keys()))
                and all(map(same, value.values(), expected.values()))
            )
        case torch.dtype() | torch.layout() | torch.memory_format():
            return bool(value == number_of(expected))
        case _:
            return False
