"""Functions of ``math`` and ``cmath`` over Tensors, numbers and bools: numbers, never Tensors."""

from __future__ import annotations

import cmath
import io
import math
import operator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import CompileError
from tests.support.calls import assert_calls_agree

ONE = torch.tensor([0.5])
TENSORS = (
    torch.tensor(0.5),
    ONE,
    torch.tensor([[0.25]], dtype=torch.float64),
    torch.tensor(0.75, requires_grad=True),
    torch.tensor(1),
    torch.tensor(True),
    torch.tensor([1.0, 2.0]),
)


def of_floats(x: Tensor):
    first = math.sqrt(x), math.exp(-x), math.log1p(x), math.sin(x), math.floor(x), math.ceil(x / 2), math.fabs(x)
    return first, math.isnan(x), math.isinf(x), math.isfinite(x), math.erf(x), math.degrees(x), math.log2(x)


def of_two(x: Tensor):
    first = math.pow(x, 2), math.pow(2, x), math.pow(x, x), math.atan2(x, 1), math.fmod(2, x), math.copysign(1, x)
    return first, math.log(x, 10), math.log(2, x + 1), math.hypot(x, x), math.isclose(x, x), math.ldexp(x, 2)


def taken_apart(x: Tensor):
    return math.frexp(x), math.modf(x), math.sqrt(x) + x, isinstance(math.sqrt(x), float), math.floor(x) + 1


def of_complex_numbers(x: Tensor):
    first = cmath.sqrt(x.sum()), cmath.exp(x.sum()), cmath.log(x.sum()), cmath.phase(x.sum()), cmath.isnan(x.sum())
    return first, cmath.rect(x.sum(), 1.0), cmath.sqrt(-2.5), cmath.exp(1), cmath.log(-2.5, 2), cmath.cos(True)


def given_to_others(x: Tensor):
    return list(map(math.sqrt, [x, x])), [f(x) for f in (math.exp, math.sin)], list(map(cmath.exp, [x]))


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("function", [of_floats, of_two, taken_apart, given_to_others])
def test_tensors_are_converted(function: Any) -> None:
    calls = [(x,) for x in TENSORS]
    assert_calls_agree(function, *calls[: 3 if function is given_to_others else 7])


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_complex_functions_give_complex_numbers() -> None:
    assert_calls_agree(of_complex_numbers, *[(x,) for x in TENSORS])


def test_indices_are_ints() -> None:
    def index(x: Tensor, n: int, b: bool):
        return x.__index__(), operator.index(x), operator.index(n), operator.index(b), math.factorial(x)

    assert_calls_agree(index, (torch.tensor(3), 4, True))
    with pytest.raises(RuntimeError) as caught:
        rekindle.script(index)(torch.tensor(2.5), 1, False)
    assert str(caught.value).splitlines()[0] == (
        "a tensor of dtype torch.float32 cannot stand for an int; convert it with int()"
    )


def test_functions_that_modules_hold() -> None:
    class Root(nn.Module):
        def __init__(self, function: Any) -> None:
            super().__init__()
            self.function = function

        def forward(self, x: Tensor):
            return self.function(x)

    for function in (math.sqrt, cmath.sqrt, torch.sqrt):
        module = Root(function)
        expected, found = module(torch.tensor(2.0)), rekindle.script(module)(torch.tensor(2.0))
        assert type(found) is type(expected)
        assert found == expected


def truncated(x: Tensor):
    return math.trunc(x)


def scaled(x: Tensor):
    return math.ldexp(0.5, x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (truncated, "type Tensor doesn't define __trunc__ method"),
        (scaled, "Expected an int as second argument to ldexp."),
    ],
)
def test_what_raises_in_python_is_refused(function: Any, message: str) -> None:
    with pytest.raises(TypeError) as expected:
        function(ONE)
    assert str(expected.value) == message
    with pytest.raises(CompileError) as caught:
        rekindle.script(function)
    assert (caught.value.message, caught.value.range.text) == (message, "x")
    assert caught.value.hint == "pass its number: x.item()"


def of_complex(z: complex):
    return math.sqrt(z)


def of_item(x):
    n = x.item()
    return math.sqrt(n), math.floor(n), math.isnan(n), math.pow(n, 2), math.log(n, 2), math.exp(n), cmath.sqrt(n)


def of_either(is_real: bool):
    n = 1.0 if is_real else 1j
    return math.sin(n)


def test_functions_of_math_take_no_complex_numbers() -> None:
    with pytest.raises(CompileError, match="must be real number, not complex"):
        rekindle.script(of_complex)
    for program, real, complex_number in (
        *((of_item, torch.tensor(value), torch.tensor(1j)) for value in (2.5, 4, True)),
        (of_either, True, False),
    ):
        compiled = rekindle.script(program)
        assert repr(compiled(real)) == repr(program(real))
        for call in (program, compiled):
            with pytest.raises(TypeError, match="must be real number, not complex"):
                call(complex_number)


def power(a: float, b: float):
    return math.pow(a, b)


def power_of_ints(a: int, b: int):
    return math.pow(a, b)


def power_of_int_and_float(a: int, b: float):
    return math.pow(a, b)


def power_of_item(x):
    return math.pow(x.item(), 2)


POWERS = [
    *((power, each) for each in [(1e300, 2.0), (-1.0, 0.5), (0.0, -1.0), (2.0, 3.0), (-0.0, 3.0)]),
    *((power_of_ints, each) for each in [(10**18, 18), (0, -1), (-2, 3), (2, -1)]),
    *((power_of_int_and_float, each) for each in [(10**18, 18.0), (0, -1.0), (-2, 0.5), (2, -0.5)]),
    *((power_of_item, (torch.tensor(each, dtype=torch.float64),)) for each in [1e200, -3.0]),
]


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize(("function", "arguments"), POWERS)
def test_powers_raise_the_errors_of_math(function: Any, arguments: Any, optimized: bool) -> None:
    def outcome(call: Any) -> str:
        try:
            return repr(call(*arguments))
        except (ArithmeticError, ValueError) as error:
            return repr(error)

    compiled = rekindle.script(function)
    file = io.BytesIO()
    compiled.save(file)
    saved = rekindle.load(io.BytesIO(file.getvalue()))
    with rekindle.optimized_execution(optimized):
        for each in (compiled, saved):
            assert [outcome(each) for _ in range(3)] == [outcome(function)] * 3


def of_several_types(x: float):
    return [function(x) for function in (math.exp, cmath.exp)]


def test_a_list_of_results_of_several_types() -> None:
    assert repr(rekindle.script(of_several_types)(1.0)) == repr(of_several_types(1.0))
