"""Arithmetic, comparison and logic of int, float, complex, bool and Scalar; the equality of whatever else has one.

Python's operators are the implementation: division and modulo of negative numbers, powers, unbounded ints and the
errors are Python's.
"""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from rekindle.errors import InternalError
from rekindle.ir.graph import Node
from rekindle.ir.operators.registry import Operation
from rekindle.ops.registration.declare import declare, implements, implements_for_node

_MIXED = ("int_complex", "complex_int", "float_complex", "complex_float")


def _binary_texts(name: str) -> list[str]:
    """Return the schemas of an operator that takes every pair of number types and returns the wider one."""
    texts = [f"aten::{name}.{type}({type} a, {type} b) -> {type}" for type in ("int", "complex", "float")]
    for overload in _MIXED:
        left, right = overload.split("_")
        texts.append(f"aten::{name}.{overload}({left} a, {right} b) -> complex")
    texts.append(f"aten::{name}.int_float(int a, float b) -> float")
    texts.append(f"aten::{name}.float_int(float a, int b) -> float")
    texts.append(f"aten::{name}(Scalar a, Scalar b) -> Scalar")
    return texts


def _real_texts(name: str, of_ints: str, of_scalars: str = "Scalar") -> list[str]:
    """Return the schemas of an operator on real numbers; ``of_ints`` and ``of_scalars`` are its result types for
    those."""
    return [
        f"aten::{name}.int(int a, int b) -> {of_ints}",
        f"aten::{name}.float(float a, float b) -> float",
        f"aten::{name}.int_float(int a, float b) -> float",
        f"aten::{name}.float_int(float a, int b) -> float",
        f"aten::{name}(Scalar a, Scalar b) -> {of_scalars}",
    ]


# ---------------------------------------------------------------------------------------------------------- arithmetic

declare(operator.add, *_binary_texts("add"))
declare(operator.sub, *_binary_texts("sub"))
declare(operator.mul, *_binary_texts("mul"))
declare(
    operator.truediv,
    "aten::div.int(int a, int b) -> float",
    "aten::div.complex(complex a, complex b) -> complex",
    "aten::div.float(float a, float b) -> float",
    "aten::div(Scalar a, Scalar b) -> float",
)
declare(operator.floordiv, *_real_texts("floordiv", "int"))
declare(operator.mod, *_real_texts("remainder", "int"))
declare(math.fmod, *_real_texts("fmod", "float", "float"))
declare(math.remainder, *_real_texts("mathremainder", "float", "float"))
declare(math.copysign, *_real_texts("copysign", "float", "float"))

declare(
    divmod,
    "aten::divmod.int(int x, int y) -> (int, int)",
    "aten::divmod.float(float x, float y) -> (float, float)",
    "aten::divmod.int_float(int x, float y) -> (float, float)",
    "aten::divmod.float_int(float x, int y) -> (float, float)",
)


@implements("aten::__round_to_zero_floordiv.int(int a, int b) -> int")
def floordiv_to_zero(a: int, b: int) -> int:
    """Return the quotient without its fraction: -7 by 2 is -3."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def power_of_ints(a: int, b: int) -> float:
    """Return the power as a float, which the schema promises, though Python's may be an int."""
    return float(a**b)


def power_of_floats(a: float, b: float) -> float:
    """Return ``a ** b`` where the result is real.

    Raises:
        ValueError: the result is complex, that of a negative number to a fractional power: Python would return it, but
            the operator declares a float.
    """
    result: float | complex = a**b
    if isinstance(result, complex):
        raise ValueError(f"{float(a)} ** {float(b)} is not a real number; make one of them complex")
    return result


declare(
    operator.pow,
    "aten::pow.complex(complex a, complex b) -> complex",
    "aten::pow.float_complex(float a, complex b) -> complex",
    "aten::pow.complex_float(complex a, float b) -> complex",
)


def power_of_scalars(a: complex, b: complex) -> complex:
    """Return ``a ** b``, a float unless an operand is complex."""
    if isinstance(a, complex) or isinstance(b, complex):
        return a**b
    return power_of_floats(float(a), b)


def _powers(schema: str, function: Operation) -> None:
    @implements_for_node(schema)
    def power(node: Node) -> Operation:
        """Return the operation ``a ** b``; ``math.pow(a, b)``, which raises other errors, if the node has the attribute
        ``math``."""
        return math.pow if node.attributes.get("math") else function


_powers("aten::pow.int(int a, int b) -> float", power_of_ints)
_powers("aten::pow.float(float a, float b) -> float", power_of_floats)
_powers("aten::pow.int_float(int a, float b) -> float", power_of_floats)
_powers("aten::pow.float_int(float a, int b) -> float", operator.pow)
_powers("aten::pow.Scalar_Scalar(Scalar a, Scalar b) -> float", power_of_scalars)


@implements("aten::pow.int_to_int(int a, int b) -> int")
def power_as_int(a: int, b: int) -> int:
    """Return ``a ** b`` as an int.

    Raises:
        ValueError: ``b`` is negative, so that the result is not an int.
    """
    if b < 0:
        raise ValueError(f"{a} ** {b} is not an int; make one of them a float")
    return int(a**b)


declare(
    operator.neg,
    "aten::neg.int(int a) -> int",
    "aten::neg.float(float a) -> float",
    "aten::neg.complex(complex a) -> complex",
    "aten::neg.Scalar(Scalar a) -> Scalar",
)
declare(
    abs,
    "prim::abs.int(int a) -> int",
    "prim::abs.float(float a) -> float",
    "prim::abs.complex(complex a) -> float",
    "prim::abs.Scalar(Scalar a) -> Scalar",
    "prim::abs(Tensor x) -> Tensor",
)

# --------------------------------------------------------------------------------------------------------- bits, logic

declare(operator.and_, "aten::__and__.bool(bool a, bool b) -> bool", "aten::__and__.int(int a, int b) -> int")
declare(operator.or_, "aten::__or__.bool(bool a, bool b) -> bool", "aten::__or__.int(int a, int b) -> int")
declare(operator.xor, "aten::__xor__.bool(bool a, bool b) -> bool", "aten::__xor__.int(int a, int b) -> int")
declare(operator.lshift, "aten::__lshift__.int(int a, int b) -> int")
declare(operator.rshift, "aten::__rshift__.int(int a, int b) -> int")
declare(operator.not_, "aten::__not__(bool self) -> bool")
declare(operator.is_, "aten::__is__(t1 self, t2 obj) -> bool")
declare(operator.is_not, "aten::__isnot__(t1 self, t2 obj) -> bool")

# ---------------------------------------------------------------------------------------------------------- comparison

for _name, _function in (("lt", operator.lt), ("le", operator.le), ("gt", operator.gt), ("ge", operator.ge)):
    declare(
        _function,
        f"aten::{_name}.int(int a, int b) -> bool",
        f"aten::{_name}.float(float a, float b) -> bool",
        f"aten::{_name}.int_float(int a, float b) -> bool",
        f"aten::{_name}.float_int(float a, int b) -> bool",
        f"aten::{_name}(Scalar a, Scalar b) -> bool",
        f"aten::{_name}.str(str a, str b) -> bool",
    )

for _name, _equality in (("eq", operator.eq), ("ne", operator.ne)):
    declare(
        _equality,
        f"aten::{_name}.int_list(int[] a, int[] b) -> bool",
        f"aten::{_name}.device(Device a, Device b) -> bool",
        f"aten::{_name}.bool(bool a, bool b) -> bool",
        f"aten::{_name}.enum(AnyEnumType a, AnyEnumType b) -> bool",
        f"aten::{_name}.int(int a, int b) -> bool",
        f"aten::{_name}.complex(complex a, complex b) -> bool",
        f"aten::{_name}.float(float a, float b) -> bool",
        f"aten::{_name}.int_float(int a, float b) -> bool",
        f"aten::{_name}.float_int(float a, int b) -> bool",
        f"aten::{_name}.float_complex(float a, complex b) -> bool",
        f"aten::{_name}.complex_float(complex a, float b) -> bool",
        f"aten::{_name}(Scalar a, Scalar b) -> bool",
        f"aten::{_name}.str(str a, str b) -> bool",
        f"aten::{_name}.float_list(float[] a, float[] b) -> bool",
        f"aten::{_name}.Tensor_list(Tensor[] a, Tensor[] b) -> bool",
        f"aten::{_name}.bool_list(bool[] a, bool[] b) -> bool",
        f"aten::{_name}.str_list(str[] a, str[] b) -> bool",
    )

# --------------------------------------------------------------------------------------------------- smallest, largest


def _float_min(a: float, b: float) -> float:
    """Return ``min`` of an int and a float, as a float."""
    return float(min(a, b))


def _float_max(a: float, b: float) -> float:
    """Return ``max`` of an int and a float, as a float."""
    return float(max(a, b))


def _declare_extremum(name: str, choose: Any, choose_float: Any) -> None:
    declare(
        choose,
        f"prim::{name}.int(int a, int b) -> int",
        f"prim::{name}.float(float a, float b) -> float",
    )
    declare(
        choose_float,
        f"prim::{name}.int_float(int a, float b) -> float",
        f"prim::{name}.float_int(float a, int b) -> float",
    )
    declare(choose, f"prim::{name}(Scalar a, Scalar b) -> Scalar")
    for type in ("int", "float", "bool"):
        declare(
            choose,
            f"prim::{name}.{type}_list({type}[] l, {type}[] r) -> {type}[]",
            f"prim::{name}.self_{type}({type}[] self) -> {type}",
            may_alias_inputs=True,
        )


_declare_extremum("min", min, _float_min)
_declare_extremum("max", max, _float_max)


def _message(function: Callable[[Sequence[int]], int]) -> str:
    try:
        function(())
    except ValueError as error:
        return str(error)
    raise InternalError(f"{function.__name__}(()) raises no error")


EXTREMUM_OF_NOTHING: Final = {"min": _message(min), "max": _message(max)}
"""The messages of ``min([])`` and ``max([])``, which differ between releases of Python."""

# ------------------------------------------------------------------------------------------------------------ rounding

for _name, _rounding in (("ceil", math.ceil), ("floor", math.floor)):
    declare(
        _rounding,
        f"aten::{_name}.int(int a) -> int",
        f"aten::{_name}.float(float a) -> int",
        f"aten::{_name}.Scalar(Scalar a) -> Scalar",
    )


@implements(
    "aten::round.int(int a) -> float", "aten::round.float(float a) -> float", "aten::round.Scalar(Scalar a) -> Scalar"
)
def round_to_float(a: float) -> float:
    """Return the nearest whole number, halves to the even one, as a float."""
    return float(round(a))


# ------------------------------------------------------------------------------------------------------ classification

declare(math.isnan, "aten::isnan.float(float a) -> bool")
declare(cmath.isnan, "aten::isnan.complex(complex a) -> bool")
declare(math.isinf, "aten::isinf.float(float a) -> bool")
declare(cmath.isinf, "aten::isinf.complex(complex a) -> bool")
declare(math.isfinite, "aten::isfinite.float(float a) -> bool")
declare(cmath.isfinite, "aten::isfinite.complex(complex a) -> bool")

# -------------------------------------------------------------------------------------------------------------- ranges


@implements("aten::__range_length(int lo, int hi, int step) -> int")
def range_length(lo: int, hi: int, step: int) -> int:
    """Return how many numbers ``range(lo, hi, step)`` has.

    Raises:
        ValueError: ``step`` is zero.
    """
    numbers = range(lo, hi, step)
    try:
        return len(numbers)
    except OverflowError:  # len() returns a machine word only
        return (hi - lo - (1 if step > 0 else -1)) // step + 1


@implements("aten::__derive_index(int index, int start, int step) -> int")
def derive_index(index: int, start: int, step: int) -> int:
    """Return element ``index`` of a range."""
    return start + index * step
