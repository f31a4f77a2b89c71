"""``isinstance`` and ``type`` of parameters and other subclasses of Tensor."""

from __future__ import annotations

from typing import Optional

import pytest
import torch
from torch import nn

import rekindle


class Marked(torch.Tensor):
    """A subclass without anything of its own."""


def asked(x):
    kind = "tensor"
    if isinstance(x, nn.Parameter):
        kind = "parameter"
    elif type(x) is Marked:
        kind = "marked"
    same = isinstance(x, (torch.Tensor, nn.Parameter))
    return kind, isinstance(x, Marked), type(x) is nn.Parameter, same, isinstance(x * 2, nn.Parameter)


def of_optional(x: torch.Tensor, other: Optional[torch.Tensor]):
    if isinstance(other, nn.Parameter):
        return x + other
    return x if other is None else x * other


def of_numbers(n: int):
    return isinstance(n, nn.Parameter)


def _tensors() -> list[torch.Tensor]:
    return [torch.ones(2), nn.Parameter(torch.ones(2)), torch.ones(2).as_subclass(Marked), torch.zeros(2)]


def test_classes_of_tensors_are_asked_at_run_time() -> None:
    compiled = rekindle.script(asked)
    for x in [*_tensors(), *_tensors()]:
        assert compiled(x) == asked(x)


def test_classes_of_optionals_are_asked() -> None:
    compiled = rekindle.script(of_optional)
    x = torch.full((2,), 3.0)
    for other in (None, torch.ones(2), nn.Parameter(torch.ones(2)), None):
        torch.testing.assert_close(compiled(x, other), of_optional(x, other))
    assert rekindle.script(of_numbers)(3) is False


class Slots(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_parameter("missing", None)
        self.register_buffer("count", torch.ones(2))
        self.plain = torch.ones(2)
        self.part = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor):
        known = [isinstance(each, nn.Parameter) for each in (self.weight, self.count, self.plain)]
        listed = 0
        for each in self.parameters():
            if isinstance(each, nn.Parameter):
                listed += 1
        return known, isinstance(self.missing, nn.Parameter), listed, isinstance(x, nn.Parameter)


@pytest.mark.parametrize("freezes", [False, True])
def test_slots_of_modules(freezes: bool) -> None:
    module = Slots().eval()
    compiled = rekindle.script(module)
    if freezes:
        compiled = rekindle.freeze(compiled)
    for x in _tensors():
        assert compiled(x) == module(x) == ([True, False, False], False, 3, isinstance(x, nn.Parameter))


def one_of_several(x):
    return isinstance(x, (int, nn.Parameter))


def test_one_of_several_classes_is_rejected() -> None:
    with pytest.raises(rekindle.errors.UnsupportedError) as caught:
        rekindle.script(one_of_several)
    assert str(caught.value).partition("\n")[0] == "a subclass of Tensor cannot be one of several classes here"
