"""The faster ways into operators do what the operators do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rekindle.ops.registration.fast_paths import DIRECT, IN_PIECES, SPREADS
from tests.ops.calling import call, operator

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
    "bitwise_not": (_whole(),),
    "bitwise_xor.Tensor": (_whole(), _whole().t()),
    "clamp_max": (_x(), 1.5),
    "clamp_min": (_x(), -0.5),
    "cumprod": (_x(), 1),
    "flip": (_x(), [0, 1]),
    "full_like": (_x(), 2.5),
    "masked_select": (_x(), _x() > 0),
    "outer": (_x()[0], _x()[1]),
    "rsub.Scalar": (_x(), 1.5),
    "tril": (_x(), 1),
    "triu": (_x(), -1),
    "addcdiv": (_x(), _x(), _x().t()),
    "addcmul": (_x(), _x(), _x().t()),
    "all.dim": (_x() > 0, 1, True),
    "any.dim": (_x() > 0, 1, False),
    "amax": (_x(), [-1], True),
    "amin": (_x(), [], False),
    "argsort": (_x(), 1, True),
    "dropout": (_x(), 0.5, False),
    "lerp.Tensor": (_x(), -_x(), _x().t()),
    "logsumexp": (_x(), [1], True),
    "max.dim": (_x(), 1, True),
    "min.dim": (_x(), 0, False),
    "prod.dim_int": (_x(), 1, True),
    "roll": (_x(), [1], [0]),
    "sort": (_x(), 1, True),
    "where.ScalarOther": (_x() > 0, _x(), 2.5),
    "where.ScalarSelf": (_x() > 0, 2.5, _x()),
    "as_strided": (_x(), [2, 2], [3, 1], 1),
    "batch_norm": (_x(), _x()[0], _x()[1], _x()[0], _x()[1].abs(), False, 0.1, 1e-5, True),
    "conv1d": (_x()[None], _x()[None], _x()[0, :1], [1], [1], [1], 1),
    "conv2d": (_x()[None], _x()[None, None], None, [1, 2], [1, 0], [1, 1], 1),
    "conv3d": (_x()[None, None], _x()[None, None, None], None, [1, 1, 1], [0, 0, 0], [1, 1, 1], 1),
    "group_norm": (_x()[None], 3, _x()[0], _x()[1], 1e-3, False),
    "layer_norm": (_x(), [3], _x()[0], _x()[1], 1e-3, False),
    "max_pool2d": (_x()[None], [2, 2], [], [0, 0], [1, 1], False),
    "narrow": (_x(), 1, 1, 2),
    "topk": (_x(), 2, 1, True, True),
    "repeat": (_x(), [2, 1]),
    "unfold": (_x(), 1, 2, 1),
    "adaptive_avg_pool2d": (_x()[None], [2, 1]),
    "avg_pool2d": (_x()[None], [2, 2], [1, 1], [0, 0], False, True, None),
    "elu": (_x(), 1.5, 1.0, 0.5),
    "hardtanh": (_x(), -0.5, 0.5),
    "leaky_relu": (_x(), 0.25),
    "scaled_dot_product_attention": (_x()[None], _x()[None], _x()[None], None, 0.0, True),
    "softplus": (_x(), 2.0, 10.0),
}
PIECES: dict[str, tuple[Any, ...]] = {
    "chunk": (_x(), 2, 1),
    "split.Tensor": (_x(), 2, 1),
    "split_with_sizes": (_x(), [1, 2], 1),
    "unbind.int": (_x(), 1),
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
    if isinstance(value, (list, tuple)):
        return [_describe(item) for item in value]
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
    """And the result is one Tensor or number, or several Tensors: a list of them would come back as a tuple."""
    schema = operator(name).schema
    kinds = {str(result.type) for result in schema.returns}
    assert kinds == {"Tensor"} or (len(schema.returns) == 1 and kinds <= {"int", "bool", "Scalar"})
    passed = schema.arguments[: DIRECT[name][1]]
    assert not any(argument.kwarg_only for argument in passed)
    assert not NUMBERS & {argument.spelling for argument in passed}


@pytest.mark.parametrize("name", list(IN_PIECES))
def test_pieces_are_those_of_the_overload(name: str) -> None:
    direct, most = IN_PIECES[name]
    arguments = PIECES[name.removeprefix("aten::")]
    assert len(arguments) == most
    answer = direct(*arguments)
    assert isinstance(answer, tuple)
    assert _describe(answer) == _describe(call(name, *arguments))


@pytest.mark.parametrize("name", sorted(SPREADS))
def test_sizes_may_be_spread(name: str) -> None:
    *first, sizes = SAMPLES[name.removeprefix("aten::")]
    direct, _ = DIRECT[name]
    assert _describe(direct(*first, *sizes)) == _describe(direct(*first, sizes))
