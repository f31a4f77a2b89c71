"""Texts and loops whose numbers are not known at export time: what is rejected, and how the errors say it."""

from __future__ import annotations

from typing import List

import pytest
import torch
from torch import Tensor
from torch.export import Dim

import rekindle
from rekindle.errors import ExportError
from rekindle.exporting.interpreter.loops import _named
from rekindle.ir.control_flow import MAX_TRIP_COUNT

UNKNOWN = "a text of a number that is not known when it is exported"


def text_of_a_size(x: Tensor):
    return f"{x.shape[0]}", x


def text_of_data(x: Tensor):
    return f"{bool(x.sum() > 0)}", x


def compared_text(x: Tensor):
    s = f"{x.shape[0]}"
    if s == "3":
        return x
    return x + 1


@pytest.mark.parametrize("program", [text_of_a_size, text_of_data, compared_text], ids=lambda each: each.__name__)
def test_texts_of_unknown_numbers_are_rejected(program) -> None:
    with pytest.raises(ExportError, match=UNKNOWN) as caught:
        rekindle.to_exported(rekindle.script(program), (torch.rand(5),), dynamic_shapes=({0: Dim("n")},))
    assert f'File "{__file__}", line ' in str(caught.value)


def text_of_an_error(x: Tensor):
    if x.shape[0] < 3:
        raise ValueError(f"too few: {x.shape[0]}")
    return x + 1


def text_of_a_rank(x: Tensor):
    return f"{x.dim()}", x


def test_texts_of_known_numbers_and_of_errors_are_exported() -> None:
    x = torch.rand(5)
    sizes = ({0: Dim("n", min=3)},)
    exported = rekindle.to_exported(rekindle.script(text_of_an_error), (x,), dynamic_shapes=sizes)
    assert torch.equal(exported.module()(x), x + 1)
    assert rekindle.to_exported(rekindle.script(text_of_a_rank), (x,)).module()(x)[0] == "1"


def either_list(x: Tensor) -> List[Tensor]:
    out: List[Tensor] = []
    if x.sum() > 0:
        out = [x, x]
    return out


def test_loops_that_a_condition_ends_early_are_named() -> None:
    assert _named(6) == "this loop, which a data-dependent condition may end early (a 'break' or 'return'),"
    assert _named(None) == _named(MAX_TRIP_COUNT) == "this loop, whose trip count is data-dependent,"


def test_containers_that_differ_are_named() -> None:
    with pytest.raises(ExportError, match="a list that exists before on the one way, and another one on the other"):
        rekindle.to_exported(rekindle.script(either_list), (torch.rand(3),))
