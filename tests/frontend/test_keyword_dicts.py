"""Variables that hold dict literals and are expanded in calls: ``f(x, **options)``."""

from __future__ import annotations

from typing import Any, Optional

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import rekindle


def _scaled(x: Tensor, scale: float = 1.0, shift: int = 0, name: Optional[str] = None) -> Tensor:
    result = x * scale + shift
    return result if name is None else result * len(name)


def one_literal(x: Tensor, flag: bool) -> Tensor:
    options = {"scale": 2.0, "shift": 3}
    if flag:
        return _scaled(x, **options)
    return torch.add(x, x, **{"alpha": 2}) + _scaled(x, name="a", **options)


def empty(x: Tensor, flag: bool) -> Tensor:
    options = {}
    return _scaled(x, **options)


def filled_under_a_condition(x: Tensor, flag: bool) -> Tensor:
    options = {}
    if flag:
        options = {"alpha": 2.5}
    return torch.add(x, x, **options)


def of_values(x: Tensor, flag: bool) -> Tensor:
    scale = 2.0
    if flag:
        options = {"scale": scale * 2, "shift": x.size(0)}
        scale = 100.0
    elif x.dim() > 5:
        options = {"name": "never"}
    else:
        options = {"name": "abc" + str(x.dim())}
    return _scaled(x + scale, **options)


def in_a_loop(x: Tensor, flag: bool) -> Tensor:
    options = {}
    for index in range(4):
        x = _scaled(x, **options)
        if flag and index == 1:
            options = {"shift": index}
        elif index == 2:
            options = {"scale": 0.5 * index}
    return x


def two_dicts(x: Tensor, flag: bool) -> Tensor:
    first, second = 1.5, 2
    scales = {}
    shifts = {"shift": 1}
    if flag:
        scales = {"scale": first}
    if x.size(0) > 2:
        shifts = {"shift": second, "name": "ab"}
    return _scaled(_scaled(x, **scales), **shifts, **scales)


def in_a_comprehension(x: Tensor, flag: bool) -> list[Tensor]:
    options = {}
    if flag:
        options = {"scale": 3.0}
    return [_scaled(each, **options) for each in (x, x + 1)]


def for_its_effect(x: Tensor, flag: bool) -> Tensor:
    options = {}
    if flag:
        options = {"value": 2.0}
    y = x.clone()
    _fill(y, **options)
    return y


def _fill(x: Tensor, value: float = 7.0) -> None:
    x.fill_(value)


def of_attention(x: Tensor, flag: bool) -> Tensor:
    options = {}
    key = x
    if flag:
        key = x[:, :1]
        options = {"enable_gqa": True}
    return F.scaled_dot_product_attention(x, key, key, **options)


def by_calls_of_dict(x: Tensor, flag: bool) -> Tensor:
    scale = 2.0
    options = dict(scale=scale, shift=3)
    if flag:
        options = dict(name="abc")
    scale = 5.0
    return _scaled(x, **options) + _scaled(x, **dict(shift=2), scale=scale)


def of_dtype_and_device(x: Tensor, flag: bool) -> Tensor:
    like = dict(dtype=torch.float64, device=x.device)
    return torch.zeros(2, **like) + torch.ones(2, **like)


PROGRAMS = (
    *(by_calls_of_dict, of_dtype_and_device),
    *(one_literal, empty, filled_under_a_condition, of_values, in_a_loop, two_dicts, in_a_comprehension),
    *(for_its_effect, of_attention),
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_literals_are_expanded(program: Any) -> None:
    compiled = rekindle.script(program)
    for size in (2, 4):
        for flag in (False, True, False):
            x = torch.randn(size, 2, 3, 4)
            torch.testing.assert_close(compiled(x, flag), program(x, flag))


def unassigned(x: Tensor, flag: bool) -> Tensor:
    if flag:
        options = {"scale": 2.0}
    elif x.dim() > 1:
        options = {"scale": 3.0}
    return _scaled(x, **options)


def test_an_unassigned_dict_raises() -> None:
    compiled = rekindle.script(unassigned)
    x = torch.ones(3)
    torch.testing.assert_close(compiled(x, True), x * 2)
    torch.testing.assert_close(compiled(x[None], False), x[None] * 3)
    for call in (unassigned, compiled):
        with pytest.raises(UnboundLocalError, match="options"):
            call(x, False)


def of_another_function(x: Tensor, flag: bool) -> Tensor:
    def dict(scale: float) -> dict[str, float]:
        return {"scale": scale}

    options = dict(scale=2.0)
    return _scaled(x, **options)


def of_another_function_at_once(x: Tensor, flag: bool) -> Tensor:
    def dict(scale: float) -> dict[str, float]:
        return {"scale": scale + 1}

    return _scaled(x, **dict(scale=2.0))


def assigned_in_a_branch(x: Tensor, flag: bool) -> Tensor:
    if flag:
        options = {"scale": 2.0}
    return _scaled(x, **options)


def changed(x: Tensor, flag: bool) -> Tensor:
    options = {"scale": 2.0}
    if flag:
        options["scale"] = 3.0
    return _scaled(x, **options)


def aliased(x: Tensor, flag: bool) -> Tensor:
    options = {"scale": 2.0}
    same = options
    same.clear()
    return _scaled(x, **options)


def shared(x: Tensor, flag: bool) -> Tensor:
    same = options = {"scale": 2.0}
    same.clear()
    return _scaled(x, **options)


def with_a_key_of_the_program(x: Tensor, flag: bool) -> Tensor:
    options = {"sc" + "ale" * 1: 2.0}
    return _scaled(x, **options)


def of_a_parameter(x: Tensor, options: dict[str, float]) -> Tensor:
    if x.dim() > 1:
        options = {"scale": 2.0}
    return _scaled(x, **options)


def of_a_target(x: Tensor, flag: bool) -> Tensor:
    options = {"scale": 2.0}
    for options in [{"scale": 3.0}]:
        x = x + 1
    return _scaled(x, **options)


def unpacked(x: Tensor, flag: bool) -> Tensor:
    options, y = {"scale": 2.0}, x
    return _scaled(y, **options)


@pytest.mark.parametrize(
    "program",
    [
        *(assigned_in_a_branch, changed, aliased, shared, with_a_key_of_the_program, of_a_parameter, of_a_target),
        *(unpacked, of_another_function, of_another_function_at_once),
    ],
    ids=lambda program: program.__name__,
)
def test_other_dicts_are_rejected(program: Any) -> None:
    with pytest.raises(rekindle.errors.CompileError) as caught:
        rekindle.script(program)
    assert "cannot be expanded to keyword arguments: its keys are known only when the program runs" in str(caught.value)


def test_dict_may_be_another_function() -> None:
    def dict(scale: float):
        return {"scale": scale + 1}

    def assigned(x: Tensor) -> Tensor:
        options = dict(scale=2.0)
        return _scaled(x, **options)

    def expanded(x: Tensor) -> Tensor:
        return _scaled(x, **dict(scale=2.0))

    for program in (assigned, expanded):
        with pytest.raises(rekindle.errors.CompileError, match="known only when the program runs"):
            rekindle.script(program)


def of_a_wrong_name(x: Tensor, flag: bool) -> Tensor:
    options = {}
    if flag:
        options = {"size": 2.0}
    return _scaled(x, **options)


def test_names_that_the_callee_does_not_take_are_rejected() -> None:
    with pytest.raises(rekindle.errors.CompileError, match="size"):
        rekindle.script(of_a_wrong_name)
