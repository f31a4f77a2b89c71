"""Modules whose classes define ``__call__``, ``__iter__``, ``__len__`` or ``__getitem__`` in place of PyTorch's."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import rekindle


class Shifted(nn.Linear):
    def __call__(self, x):
        return super().__call__(x) + 1


class Typed(nn.Linear):
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Call the layer."""
        return super().__call__(x)


class Forwarding(nn.Linear):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)


class Named(nn.Linear):
    def __call__(self, x, *, times: int):
        return super().__call__(x, times=times)

    def forward(self, x, *, times: int):
        return super().forward(x) * times


class Thrice(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Named(2, 2)

    def forward(self, x: torch.Tensor):
        return self.part(x, times=3)


class Twice(nn.Linear):
    def __call__(self, x, times=2):
        return super().__call__(x, times)

    def forward(self, x, times=1):
        return super().forward(x) * times


class Holder(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor):
        return self.part(x)


class Unused(Holder):
    def forward(self, x: torch.Tensor):
        return self.part.forward(x)


_MESSAGE = "the module '{}' defines '__call__', and compiled code calls 'forward' only"


@pytest.mark.parametrize("cls", [Shifted, Twice])
@pytest.mark.parametrize("wrap", [Holder, lambda part: part])
def test_calls_that_do_more_are_rejected(cls: type[nn.Linear], wrap) -> None:
    with pytest.raises(rekindle.errors.NotScriptableError) as caught:
        rekindle.script(wrap(cls(2, 2)))
    assert str(caught.value).partition("\n")[0] == _MESSAGE.format(cls.__name__)


@pytest.mark.parametrize("part", [Typed(2, 2), Forwarding(2, 2), Thrice()])
def test_calls_that_forward_are_compiled(part: nn.Module) -> None:
    x = torch.randn(3, 2)
    for module in (part, Holder(part)):
        torch.testing.assert_close(rekindle.script(module)(x), module(x))


def test_forward_may_be_called_by_name() -> None:
    module = Unused(Shifted(2, 2))
    x = torch.randn(3, 2)
    torch.testing.assert_close(rekindle.script(module)(x), module(x))


class Reversed(nn.ModuleList):
    def __iter__(self):
        return iter(list(self._modules.values())[::-1])


class Counted(nn.Sequential):
    def __len__(self) -> int:
        return 7

    def __getitem__(self, index: int) -> int:
        return index * 2


class Iterating(nn.Module):
    def __init__(self, parts: nn.Module) -> None:
        super().__init__()
        self.parts = parts

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


class Counting(Iterating):
    def forward(self, x):
        return self.parts(x), len(self.parts), self.parts[3]


def test_loops_over_containers_with_an_order_of_their_own_are_rejected() -> None:
    with pytest.raises(rekindle.errors.NotScriptableError) as caught:
        rekindle.script(Iterating(Reversed([nn.Linear(2, 2), nn.ReLU()])))
    assert str(caught.value).partition("\n")[0] == (
        "the container 'Reversed' defines '__iter__', and compiled code iterates over its items"
    )


def test_containers_have_the_length_and_items_of_their_class() -> None:
    module = Counting(Counted(nn.Linear(2, 2), nn.ReLU()))
    x = torch.randn(3, 2)
    found, expected = rekindle.script(module)(x), module(x)
    torch.testing.assert_close(found[0], expected[0])
    assert found[1:] == expected[1:] == (7, 6)
