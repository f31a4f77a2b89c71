"""Numbers that PyTorch cannot convert to a Tensor's dtype: kernels leave them to the operators, which raise."""

from __future__ import annotations

import inspect

import pytest
import torch
import torch.nn.functional as F

import rekindle

BIG = 2**63


def clamped(x):
    return (x * 2).clamp(min=1e300)


def filled(x):
    return x.masked_fill(x > 0, 1e300) * 2


def chosen(x):
    return torch.where(x > 0, x, -1e300) + 1


def leaky(x):
    return F.leaky_relu(x * 2, 1e300)


def with_a_factor(x):
    return torch.add(x * 2, x, alpha=1e300)


def multiplied(x):
    return x * 1e300 + 1


def compared(x):
    return (x * 2) > BIG


def scaled(x):
    return (x * 2) * BIG


def limited(x):
    return x.clamp(max=BIG) * 1


def infinite(x):
    return (x * 2).clamp(min=float("-inf"), max=float("inf"))


def limited_by_nan(x):
    return (x * 2).clamp(min=float("nan"), max=1.0)


def limited_by_a_number(x):
    return (x * 2).clamp(min=x.sum().log().item(), max=x.prod().sqrt().item())


def inverted(x):
    return ~x


def _outcome(function, *arguments):
    try:
        return function(*arguments)
    except (RuntimeError, TypeError) as error:
        return type(error), str(error).partition("\n")[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "function",
    [
        *(clamped, filled, chosen, leaky, with_a_factor, multiplied, compared, scaled, limited, infinite),
        *(inverted, limited_by_nan, limited_by_a_number),
    ],
    ids=lambda function: function.__name__,
)
def test_as_eager(function, dtype):
    compiled = rekindle.script(function)
    x = torch.tensor([1.0, -1.0], dtype=dtype)
    for _ in range(5):
        assert str(_outcome(compiled, x)) == str(_outcome(function, x))


def limited_by_a_number_of_the_call(x, number):
    return (x + 1).clamp(max=number) * 2


def filled_with_a_number_of_the_call(x, number):
    return (x * 2).masked_fill(x > 1, number) + 1


def with_a_factor_of_the_call(x, number):
    return torch.add(x * 2, x, alpha=number) + 1


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.float16], ids=str)
@pytest.mark.parametrize(
    "function",
    [limited_by_a_number_of_the_call, filled_with_a_number_of_the_call, with_a_factor_of_the_call],
    ids=lambda function: function.__name__,
)
def test_numbers_of_calls(function, dtype):
    compiled = rekindle.CompilationUnit(
        f"def f(x: Tensor, number: {'float' if dtype.is_floating_point else 'int'}):\n"
        + "".join(inspect.getsource(function).splitlines(keepends=True)[1:])
    ).f
    x = torch.tensor([1, 3]).to(dtype)
    kind, huge = (float, 1e39) if dtype.is_floating_point else (int, 2**62)
    for number in (2, 2, 2, 300, 70_000, 2**40, huge):
        found, expected = (_outcome(each, x, kind(number)) for each in (compiled, function))
        assert str(found) == str(expected), number
