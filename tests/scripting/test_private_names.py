"""Private names mean in programs what Python makes of them."""

from __future__ import annotations

import io

import torch
from torch import Tensor, nn

import rekindle


class _Counter:
    def __init__(self, start: int) -> None:
        self.__count = start

    def bump(self, __by: int) -> int:
        self.__count += self.__twice(__by)
        return self.__count

    def __twice(self, n: int) -> int:
        return n * 2


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.__factor = 2.0
        self.__weight = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.__scaled(x) * self.__weight

    def __scaled(self, x: Tensor) -> Tensor:
        return x * self.__factor


class Derived(Scale):
    def __init__(self) -> None:
        super().__init__()
        self.__factor = 5.0

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.__factor


def test_attributes_and_methods_of_classes() -> None:
    @rekindle.script
    def f(n: int) -> int:
        counter = _Counter(n)
        return counter.bump(1) + counter.bump(2)

    @rekindle.script
    def g(counter: _Counter) -> int:
        return counter.bump(1)

    expected = _Counter(3)
    assert f(3) == expected.bump(1) + expected.bump(2)
    given = _Counter(5)
    assert (g(given), given.bump(0), vars(given)) == (7, 7, {"_Counter__count": 7})


def test_modules_and_those_that_derive_from_them() -> None:
    for cls in (Scale, Derived):
        module = cls()
        compiled = rekindle.script(module)
        x = torch.arange(2.0)
        torch.testing.assert_close(compiled(x), module(x))
        file = io.BytesIO()
        rekindle.save(compiled, file)
        for load in (rekindle.load, torch.jit.load):
            file.seek(0)
            torch.testing.assert_close(load(file)(x), module(x))


class Versioned(nn.Module):
    __constants__ = ("__level__",)

    def __init__(self) -> None:
        super().__init__()
        self.__version__ = 3
        self.__level__ = 4
        self.__object__ = object()

    def forward(self) -> int:
        self.__version__ += 1
        return self.__version__ * 10 + self.__level__


def test_attributes_of_modules_with_names_between_underscores() -> None:
    compiled, eager = rekindle.script(Versioned()), Versioned()
    buffer = io.BytesIO()
    rekindle.save(compiled, buffer)
    buffer.seek(0)
    assert rekindle.load(buffer)() == 44
    assert [compiled(), compiled()] == [eager(), eager()] == [44, 54]
    assert compiled.__version__ == 5
    compiled.__version__ = 7
    assert compiled() == 84
