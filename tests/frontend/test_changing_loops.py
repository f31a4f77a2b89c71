"""Loops over what their bodies change: lists show their new length, dicts and the like raise."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple, Union

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
    """A container without other references cannot change: the loop counts to its first length."""
    text = str(rekindle.script(function).graph)
    assert "9223372036854775807" not in text
    assert "RuntimeError" not in text


def adds_a_key_of_several_types(d: Dict[Union[int, float], int], k: int):
    for key, _ in d.items():
        d[k] = 100
    return d


def takes_keys_of_several_types(d: Dict[Union[int, float], int], k: int):
    for key in d:
        d.pop(key)
    return d


def adds_a_tuple(d: Dict[Tuple[int, int], int], k: int):
    seen = []
    for value in d.values():
        d.setdefault((k, 1), 3)
        seen.append(value)
    return seen


def takes_numbers_out(numbers: List[Union[int, float]], k: int):
    same = numbers
    for number in numbers:
        if number in same:
            same.remove(number)
    return numbers


@pytest.mark.parametrize(
    ("program", "given"),
    [
        *((each, {4: 3}) for each in (adds_a_key_of_several_types, takes_keys_of_several_types)),
        *((each, {4: 3, 2.5: 1, 7: 2}) for each in (adds_a_key_of_several_types, takes_keys_of_several_types)),
        (adds_a_tuple, {(4, 1): 3}),
        (takes_numbers_out, [1, 2.5, 3]),
    ],
)
def test_keys_and_elements_that_only_python_has(program: Any, given: Any) -> None:
    assert_calls_agree(program, (given, 1), (given, 4))
