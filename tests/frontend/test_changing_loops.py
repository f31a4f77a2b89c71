"""Loops over what their bodies change: lists show their new length, dicts and the like raise."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.frontend import changing
from tests.support.calls import assert_calls_agree
from tests.support.golden import GoldenTexts

DICTS: tuple[dict[int, int], ...] = ({1: 1, 2: 2, 3: 3}, {}, {2: 2})

PROGRAMS = {
    name: item
    for name, item in vars(changing).items()
    if getattr(item, "__module__", "") == changing.__name__ and name not in ("grow", "raise_last")
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_eager(name: str) -> None:
    assert_calls_agree(PROGRAMS[name], *((numbers,) for numbers in DICTS))


@pytest.mark.parametrize("name", ["new_keys", "list_under_another_name"])
def test_the_graph(name: str, golden: GoldenTexts) -> None:
    text = str(rekindle.script(PROGRAMS[name]).graph)
    golden(f"frontend/changing/{name}", "\n".join(line.partition(" # ")[0] for line in text.splitlines()))


class Queue(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items: List[int] = [1, 2]

    def add(self, n: int) -> None:
        self.items.append(n)

    def forward(self, x: Tensor) -> Tensor:
        for item in self.items:
            x = x * item
            if len(self.items) < 5:
                self.add(item + 1)
        return x


def test_a_list_that_a_method_changes() -> None:
    compiled, eager = rekindle.script(Queue()), Queue()
    for _ in range(3):
        x = torch.ones(2, requires_grad=True)
        y = torch.ones(2, requires_grad=True)
        compiled(x).sum().backward()
        eager(y).sum().backward()
        assert x.grad is not None
        assert y.grad is not None
        assert torch.equal(x.grad, y.grad)
        assert compiled.items == eager.items


def doubled(xs: List[Tensor]) -> List[Tensor]:
    out = []
    for x in xs:
        out.append(x * 2)
    return out


def counted(words: List[str]) -> Dict[str, int]:
    found: Dict[str, int] = {}
    seen = {"a": 1}
    for word in seen:
        found[word] = 2
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found


@pytest.mark.parametrize("function", [doubled, counted])
def test_lists_of_the_function_itself_cost_nothing(function: Any) -> None:
    """What alone holds its container is no other's: the loop counts to the length that it began with."""
    text = str(rekindle.script(function).graph)
    assert "9223372036854775807" not in text
    assert "RuntimeError" not in text
