"""The faster ways into operators do what the operators do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rekindle.ops.direct import DIRECT
from tests.ops.calling import operator

NUMBERS = {"ScalarType", "ScalarType?", "Layout", "Layout?", "MemoryFormat", "MemoryFormat?"}


def _x() -> torch.Tensor:
    return torch.tensor([[0.5, -1.25, 2.0], [3.0, 0.25, -0.5], [1.0, 2.5, -2.0]])


def _whole() -> torch.Tensor:
    return torch.tensor([[2, 1, 0], [0, 2, 1], [1, 0, 2]])


SAMPLES: dict[str, tuple[Any, ...]] = {
    "bmm": (_x()[None], _x()[None]),
    "baddbmm": (_x()[None], _x()[None], _x()[None]),
    "mv": (_x(), _x()[0]),
    "dot": (_x()[0], _x()[1]),
    "stack": ([_x(), _x()], 1),
    "cat": ([_x(), _x()], 1),
    "embedding": (_x(), _whole()),
    "index_select": (_x(), 1, _whole()[0]),
    "gather": (_x(), 1, _whole()),
    "where.self": (_x() > 0, _x(), -_x()),
    "masked_fill.Scalar": (_x(), _x() > 0, 7),
    "masked_fill.Tensor": (_x(), _x() > 0, torch.tensor(7.0)),
    "clamp": (_x(), None, 1.5),
    "lerp.Scalar": (_x(), -_x(), 0.25),
    "addmm": (_x(), _x(), _x()),
    "linear": (_x(), _x(), _x()[0]),
    "flatten.using_ints": (_x(), 0, -1),
    "transpose.int": (_x(), 0, 1),
    "select.int": (_x(), 1, -1),
    "sum.dim_IntList": (_x(), [1], True),
    "mean.dim": (_x(), None, False),
    "view": (_x(), [-1]),
    "reshape": (_x().t(), [9]),
    "permute": (_x(), [1, 0]),
    "expand": (_x()[:1], [3, -1]),
    "item": (_x()[0, 0],),
    "bitwise_and.Tensor": (_whole(), _whole()),
    "bitwise_or.Tensor": (_whole(), _whole()),
    "type_as": (_x(), _whole()),
    "logical_and": (_x() > 0, _x() > 1),
    "logical_or": (_x() > 0, _x() > 1),
}
_BY_NUMBER = {"size.int", "softmax.int", "log_softmax.int", "cumsum", "unsqueeze", "squeeze.dim"}


def _samples(name: str) -> tuple[Any, ...]:
    if name in SAMPLES:
        return SAMPLES[name]
    count = DIRECT[f"aten::{name}"][1]
    if count == 1:
        return (_x(),)
    if name in _BY_NUMBER:
        return (_x(), 1)
    return (_x(), 2) if name.endswith("Scalar") else (_x(), _x().t())


def _describe(value: Any) -> object:
    if not isinstance(value, torch.Tensor):
        return type(value), value
    bits = value.contiguous().numpy().tobytes()
    return value.dtype, value.shape, value.stride(), bits, value.requires_grad


@pytest.mark.parametrize("name", [name.removeprefix("aten::") for name in DIRECT])
def test_the_answer_is_the_overloads(name: str) -> None:
    direct, most = DIRECT[f"aten::{name}"]
    base, _, overload = name.partition(".")
    slow = getattr(getattr(torch.ops.aten, base), overload or "default")
    arguments = _samples(name)
    assert len(arguments) == most
    ours = [item.clone() if isinstance(item, torch.Tensor) else item for item in arguments]
    theirs = [item.clone() if isinstance(item, torch.Tensor) else item for item in arguments]
    answer, expected = direct(*ours), slow(*theirs)
    assert _describe(answer) == _describe(expected)
    for mine, other in zip(ours, theirs):
        assert isinstance(mine, list) or _describe(mine) == _describe(other)
    if isinstance(answer, torch.Tensor):
        # Views of the first argument are views of it either way.
        assert (answer is ours[0]) == (expected is theirs[0])
        if isinstance(ours[0], torch.Tensor):
            assert (answer.data_ptr() == ours[0].data_ptr()) == (expected.data_ptr() == theirs[0].data_ptr())


@pytest.mark.parametrize("name", list(DIRECT))
def test_no_number_for_a_dtype_is_passed(name: str) -> None:
    """And the result is one Tensor or number: a list of Tensors would come back as a tuple."""
    schema = operator(name).schema
    assert len(schema.returns) == 1
    assert str(schema.returns[0].type) in {"Tensor", "int", "bool", "Scalar"}
    passed = schema.arguments[: DIRECT[name][1]]
    assert not any(argument.kwarg_only for argument in passed)
    assert not NUMBERS & {argument.spelling for argument in passed}
