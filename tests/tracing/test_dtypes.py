"""Dtypes that the code takes from tensors follow them; those that it names do not."""

import gc
import sys
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import rekindle
from tests.support.equality import assert_same

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="code of Python 3.10 does not know its columns")


def assert_follows(function, *inputs):
    """A trace on float32 agrees with the code on other dtypes."""
    traced = rekindle.trace(function, inputs)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        others = [x.to(dtype) for x in inputs]
        expected, actual = function(*others), traced(*others)
        assert_same(actual, expected)
        assert [x.dtype for x in actual] == [x.dtype for x in expected]
    return traced


def told(traced) -> list[str]:
    return [fact.value for fact in traced.report if fact.kind.value == "dtype"]


def test_dtypes_in_the_call():
    def function(x):
        return (
            torch.zeros(3, dtype=x.dtype),
            torch.arange(x.size(0)).to(x.device, x.dtype),
            torch.full(
                (2, x.size(0)),
                1.5,
                device=x.device,
                dtype=x.dtype,
            ),
            torch.tensor([1, 2], dtype=x.dtype),
            x.long().type(x.dtype),
            x.new_ones(2),
        )

    assert told(assert_follows(function, torch.ones(2, 3))) == ["torch.int64"]


def test_dtypes_in_variables_and_parameters():
    def ones(n, dtype):
        return zeros(n, dtype=dtype) + 1

    def zeros(n, *, dtype=torch.float32):
        return torch.zeros(n, dtype=dtype)

    def function(x):
        kept = x.dtype
        y = x.to(torch.float32) * 2
        return y.to(kept), ones(2, kept), ones(2, x.dtype), zeros(3), F.softmax(y, dim=-1, dtype=kept)

    assert set(told(assert_follows(function, torch.ones(2, 3)))) == {"torch.float32"}


def test_dtypes_that_are_named():
    def function(x):
        kept = x.dtype
        named = x.dtype
        named = torch.float32
        wide = F.softmax(x, dim=-1, dtype=torch.float32)
        return x.to(torch.float32), x.to(named), wide, wide.to(kept), torch.zeros(2, dtype=torch.float32)

    assert_follows(function, torch.ones(2, 3))


class RootMeanSquare(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, dtype=torch.float64))

    def forward(self, x):
        kept = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True))
        return (self.cast(x, self.weight.dtype) * self.weight).to(kept), x

    def cast(self, x, dtype):
        return x.to(dtype)


def test_a_norm_of_higher_precision():
    assert_follows(RootMeanSquare(), torch.randn(2, 3))


def test_what_an_operator_leaves_as_it_is_is_not_the_same_in_the_program():
    def function(x):
        y = x.to(torch.float32)
        z = x.contiguous()
        return x * 2, y * 2, z.add(1), x.cpu() + x.float()

    assert_follows(function, torch.ones(2, 3))


def test_writes_through_what_an_operator_leaves_as_it_is():
    def function(x):
        x.float().add_(1)
        x.contiguous().mul_(2)
        return (x,)

    assert_follows(function, torch.ones(2, 3))


def test_conversions_with_a_memory_format():
    def function(x):
        order = torch.channels_last
        kept = x.float(), x.cpu(), x.double()
        return *kept, x.float(memory_format=order), x.half(memory_format=order), x.cpu(memory_format=order)

    for x in (torch.ones(1, 2, 3, 4), torch.ones(1, 2, 4, 3).transpose(2, 3)):
        traced = assert_follows(function, x)
        assert [each.stride() for each in traced(x)] == [each.stride() for each in function(x)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.zeros(2, device=torch.device("cpu")) + x,
        lambda x: torch.zeros(2, device="cpu") + x,
        lambda x: x.to("cpu") + 1,
        lambda x: x.to(device="cpu") + 1,
    ],
)
def test_devices_that_the_code_names_are_reported(function):
    traced = rekindle.trace(function, (torch.ones(2),))
    assert [(fact.kind.value, fact.what, fact.value) for fact in traced.report] == [
        ("device", "a device that the code names", "cpu")
    ]


def test_numbers_that_are_written_into_a_tensor():
    def function(x):
        x = x.clone()
        x[x > 2] = x.size(0)
        x[[0]] = 5.0
        x[:, 1] = 7
        return x, x.new_tensor([1.0, 2.0]), x.new_tensor(x.size(0))

    assert told(assert_follows(function, torch.arange(6.0).view(2, 3))) == []


def test_frames_that_query_dtypes_are_released():
    class Held:
        pass

    held = []

    def function(x):
        local = Held()
        held.append(weakref.ref(local))
        return torch.zeros(2, dtype=x.dtype) + x

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        rekindle.trace(function, torch.ones(2), check_trace=False)
        assert [each() for each in held] == [None]
    finally:
        if was_enabled:
            gc.enable()
