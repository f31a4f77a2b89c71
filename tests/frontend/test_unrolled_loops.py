"""Loops over modules and tuples, which are unrolled: ``break`` and ``continue`` in them, and ``zip`` with lists."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import rekindle


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2)])


class Skipping(Layers):
    def forward(self, x: torch.Tensor, skipped: int):
        seen: list[int] = []
        for i, layer in enumerate(self.layers):
            if i == skipped:
                if i > 1:
                    seen.append(-1)
                    continue
                seen.append(-2)
            elif x.numel() == 0:
                continue
            x = layer(x)
            seen.append(i)
        return x, seen


class Stopping(Layers):
    def forward(self, x: torch.Tensor, last: int):
        seen: list[int] = []
        ended = False
        for i, layer in enumerate(self.layers):
            for k in range(4):
                if k == 1:
                    continue
                if k > i:
                    break
                seen.append(k)
            if i == last:
                break
            x = layer(x)
        else:
            ended = True
        return x, seen, ended


class Returning(Layers):
    def forward(self, x: torch.Tensor, at: int):
        for i, layer in enumerate(self.layers):
            if i < at:
                continue
            x = layer(x)
            if i > at:
                return x, i
        return x, -1


class Zipped(Layers):
    def forward(self, x: torch.Tensor, count: int):
        xs = [x + i for i in range(count)]
        results: list[torch.Tensor] = []
        for layer, each in zip(self.layers, xs):
            results.append(layer(each))
        for i, (row, layer) in enumerate(zip(x, self.layers)):
            results.append(layer(row) * i)
        for layer, each, name in zip(self.layers, xs, ("a", "b")):
            if name == "b" and count == 2:
                break
            results.append(layer(each))
        return results, [layer(each).sum() for layer, each in zip(self.layers, xs)]


@pytest.mark.parametrize("cls", [Skipping, Stopping, Returning, Zipped])
def test_loops_over_modules_jump_as_in_eager(cls: type[Layers]) -> None:
    torch.manual_seed(0)
    module = cls()
    compiled = rekindle.script(module)
    for number in (0, 1, 2, 3, 7):
        for rows in (2, 0, 5):
            x = torch.randn(rows, 2)
            found, expected = compiled(x, number), module(x, number)
            torch.testing.assert_close(found[0], expected[0])
            assert [str(each) for each in found[1:]] == [str(each) for each in expected[1:]]


def of_tuples(n: int) -> str:
    text = ""
    for value in (1, 2.5, "x"):
        if value == n:
            break
        if value == 2.5:
            continue
        text += str(value)
    for number, letter in ((1, "a"), (2, "b"), (3, "c")):
        if number == n:
            continue
        text += letter
    return text


def test_loops_over_tuples_jump_as_in_eager() -> None:
    compiled = rekindle.script(of_tuples)
    for n in range(5):
        assert compiled(n) == of_tuples(n)


class InWith(Layers):
    def forward(self, x: torch.Tensor):
        for layer in self.layers:
            with torch.no_grad():
                if x.sum() > 0:
                    continue
            x = layer(x)
        return x


class Listed(Layers):
    def forward(self, xs: list[torch.Tensor]):
        return len(list(zip(self.layers, xs)))


def test_what_has_no_structure_is_rejected() -> None:
    with pytest.raises(rekindle.errors.UnsupportedError) as caught:
        rekindle.script(InWith())
    assert str(caught.value).partition("\n")[0] == (
        "'continue' is not supported in a 'with' or 'try' in a loop over modules or a tuple: such a loop is unrolled"
    )
    with pytest.raises(rekindle.errors.UnsupportedError) as caught:
        rekindle.script(Listed())
    assert str(caught.value).partition("\n")[0] == (
        "modules or tuples cannot be iterated over beside something whose length is known only when the program runs"
    )
