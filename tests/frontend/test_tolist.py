"""``x.tolist()`` where no type is declared: the list of the numbers of a Tensor of one dimension."""

from __future__ import annotations

import io
from typing import List

import pytest
import torch
from torch import Tensor, nn

import rekindle

_ROWS = ([1.5, -0.0, float("inf")], [2**62 + 1, -3], [True, False], [1 + 2j, 2.0], [])


def numbers(x: Tensor):
    values = x.tolist()
    return values, x.tolist()[1:]


@pytest.mark.parametrize("row", _ROWS, ids=str)
def test_numbers_are_those_of_the_tensor(row: List[complex]) -> None:
    compiled = rekindle.script(numbers)
    for x in (torch.tensor(row), torch.tensor(row).unsqueeze(1)[:, 0]):
        assert repr(compiled(x)) == repr(numbers(x))


def test_of_other_ranks_the_type_is_asked_for() -> None:
    compiled = rekindle.script(numbers)
    for x, rank in ((torch.ones(2, 2), 2), (torch.ones(()), 0)):
        with pytest.raises(RuntimeError) as caught:
            compiled(x)
        assert str(caught.value) == (
            f"tolist() without a declared type takes a Tensor of one dimension, and this one has {rank}; declare the "
            "result, for example: values: List[List[float]] = x.tolist()"
        )


def takes_floats(values: List[float]):
    values.append(1.5)
    return values


def passed_on(x: Tensor, lengths: Tensor):
    parts = x.split(lengths.tolist())
    return parts, torch.zeros(lengths.tolist()).shape, takes_floats(x.tolist())


def test_an_argument_is_made_as_it_is_declared() -> None:
    compiled = rekindle.script(passed_on)
    x, lengths = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1, 2])
    assert repr(compiled(x, lengths)) == repr(passed_on(x, lengths))
    with pytest.raises(RuntimeError) as caught:
        compiled(x, x)
    assert str(caught.value).startswith(
        "tolist() is annotated to give elements of type int, but the tensor is of torch.float32"
    )


def test_it_is_saved() -> None:
    compiled = rekindle.script(numbers)
    file = io.BytesIO()
    rekindle.save(compiled, file)
    for load in (rekindle.load, torch.jit.load):
        file.seek(0)
        loaded = load(file)
        for row in _ROWS:
            assert repr(loaded(torch.tensor(row))) == repr(numbers(torch.tensor(row)))


def to_a_declared_variable(x: Tensor, sizes: List[int]):
    if x.numel() > 1:
        sizes = x.tolist()
    return sizes


def test_a_declared_variable_makes_it() -> None:
    compiled = rekindle.script(to_a_declared_variable)
    for x in (torch.tensor([2, 1]), torch.tensor([2])):
        assert repr(compiled(x, [7])) == repr(to_a_declared_variable(x, [7]))


def test_an_empty_list_is_of_any_type() -> None:
    assert repr(rekindle.script(passed_on)(torch.ones(0), torch.tensor([]))[1]) == "torch.Size([])"


def of_any_type(x: Tensor):
    return sorted(x.tolist()), sorted(x.tolist(), reverse=True), max(x.tolist(), default=0)


def test_an_operator_of_any_list_takes_it_as_it_is() -> None:
    compiled = rekindle.script(of_any_type)
    for x in (torch.tensor([2.5, 1.5]), torch.tensor([2, 1]), torch.tensor([])):
        assert repr(compiled(x)) == repr(of_any_type(x))


class Counted(nn.Module):
    """An attribute that begins with an int gets the list's numbers, or one number."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.declared: int = 0

    def forward(self, x: Tensor):
        self.count = x.tolist()[0]
        self.declared = x.size(0)
        return self.count, self.declared


def test_an_attribute_that_nothing_declares_takes_any_number() -> None:
    compiled, eager = rekindle.script(Counted()), Counted()
    for x in (torch.tensor([2.5]), torch.tensor([2, 1])):
        assert repr(compiled(x)) == repr(eager(x))
