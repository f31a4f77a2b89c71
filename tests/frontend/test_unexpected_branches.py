"""Branches into which the attributes of a module do not lead when it is compiled, and which cannot be compiled."""

# ruff: noqa: F821

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 3
        self.relu = nn.ReLU()


class UndefinedName(Counted):
    def forward(self, x: Tensor) -> Tensor:
        if self.count > 4:
            x += 1
            return undefined_name(x)  # type: ignore[name-defined, no-any-return]
        return x


class AssignedLater(Counted):
    def forward(self, x: Tensor) -> Tensor:
        if self.count > 4:
            x += later + 1  # type: ignore[has-type, used-before-def]
            later = 2
        return x


class InABranchWithin(Counted):
    def forward(self, x: Tensor) -> Tensor:
        if self.count > 4:
            x = self.relu(x)
            if x.sum() > 3:
                print(undefined_name)  # type: ignore[name-defined]  # noqa: T201
            return x * 2
        return x


class Caught(Counted):
    def forward(self, x: Tensor) -> Tensor:
        if self.count > 4:
            try:
                x += undefined_name  # type: ignore[name-defined]
            except NameError:
                return x * 2
        return x


class InAPart(Counted):
    def forward(self, x: Tensor) -> Tensor:
        if self.count > 4:
            return x if self.count < 7 else undefined_name  # type: ignore[name-defined, no-any-return]
        return x


def _outcome(module: Any, x: Tensor) -> str:
    try:
        return repr(module(x))
    except Exception as error:
        return f"{type(error).__name__}: {error} {x}"


@pytest.mark.parametrize("cls", [UndefinedName, AssignedLater, InABranchWithin, Caught])
def test_a_name_without_a_value_raises_where_it_is_read(cls: type[Counted]) -> None:
    module, compiled = cls(), rekindle.script(cls())
    for count in (3, 5, 3, 5):
        for x in (torch.ones(2), torch.ones(5)):
            module.count = compiled.count = count
            assert _outcome(compiled, x.clone()) == _outcome(module, x.clone())


def test_a_name_that_may_not_be_read_keeps_the_branch_from_being_compiled() -> None:
    compiled = rekindle.script(InAPart())
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2))
    compiled.count = 5
    with pytest.raises(RuntimeError) as caught:
        compiled(torch.ones(2))
    assert str(caught.value).partition("\n")[0] == (
        "this branch was not compiled, because no attribute of the module led here: "
        "the name 'undefined_name' is not defined"
    )
