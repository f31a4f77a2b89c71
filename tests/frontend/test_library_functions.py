"""Functions of Python's library that not every Python has, and what saving says of those that it cannot say."""

from __future__ import annotations

import io
import math
import sys

import pytest
import torch

import rekindle
from rekindle.errors import SaveError

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="math.exp2 and math.cbrt came with Python 3.11")


def powers_of_two(x: float, n: int) -> list[float]:
    return [math.exp2(x), math.exp2(n)]


def cube_root(x: float) -> float:
    return math.cbrt(x)


def test_are_what_python_answers() -> None:
    compiled, root = rekindle.script(powers_of_two), rekindle.script(cube_root)
    for x in (0.1, -2.5, 1000.0):
        assert compiled(x, 3) == powers_of_two(x, 3)
        assert root(x) == math.cbrt(x)


def test_are_said_by_operators_of_tensors() -> None:
    file = io.BytesIO()
    rekindle.save(rekindle.script(powers_of_two), file)
    file.seek(0)
    assert torch.jit.load(file)(0.5, 3) == powers_of_two(0.5, 3)


def test_saving_says_what_it_cannot_say() -> None:
    with pytest.raises(SaveError) as caught:
        rekindle.save(rekindle.script(cube_root), io.BytesIO())
    assert str(caught.value).startswith(
        "'cube_root' cannot be saved: 'cbrt' cannot be saved: TorchScript has nothing to say it with\n"
    )
