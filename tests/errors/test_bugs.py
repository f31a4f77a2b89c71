"""Bugs of the compiler: users see what they wrote, and what to report."""

from __future__ import annotations

import platform

import pytest
import torch

import rekindle
from rekindle.errors import InternalError
from rekindle.frontend.statements import simple_statements
from rekindle.frontend.type_expressions import dotted_name


def test_an_error_of_the_user_is_no_bug() -> None:
    class Broken(torch.nn.Module):
        @property
        def size(self) -> int:
            raise KeyError("mine")

        def forward(self) -> int:
            return self.size

    with pytest.raises(Exception, match="mine") as caught:
        rekindle.script(Broken())()
    assert not isinstance(caught.value, InternalError)


def test_a_bug_shows_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(simple_statements._STATEMENTS, "assign", dotted_name)  # which takes an expression

    def program(x: torch.Tensor) -> torch.Tensor:
        if x.dim() == 1:
            y = x + 1
            return y
        return x

    with pytest.raises(InternalError) as caught:
        rekindle.script(program)
    assert isinstance(caught.value.__cause__, AttributeError)
    first, second, *_, versions, last = str(caught.value).splitlines()
    assert first == "rekindle failed with AttributeError: 'Emitter' object has no attribute 'tree'"
    assert second == "in the compilation of this statement:"
    assert "            y = x + 1" in str(caught.value)
    assert (
        versions == f"(rekindle {rekindle.__version__}, torch {torch.__version__}, Python {platform.python_version()})"
    )
    assert last == ("This is a bug in rekindle. Please report it with the program that you compiled and this message.")
