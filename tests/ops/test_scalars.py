"""Arithmetic, comparison, mathematics and conversions: what Python says."""

from __future__ import annotations

import cmath
import math
from typing import Any

import pytest
import torch

from tests.ops.calling import call

BIG = 2**63

EXPRESSIONS: list[tuple[str, str, tuple[Any, ...]]] = [
    # arithmetic
    ("aten::add.int", "a + b", (2, 3)),
    ("aten::add.int", "a + b", (BIG, BIG)),
    ("aten::add.float_int", "a + b", (2.5, 3)),
    ("aten::add.int_complex", "a + b", (2, 3j)),
    ("aten::add", "a + b", (2, 1.5)),
    ("aten::sub.int_float", "a - b", (2, 0.5)),
    ("aten::mul.complex", "a * b", (1 + 2j, 3 - 1j)),
    ("aten::mul.int", "a * b", (BIG, 3)),
    ("aten::div.int", "a / b", (7, 2)),
    ("aten::div.int", "a / b", (6, 2)),
    ("aten::div.complex", "a / b", (1 + 2j, 3 - 1j)),
    ("aten::floordiv.int", "a // b", (-7, 2)),
    ("aten::floordiv.int", "a // b", (7, -2)),
    ("aten::floordiv.float", "a // b", (-7.5, 2.0)),
    ("aten::floordiv.int_float", "a // b", (7, -2.0)),
    ("aten::remainder.int", "a % b", (-7, 3)),
    ("aten::remainder.int", "a % b", (7, -3)),
    ("aten::remainder.float", "a % b", (-7.5, 2.0)),
    ("aten::remainder.float", "a % b", (-1e-20, 3.0)),
    ("aten::fmod.int", "math.fmod(a, b)", (-7, 3)),
    ("aten::mathremainder.int", "math.remainder(a, b)", (7, 4)),
    ("aten::divmod.int", "divmod(a, b)", (-7, 2)),
    ("aten::divmod.float_int", "divmod(a, b)", (-7.5, 2)),
    ("aten::__round_to_zero_floordiv.int", "int(a / b)", (-7, 2)),
    ("aten::__round_to_zero_floordiv.int", "int(a / b)", (7, -2)),
    ("aten::__round_to_zero_floordiv.int", "int(a / b)", (-8, -3)),
    ("aten::pow.int", "float(a ** b)", (2, 10)),
    ("aten::pow.int", "float(a ** b)", (2, -1)),
    ("aten::pow.float", "a ** b", (2.0, 0.5)),
    ("aten::pow.float_int", "a ** b", (-2.0, 3)),
    ("aten::pow.int_float", "a ** b", (2, -0.5)),
    ("aten::pow.complex_float", "a ** b", (1j, 2.0)),
    ("aten::pow.int_to_int", "a ** b", (3, 50)),
    ("aten::pow.Scalar_Scalar", "float(a ** b)", (3, 2)),
    ("aten::pow.Scalar_Scalar", "a ** b", (1j, 2)),
    ("aten::neg.int", "-a", (5,)),
    ("aten::neg.float", "-a", (0.0,)),
    ("prim::abs.int", "abs(a)", (-BIG,)),
    ("prim::abs.complex", "abs(a)", (3 + 4j,)),
    # bits and logic
    ("aten::__and__.int", "a & b", (-6, 11)),
    ("aten::__and__.bool", "a & b", (True, False)),
    ("aten::__or__.int", "a | b", (-6, 11)),
    ("aten::__xor__.bool", "a ^ b", (True, True)),
    ("aten::__lshift__.int", "a << b", (1, 70)),
    ("aten::__rshift__.int", "a >> b", (-9, 2)),
    ("aten::__not__", "not a", (False,)),
    ("aten::__is__", "a is b", (None, None)),
    ("aten::__isnot__", "a is not b", (None, 3)),
    # comparison
    ("aten::eq.int", "a == b", (3, 3)),
    ("aten::eq.float_int", "a == b", (3.0, 3)),
    ("aten::eq.float", "a == b", (math.nan, math.nan)),
    ("aten::eq.int_list", "a == b", ([1, 2], [1, 2])),
    ("aten::ne.str", "a != b", ("a", "b")),
    ("aten::ne.bool_list", "a != b", ([True], [True, False])),
    ("aten::eq.device", "a == b", (torch.device("cpu"), torch.device("cpu"))),
    ("aten::lt.int_float", "a < b", (3, 3.5)),
    ("aten::le.str", "a <= b", ("ab", "b")),
    ("aten::gt", "a > b", (2, 1.5)),
    ("aten::ge.int", "a >= b", (BIG + 1, BIG)),
    # smallest and largest
    ("prim::min.int", "min(a, b)", (3, -2)),
    ("prim::max.float_int", "float(max(a, b))", (1.5, 2)),
    ("prim::max.int_list", "max(a, b)", ([1, 5], [2])),
    ("prim::min.self_float", "min(a)", ([1.5, -2.0],)),
    ("prim::max.self_bool", "max(a)", ([False, True],)),
    # rounding
    ("aten::ceil.float", "math.ceil(a)", (-1.5,)),
    ("aten::floor.float", "math.floor(a)", (-1.5,)),
    ("aten::floor.float", "math.floor(a)", (1e300,)),
    ("aten::round.float", "float(round(a))", (2.5,)),
    ("aten::round.float", "float(round(a))", (-3.5,)),
    ("aten::round.int", "float(a)", (3,)),
    # mathematics
    ("aten::sqrt.int", "math.sqrt(a)", (2,)),
    ("aten::sqrt.complex", "cmath.sqrt(a)", (-1 + 0j,)),
    ("aten::sqrt.Scalar", "cmath.sqrt(a)", (2j,)),
    ("aten::sqrt.Scalar", "math.sqrt(a)", (2,)),
    ("aten::log.float_float", "math.log(a, b)", (8.0, 2.0)),
    ("aten::log.int_complex", "cmath.log(a, b)", (8, 2j)),
    ("aten::atan2.int_float", "math.atan2(a, b)", (-1, 0.5)),
    ("aten::copysign.int_float", "math.copysign(a, b)", (3, -0.0)),
    ("aten::angle.float", "cmath.phase(a)", (-2.0,)),
    ("aten::polar.float_int", "cmath.rect(a, b)", (2.0, 1)),
    ("aten::gamma.float", "math.gamma(a)", (4.5,)),
    ("aten::lgamma.int", "math.lgamma(a)", (10,)),
    ("aten::erf.float", "math.erf(a)", (0.3,)),
    ("aten::expm1.float", "math.expm1(a)", (1e-10,)),
    ("aten::degrees.float", "math.degrees(a)", (1.0,)),
    ("aten::factorial.int", "math.factorial(a)", (25,)),
    ("aten::gcd.int", "math.gcd(a, b)", (-12, 18)),
    ("aten::frexp", "math.frexp(a)", (10.0,)),
    ("aten::modf", "math.modf(a)", (-1.25,)),
    ("aten::ldexp", "math.ldexp(a, b)", (0.75, 4)),
    ("aten::isnan.float", "math.isnan(a)", (math.nan,)),
    ("aten::isinf.complex", "cmath.isinf(a)", (complex(math.inf, 0),)),
    ("aten::isfinite.float", "math.isfinite(a)", (math.inf,)),
    # conversions
    ("aten::Int.float", "int(a)", (-2.9,)),
    ("aten::Int.str", "int(a)", (" 12 ",)),
    ("aten::Int.bool", "int(a)", (True,)),
    ("aten::Float.str", "float(a)", ("1e3",)),
    ("aten::Float.int", "float(a)", (3,)),
    ("aten::Bool.float", "bool(a)", (0.5,)),
    ("aten::Bool.int", "bool(a)", (0,)),
    ("aten::Complex.int_float", "complex(a, b)", (1, 2.5)),
    ("aten::Complex.Scalar", "complex(a)", (1.5,)),
    # ranges
    ("aten::__range_length", "len(range(a, b, c))", (0, 10, 3)),
    ("aten::__range_length", "len(range(a, b, c))", (10, 0, -3)),
    ("aten::__range_length", "len(range(a, b, c))", (3, 3, 1)),
    ("aten::__range_length", "b", (0, 10**30, 1)),
    ("aten::__range_length", "-b // 3", (0, -3 * 10**30, -3)),
    ("aten::__derive_index", "range(b, 100, c)[a]", (4, 10, 7)),
    ("prim::rangelist", "list(range(a))", (4,)),
    ("prim::rangelist", "list(range(a))", (-4,)),
]


def _same(answer: object, expected: object) -> bool:
    """Equal in type and value, nan and the sign of zero included."""
    return type(answer) is type(expected) and repr(answer) == repr(expected)


@pytest.mark.parametrize(("name", "expression", "arguments"), EXPRESSIONS)
def test_as_python(name: str, expression: str, arguments: tuple[Any, ...]) -> None:
    names = dict(zip("abc", arguments), math=math, cmath=cmath)
    assert _same(call(name, *arguments), eval(expression, names))  # noqa: S307 (of the table above)


ERRORS: list[tuple[str, tuple[Any, ...], type[Exception], str]] = [
    ("aten::div.int", (1, 0), ZeroDivisionError, "division by zero"),
    ("aten::floordiv.int", (1, 0), ZeroDivisionError, "integer division or modulo by zero"),
    ("aten::remainder.int", (1, 0), ZeroDivisionError, "integer modulo by zero"),
    ("aten::__lshift__.int", (1, -1), ValueError, "negative shift count"),
    ("aten::sqrt.float", (-1.0,), ValueError, "math domain error"),
    ("aten::Int.str", ("x",), ValueError, "invalid literal for int() with base 10: 'x'"),
    ("aten::Int.float", (math.inf,), OverflowError, "cannot convert float infinity to integer"),
    ("aten::__range_length", (0, 3, 0), ValueError, "range() arg 3 must not be zero"),
    ("aten::pow.float", (-8.0, 0.5), ValueError, "-8.0 ** 0.5 is not a real number; make one of them complex"),
    ("aten::pow.int_to_int", (2, -1), ValueError, "2 ** -1 is not an int; make one of them a float"),
]
# CPython has changed these texts between versions; the class is what counts.
_PYTHON_TEXTS = {"aten::floordiv.int", "aten::remainder.int", "aten::sqrt.float"}


@pytest.mark.parametrize(("name", "arguments", "error", "text"), ERRORS)
def test_errors_are_pythons(name: str, arguments: tuple[Any, ...], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call(name, *arguments)
    assert type(raised.value) is error
    if name not in _PYTHON_TEXTS:
        assert str(raised.value) == text


# -------------------------------------------------------------------------------------------------------- from tensors


def test_numbers_of_tensors() -> None:
    assert call("aten::Int.Tensor", torch.tensor([[1.7]])) == 1
    assert call("aten::Float.Tensor", torch.tensor(2)) == 2.0
    assert call("aten::Bool.Tensor", torch.tensor(0.5)) is True
    assert call("aten::Complex.Tensor_Tensor", torch.tensor(1.5), torch.tensor(2)) == 1.5 + 2j
    assert call("aten::Complex.Tensor_int", torch.tensor(1.5), 2) == 1.5 + 2j
    assert call("aten::Complex.bool_Tensor", True, torch.tensor(2.0)) == 1 + 2j


def test_implicit_conversions_take_tensors_without_dimensions_and_gradient() -> None:
    assert _same(call("aten::IntImplicit", torch.tensor(3)), 3)
    assert _same(call("aten::FloatImplicit", torch.tensor(3)), 3.0)
    assert _same(call("aten::ComplexImplicit", torch.tensor(1.5)), 1.5 + 0j)
    assert _same(call("aten::ScalarImplicit", torch.tensor(2.5)), 2.5)
    with pytest.raises(RuntimeError) as raised:
        call("aten::FloatImplicit", torch.tensor([1.0]))
    assert str(raised.value) == "only a 0-dimensional tensor can stand for a number, not one of shape [1]"
    with pytest.raises(RuntimeError) as raised:
        call("aten::ScalarImplicit", torch.tensor(1.0, requires_grad=True))
    assert str(raised.value) == ("a tensor that requires grad cannot stand for a number; call .item() or detach it")
    with pytest.raises(RuntimeError) as raised:
        call("aten::IntImplicit", torch.tensor(1.5))
    assert str(raised.value) == "a tensor of dtype torch.float32 cannot stand for an int; convert it with int()"
    with pytest.raises(RuntimeError) as raised:
        call("aten::FloatImplicit", torch.tensor(1j))
    assert str(raised.value) == "a tensor of dtype torch.complex64 cannot stand for a float"


@pytest.mark.parametrize("value", [True, 3, 2.5, 1 + 2j])
def test_tensors_of_numbers_are_of_the_widest_dtype(value: bool | float | complex) -> None:
    found = call("prim::NumToTensor.bool" if value is True else "prim::NumToTensor.Scalar", value)
    expected = torch.ops.prim.NumToTensor.bool(value) if value is True else torch.ops.prim.NumToTensor.Scalar(value)
    assert found.dtype == expected.dtype
    assert found.shape == ()
    assert found.item() == value
