"""Attributes that methods make: each object of a class makes its own."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import rekindle


class Counts(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if hasattr(self, "calls"):
            self.calls = self.calls + 1
        else:
            self.calls = 0
        self.last = x
        return x + self.calls


def test_two_objects_of_a_class() -> None:
    first, second = rekindle.script(Counts()), rekindle.script(Counts())
    x = torch.ones(2)
    assert [first(x).sum().item() for _ in range(3)] == [2.0, 4.0, 6.0]
    assert second(x + 1).sum().item() == 4.0
    assert (first.calls, second.calls) == (2, 0)
    assert torch.equal(first.last, x)
    assert torch.equal(second.last, x + 1)


def test_what_was_not_made_yet_is_not_there() -> None:
    for _ in range(2):
        with pytest.raises(AttributeError, match=r"^'Counts' object has no attribute 'calls'$"):
            rekindle.script(Counts()).calls


def test_programs_see_what_python_assigns() -> None:
    compiled = rekindle.script(Counts())
    compiled.calls = 5
    assert compiled(torch.ones(2)).sum().item() == 14.0
    assert compiled.calls == 6
