"""Complex numbers in libraries: the bits and the errors of Python's arithmetic and of ``cmath``."""

from __future__ import annotations

import cmath
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings, strategies as st
from torch import Tensor

import rekindle
from tests.building.c_process import memory_checker, run
from tests.building.corpus import same


def arithmetic(a: complex, b: complex) -> list[complex]:
    return [a + b, a - b, a * b, -a, a + 2, 0.5 * b, 3 - a, a.conjugate(), complex(a.real, b.imag)]


def questions(a: complex, b: complex) -> tuple[list[float], list[bool]]:
    tests = [a == b, a != b, a == 1, cmath.isnan(a), cmath.isinf(a), cmath.isfinite(a)]
    return [a.real, a.imag], tests


def size(a: complex) -> float:
    return abs(a)


def phase(a: complex) -> float:
    return cmath.phase(a)


def quotient(a: complex, b: complex) -> complex:
    return a / b


def power(a: complex, b: complex) -> complex:
    return a**b


def logarithm(a: complex, b: complex) -> complex:
    return cmath.log(a, b)


def texts(a: complex, b: complex) -> list[str]:
    return [str(a), f"{b}", str([a, b]), repr((a,))]


def square_root(a: complex) -> complex:
    return cmath.sqrt(a)


def exponential(a: complex) -> complex:
    return cmath.exp(a)


def natural_logarithm(a: complex) -> complex:
    return cmath.log(a)


def decimal_logarithm(a: complex) -> complex:
    return cmath.log10(a)


def sine(a: complex) -> complex:
    return cmath.sin(a)


def cosine(a: complex) -> complex:
    return cmath.cos(a)


def tangent(a: complex) -> complex:
    return cmath.tan(a)


def hyperbolic(a: complex) -> list[complex]:
    return [cmath.sinh(a), cmath.cosh(a), cmath.tanh(a)]


def inverse(a: complex) -> list[complex]:
    return [cmath.asin(a), cmath.acos(a), cmath.asinh(a), cmath.acosh(a)]


def inverse_tangents(a: complex) -> list[complex]:
    return [cmath.atan(a), cmath.atanh(a)]


def from_polar(length: float, angle: float) -> complex:
    return cmath.rect(length, angle)


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


def bits(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value).hex()
    if isinstance(value, complex):
        return bits(value.real), bits(value.imag)
    return list(map(bits, value)) if isinstance(value, list | tuple) else value


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return bits(function(*arguments))
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        return type(error)


SMALL = st.floats(-20, 20) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, 0.5])
FINITE = SMALL | st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.builds(complex, FINITE, FINITE) | st.builds(complex, SMALL, SMALL)
ALL = st.complex_numbers() | NUMBERS
_SETTINGS = settings(max_examples=400, deadline=None)


@given(ALL, ALL)
@example(complex(0.0, -0.0), complex(-0.0, 0.0))
@_SETTINGS
def test_operators(library_of: Callable[[Any], Any], a: complex, b: complex) -> None:
    for program in (arithmetic, questions, quotient, texts):
        assert outcome(library_of(program), a, b) == outcome(program, a, b), program
    assert outcome(library_of(size), a) == outcome(size, a)
    expected = math.atan2(a.imag, a.real)  # cmath.phase of Python 3.11 raises an error if that is subnormal
    assert bits(library_of(phase)(a)) == bits(expected)


@given(NUMBERS, NUMBERS)
@example(0j, -1 + 0j)
@example(0j, 1j)
@example(2 + 1j, 3 + 0j)
@example(2 + 1j, -3 + 0j)
@example(1e200 + 0j, 2 + 0j)
@example(0j, 1 + 0j)
@example(1 + 0j, 1 + 0j)
@_SETTINGS
def test_powers_and_logarithms(library_of: Callable[[Any], Any], a: complex, b: complex) -> None:
    for program in (power, logarithm):
        assert outcome(library_of(program), a, b) == outcome(program, a, b), program


OF_ONE = (
    *(square_root, exponential, natural_logarithm, decimal_logarithm, sine, cosine, tangent, hyperbolic),
    *(inverse, inverse_tangents),
)


@given(NUMBERS)
@example(1 + 0j)
@example(1 + 1e-160j)
@example(complex(709.5, 1))
@example(complex(-0.0, 0.5))
@example(complex(1e-310, 2e-310))
@_SETTINGS
def test_functions(library_of: Callable[[Any], Any], a: complex) -> None:
    for program in OF_ONE:
        assert outcome(library_of(program), a) == outcome(program, a), program


@given(FINITE, FINITE)
@_SETTINGS
def test_polar_form(library_of: Callable[[Any], Any], length: float, angle: float) -> None:
    assert outcome(library_of(from_polar), length, angle) == outcome(from_polar, length, angle)


def test_functions_of_infinite_numbers_are_refused(library_of: Callable[[Any], Any]) -> None:
    with pytest.raises(rekindle.LibraryError, match=r"^a function of cmath of a number that is not finite"):
        library_of(sine)(complex("inf"))


def of_tensors(x: Tensor, z: complex) -> tuple[Tensor, Tensor, complex, Tensor]:
    y = x * z
    return y, torch.tensor(z) + x, y[0].item(), y - 1j


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.complex64])
def test_tensors(dtype: torch.dtype, tmp_path: Any) -> None:
    x, z = torch.arange(3).to(dtype) + 1, 0.5 - 2j
    rekindle.build(rekindle.script(of_tensors), tmp_path, [(x, z)])
    found, expected = rekindle.NativeLibrary(tmp_path)(x, z), of_tensors(x, z)
    torch.testing.assert_close(found, expected)


def of_containers(zs: list[complex], z: complex = 2j) -> tuple[complex, dict[str, complex], complex | None]:
    total = 1j
    for each in zs:
        total += each
    return total, {"z": z}, (z if len(zs) > 1 else None)


def test_containers_and_defaults(library_of: Callable[[Any], Any]) -> None:
    library = library_of(of_containers)
    assert library([1j, 2 + 0j], 2j) == of_containers([1j, 2 + 0j])
    assert library([], 3) == of_containers([], complex(3))
    with pytest.raises(rekindle.LibraryError, match="an argument is of kind 4"):
        library(["1j"], 3)


def everything(a: complex, b: complex, texts: list[str]) -> complex:
    texts.append(f"{a} {b} {[a]}")
    total = a * b + 1 - a.conjugate() / (b + 2)
    for each in [a, b, total]:
        total += cmath.sqrt(each) * cmath.exp(a) + abs(each)
    return cmath.log(total, b) + cmath.rect(1.0, 2.0) ** a


@pytest.mark.skipif(memory_checker() is None, reason="this machine has no valgrind")
def test_memory(tmp_path: Path) -> None:
    """No access outside of an object, and no leak, on paths that return and on those that raise."""
    built = rekindle.build(rekindle.script(everything), tmp_path, cpu="x86-64-v3", freestanding=True)
    calls: list[tuple[Any, ...]] = [(0.5 + 1j, 2j, []), (1j, -2 + 0j, ["a"]), (800 + 0j, 1j, []), (1j, 1 + 0j, [])]
    answers = run(built, "call", calls, tmp_path, prefix=memory_checker() or ())
    for call, answer in zip(calls, answers, strict=True):
        expected = outcome(everything, *call)
        assert answer.code != 0 if isinstance(expected, type) else same(answer.value, everything(*call))
