"""Sizes in the code: arithmetic on them is part of the program, and what cannot be is reported."""

import math

import pytest
import torch

import rekindle
from rekindle.tracing.recording.recorder import TracerWarning


def assert_same_numbers(function):
    """The trace gives the same numbers as the code, of the same types, for other sizes too."""
    traced = rekindle.trace(function, (torch.ones(2, 3),))
    for shape in ((2, 3), (5, 3), (1, 8), (4, 2)):
        x = torch.ones(shape)
        expected, actual = function(x), traced(x)
        assert actual == expected
        assert [type(number) for number in actual] == [type(number) for number in expected]
    return traced


def test_arithmetic():
    def function(x):
        n, m = x.shape
        return n + m, n - 7, n * 2, n / m, n // 2, -(-n // 2), n % m, n**2, n**-1, 2**n, m**0.5, pow(n, 2), ~n, -n, +n

    assert len(assert_same_numbers(function).report) == 0


def test_sizes_among_floats():
    def function(x):
        n, m = x.shape
        scaled = torch.nn.functional.interpolate(x[None, None], scale_factor=[n / 2, 2])
        return torch.tensor([n, 2.5, m / 2]), scaled

    traced = rekindle.trace(function, torch.ones(2, 3))
    assert len(traced.report) == 0
    for found, expected in zip(traced(torch.ones(5, 4)), function(torch.ones(5, 4)), strict=True):
        assert torch.equal(found, expected)


def test_rounding():
    def function(x):
        ratio = x.size(0) * 1.7
        return round(ratio), math.floor(ratio), math.ceil(ratio), math.trunc(ratio), round(x.size(0)), abs(-ratio)

    assert len(assert_same_numbers(function).report) == 0


def test_functions_of_several_numbers():
    def function(x):
        n, m = x.size()
        return max(n, m), min(n, 3, m), max([n, m]), max(n / 2, 1.1), divmod(n, 2)[1], sum(x.shape), math.prod(x.shape)

    assert len(assert_same_numbers(function).report) == 0


def test_functions_of_math():
    def function(x):
        n = x.size(0)
        return (
            *(math.sqrt(n), math.log(n), math.exp(n), 1 / math.sqrt(n * 2.0), math.log(n + 1, 2), math.log(9, n + 1)),
            *(math.log2(n), math.log10(n / 2), math.cos(n), math.erf(n / 2), math.degrees(n), math.fabs(-n)),
            *(math.gcd(n, 4), math.factorial(n), math.atan2(n, 2.5), math.copysign(n, -1.0), math.fmod(n, 3)),
            *(math.floor(math.log2(n * 8)), math.ceil(math.sqrt(n)), math.trunc(math.exp(n))),
        )

    assert len(assert_same_numbers(function).report) == 0


def _of_math(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * math.cos(n) + math.log2(n) + max(n, 2) + len([1])


def test_functions_of_math_in_a_program_that_is_compiled_within_the_trace():
    def function(x):
        return rekindle.script(_of_math)(x, x.size(0))

    traced = rekindle.trace(function, (torch.ones(2),))
    assert torch.equal(traced(torch.ones(5)), _of_math(torch.ones(5), 5))


@pytest.mark.parametrize(
    ("use", "told"),
    [
        (lambda x, n: [x for _ in range(n)][0], "the trip count of a loop over a size was 2"),
        (lambda x, n: x * ([3] * n)[0], "the length of a list, which is a size, was 2"),
        (lambda x, n: x if n > 1 else -x, "a comparison of a size was True"),
        (lambda x, n: x if n else -x, "the truth of a size was True"),
        (lambda x, n: x * int(n / 2), "int() of a size was 1"),
        (lambda x, n: x * float(n), "float() of a size was 2.0"),
        (lambda x, n: x * round(n / 2, 1), "round() of a size to digits was 1.0"),
        (lambda x, n: x * (n << 1), "the result of lshift on a size was 4"),
        (lambda x, n: x * pow(n, 2, 3), "pow() of a size and a modulus was 1"),
        (lambda x, n: x * (n * 2j), "a complex number that is computed from a size was 4j"),
        (lambda x, n: x * int(str(n)), "the text of a size was "),
        (lambda x, n: x * {"a2": 1, "a3": 2}[f"a{n}"], "the text of a size was "),
        (lambda x, n: x * {3: 1}.get(n, 2), "a size that is looked up in a dict or set was 2"),
        (lambda x, n: x * n.bit_length(), "bit_length() of a size was 2"),
        (lambda x, n: x if (n / 4).is_integer() else -x, "is_integer() of a size was False"),
        (lambda x, n: x * math.comb(n, 1), "math.comb() of a size was 2"),
        (lambda x, n: x * math.gcd(n, 2, 4), "math.gcd() of a size was 2"),
        (lambda x, n: x * math.hypot(n / 2, 0), "math.hypot() of a size was 1.0"),
        (lambda x, n: x * math.dist((n, 0), (1, 0)), "math.dist() of a size was 1.0"),
    ],
)
def test_what_is_fixed_is_told(use, told):
    with pytest.warns(TracerWarning) as caught:
        traced = rekindle.trace(lambda x: use(x, x.size(0)), (torch.ones(2),))
    assert told in str(caught[0].message)
    assert told in str(traced.report)


def test_a_size_is_an_int_and_a_range_is_a_range():
    seen = []

    def function(x):
        n = x.size(0)
        turns = range(n)
        seen.append((isinstance(n, int), isinstance(turns, range), list(turns), range.__name__, f"{n:03d}"))
        assert isinstance(range(3), range)
        return x + n

    with (
        pytest.warns(TracerWarning, match="the trip count of a loop over a size"),
        pytest.warns(TracerWarning, match="the text of a size was '002' in the example"),
    ):
        rekindle.trace(function, (torch.ones(2),), check_trace=False)
    assert seen == [(True, True, [0, 1], "range", "002")]
    assert range is type(range(1))
