"""Functions of ``math`` in libraries: the same bits as Python's, and the same errors."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings, strategies as st

import rekindle


def of_one(x: float) -> list[float]:
    whole, part = 0.0, 0.0
    part, whole = math.modf(x)
    mantissa, exponent = math.frexp(x)
    return [part, whole, mantissa, float(exponent), math.radians(x), math.degrees(x), math.fabs(x)]


def gamma(x: float) -> float:
    return math.gamma(x)


def logarithm_of_gamma(x: float) -> float:
    return math.lgamma(x)


def rounded(x: float, n: int) -> float:
    return round(x, n)


def quotient(x: float, y: float) -> tuple[float, float]:
    return divmod(x, y)


def rest_of_c(x: float, y: float) -> float:
    return math.fmod(x, y)


def nearest_rest(x: float, y: float) -> float:
    return math.remainder(x, y)


def power(x: float, y: float) -> float:
    return math.pow(x, y)


def logarithm(x: float, base: float) -> float:
    return math.log(x, base)


def neighbors(x: float, y: float) -> list[float]:
    return [math.nextafter(x, y), math.copysign(x, y), math.atan2(x, y)]


def scaled(x: float, n: int) -> float:
    return math.ldexp(x, n)


def divisor(a: int, b: int) -> int:
    return math.gcd(a, b)


def factorial(a: int) -> int:
    return math.factorial(a)


def exact_sum(xs: list[float]) -> float:
    return math.fsum(xs)


def norm(x: float, y: float, z: float) -> float:
    return math.hypot(x, y, z)


def power_of_ints(n: int, k: int) -> float:
    found: float = n**k
    return found


@pytest.fixture(scope="module")
def library_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Any]:
    known: dict[Any, Any] = {}

    def build(program: Any) -> Any:
        if program not in known:
            folder = tmp_path_factory.mktemp(program.__name__)
            rekindle.build(rekindle.script(program), folder, freestanding=True)
            known[program] = rekindle.NativeLibrary(folder)
        return known[program]

    return build


def outcome(function: Any, *arguments: Any) -> Any:
    """Return the bits of the floats of a result, or the class of the error."""
    try:
        return bits(function(*arguments))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        return type(error)


def bits(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value).hex()
    return list(map(bits, value)) if isinstance(value, list | tuple) else value


FLOATS = st.floats() | st.floats(-200, 200) | st.integers(-360, 360).map(lambda n: n / 2)
_SETTINGS = settings(max_examples=400, deadline=None)


@given(FLOATS)
@_SETTINGS
def test_of_one(library_of: Callable[[Any], Any], x: float) -> None:
    for program in (of_one, gamma, logarithm_of_gamma):
        assert outcome(library_of(program), x) == outcome(program, x), program


@given(FLOATS, FLOATS)
@example(0.0, -1.0)
@example(-8.0, 1 / 3)
@example(2.0, 1.0)
@_SETTINGS
def test_of_two(library_of: Callable[[Any], Any], x: float, y: float) -> None:
    for program in (quotient, rest_of_c, nearest_rest, power, logarithm, neighbors):
        assert outcome(library_of(program), x, y) == outcome(program, x, y), program


DIGITS = st.integers(-3, 6) | st.integers(-320, 330)


@given(FLOATS, DIGITS)
@example(2.675, 2)
@example(50.0, -2)
@example(50.00000000000001, -2)
@example(150.0, -2)
@example(-49.0, -2)
@example(5e22, -23)
@example(4.9999999999999996e22, -23)
@example(1.7976931348623157e308, -308)
@example(6e307, -308)
@_SETTINGS
def test_rounding(library_of: Callable[[Any], Any], x: float, n: int) -> None:
    assert outcome(library_of(rounded), x, n) == outcome(rounded, x, n)


@given(st.floats(), st.integers(-2200, 2200) | st.integers(-(2**63), 2**63 - 1))
@_SETTINGS
def test_scaling(library_of: Callable[[Any], Any], x: float, n: int) -> None:
    assert outcome(library_of(scaled), x, n) == outcome(scaled, x, n)


INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-100, 100)


@pytest.fixture(scope="module")
def of_an_archive(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A library of an archive, whose operator is ``aten::gcd``."""

    class Divides(torch.nn.Module):
        def forward(self, a: int, b: int) -> int:
            return math.gcd(a, b)

    folder = tmp_path_factory.mktemp("archive")
    torch.jit.script(Divides()).save(folder / "divides.pt")
    rekindle.build(rekindle.load(folder / "divides.pt"), folder / "library", [(1, 2)], freestanding=True)
    return rekindle.NativeLibrary(folder / "library")


@given(INTS, INTS)
@example(-(2**63), -1)
@example(-(2**63), 0)
@example(0, 0)
@_SETTINGS
def test_divisors(of_an_archive: Any, library_of: Callable[[Any], Any], a: int, b: int) -> None:
    expected = math.gcd(a, b)
    assert outcome(of_an_archive, a, b) == (expected if expected < 2**63 else OverflowError)
    if -(2**63) not in (a, b):
        assert library_of(divisor)(a, b) == expected


@pytest.mark.parametrize("a", [-1, 0, 1, 5, 20])
def test_factorials(library_of: Callable[[Any], Any], a: int) -> None:
    assert outcome(library_of(factorial), a) == outcome(factorial, a)
    with pytest.raises(OverflowError, match=r"^the result is an int of more than 64 bits"):
        library_of(factorial)(21)


SUMMANDS = st.floats() | st.floats(-1e3, 1e3) | st.sampled_from([1e100, -1e100, 1e-100, 2.0**53, 0.5])


@given(st.lists(SUMMANDS, max_size=12))
@example([1e308, 1e308])
@example([math.inf, -math.inf])
@example([1e16, 1.0, 1e-16])
@_SETTINGS
def test_exact_sums(library_of: Callable[[Any], Any], xs: list[float]) -> None:
    assert outcome(library_of(exact_sum), xs) == outcome(exact_sum, xs)


@given(FLOATS, FLOATS, FLOATS)
@example(5e-324, 5e-324, 0.0)
@example(1.7e308, 1.7e308, 1.0)
@_SETTINGS
def test_norms_are_within_a_unit_of_the_last_place(
    library_of: Callable[[Any], Any], x: float, y: float, z: float
) -> None:
    found, expected = library_of(norm)(x, y, z), math.hypot(x, y, z)
    assert bits(found) == bits(expected) or abs(found - expected) <= math.ulp(expected)


@given(st.integers(-12, 12) | INTS, st.integers(-20, 20))
@_SETTINGS
def test_powers_of_ints(library_of: Callable[[Any], Any], n: int, k: int) -> None:
    expected = outcome(lambda: float(n**k))
    if k >= 0 and not -(2**63) <= n**k < 2**63:
        expected = OverflowError
    assert outcome(library_of(power_of_ints), n, k) == expected
