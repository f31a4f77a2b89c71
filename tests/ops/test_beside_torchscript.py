"""Every operator of numbers, strings and plain lists that TorchScript has, beside TorchScript itself.

Where the two answer differently, the reason is in DIFFERENCES; an operator that is listed and agrees fails too.
Generic operators (of ``t[]``, of dicts) cannot be called alone in TorchScript; other tests have those.
"""

from __future__ import annotations

import cmath
import copy
import itertools
import math
from functools import cache
from typing import Any

import pytest
import torch

import rekindle.ops  # noqa: F401
from rekindle.ir.operators.registry import REGISTRY

SAMPLES: dict[str, list[Any]] = {
    "int": [-7, -1, 1, 2, 3],
    "float": [-2.5, -0.5, 0.5, 1.0, 2.5],
    "complex": [1 + 2j, -0.5j, 2 + 0j],
    "bool": [True, False],
    "str": ["a b", "Hello World", " x\t", "12", "lo"],
    "Scalar": [2, 1.5, -1],
    "int[]": [[3, 1, 2], [0, 1], [1]],
    "float[]": [[1.5, -2.0], [0.0]],
    "complex[]": [[1j, 2 + 0j]],
    "bool[]": [[True, False], [True]],
    "str[]": [["b", "a"], ["x", ""]],
    "int?": [None, 1],
    "str?": [None, " "],
    "Device": [torch.device("cpu"), torch.device("meta")],
}

NOT_ALONE = {"prim::ReductionSizes"}
"""TorchScript itself crashes on these samples."""

_SINGLE = "TorchScript computes it of a Scalar in single precision when it is called alone"
_ENDS = "nothing is found beyond the string or from a start after the end, as in Python, and nothing raises there"
_SHIFT = "shifting by a negative number raises, as in Python"
_LOGARITHM = "the logarithm of a negative number is complex where the other is, as in Python"

DIFFERENCES: dict[str, str] = {
    **{
        f"aten::{name}.Scalar": _SINGLE
        for name in (
            *("acos", "acosh", "angle", "asin", "asinh", "atan", "cos", "cosh", "degrees", "erf", "erfc", "exp"),
            *("expm1", "gamma", "lgamma", "log", "log10", "log1p", "radians", "sin", "sinh", "sqrt", "tan", "tanh"),
        )
    },
    **{f"aten::{name}": _ENDS for name in ("count", "endswith", "startswith")},
    **{f"aten::log.{name}": _LOGARITHM for name in ("complex_float", "complex_int", "float_complex", "int_complex")},
    "aten::__lshift__.int": _SHIFT,
    "aten::__rshift__.int": _SHIFT,
    "aten::pow.float_complex": "the result is exact where Python's is",
    "aten::pow.int_to_int": "the result is an int, as its schema says; TorchScript returns a float",
    "prim::max": "the number itself, as in Python; TorchScript makes a float of an int beside a float",
    "prim::min": "the number itself, as in Python; TorchScript makes a float of an int beside a float",
    "prim::rangelist": "that of a negative number is empty, as in Python",
}


@cache
def comparable() -> dict[str, Any]:
    """What TorchScript runs, by the names of the operators whose parameters have samples."""
    dispatcher = set(torch._C._dispatch_get_all_op_names())
    found: dict[str, Any] = {}
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name + (f".{schema.overload_name}" if schema.overload_name else "")
        namespace, _, base = schema.name.partition("::")
        if name in dispatcher or namespace not in ("aten", "prim") or (ours := REGISTRY.find(name)) is None:
            continue
        types = [argument.spelling or str(argument.type) for argument in ours.schema.arguments]
        if ours.operation is None or ours.has_side_effects or ours.schema.is_vararg or name in NOT_ALONE:
            continue
        if not types or not set(types) <= set(SAMPLES):
            continue
        packet = getattr(getattr(torch.ops, namespace), base)
        found[name] = getattr(packet, schema.overload_name or "default")
    return found


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, float):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, complex):
        return _same(a.real, b.real) and _same(a.imag, b.imag)
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    return bool(a == b)


def _is_undefined(value: Any) -> bool:
    return isinstance(value, (float, complex)) and not cmath.isfinite(value)


def _run(function: Any, arguments: list[Any]) -> tuple[Any, str | None]:
    try:
        return function(*arguments), None
    except Exception as error:
        return None, type(error).__name__


def _differences(name: str) -> list[object]:
    ours, theirs = REGISTRY.find(name), comparable()[name]
    assert ours is not None
    assert ours.operation is not None
    types = [argument.spelling or str(argument.type) for argument in ours.schema.arguments]
    found: list[object] = []
    for arguments in itertools.product(*(SAMPLES[type] for type in types)):
        mine, other = copy.deepcopy(list(arguments)), copy.deepcopy(list(arguments))
        answer, error = _run(ours.operation, mine)
        expected, their_error = _run(theirs, other)
        # The classes of errors differ: ours are Python's, theirs RuntimeError for the most part.
        if error in ("ValueError", "ZeroDivisionError") and _is_undefined(expected):
            continue  # outside of a function's domain TorchScript answers, where Python raises
        if (error is None) != (their_error is None) or not (error or _same(answer, expected)):
            found.append((arguments, answer or error, expected or their_error))
        elif not _same(mine, other) and "(a!)" not in str(ours.schema):
            found.append((arguments, mine, other))
    return found


@pytest.mark.parametrize("name", sorted(comparable()))
def test_as_torchscript(name: str) -> None:
    if name in DIFFERENCES:
        assert _differences(name) != []
    else:
        assert _differences(name) == []


def test_enough_is_compared() -> None:
    assert len(comparable()) > 380
    assert set(DIFFERENCES) <= set(comparable())
