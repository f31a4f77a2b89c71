"""Complex numbers: Python's arithmetic, and the functions of ``cmath`` for finite numbers.

The functions that have ``out`` as an argument write their result there, and return False after an error.
"""

from __future__ import annotations

from typing import cast

from rekindle.building.lowlevel import Array, bits_of, c, extern, float_of, native, stack
from rekindle.building.lowlevel.types import not_python
from rekindle.building.runtime.c_library import pow
from rekindle.building.runtime.mathematics import (
    INFINITY,
    atan2,
    copysign,
    cos,
    domain_error,
    exp,
    fabs,
    floor,
    is_finite,
    ldexp,
    log,
    range_error,
    sin,
    sqrt,
)
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import (
    Box,
    Complex,
    Context,
    ErrorCode,
    Kind,
    Object,
    Text,
    allocate,
    fail,
    retain,
)
from rekindle.building.runtime.texts import data_of, part, text_concat, text_of, text_of_float


@extern
def hypot(a: float, b: float) -> float:
    not_python()


@extern
def sinh(a: float) -> float:
    not_python()


@extern
def cosh(a: float) -> float:
    not_python()


@extern
def tanh(a: float) -> float:
    not_python()


@extern
def tan(a: float) -> float:
    not_python()


@extern
def asinh(a: float) -> float:
    not_python()


@extern
def log1p(a: float) -> float:
    not_python()


@native
def new_complex(real: float, imaginary: float) -> Complex:
    made = cast("Complex", allocate(32))
    made.refs = 1
    made.kind = Kind.COMPLEX
    made.real = real
    made.imaginary = imaginary
    return made


@native
def complex_of_number(number: Object) -> Complex:
    """Return a boxed number, whose type is known only at run time, as a complex."""
    if number.kind == Kind.COMPLEX:
        retain(number)
        return cast("Complex", number)
    word = cast("Box", number).word
    return new_complex(float_of(word) if number.kind == Kind.FLOAT else float(word), 0.0)


@native
def complex_equal(a: Complex, b: Complex) -> bool:
    return a.real == b.real and a.imaginary == b.imaginary


# ---------------------------------------------------------------------------------------------------------- arithmetic


@native
def complex_add(a: Complex, b: Complex) -> Complex:
    return new_complex(a.real + b.real, a.imaginary + b.imaginary)


@native
def complex_sub(a: Complex, b: Complex) -> Complex:
    return new_complex(a.real - b.real, a.imaginary - b.imaginary)


@native
def complex_mul(a: Complex, b: Complex) -> Complex:
    return new_complex(
        a.real * b.real - a.imaginary * b.imaginary,
        a.real * b.imaginary + a.imaginary * b.real,
    )


@native
def complex_neg(a: Complex) -> Complex:
    return new_complex(-a.real, -a.imaginary)


@native
def complex_conjugate(a: Complex) -> Complex:
    return new_complex(a.real, -a.imaginary)


@native
def complex_quotient(a: Complex, b: Complex) -> Complex:
    """Return ``a / b`` for a nonzero ``b`` by Smith's method: divide by its larger part first."""
    if fabs(b.real) >= fabs(b.imaginary):
        ratio = b.imaginary / b.real
        below = b.real + b.imaginary * ratio
        return new_complex((a.real + a.imaginary * ratio) / below, (a.imaginary - a.real * ratio) / below)
    if fabs(b.imaginary) >= fabs(b.real):
        ratio = b.real / b.imaginary
        below = b.real * ratio + b.imaginary
        return new_complex((a.real * ratio + a.imaginary) / below, (a.imaginary * ratio - a.real) / below)
    return new_complex(b.real + b.imaginary, b.real + b.imaginary)


@native
def complex_div(context: Context, a: Complex, b: Complex) -> Complex | None:
    if b.real == 0.0 and b.imaginary == 0.0:
        fail(context, ErrorCode.ZERO_DIVISION_ERROR, c("complex division by zero"))
        return None
    return complex_quotient(a, b)


@native
def complex_pow(context: Context, a: Complex, b: Complex) -> Complex | None:
    result = a
    if b.imaginary == 0.0 and b.real == floor(b.real) and fabs(b.real) <= 100.0:
        if b.real < 0.0 and a.real == 0.0 and a.imaginary == 0.0:
            fail(context, ErrorCode.ZERO_DIVISION_ERROR, c("0.0 to a negative or complex power"))
            return None
        result = power_of_count(a, int(fabs(b.real)))
        if b.real <= 0.0:
            one = new_complex(1.0, 0.0)
            below = result
            result = complex_quotient(one, below)
            release(one)
            release(below)
    elif a.real == 0.0 and a.imaginary == 0.0:
        if b.imaginary != 0.0 or b.real < 0.0:
            fail(context, ErrorCode.ZERO_DIVISION_ERROR, c("0.0 to a negative or complex power"))
            return None
        result = new_complex(0.0, 0.0)
    else:
        size = hypot(a.real, a.imaginary)
        length = pow(size, b.real)
        angle = atan2(a.imaginary, a.real)
        phase = angle * b.real
        if b.imaginary != 0.0:
            length = length / exp(angle * b.imaginary)
            phase = phase + b.imaginary * log(size)
        if is_infinite(phase):  # Python finds that the cosine is not defined
            fail(context, ErrorCode.ZERO_DIVISION_ERROR, c("0.0 to a negative or complex power"))
            return None
        result = new_complex(length * cos(phase), length * sin(phase))
    if is_infinite(result.real) or is_infinite(result.imaginary):
        release(result)
        fail(context, ErrorCode.OVERFLOW_ERROR, c("complex exponentiation"))
        return None
    return result


@native
def is_infinite(a: float) -> bool:
    return a == a and not is_finite(a)


@native
def power_of_count(a: Complex, count: int) -> Complex:
    """Return ``a`` to the power of the int ``count``, by repeated squaring."""
    found = new_complex(1.0, 0.0)
    square = new_complex(a.real, a.imaginary)
    rest = count
    while rest != 0:
        if rest % 2 == 1:
            longer = complex_mul(found, square)
            release(found)
            found = longer
        next_square = complex_mul(square, square)
        release(square)
        square = next_square
        rest = rest // 2
    release(square)
    return found


@native
def complex_abs(context: Context, a: Complex, out: Array[float]) -> bool:
    out[0] = hypot(a.real, a.imaginary)
    if is_infinite(out[0]) and is_finite(a.real) and is_finite(a.imaginary):
        fail(context, ErrorCode.OVERFLOW_ERROR, c("absolute value too large"))
        return False
    return True


@native
def complex_angle(a: Complex) -> float:
    return atan2(a.imaginary, a.real)


@native
def complex_is_nan(a: Complex) -> bool:
    return a.real != a.real or a.imaginary != a.imaginary


@native
def complex_is_infinite(a: Complex) -> bool:
    return is_infinite(a.real) or is_infinite(a.imaginary)


@native
def complex_is_finite(a: Complex) -> bool:
    return is_finite(a.real) and is_finite(a.imaginary)


# --------------------------------------------------------------------------------------------------------------- texts


@native
def text_of_part(number: float, signed: bool) -> Text:
    """Return a real or imaginary part as ``repr`` of the complex number writes it: without ``.0``, and with a sign
    if ``signed``."""
    text = text_of_float(number)
    data = data_of(text)
    length = text.bytes
    if length > 2 and data[length - 2] == ord(".") and data[length - 1] == ord("0"):
        length -= 2
    result = part(text, 0, length)
    release(text)
    if signed and data_of(result)[0] != ord("-"):
        plus = text_of(c("+"), 1)
        unsigned = result
        result = text_concat(plus, unsigned)
        release(plus)
        release(unsigned)
    return result


@native
def text_of_complex(a: Complex) -> Text:
    is_imaginary = a.real == 0.0 and copysign(1.0, a.real) == 1.0
    first = text_of(c(""), 0) if is_imaginary else text_of_part(a.real, False)
    second = text_of_part(a.imaginary, not is_imaginary)
    both = text_concat(first, second)
    opened = text_of(c(""), 0) if is_imaginary else text_of(c("("), 1)
    closed = text_of(c("j"), 1) if is_imaginary else text_of(c("j)"), 2)
    head = text_concat(opened, both)
    result = text_concat(head, closed)
    release(first)
    release(second)
    release(both)
    release(opened)
    release(closed)
    release(head)
    return result


# --------------------------------------------------------------------------------------------------------------- cmath

LARGEST = 1.7976931348623157e308 / 4.0
SMALLEST = 2.2250738585072014e-308
LOG_LARGEST = 708.3964185322641
SQRT_LARGEST = 6.703903964971298e153
SQRT_SMALLEST = 1.4916681462400413e-154
E = 2.718281828459045
LOG_2 = 0.6931471805599453
LOG_10 = 2.302585092994046
HALF_PI = 1.5707963267948966


@native
def write_parts(out: Array[float], real: float, imaginary: float) -> bool:
    out[0] = real
    out[1] = imaginary
    return True


@native
def write_finite_parts(context: Context, out: Array[float], real: float, imaginary: float) -> bool:
    if is_infinite(real) or is_infinite(imaginary):
        return range_error(context)
    return write_parts(out, real, imaginary)


@native
def square_root(a: float, b: float, out: Array[float]) -> bool:
    if a == 0.0 and b == 0.0:
        return write_parts(out, 0.0, b)
    real = fabs(a)
    imaginary = fabs(b)
    root = 0.0
    if real < SMALLEST and imaginary < SMALLEST:
        real = ldexp(real, 53)
        root = ldexp(sqrt(real + hypot(real, ldexp(imaginary, 53))), -27)
    else:
        real = real / 8.0
        root = 2.0 * sqrt(real + hypot(real, imaginary / 8.0))
    other = imaginary / (2.0 * root)
    if a >= 0.0:
        return write_parts(out, root, copysign(other, b))
    return write_parts(out, other, copysign(root, b))


@native
def exponential(context: Context, a: float, b: float, out: Array[float]) -> bool:
    if a > LOG_LARGEST:
        length = exp(a - 1.0)
        return write_finite_parts(context, out, length * cos(b) * E, length * sin(b) * E)
    size = exp(a)
    return write_finite_parts(context, out, size * cos(b), size * sin(b))


@native
def logarithm(context: Context, a: float, b: float, out: Array[float]) -> bool:
    large = max_float(fabs(a), fabs(b))
    small = fabs(a) if large == fabs(b) else fabs(b)
    real = 0.0
    if large > LARGEST:
        real = log(hypot(large / 2.0, small / 2.0)) + LOG_2
    elif large == 0.0:
        return domain_error(context)
    elif large < SMALLEST:
        real = log(hypot(ldexp(large, 53), ldexp(small, 53))) - 53.0 * LOG_2
    else:
        size = hypot(large, small)
        real = log(size)
        if 0.71 <= size and size <= 1.73:
            real = log1p((large - 1.0) * (large + 1.0) + small * small) / 2.0
    return write_parts(out, real, atan2(b, a))


@native
def max_float(a: float, b: float) -> float:
    return a if a > b else b


@native
def hyperbolic_sine(context: Context, a: float, b: float, out: Array[float]) -> bool:
    if fabs(a) > LOG_LARGEST:
        less = a - copysign(1.0, a)
        return write_finite_parts(context, out, cos(b) * sinh(less) * E, sin(b) * cosh(less) * E)
    return write_finite_parts(context, out, cos(b) * sinh(a), sin(b) * cosh(a))


@native
def hyperbolic_cosine(context: Context, a: float, b: float, out: Array[float]) -> bool:
    if fabs(a) > LOG_LARGEST:
        less = a - copysign(1.0, a)
        return write_finite_parts(context, out, cos(b) * cosh(less) * E, sin(b) * sinh(less) * E)
    return write_finite_parts(context, out, cos(b) * cosh(a), sin(b) * sinh(a))


@native
def hyperbolic_tangent(a: float, b: float, out: Array[float]) -> bool:
    if fabs(a) > LOG_LARGEST:
        return write_parts(out, copysign(1.0, a), 4.0 * sin(b) * cos(b) * exp(-2.0 * fabs(a)))
    x = tanh(a)
    y = tan(b)
    less = 1.0 / cosh(a)
    both = x * y
    below = 1.0 + both * both
    return write_parts(out, x * (1.0 + y * y) / below, ((y / below) * less) * less)


@native
def is_large(a: float, b: float) -> bool:
    return fabs(a) > LARGEST or fabs(b) > LARGEST


@native
def log_of_large(a: float, b: float) -> float:
    return log(hypot(a / 2.0, b / 2.0)) + LOG_2 * 2.0


@native
def arc_cosine(a: float, b: float, out: Array[float]) -> bool:
    if is_large(a, b):
        size = log_of_large(a, b)
        imaginary = -copysign(size, b) if a < 0.0 else copysign(size, -b)
        return write_parts(out, atan2(fabs(b), a), imaginary)
    first = cast("Array[float]", stack(16))
    second = cast("Array[float]", stack(16))
    square_root(1.0 - a, -b, first)
    square_root(1.0 + a, b, second)
    return write_parts(out, 2.0 * atan2(first[0], second[0]), asinh(second[0] * first[1] - second[1] * first[0]))


@native
def arc_hyperbolic_cosine(a: float, b: float, out: Array[float]) -> bool:
    if is_large(a, b):
        return write_parts(out, log_of_large(a, b), atan2(b, a))
    first = cast("Array[float]", stack(16))
    second = cast("Array[float]", stack(16))
    square_root(a - 1.0, b, first)
    square_root(a + 1.0, b, second)
    return write_parts(out, asinh(first[0] * second[0] + first[1] * second[1]), 2.0 * atan2(first[1], second[0]))


@native
def arc_hyperbolic_sine(a: float, b: float, out: Array[float]) -> bool:
    if is_large(a, b):
        size = log_of_large(a, b)
        return write_parts(out, copysign(size, a) if b >= 0.0 else -copysign(size, -a), atan2(b, fabs(a)))
    first = cast("Array[float]", stack(16))
    second = cast("Array[float]", stack(16))
    square_root(1.0 + b, -a, first)
    square_root(1.0 - b, a, second)
    return write_parts(
        out,
        asinh(first[0] * second[1] - second[0] * first[1]),
        atan2(b, first[0] * second[0] - first[1] * second[1]),
    )


@native
def arc_hyperbolic_tangent(context: Context, a: float, b: float, out: Array[float]) -> bool:
    if a < 0.0 or (a == 0.0 and copysign(1.0, a) < 0.0):
        good = arc_hyperbolic_tangent(context, -a, -b, out)
        return good and write_parts(out, -out[0], -out[1])
    size = fabs(b)
    if a > SQRT_LARGEST or size > SQRT_LARGEST:
        length = hypot(a / 2.0, b / 2.0)
        return write_parts(out, a / 4.0 / length / length, -copysign(HALF_PI, -b))
    if a == 1.0 and size < SQRT_SMALLEST:
        if size == 0.0:
            return domain_error(context)
        return write_parts(out, -log(sqrt(size) / sqrt(hypot(size, 2.0))), copysign(atan2(2.0, -size) / 2.0, b))
    real = log1p(4.0 * a / ((1.0 - a) * (1.0 - a) + size * size)) / 4.0
    return write_parts(out, real, -atan2(-2.0 * b, (1.0 - a) * (1.0 + a) - size * size) / 2.0)


SQRT, EXP, LOG, LOG10 = 1, 2, 3, 4
SIN, COS, TAN, SINH, COSH, TANH = 5, 6, 7, 8, 9, 10
ASIN, ACOS, ATAN, ASINH, ACOSH, ATANH = 11, 12, 13, 14, 15, 16


@native
def complex_function(context: Context, a: Complex, function: int) -> Complex | None:
    """Return a function of ``cmath``, by its number, of a finite complex number; None after an error."""
    x = a.real
    y = a.imaginary
    if not is_finite(x) or not is_finite(y):
        fail(context, ErrorCode.NOT_BUILT, c("a function of cmath of a number that is not finite"))
        return None
    out = cast("Array[float]", stack(16))
    good = True
    if function == SQRT:
        square_root(x, y, out)
    elif function == EXP:
        good = exponential(context, x, y, out)
    elif function == LOG or function == LOG10:
        good = logarithm(context, x, y, out)
        if good and function == LOG10:
            write_parts(out, out[0] / LOG_10, out[1] / LOG_10)
    elif function == SINH:
        good = hyperbolic_sine(context, x, y, out)
    elif function == COSH:
        good = hyperbolic_cosine(context, x, y, out)
    elif function == COS:
        good = hyperbolic_cosine(context, -y, x, out)
    elif function == TANH:
        hyperbolic_tangent(x, y, out)
    elif function == ACOS:
        arc_cosine(x, y, out)
    elif function == ACOSH:
        arc_hyperbolic_cosine(x, y, out)
    elif function == ASINH:
        arc_hyperbolic_sine(x, y, out)
    elif function == ATANH:
        good = arc_hyperbolic_tangent(context, x, y, out)
    else:
        # The others are hyperbolic functions of the number times i.
        if function == SIN:
            good = hyperbolic_sine(context, -y, x, out)
        elif function == TAN:
            hyperbolic_tangent(-y, x, out)
        elif function == ASIN:
            arc_hyperbolic_sine(-y, x, out)
        else:
            good = arc_hyperbolic_tangent(context, -y, x, out)
        if good:
            write_parts(out, out[1], -out[0])
    return new_complex(out[0], out[1]) if good else None


@native
def complex_log(context: Context, a: Complex, base: Complex) -> Complex | None:
    """Return ``cmath.log(a, base)``, or None after an error. Zero as ``a`` is accepted: its logarithm is infinite."""
    is_zero = a.real == 0.0 and a.imaginary == 0.0
    above = new_complex(-INFINITY, atan2(a.imaginary, a.real)) if is_zero else complex_function(context, a, LOG)
    if above is None:
        return None
    below = complex_function(context, base, LOG)
    if below is None:
        release(above)
        return None
    if below.real == 0.0 and below.imaginary == 0.0:
        release(above)
        release(below)
        domain_error(context)
        return None
    result = complex_quotient(above, below)
    release(above)
    release(below)
    return result


@native
def complex_rect(context: Context, length: float, angle: float) -> Complex | None:
    if not is_finite(length) or not is_finite(angle):
        fail(context, ErrorCode.NOT_BUILT, c("a function of cmath of a number that is not finite"))
        return None
    if angle == 0.0:
        return new_complex(length, length * angle)
    return new_complex(length * cos(angle), length * sin(angle))


@native
def complex_of_words(real: int, imaginary: int) -> Complex:
    return new_complex(float_of(real), float_of(imaginary))


@native
def write_words(a: Complex, words: Array[int]) -> None:
    words[0] = bits_of(a.real)
    words[1] = bits_of(a.imaginary)
