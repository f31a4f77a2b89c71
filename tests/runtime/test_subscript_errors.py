"""The texts of errors of subscripts of Tensors are those of eager PyTorch."""

from __future__ import annotations

import io

import pytest
import torch

import rekindle
from tests.versions.differences import RELEASE


def first(x):
    return x[0]


def column(x):
    return x[:, 5]


def element(x):
    return x[0, 9]


def last(x):
    return x[..., 9]


def beside_a_slice(x):
    return x[1, 0:1, 7]


def too_many(x):
    return x[:, :, 0:1]


def written(x):
    x[7] = 3.0
    return x


def added_to(x):
    x[0].add_(1)
    return x


# fmt: off
def on_several_lines(x):
    return x[
        9
    ]


# fmt: on
def of_a_sum(x):
    return (1 + x)[9]


def of_a_call_within(x):
    return (x.abs() + (x))[0, 9]


def by_the_method(x):
    return x.select(0, 9)


def by_the_method_of_a_result(x):
    return torch.ones_like(x).select(0, 9)


def by_the_function(x):
    return torch.select(x, 0, 9)


def _outcome(function, x):
    try:
        return function(x)
    except IndexError as error:
        return str(error).partition("\n")[0]


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        *((each, (0,)) for each in (by_the_method_of_a_result, by_the_function)),
        *((each, (0,)) for each in (first, column, too_many, written, added_to, on_several_lines, by_the_method)),
        *((each, (2, 3)) for each in (of_a_sum, of_a_call_within)),
        *((each, (2, 3)) for each in (column, last, too_many, written, on_several_lines, by_the_method)),
        (beside_a_slice, (2, 3)),
        (beside_a_slice, (2, 3, 4)),
    ],
)
def test_the_text_is_that_of_eager(function, sizes, optimized):
    with rekindle.optimized_execution(optimized):
        compiled = rekindle.script(function)
        for _ in range(3):
            assert str(_outcome(compiled, torch.zeros(sizes))) == str(_outcome(function, torch.zeros(sizes)))


@pytest.mark.parametrize("sizes", [(0,), (2, 3)])
@pytest.mark.parametrize(
    "function",
    [first, column, element, last, too_many, on_several_lines, of_a_sum, of_a_call_within, by_the_method],
)
def test_a_program_that_was_saved_raises_the_texts_of_its_source(function, sizes):
    file = io.BytesIO()
    rekindle.save(rekindle.script(function), file)
    file.seek(0)
    loaded = rekindle.load(file)
    for _ in range(3):
        assert str(_outcome(loaded, torch.zeros(sizes))) == str(_outcome(function, torch.zeros(sizes)))


@pytest.mark.parametrize("optimized", [False, True])
def test_the_second_of_two_indices(optimized):
    with rekindle.optimized_execution(optimized):
        compiled = rekindle.script(element)
        for x in (torch.zeros(2, 3), torch.tensor(1.0)):
            assert _outcome(compiled, x) == _outcome(element, x)


def row_of_unbind(x):
    return x.unbind()[7]


def part_of_split(x):
    return x.split(1)[-9]


def size(x):
    return x.shape[5]


def coordinates(x):
    return x.nonzero(as_tuple=True)[7]


def item_of_a_list(x):
    return list(x.shape)[5]


def caught(x):
    try:
        return str(x.unbind()[7])
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("function", [row_of_unbind, part_of_split, size, coordinates, item_of_a_list, caught])
def test_what_is_a_tuple_in_python(function, optimized):
    with rekindle.optimized_execution(optimized):
        compiled = rekindle.script(function)
        for sizes in ((0,), (2, 3)):
            for _ in range(3):
                assert str(_outcome(compiled, torch.zeros(sizes))) == str(_outcome(function, torch.zeros(sizes)))


@pytest.mark.parametrize("optimized", [False, True])
def test_an_index_of_a_number(optimized):
    with rekindle.optimized_execution(optimized):
        with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
            rekindle.script(first)(torch.tensor(1.0))


def assigned(x, n: float):
    x[0] = n
    return x


def assigned_by_a_mask(x, n: float):
    x[x > 0] = n
    return x


def assigned_int(x, n: int):
    x[:1] = n
    return x


NUMBERS = [
    *((each, number) for each in (assigned, assigned_by_a_mask) for number in (1e300, 300.5, -3.0, float("inf"))),
    *((assigned_int, number) for number in (300, -1, 2**63, 2**70)),
]


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize(("function", "number"), NUMBERS)
def test_numbers_that_the_dtype_does_not_hold(function, number, optimized):
    def outcome(call, x):
        try:
            return repr(call(x, number))
        except (RuntimeError, ValueError) as error:
            return repr(error), repr(x)

    with rekindle.optimized_execution(optimized):
        compiled = rekindle.script(function)
        for dtype in (torch.float32, torch.float16, torch.int8, torch.uint8, torch.int64, torch.bool, torch.complex64):
            if RELEASE >= (2, 15) and dtype is torch.float16 and function is assigned and number == 1e300:
                assert "without overflow" in outcome(compiled, torch.ones(2, dtype=dtype))[0]  # see docs/versions.md
                continue
            assert outcome(compiled, torch.ones(2, dtype=dtype)) == outcome(function, torch.ones(2, dtype=dtype))
