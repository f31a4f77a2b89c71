"""The class of a NamedTuple, of a result in ``torch.return_types`` too, where control flow and containers join two."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import ArgumentError, CompileError
from tests.support.calls import assert_calls_agree


class Low(NamedTuple):
    value: Tensor
    count: Tensor


class High(NamedTuple):
    value: Tensor
    count: Tensor


def _local_class() -> Any:
    class Low(NamedTuple):
        value: Tensor
        count: Tensor

    return Low


Namesake = _local_class()


def joined_results(x: Tensor, first: bool):
    r = x.max(1) if first else x.min(1)
    return r, r.values * 2, r[1], isinstance(r, torch.return_types.max), isinstance(r, tuple), str(r)


def results_in_a_loop(x: Tensor, first: bool):
    r = x.sort(1)
    while first:
        r = x.topk(2, 1)
        first = False
    return r


def results_in_containers(x: Tensor, first: bool):
    xs = [x.max(1)]
    xs.append(x.min(1))
    d = {"a": x.max(1)} if first else {"a": x.min(1)}
    return xs, d, isinstance(xs[1], torch.return_types.max), isinstance(xs[1], torch.return_types.min)


def narrowed_results(x: Tensor, first: bool):
    r = x.max(1) if first else x.topk(2, 1)
    if isinstance(r, torch.return_types.topk):
        return r.values
    return r.indices


def declared_result(x: Tensor, first: bool) -> torch.return_types.max:
    return x.max(1)


def joined_named(x: Tensor, first: bool):
    r = Low(x, x) if first else High(x + 1, x)
    return r, r.value * 2, isinstance(r, Low), isinstance(r, High)


def joined_namesakes(x: Tensor, first: bool):
    r = Low(x, x) if first else Namesake(x + 1, x)
    return r, isinstance(r, Low), [Low(x, x), Namesake(x, x)]


def another_class_for_an_optional(x: Tensor, first: bool):
    r: Optional[Low] = None
    if first:
        r = High(x, x)
    return r


@pytest.mark.parametrize(
    "function",
    [
        joined_results,
        results_in_a_loop,
        results_in_containers,
        narrowed_results,
        declared_result,
        joined_named,
        joined_namesakes,
        another_class_for_an_optional,
    ],
)
def test_classes_are_those_of_eager(function: Any) -> None:
    x = torch.arange(12.0).reshape(3, 4)
    assert_calls_agree(function, (x, True), (x, False))
    compiled = rekindle.script(function)
    for first in (True, False, False, True):
        assert _classes(compiled(x, first)) == _classes(function(x, first))


def _classes(value: Any) -> Any:
    """The classes of a value and of all that it holds."""
    if isinstance(value, dict):
        return {key: _classes(item) for key, item in value.items()}
    return type(value), [_classes(item) for item in value] if isinstance(value, (list, tuple)) else []


def lists_of_two_classes(x: Tensor, first: bool):
    return [Low(x, x)] if first else [High(x, x)]


def another_class_returned(x: Tensor) -> Low:
    return High(x, x)


def joined_class_is_named(x: Tensor, first: bool):
    return type(x.max(1) if first else x.min(1)).__name__


_NAME = f"__torch__.{__name__}"
_LISTS = (
    f"the branches of this expression have different types: List[{_NAME}.Low] if the condition holds, "
    f"List[{_NAME}.High] if not"
)
REFUSED = [
    (lists_of_two_classes, _LISTS),
    (
        another_class_returned,
        f"the function is declared to return {_NAME}.Low, but this returns {_NAME}.High",
    ),
    (joined_class_is_named, "the class of a value of type Tuple[Tensor, Tensor] has no name here"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED)
def test_what_would_lose_a_class_is_refused(function: Any, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        rekindle.script(function)
    assert caught.value.message == message
    assert caught.value.range.text.startswith(("[Low", "return High", "type("))


def test_an_argument_of_another_class_is_refused() -> None:
    def taken(p: Low):
        return p

    compiled = rekindle.script(taken)
    x = torch.ones(2)
    assert type(compiled(Low(x, x))) is Low
    with pytest.raises(ArgumentError) as caught:
        compiled(High(x, x))
    name = f"__torch__.{__name__}.Low"
    assert str(caught.value) == (
        f"taken() argument 'p' (position 1) takes {name}, but got a High: {High(x, x)}\n"
        f"Signature: taken(p: {name}) -> {name}"
    )


def test_a_class_that_another_has_the_name_of_is_itself() -> None:
    def asked(x: Tensor, first: bool):
        r = Low(x, x)
        return isinstance(r, Namesake), isinstance(r, Low), joined_class(x, first)

    def joined_class(x: Tensor, first: bool) -> Tuple[Tensor, Tensor]:
        return Low(x, x) if first else Namesake(x, x)

    assert_calls_agree(asked, (torch.ones(2), True), (torch.ones(2), False))
