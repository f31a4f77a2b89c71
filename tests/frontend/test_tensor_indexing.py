"""Tensors indexed by Tensors: what Python's subscripts return, whether it is a view, and what they write."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch

import rekindle
from rekindle.errors import UnsupportedError
from tests.support.calls import assert_calls_agree

Outcome = tuple[str, object]


def read(x, i):
    return x[i]


def write_to_row(x, i):
    row = x[i]
    row.add_(1)
    return x, row


def clear_row(x, i):
    x[i].zero_()
    return x


def write_to_view(x, i):
    x[0:2, i].mul_(2)
    return x


def assign(x, i):
    x[i] = 5.0
    return x


def assign_row(x, i):
    x[i] = torch.tensor([7.0, 8.0, 9.0])
    return x


def augment(x, i):
    x[i] += 5.0
    return x


def augment_column(x, i):
    x[:, i] *= 2
    return x


def read_item(x, i):
    return x[i][0]


def read_new_dimension(x, i):
    return x[None, i], x[i, None]


def read_diagonal(x, i):
    return x[i, i]


def read_last(x, i):
    return x[..., i]


def write_last(x, i):
    x[..., i] = 3.0
    x[..., i, :] += 1.0
    return x


def read_last_of_row(x, i):
    return x[0, ..., i], x[..., i, 0], x[..., i, None], x[..., i, 0:2]


def loop_over_rows(x, i):
    for k in i.flatten().long():
        x[k].add_(1)
        x[k, 0] = -1.0
    return x


PROGRAMS: tuple[Callable[..., object], ...] = (
    *(read, write_to_row, clear_row, write_to_view, assign, assign_row, augment, augment_column, read_item),
    *(read_new_dimension, read_diagonal, read_last, write_last, read_last_of_row, loop_over_rows),
)
INDICES = {
    "number": torch.tensor(1),
    "negative number": torch.tensor(-1),
    "int32": torch.tensor(2, dtype=torch.int32),
    "one": torch.tensor([1]),
    "rows": torch.tensor([2, 0]),
    "matrix": torch.tensor([[0, 1], [2, 2]]),
    "mask": torch.tensor([True, False, True]),
    "empty": torch.tensor([], dtype=torch.int64),
}
BOOLS = {"true": torch.tensor(True), "false": torch.tensor(False)}


def outcome(function: Callable[..., object], *args: object) -> Outcome:
    given = copy.deepcopy(args)
    try:
        return "returned", (function(*given), given)
    except Exception as error:
        return "raised", type(error).__name__


def assert_same(one: Outcome, other: Outcome) -> None:
    assert one[0] == other[0], (one, other)
    torch.testing.assert_close(one[1], other[1], rtol=0, atol=0)


def check(program: Callable[..., object], *calls: tuple[object, ...]) -> None:
    """Compare a program with eager's in one sequence of calls, each made twice."""
    compiled = rekindle.script(program)
    for args in calls:
        for _ in range(2):
            expected, actual = outcome(program, *args), outcome(compiled, *args)
            if expected[0] == "raised":
                assert actual == expected
            else:
                assert_same(actual, expected)


def matrix() -> torch.Tensor:
    return torch.arange(9.0).reshape(3, 3)


def cube() -> torch.Tensor:
    return torch.arange(27.0).reshape(3, 3, 3)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_an_index_means_what_it_means_in_python(program: Callable[..., object]) -> None:
    check(program, *((matrix(), index) for index in INDICES.values()))


@pytest.mark.parametrize("program", [read, write_to_row, clear_row, assign, assign_row, augment, read_item])
def test_a_bool_without_dimensions_adds_a_dimension(program: Callable[..., object]) -> None:
    check(program, *((matrix(), index) for index in BOOLS.values()))
    if program is not assign_row and program is not read_item:
        check(program, *((torch.tensor(4.0), index) for index in BOOLS.values()))


def test_a_bool_without_dimensions_beside_other_indices_is_an_error() -> None:
    compiled = rekindle.script(read_diagonal)
    with pytest.raises(IndexError) as caught:
        compiled(torch.ones(3, 3), torch.tensor(True))
    assert "a bool Tensor without dimensions indexes only by itself here: x[index]" in str(caught.value)


def read_around(x, i, j):
    return x[i, :, j], x[i, 0:2, j], x[:, i, j], x[i, j], x[i, ..., j], x[..., i, j], x[i, None, j]


def augment_around(x, i, j):
    x[i, :, j] += 10
    x[..., j] *= 2
    x[i, j] -= 3
    return x


PAIRS = {
    "number and rows": (torch.tensor(1), torch.tensor([0, 2])),
    "rows and number": (torch.tensor([0, 2]), torch.tensor(1)),
    "numbers": (torch.tensor(1), torch.tensor(2)),
    "rows": (torch.tensor([0, 2]), torch.tensor([1, 1])),
    "number and mask": (torch.tensor(0), torch.tensor([True, False, True])),
}


@pytest.mark.parametrize("program", [read_around, augment_around])
def test_several_indices_broadcast_where_they_have_dimensions(program: Callable[..., object]) -> None:
    """A number selects: ``x[1, :, [0, 2]]`` keeps the order of the dimensions, which two indices with dimensions do
    not."""
    check(program, *((cube(), *pair) for pair in PAIRS.values()))


def test_values_are_assigned_to_the_shape_that_was_selected() -> None:
    def program(x, i, j, value):
        x[i, :, j] = value
        return x

    sizes = ((3, 2), (2,), (3, 1), (2, 3))
    check(program, *((cube(), torch.tensor(1), torch.tensor([0, 2]), torch.ones(size)) for size in sizes))


def test_indices_in_front_of_and_after_dots() -> None:
    def program(x, i):
        y = x[..., i]
        x[..., i] = y * 2
        return y, x[0, ..., i], x[..., i, :], x[:, ..., i], x[..., [0, 2]], x[..., x[0, 0] > 1]

    check(program, (cube(), torch.tensor([0, 2])), (cube(), torch.tensor(2)))


def test_gradients_flow_through_rows_of_numbers() -> None:
    def program(x, i):
        return (x[i] ** 2).sum() + x[..., i].prod()

    compiled = rekindle.script(program)
    for index in (torch.tensor(1), torch.tensor([0, 2])):
        for _ in range(3):
            one, other = (torch.arange(9.0).reshape(3, 3).requires_grad_() for _ in range(2))
            program(one, index).backward()
            compiled(other, index).backward()
            torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=0)


def test_an_index_that_has_dimensions_needs_no_question() -> None:
    def program(x, n: int):
        return x[torch.arange(n)], x[[0, 1]], x[torch.tensor([True, False, True])]

    assert "aten::dim(" not in str(rekindle.script(program).graph)


def index_with_tuples(x, xs: list[int], i):
    numbers, rows, new, mixed, one = (0, 1), ([0, 1], [1, 2]), (None, 1), (i, 0), (xs[0],)
    x[numbers] = 5
    x[new] += 1
    x[rows] = 3
    x[mixed] *= 2
    x[tuple(xs)] -= 1
    of_variables = x[numbers], x[rows], x[new], x[mixed], x[one], x[one + (0,)]
    of_any_length = x[tuple(xs)], x[(0,) * x.dim()], x[x.shape[:1]] if len(x) < 2 else x
    return x, of_variables, of_any_length, x[numbers, 0], x[((0, 1),)], x[()], x[xs]


@pytest.mark.parametrize("rows", [torch.tensor([0, 1]), torch.tensor([True, False])])
@pytest.mark.parametrize("xs", [[1], [1, -1], [0, 3], [-3], [0, 0, 0]])
def test_the_items_of_a_tuple_are_indices_of_the_dimensions(xs: list[int], rows: torch.Tensor) -> None:
    assert_calls_agree(index_with_tuples, (torch.arange(6.0).reshape(2, 3), xs, rows))


def test_a_tuple_of_any_number_of_tensors_is_refused() -> None:
    def read_at(x: torch.Tensor, ts: list[torch.Tensor]):
        return x[tuple(ts)]

    with pytest.raises(UnsupportedError, match=r"cannot be indexed with a value of type Tuple\[Tensor, ...\] here"):
        rekindle.script(read_at)
