"""Numbers, strings and dicts as archives have them, beside torch.jit, and as Python has them once saved here."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import rekindle
from tests.versions.differences import NO_ROOT


def roots(x: float) -> list[float]:
    return [math.sqrt(x), math.log(x), math.acos(x), math.exp(x), math.lgamma(x), math.sinh(x), math.sin(x)]


def cases(s: str) -> list[str]:
    return [s.upper(), s.lower(), s.capitalize(), s.title(), s.swapcase()]


def items(d: dict[str, int]) -> list[tuple[str, int]]:
    return [d.popitem(), d.popitem()]


CALLS: list[tuple[Callable[..., Any], Any]] = [
    *((roots, x) for x in (-2.0, -0.0, 0.5, 1000.0, float("inf"), float("-inf"), float("nan"))),
    *((cases, s) for s in ("", "héLLo ÀÉ", "Straße", "they're x1y", "ÿa")),
    (items, {"a": 1, "b": 2, "c": 3}),
]


@pytest.mark.parametrize(("f", "given"), CALLS)
def test_archives_of_torch_mean_what_torch_means(f: Callable[..., Any], given: Any) -> None:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(f), buffer)
    expected = torch.jit.load(io.BytesIO(buffer.getvalue()))(given.copy() if isinstance(given, dict) else given)
    assert repr(rekindle.load(buffer.getvalue())(given)) == repr(expected)


@pytest.mark.parametrize(
    ("f", "given", "answer"),
    [
        (cases, "É", ["É", "é", "É", "É", "é"]),
        (items, {"a": 1, "b": 2, "c": 3}, [("c", 3), ("b", 2)]),
    ],
)
def test_programs_of_python_keep_their_meaning(f: Callable[..., Any], given: Any, answer: Any) -> None:
    once = rekindle.load(rekindle.script(f).save_to_buffer())
    assert rekindle.load(once.save_to_buffer())(given) == answer


def test_mathematics_of_python_still_raises() -> None:
    with pytest.raises(ValueError, match=NO_ROOT):
        rekindle.load(rekindle.script(roots).save_to_buffer())(-2.0)
