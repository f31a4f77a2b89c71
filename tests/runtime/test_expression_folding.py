"""What needs no line of its own where instructions become Python."""

from __future__ import annotations

import traceback
from typing import Any, List

import pytest
import torch

import rekindle
from rekindle.runtime.executor import optimized_execution
from tests.runtime.test_plan import source_of


def counted(items: List[int], n: int) -> List[int]:
    for i in range(2, n, 3):
        items.append(i)
        items[0] = items[0] + i * 2
    return items


def test_arithmetic_that_cannot_fail_stands_where_it_is_read() -> None:
    compiled = rekindle.script(counted)
    assert compiled([1], 20) == counted([1], 20)
    assert (
        source_of(compiled)
        == """\
def plan(r0, r1):
 r6 = f0(2, r1, 3)
 for r8 in range(2, r1, 3):
  r0.append(r8)
  r9 = r0[0]
  r0[0] = (r9 + (r8 * 2))
 return r0"""
    )


def ranges(n: int, low: int, step: int) -> List[int]:
    found: List[int] = []
    for i in range(low, n, step):
        n = n - 1
        for j in range(i, n):
            low += 1
            found.append(i * 10 + j)
        for j in range(n, low, -1):
            found.append(j)
            if j == 3:
                break
        found.append(low)
    return found


@pytest.mark.parametrize(("n", "low", "step"), [(6, 0, 1), (7, 2, 2), (0, 5, -2), (3, 3, 1)])
def test_ranges_whose_ends_change_meanwhile(n: int, low: int, step: int) -> None:
    """What they were at the start counts."""
    compiled = rekindle.script(ranges)
    expected = ranges(n, low, step)
    for optimize in (True, False):
        with optimized_execution(optimize):
            assert compiled(n, low, step) == expected


def quotient(items: List[int], n: int) -> bool:
    first = items[0] + 1
    return first // n > 9


def test_what_can_fail_keeps_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        rekindle.script(quotient)([1], 0)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].line == "return first // n > 9"


def shaped(x, rows: int):
    shape = [rows, x.numel() // rows]
    return x.view(shape) * 2, x.reshape([-1]).view(shape).expand([3, rows, -1]), shape


def test_sizes_are_written_where_they_are_read() -> None:
    """But for lists that anyone else may see."""
    compiled = rekindle.script(shaped)
    x = torch.arange(6.0)
    first, second, shape = compiled(x, 2)
    assert torch.equal(first, x.view(2, 3) * 2)
    assert torch.equal(second, x.view(2, 3).expand(3, 2, -1))
    assert shape == [2, 3]
    assert type(shape) is list
    text = source_of(compiled)
    assert "(r0, ((-1), ))" in text
    assert ", 3, r1, (-1))" in text


def views(x):
    return x.reshape([]).view([]), x.view([1]).repeat([2])


def test_no_sizes_at_all() -> None:
    compiled = rekindle.script(views)
    for answer, expected in zip(compiled(torch.ones(1)), views(torch.ones(1))):
        assert torch.equal(answer, expected)


def halves(x):
    a, b = x.chunk(2, 1)
    return a - b


@pytest.mark.parametrize("optimize", [True, False])
def test_too_few_pieces(optimize: bool) -> None:
    compiled = rekindle.script(halves)
    with optimized_execution(optimize):
        assert torch.equal(compiled(torch.tensor([[1.0, 3.0]])), torch.tensor([[-2.0]]))
        with pytest.raises(ValueError, match=r"not enough values to unpack \(expected 2, got 1\)"):
            compiled(torch.ones(1, 1))


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.register_buffer("scale", torch.ones(2))
        self.count = 1

    def forward(self, x):
        return self.linear(x) * self.scale * self.count


def test_attributes_are_read_anew_by_every_call() -> None:
    """Wherever ``nn.Module`` keeps them."""
    net = Net()
    compiled: Any = rekindle.script(net)
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), net(x))
    assert "['weight']" in source_of(compiled.forward)

    compiled.linear.weight = torch.nn.Parameter(torch.zeros(2, 2))
    compiled.scale = torch.full((2,), 3.0)
    compiled.count = 2
    assert torch.equal(compiled(x), (net.linear.bias * 6)[None])

    # As parametrizations do it.
    weight = compiled.linear._parameters.pop("weight")
    compiled.linear.__dict__["weight"] = weight + 1
    assert torch.equal(compiled(x), (net.linear.bias + 2)[None] * 6)


def narrowed(x, limit: int):
    found: List[bool] = []
    for i in range(limit):
        y = x[0] if i == 1 else x
        found.append(y is not None and i * 2 + 1 < limit)
    return found


def test_what_is_read_behind_a_join_of_branches() -> None:
    assert rekindle.script(narrowed)(torch.ones(2), 4) == narrowed(torch.ones(2), 4) == [True, True, False, False]
