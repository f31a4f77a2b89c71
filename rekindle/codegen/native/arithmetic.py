"""Lowering of operators on ints, floats and bools to LLVM IR, with Python's semantics.

Each emitter emits code, and returns the name of the result. If Python would raise, or return an int of more than 64
bits, the code leaves the region.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rekindle.codegen.llvm.vector_ir_builder import hexadecimal
from rekindle.codegen.native.writer import RegionWriter

Emitter = Callable[..., str]
"""Function of the writer and the operands, names in LLVM IR, that returns the operand of the result."""

EMITTERS: Final[dict[str, Emitter]] = {}
"""By the qualified name of an operator."""

COMPARISONS: Final[set[str]] = set()
"""The kinds of operators that compare an int and a float without rounding."""

_CHEAP: Final = frozenset(
    [
        *(f"aten::{name}.{type}" for name in ("add", "sub", "mul", "neg") for type in ("int", "float")),
        *(f"aten::{name}.{type}" for name in ("eq", "ne", "lt", "le", "gt", "ge") for type in ("int", "float")),
        *(f"prim::{name}.{type}" for name in ("min", "max", "abs") for type in ("int", "float")),
        *(f"aten::__{name}__.{type}" for name in ("and", "or", "xor") for type in ("int", "bool")),
        "aten::__not__",
    ]
)

SMALLEST: Final = -(2**63)
_EXACT: Final = 2**53
"""Ints of at most this magnitude are exact as doubles."""


def emits(*names: str) -> Callable[[Emitter], Emitter]:
    def register(emitter: Emitter) -> Emitter:
        EMITTERS.update(dict.fromkeys(names, emitter))
        return emitter

    return register


def _instruction(text: str) -> Emitter:
    """Return an emitter of one instruction. ``{}`` in the text are its operands."""
    return lambda w, *operands: w.emit(text.format(*operands))


def to_double(w: RegionWriter, a: str) -> str:
    """Emit the conversion of an int to the nearest float."""
    return w.emit(f"sitofp i64 {a} to double")


def is_exact(w: RegionWriter, a: str) -> str:
    """Emit a test whether an int is at most 2^53 in magnitude, so that a float represents it exactly."""
    return w.emit(f"icmp ule i64 {w.emit(f'add i64 {a}, {_EXACT}')}, {2 * _EXACT}")


def exactly_double(w: RegionWriter, a: str) -> str:
    """Emit the conversion of an int to a float. The code leaves the region if that would round it."""
    w.leave_unless_exact(is_exact(w, a))
    return to_double(w, a)


# ---------------------------------------------------------------------------------------------------------------- ints


def _checked(intrinsic: str) -> Emitter:
    return lambda w, a, b: w.checked(intrinsic, a, b)


EMITTERS["aten::add.int"] = _checked("sadd")
EMITTERS["aten::sub.int"] = _checked("ssub")


@emits("aten::mul.int")
def multiply(w: RegionWriter, a: str, b: str) -> str:
    """Emit a product of ints. If one is a constant above 1, overflow is tested by comparing the other with bounds,
    which is off the critical path, unless its range excludes it."""
    factor = next((int(each) for each in (a, b) if each.isdecimal() and int(each) > 1), None)
    if factor is None:
        return w.checked("smul", a, b)
    other = b if a == str(factor) else a
    bound = (2**63 - 1) // factor
    known = w.range(other)
    if known.low >= 0 and known.high > bound:
        w.leave_unless(w.emit(f"icmp ule i64 {other}, {bound}"))
    elif known.low < -bound or known.high > bound:
        w.leave_unless(w.emit(f"icmp ule i64 {w.emit(f'add i64 {other}, {bound}')}, {2 * bound}"))
    return w.emit(f"mul {w.nsw} i64 {other}, {factor}")


@emits("aten::neg.int")
def negate(w: RegionWriter, a: str) -> str:
    return w.checked("ssub", "0", a)


@emits("prim::abs.int")
def absolute(w: RegionWriter, a: str) -> str:
    negated = negate(w, a)
    return w.emit(f"select i1 {w.emit(f'icmp slt i64 {a}, 0')}, i64 {negated}, i64 {a}")


def _power_of_two(b: str) -> int | None:
    """Return the exponent, if ``b`` is a constant power of two; None otherwise."""
    if not b.isdecimal() or int(b).bit_count() != 1:
        return None
    return int(b).bit_length() - 1


def is_cheap(name: str, operands: Sequence[str]) -> bool:
    """Return whether an operator can be speculated: it costs about as much as one addition, less than a branch that the
    processor predicts wrongly, and it is defined for all operands, as a division is not."""
    if name in ("aten::floordiv.int", "aten::remainder.int"):
        return _power_of_two(operands[1]) is not None
    return name in _CHEAP


def _check_division(w: RegionWriter, a: str, b: str) -> None:
    """Emit an exit from the region for a division by zero, or of the smallest int by -1, unless ranges rule it out."""
    if 0 in w.range(b):
        w.leave_if(w.emit(f"icmp eq i64 {b}, 0"))
    if SMALLEST in w.range(a) and -1 in w.range(b):
        smallest = w.emit(f"icmp eq i64 {a}, {SMALLEST}")
        minus_one = w.emit(f"icmp eq i64 {b}, -1")
        w.leave_if(w.emit(f"and i1 {smallest}, {minus_one}"))


@emits("aten::floordiv.int")
def floor_divide(w: RegionWriter, a: str, b: str) -> str:
    exponent = _power_of_two(b)
    if exponent is not None:
        return w.emit(f"ashr i64 {a}, {exponent}")
    _check_division(w, a, b)
    if w.range(a).low >= 0 and w.range(b).low >= 0:
        return w.emit(f"udiv i64 {a}, {b}")
    quotient = w.emit(f"sdiv i64 {a}, {b}")
    below = _is_below(w, w.emit(f"srem i64 {a}, {b}"), b)
    return w.emit(f"sub i64 {quotient}, {w.emit(f'zext i1 {below} to i64')}")


@emits("aten::remainder.int")
def modulo(w: RegionWriter, a: str, b: str) -> str:
    exponent = _power_of_two(b)
    if exponent is not None:
        return w.emit(f"and i64 {a}, {2**exponent - 1}")
    _check_division(w, a, b)
    if w.range(a).low >= 0 and w.range(b).low >= 0:
        return w.emit(f"urem i64 {a}, {b}")
    rest = w.emit(f"srem i64 {a}, {b}")
    moved = w.emit(f"add i64 {rest}, {b}")
    return w.emit(f"select i1 {_is_below(w, rest, b)}, i64 {moved}, i64 {rest}")


def _is_below(w: RegionWriter, rest: str, b: str) -> str:
    """Emit a test whether C's remainder has another sign than the divisor, so that Python's quotient is smaller by
    one."""
    if w.range(b).low >= 0:
        return w.emit(f"icmp slt i64 {rest}, 0")
    differs = w.emit(f"icmp slt i64 {w.emit(f'xor i64 {rest}, {b}')}, 0")
    return w.emit(f"and i1 {differs}, {w.emit(f'icmp ne i64 {rest}, 0')}")


@emits("aten::__round_to_zero_floordiv.int")
def divide_to_zero(w: RegionWriter, a: str, b: str) -> str:
    _check_division(w, a, b)
    return w.emit(f"sdiv i64 {a}, {b}")


@emits("aten::div.int")
def divide_ints(w: RegionWriter, a: str, b: str) -> str:
    w.leave_if(w.emit(f"icmp eq i64 {b}, 0"))
    return w.emit(f"fdiv double {exactly_double(w, a)}, {exactly_double(w, b)}")


for _name in ("and", "or", "xor"):
    EMITTERS[f"aten::__{_name}__.int"] = _instruction(f"{_name} i64 {{}}, {{}}")
    EMITTERS[f"aten::__{_name}__.bool"] = _instruction(f"{_name} i1 {{}}, {{}}")

EMITTERS["aten::__not__"] = _instruction("xor i1 {}, true")


@emits("aten::__lshift__.int")
def shift_left(w: RegionWriter, a: str, b: str) -> str:
    w.leave_if(w.emit(f"icmp ugt i64 {b}, 62"))
    shifted = w.emit(f"shl i64 {a}, {b}")
    w.leave_if(w.emit(f"icmp ne i64 {w.emit(f'ashr i64 {shifted}, {b}')}, {a}"))
    return shifted


@emits("aten::__rshift__.int")
def shift_right(w: RegionWriter, a: str, b: str) -> str:
    w.leave_if(w.emit(f"icmp slt i64 {b}, 0"))
    far = w.emit(f"icmp sgt i64 {b}, 63")
    return w.emit(f"ashr i64 {a}, {w.emit(f'select i1 {far}, i64 63, i64 {b}')}")


@emits("aten::__range_length")
def range_length(w: RegionWriter, low: str, high: str, step: str) -> str:
    """Emit the length of a range: ``(high - low - 1) // step + 1``, or 0 if that is negative; mirrored for a negative
    step. The code leaves the region if the step is 0, and on overflow."""
    w.leave_if(w.emit(f"icmp eq i64 {step}, 0"))
    w.leave_if(w.emit(f"icmp eq i64 {step}, {SMALLEST}"))
    backwards = w.emit(f"icmp slt i64 {step}, 0")
    start = w.emit(f"select i1 {backwards}, i64 {high}, i64 {low}")
    end = w.emit(f"select i1 {backwards}, i64 {low}, i64 {high}")
    stride = w.emit(f"select i1 {backwards}, i64 {w.emit(f'sub i64 0, {step}')}, i64 {step}")
    distance = w.checked("ssub", end, start)
    count = w.emit(f"sdiv i64 {w.checked('ssub', distance, '1')}, {stride}")
    some = w.emit(f"icmp sgt i64 {distance}, 0")
    return w.emit(f"select i1 {some}, i64 {w.checked('sadd', count, '1')}, i64 0")


@emits("aten::__derive_index")
def derive_index(w: RegionWriter, index: str, start: str, step: str) -> str:
    """Emit ``start + index * step``."""
    return w.checked("sadd", start, w.checked("smul", index, step))


# -------------------------------------------------------------------------------------------------------------- floats


def divide_floats(w: RegionWriter, a: str, b: str) -> str:
    w.leave_if(w.emit(f"fcmp oeq double {b}, 0.0"))
    return w.emit(f"fdiv double {a}, {b}")


def modulo_floats(w: RegionWriter, a: str, b: str) -> str:
    """Emit Python's ``%``: the remainder of C, plus the divisor if their signs differ. A zero has the divisor's
    sign."""
    w.leave_if(w.emit(f"fcmp oeq double {b}, 0.0"))
    rest = w.emit(f"frem double {a}, {b}")
    differs = _signs_differ(w, rest, b)
    moved = w.emit(f"select i1 {differs}, double {w.emit(f'fadd double {rest}, {b}')}, double {rest}")
    zero = w.emit(f"call double @llvm.copysign.f64(double 0.0, double {b})")
    return w.emit(f"select i1 {w.emit(f'fcmp oeq double {rest}, 0.0')}, double {zero}, double {moved}")


def _signs_differ(w: RegionWriter, a: str, b: str) -> str:
    return w.emit(f"xor i1 {w.emit(f'fcmp olt double {a}, 0.0')}, {w.emit(f'fcmp olt double {b}, 0.0')}")


def floor_divide_floats(w: RegionWriter, a: str, b: str) -> str:
    """Emit ``(a - a % b) / b``, rounded to a whole number; a zero has the quotient's sign."""
    w.leave_if(w.emit(f"fcmp oeq double {b}, 0.0"))
    rest = w.emit(f"frem double {a}, {b}")
    nothing = w.emit(f"fcmp oeq double {rest}, 0.0")
    whole = w.emit(f"fdiv double {w.emit(f'fsub double {a}, {rest}')}, {b}")
    one_less = w.emit(f"fsub double {whole}, 1.0")
    differs = w.emit(f"and i1 {_signs_differ(w, rest, b)}, {w.emit(f'xor i1 {nothing}, true')}")
    quotient = w.emit(f"select i1 {differs}, double {one_less}, double {whole}")
    floor = w.emit(f"call double @llvm.floor.f64(double {quotient})")
    above = w.emit(f"fcmp ogt double {w.emit(f'fsub double {quotient}, {floor}')}, 0.5")
    rounded = w.emit(f"select i1 {above}, double {w.emit(f'fadd double {floor}, 1.0')}, double {floor}")
    zero = w.emit(f"call double @llvm.copysign.f64(double 0.0, double {w.emit(f'fdiv double {a}, {b}')})")
    return w.emit(f"select i1 {w.emit(f'fcmp oeq double {quotient}, 0.0')}, double {zero}, double {rounded}")


def _mixed(emitter: Emitter, overload: str) -> Emitter:
    """Return the emitter of a float operator for an int and a float, in this or the reverse order."""
    if overload == "int_float":
        return lambda w, a, b: emitter(w, to_double(w, a), b)
    return lambda w, a, b: emitter(w, a, to_double(w, b))


for _name, _emitter in (
    ("aten::add", _instruction("fadd double {}, {}")),
    ("aten::sub", _instruction("fsub double {}, {}")),
    ("aten::mul", _instruction("fmul double {}, {}")),
    ("aten::remainder", modulo_floats),
    ("aten::floordiv", floor_divide_floats),
    ("aten::div", divide_floats),
):
    EMITTERS[f"{_name}.float"] = _emitter
    EMITTERS[f"{_name}.int_float"] = _mixed(_emitter, "int_float")
    EMITTERS[f"{_name}.float_int"] = _mixed(_emitter, "float_int")


EMITTERS["aten::neg.float"] = _instruction("fneg double {}")


@emits("prim::abs.float", "aten::fabs.float")
def absolute_float(w: RegionWriter, a: str) -> str:
    return w.emit(f"call double @llvm.fabs.f64(double {a})")


@emits("aten::fabs.int")
def absolute_as_float(w: RegionWriter, a: str) -> str:
    return absolute_float(w, to_double(w, a))


# --------------------------------------------------------------------------------------------- comparisons, extrema


def _compare_mixed(predicate: str, overload: str) -> Emitter:
    """Return the emitter of a comparison of an int and a float, exact as in Python. The code leaves the region if the
    int is not exact as a float."""
    if overload == "int_float":
        return lambda w, a, b: w.emit(f"fcmp {predicate} double {exactly_double(w, a)}, {b}")
    return lambda w, a, b: w.emit(f"fcmp {predicate} double {a}, {exactly_double(w, b)}")


for _name, _of_ints, _of_reals in (
    ("eq", "eq", "oeq"),
    ("ne", "ne", "une"),
    ("lt", "slt", "olt"),
    ("le", "sle", "ole"),
    ("gt", "sgt", "ogt"),
    ("ge", "sge", "oge"),
):
    COMPARISONS.add(f"aten::{_name}")
    EMITTERS[f"aten::{_name}.int"] = _instruction(f"icmp {_of_ints} i64 {{}}, {{}}")
    EMITTERS[f"aten::{_name}.float"] = _instruction(f"fcmp {_of_reals} double {{}}, {{}}")
    EMITTERS[f"aten::{_name}.int_float"] = _compare_mixed(_of_reals, "int_float")
    EMITTERS[f"aten::{_name}.float_int"] = _compare_mixed(_of_reals, "float_int")
    if _name in ("eq", "ne"):
        EMITTERS[f"aten::{_name}.bool"] = _instruction(f"icmp {_of_ints} i1 {{}}, {{}}")


def _extremum(type: str, is_better: str) -> Emitter:
    """Return the emitter of ``min`` or ``max``: the second argument if it is better than the first, as in Python, also
    with NaN."""
    return lambda w, a, b: w.emit(
        f"select i1 {w.emit(f'{is_better} {type} {b}, {a}')}, {type} {b}, {type} {a}",
    )


for _name, _of_ints, _of_reals in (("min", "icmp slt", "fcmp olt"), ("max", "icmp sgt", "fcmp ogt")):
    EMITTERS[f"prim::{_name}.int"] = _extremum("i64", _of_ints)
    EMITTERS[f"prim::{_name}.float"] = _extremum("double", _of_reals)

# --------------------------------------------------------------------------------------------------------- conversions


EMITTERS["aten::Float.int"] = EMITTERS["aten::round.int"] = to_double
EMITTERS["aten::Float.bool"] = _instruction("uitofp i1 {} to double")
EMITTERS["aten::Int.bool"] = _instruction("zext i1 {} to i64")
EMITTERS["aten::Bool.int"] = _instruction("icmp ne i64 {}, 0")
EMITTERS["aten::Bool.float"] = _instruction("fcmp une double {}, 0.0")


@emits("aten::Int.float")
def int_of_float(w: RegionWriter, a: str) -> str:
    """Emit the truncation of a float to an int. The code leaves the region for NaN, infinities, and results of more
    than 64 bits."""
    limit = hexadecimal(2.0**63)
    size = absolute_float(w, a)
    w.leave_unless(w.emit(f"fcmp olt double {size}, {limit}"))
    return w.emit(f"fptosi double {a} to i64")


def _rounded(intrinsic: str) -> Emitter:
    return lambda w, a: int_of_float(w, w.emit(f"call double @llvm.{intrinsic}.f64(double {a})"))


EMITTERS["aten::floor.float"] = _rounded("floor")
EMITTERS["aten::ceil.float"] = _rounded("ceil")


@emits("aten::floor.int", "aten::ceil.int", "aten::Int.int", "aten::Float.float", "aten::Bool.bool")
def itself(w: RegionWriter, a: str) -> str:
    return a


@emits("aten::round.float")
def round_float(w: RegionWriter, a: str) -> str:
    """Emit rounding half to even. The result is never -0.0: Python rounds to an int, which has no -0. The code leaves
    the region for NaN and infinities."""
    size = absolute_float(w, a)
    w.leave_unless(w.emit(f"fcmp olt double {size}, {hexadecimal(float('inf'))}"))
    return w.emit(f"fadd double {w.emit(f'call double @llvm.roundeven.f64(double {a})')}, 0.0")


# ------------------------------------------------------------------------------------------------------------ functions

FUNCTIONS: Final = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "sin", "sinh", "tan", "tanh"),
    *("log", "log10", "log1p", "log2", "erf", "erfc"),
)
"""Functions of the C library, which Python calls too; if one returns NaN or an infinity, Python may raise instead."""

DECLARATIONS: Final = "\n".join(
    [
        *(f"declare double @{name}(double)" for name in FUNCTIONS),
        *(f"declare double @llvm.{name}.f64(double)" for name in ("floor", "ceil", "roundeven", "fabs", "sqrt")),
        "declare double @llvm.copysign.f64(double, double)",
        "declare double @pow(double, double)",
        *(f"declare {{ i64, i1 }} @llvm.{name}.with.overflow.i64(i64, i64)" for name in ("sadd", "ssub", "smul")),
        "",
    ]
)


def _finite(w: RegionWriter, result: str) -> str:
    size = absolute_float(w, result)
    w.leave_unless(w.emit(f"fcmp olt double {size}, {hexadecimal(float('inf'))}"))
    return result


def _of_library(name: str) -> Emitter:
    return lambda w, a: _finite(w, w.emit(f"call double @{name}(double {a})"))


for _name in (*FUNCTIONS, "sqrt"):
    _emitter = _of_library("llvm.sqrt.f64" if _name == "sqrt" else _name)
    EMITTERS[f"aten::{_name}.float"] = _emitter
    EMITTERS[f"aten::{_name}.int"] = lambda w, a, _emitter=_emitter: _emitter(w, to_double(w, a))


def power_of_floats(w: RegionWriter, a: str, b: str) -> str:
    return _finite(w, w.emit(f"call double @pow(double {a}, double {b})"))


EMITTERS["aten::pow.float"] = power_of_floats
EMITTERS["aten::pow.int_float"] = _mixed(power_of_floats, "int_float")
EMITTERS["aten::pow.float_int"] = _mixed(power_of_floats, "float_int")
