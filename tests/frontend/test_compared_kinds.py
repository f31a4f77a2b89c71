"""Programs whose values have other classes in Python than in the IR: comparisons, sums, sizes kept in attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, List

import pytest
import torch
from torch import nn

import rekindle
from rekindle.errors import TypeMismatchError


def lists_and_sizes(x):
    size, rows = x.shape, [x.size(0), x.size(1)]
    return (
        (size == [2, 3], size != [2, 3], size == (2, 3), rows == [2, 3], rows == (2, 3), [2, 3] == size),
        (list(size) == [2, 3], size[1:] == (3,), size[1:] == [3], x.stride() == (3, 1), x.stride() == [3, 1]),
    )


def lists_and_numbers(n: int):
    return [n] == n, (n,) == n, (n,) == [n], [n] == (n,), (n,) == (1,), [n] == [1.0], (n, 2) != [n, 2]


def text_and_others(text: str):
    return text == 1, [text] == text, (text,) == [text], text != (text,), {text: 1} == [text], text == "a"


def branches(x):
    if [x.size(0), x.size(1)] == x.shape:
        return 1
    if (x.size(0), x.size(1)) == x.shape:
        return 2
    return 3


def empty_literals(xs: List[str], ns: List[int]):
    return xs == [], [] == xs, xs != [], ns == [], [] != ns, xs < ["b"], [] == []


def lists_among_lists(h: int, w: int):
    sizes = [[1, 2], [3, 4]]
    return [h, w] in [[1, 2]], [h, w] in sizes, [h, w] not in sizes, (h, w) in [(1, 2), (3, 4)], [[h, w]] == [[1, 2]]


def sums(xs: List[float]):
    squares = [x * x for x in xs]
    return sum(xs), sum(xs, 1), sum(xs, 0.5), sum(x * x for x in xs), sum(squares) / max(len(xs), 1), sum([0.5, 1.5])


def uses_of_sums(xs: List[float]):
    total = sum(xs)
    return total + 1, total * 0.5, f"{total}", round(total, 1), [total, 1.5], -total, total == 0, sum(xs[:2]) + sum(xs)


def sums_of_complex(xs: List[complex]):
    return sum(xs), sum(xs, 1j)


PROGRAMS: dict[Callable[..., Any], tuple[tuple[Any, ...], ...]] = {
    lists_and_sizes: ((torch.ones(2, 3),), (torch.ones(3, 2),)),
    lists_and_numbers: ((1,), (2,)),
    text_and_others: (("a",), ("b",)),
    branches: ((torch.ones(2, 3),),),
    empty_literals: (([], []), (["a"], [1])),
    lists_among_lists: ((1, 2), (2, 1), (3, 4)),
    sums: (([],), ([0.5, 1.25],), ([-0.0],)),
    uses_of_sums: (([],), ([0.5, 1.25],)),
    sums_of_complex: (([],), ([1j, 2.0],)),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    for arguments in PROGRAMS[program]:
        for _ in range(2):
            assert repr(compiled(*arguments)) == repr(program(*arguments)), arguments


class Sizes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.size = torch.Size([2, 3])
        self.none = torch.Size([])
        self.listed = [2, 3]

    def forward(self, x):
        equal = self.size == x.shape, self.size == [2, 3], self.listed == x.shape, self.listed == [2, 3]
        return equal, self.size, self.none, self.size[0], x.view(self.size), torch.zeros(self.none)


LIMIT = torch.Size([2, 3])


def of_global(x):
    return LIMIT, LIMIT == x.shape, LIMIT == [2, 3], LIMIT + (1,), x.view(LIMIT), LIMIT.numel()


def test_a_size_that_a_module_or_a_global_holds_stays_one() -> None:
    x = torch.ones(2, 3)
    assert repr(rekindle.script(Sizes())(x)) == repr(Sizes()(x))
    assert repr(rekindle.script(of_global)(x)) == repr(of_global(x))


def made_sizes(x, n: int):
    size = torch.Size([n, 3])
    equal = (
        x.shape == size,
        size == x.shape,
        x.shape != size,
        size == (2, 3),
        (2, 3) == torch.Size((2, 3)),
        size in [x.shape],
    )
    others = torch.Size(x.shape[::-1]), torch.Size(), torch.Size([]), torch.Size(i + 1 for i in range(n)), size + (1,)
    return equal, others, size, size.numel(), torch.zeros(size), f"{size}", isinstance(size, torch.Size), size[1:]


def test_a_size_that_the_program_makes_is_one() -> None:
    compiled = rekindle.script(made_sizes)
    for x, n in ((torch.ones(2, 3), 2), (torch.ones(2, 3), 1), (torch.ones(3), 2)):
        assert repr(compiled(x, n)) == repr(made_sizes(x, n))


def size_of_floats(xs: List[float]):
    return torch.Size(xs)


def test_a_size_is_made_of_ints() -> None:
    with pytest.raises(TypeMismatchError) as caught:
        rekindle.script(size_of_floats)
    assert str(caught.value).splitlines()[0] == "torch.Size takes ints, got List[float]"


def leaks(n: int):
    ys = [k := i for i in range(n)]
    return k, ys


def leaks_of_dicts(n: int):
    d = {i: (last := i * 2) for i in range(n) if i % 2 == 0}
    return d, last


def leaks_of_rows(n: int):
    rows = [[(a := i * j) for i in range(j)] for j in range(n)]
    return rows, a


def leaks_of_generators(x):
    return hit if any((hit := v) > 1 for v in x) else x.sum() + hit


@pytest.mark.parametrize("program", [leaks, leaks_of_dicts, leaks_of_rows])
def test_assignment_expressions_in_comprehensions_assign_around_them(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    assert compiled(5) == program(5)
    for call in (compiled, program):
        with pytest.raises(UnboundLocalError, match=r"cannot access local variable '(k|last|a)'|referenced before"):
            call(0)


def test_assignment_expressions_in_generators_assign_what_was_reached() -> None:
    compiled = rekindle.script(leaks_of_generators)
    for values in ([0.5, 2.0, 3.0], [0.5]):
        x = torch.tensor(values)
        assert torch.equal(compiled(x), leaks_of_generators(x))
    with pytest.raises(UnboundLocalError):
        compiled(torch.tensor([]))
