"""Functions of Python's module ``math`` that the C library does not have, or has with other errors.

Those that may fail write their result to ``out``, and return whether there is one.
"""

from __future__ import annotations

import struct
from typing import cast

from rekindle.building.lowlevel import (
    NULL,
    Address,
    Array,
    Byte,
    Int32,
    c,
    extern,
    float_of,
    native,
    stack,
    table,
    tabulated,
)
from rekindle.building.lowlevel.types import not_python
from rekindle.building.runtime.c_library import fmod, free, pow, snprintf, strtod
from rekindle.building.runtime.objects import Context, ErrorCode, List, allocate, fail
from rekindle.building.runtime.texts import exponent_in


@extern
def exp(a: float) -> float:
    not_python()


@extern
def exp2(a: float) -> float:
    not_python()


@extern
def log(a: float) -> float:
    not_python()


@extern
def sin(a: float) -> float:
    not_python()


@extern
def cos(a: float) -> float:
    not_python()


@extern
def sqrt(a: float) -> float:
    not_python()


@extern
def cbrt(a: float) -> float:
    not_python()


@extern
def floor(a: float) -> float:
    not_python()


@extern
def round(a: float) -> float:
    not_python()


@extern
def fabs(a: float) -> float:
    not_python()


@extern
def copysign(a: float, b: float) -> float:
    not_python()


@extern
def atan2(a: float, b: float) -> float:
    not_python()


@extern
def nextafter(a: float, b: float) -> float:
    not_python()


@extern
def remainder(a: float, b: float) -> float:
    not_python()


@extern
def ldexp(a: float, exponent: Int32) -> float:
    not_python()


@extern
def frexp(a: float, exponent: Address) -> float:
    not_python()


@extern
def modf(a: float, whole: Address) -> float:
    not_python()


INFINITY = float("inf")
PI = 3.141592653589793
LOG_PI = 1.1447298858494002
TO_DEGREES = 180.0 / PI
TO_RADIANS = PI / 180.0


@native
def is_finite(a: float) -> bool:
    return a - a == 0.0


@native
def domain_error(context: Context) -> bool:
    fail(context, ErrorCode.VALUE_ERROR, c("math domain error"))
    return False


@native
def range_error(context: Context) -> bool:
    fail(context, ErrorCode.OVERFLOW_ERROR, c("math range error"))
    return False


@native
def write_finite(context: Context, found: float, out: Array[float]) -> bool:
    """Write a result to ``out[0]``. Return False, with an overflow error, if it is infinite or NaN."""
    if found - found != 0.0:
        return range_error(context)
    out[0] = found
    return True


@native
def math_exp2(context: Context, a: float, out: Array[float]) -> bool:
    out[0] = exp2(a)
    return not is_finite(a) or write_finite(context, out[0], out)


@native
def math_fmod(context: Context, a: float, b: float, out: Array[float]) -> bool:
    found = a if is_finite(a) and (b == INFINITY or b == -INFINITY) else fmod(a, b)
    if found != found and a == a and b == b:
        return domain_error(context)
    out[0] = found
    return True


@native
def math_remainder(context: Context, a: float, b: float, out: Array[float]) -> bool:
    found = remainder(a, b)
    if found != found and a == a and b == b:
        return domain_error(context)
    out[0] = found
    return True


@native
def natural_logarithm(context: Context, a: float, out: Array[float]) -> bool:
    if a <= 0.0:
        return domain_error(context)
    out[0] = log(a)
    return True


@native
def math_log(context: Context, a: float, base: float, out: Array[float]) -> bool:
    """Write ``log(a, base)`` to ``out[0]``. Return False after an error."""
    if not natural_logarithm(context, a, out):
        return False
    found = out[0]
    if not natural_logarithm(context, base, out):
        return False
    if out[0] == 0.0:
        fail(context, ErrorCode.ZERO_DIVISION_ERROR, c("float division by zero"))
        return False
    out[0] = found / out[0]
    return True


@native
def math_frexp(a: float, out: Array[float], exponent: Array[int]) -> None:
    written = cast("Array[Int32]", stack(8))
    written[0] = 0
    out[0] = frexp(a, written) if is_finite(a) else a
    exponent[0] = written[0]


@native
def math_modf(a: float, fraction: Array[float], whole: Array[float]) -> None:
    if a == INFINITY or a == -INFINITY:
        fraction[0] = copysign(0.0, a)
        whole[0] = a
    else:
        fraction[0] = modf(a, whole)


@native
def math_ldexp(context: Context, a: float, exponent: int, out: Array[float]) -> bool:
    out[0] = a
    if a == 0.0 or not is_finite(a):
        return True
    # Every exponent beyond these leads to infinity, or to zero.
    return write_finite(context, ldexp(a, max(min(exponent, 5000), -5000)), out)


@native
def greatest_common_divisor(a: int, b: int) -> int:
    """Return the negative of the greatest common divisor, which 64 bits always hold."""
    first = min(a, -a)
    second = min(b, -b)
    while second != 0:
        if second == -1:
            return -1
        rest = first % second
        first = second
        second = rest
    return first


@native
def math_gcd(context: Context, a: int, b: int, out: Array[int]) -> bool:
    found = greatest_common_divisor(a, b)
    if found == -found and found != 0:
        fail(context, ErrorCode.INT_LIMIT, c("the result is an int of more than 64 bits"))
        return False
    out[0] = -found
    return True


@native
def math_factorial(context: Context, a: int, out: Array[int]) -> bool:
    if a < 0:
        fail(context, ErrorCode.VALUE_ERROR, c("factorial() not defined for negative values"))
        return False
    if a > 20:
        fail(context, ErrorCode.INT_LIMIT, c("the result is an int of more than 64 bits"))
        return False
    found = 1
    for i in range(2, a + 1):
        found = found * i
    out[0] = found
    return True


@native
def multiplied(a: int, b: int, out: Array[int]) -> bool:
    """Write ``a * b`` to ``out``; return whether it fits into 64 bits."""
    found = a * b
    out[0] = found
    if a == 0 or b == 0:
        return True
    if (a == -1 and b == -b) or (b == -1 and a == -a):
        return False
    return found // b == a and found % b == 0


@native
def power_of_ints(context: Context, a: int, b: int, out: Array[float]) -> bool:
    """Write ``float(a ** b)`` to ``out[0]``; return False after an error."""
    if b < 0:
        if a == 0:
            fail(context, ErrorCode.ZERO_DIVISION_ERROR, c("0.0 cannot be raised to a negative power"))
            return False
        out[0] = pow(float(a), float(b))
        return True
    product = cast("Array[int]", stack(8))
    found = 1
    # Ones and zeros take as many steps as others to 64 bits.
    for _i in range(b if a > 1 or a < -1 else min(b, 2 + (b & 1))):
        if not multiplied(found, a, product):
            fail(context, ErrorCode.INT_LIMIT, c("the result is an int of more than 64 bits"))
            return False
        found = product[0]
    out[0] = float(found)
    return True


# ------------------------------------------------------------------------------------------------------ gamma function


@tabulated
def lanczos_numerator() -> bytes:
    """Pack the coefficients of Lanczos' approximation, from that of the lowest power (N = 13, g = 6.0246…;
    https://www.boost.org, math/special_functions)."""
    return struct.pack(
        "<13d",
        23531376880.410759688572007674451636754734846804940,
        42919803642.649098768957899047001988850926355848959,
        35711959237.355668049440185451547166705960488635843,
        17921034426.037209699919755754458931112671403265390,
        6039542586.3520280050642916443072979210699388420708,
        1439720407.3117216736632230727949123939715485786372,
        248874557.86205415651146038641322942321632125127801,
        31426415.585400194380614231628318205362874684987640,
        2876370.6289353724412254090516208496135991145378768,
        186056.26539522349504029498971604569928220784236328,
        8071.6720023658162106380029022722506138218516325024,
        210.82427775157934587250973392071336271166969580291,
        2.5066282746310002701649081771338373386264310793408,
    )


@tabulated
def lanczos_denominator() -> bytes:
    """Pack the coefficients of ``x * (x + 1) * … * (x + 11)``."""
    found = [1]
    for root in range(12):
        found = [root * low + high for low, high in zip([*found, 0], [0, *found], strict=True)]
    return struct.pack("<13d", *found)


LANCZOS_G = 6.024680040776729583740234375
LANCZOS_G_MINUS_HALF = 5.524680040776729583740234375


@native
def lanczos_sum(a: float) -> float:
    above = 0.0
    below = 0.0
    numerator = cast("Array[float]", table(lanczos_numerator))
    denominator = cast("Array[float]", table(lanczos_denominator))
    for i in range(13):
        if a < 5.0:
            above = above * a + numerator[12 - i]
            below = below * a + denominator[12 - i]
        else:
            above = above / a + numerator[i]
            below = below / a + denominator[i]
    return above / below


@native
def sine_of_pi(a: float) -> float:
    """Return ``sin(pi * a)``."""
    rest = fmod(fabs(a), 2.0)
    quarter = int(round(2.0 * rest))
    found = sin(PI * (rest - 2.0))
    if quarter == 0:
        found = sin(PI * rest)
    elif quarter == 1:
        found = cos(PI * (rest - 0.5))
    elif quarter == 2:
        found = sin(PI * (1.0 - rest))
    elif quarter == 3:
        found = -cos(PI * (rest - 1.5))
    return copysign(1.0, a) * found


@native
def factorial_as_float(count: int) -> float:
    found = 1.0
    for i in range(2, count + 1):
        found = found * float(i)
    return found


@native
def math_gamma(context: Context, a: float, out: Array[float]) -> bool:
    out[0] = a
    if a != a or a == INFINITY:
        return True
    if a == -INFINITY or a == 0.0:
        return domain_error(context)
    if a == floor(a):
        if a < 0.0:
            return domain_error(context)
        if a <= 23.0:
            out[0] = factorial_as_float(int(a) - 1)
            return True
    size = fabs(a)
    if size < 1e-20:
        return write_finite(context, 1.0 / a, out)
    if size > 200.0:
        if a > 0.0:
            return range_error(context)
        out[0] = 0.0 / sine_of_pi(a)
        return True
    y = size + LANCZOS_G_MINUS_HALF
    error = y - LANCZOS_G_MINUS_HALF - size
    if size > LANCZOS_G_MINUS_HALF:
        error = y - size - LANCZOS_G_MINUS_HALF
    z = error * LANCZOS_G / y
    if a < 0.0:
        found = -PI / sine_of_pi(size) / size * exp(y) / lanczos_sum(size)
        found = found - z * found
        if size < 140.0:
            found = found / pow(y, size - 0.5)
        else:
            found = found / pow(y, size / 2.0 - 0.25) / pow(y, size / 2.0 - 0.25)
        return write_finite(context, found, out)
    result = lanczos_sum(size) / exp(y)
    result = result + z * result
    if size < 140.0:
        result = result * pow(y, size - 0.5)
    else:
        result = result * pow(y, size / 2.0 - 0.25) * pow(y, size / 2.0 - 0.25)
    return write_finite(context, result, out)


@native
def math_lgamma(context: Context, a: float, out: Array[float]) -> bool:
    out[0] = a
    if a != a:
        return True
    if not is_finite(a):
        out[0] = INFINITY
        return True
    if a == floor(a) and a <= 2.0:
        if a <= 0.0:
            return domain_error(context)
        out[0] = 0.0
        return True
    size = fabs(a)
    if size < 1e-20:
        out[0] = -log(size)
        return True
    found = log(lanczos_sum(size)) - LANCZOS_G
    found = found + (size - 0.5) * (log(size + LANCZOS_G - 0.5) - 1.0)
    if a < 0.0:
        found = LOG_PI - log(fabs(sine_of_pi(size))) - log(size) - found
    return write_finite(context, found, out)


# ---------------------------------------------------------------------------------------------------------------- sums


@native
def math_fsum(context: Context, items: List, out: Array[float]) -> bool:
    """Write the sum of floats to ``out[0]``, rounded once, by partial sums that do not overlap (Shewchuk 1997); return
    False after an error."""
    partials = cast("Array[float]", allocate(8 * items.length + 8))
    count = 0
    infinite = 0.0
    special = 0.0
    good = True
    for k in range(items.length):
        given = float_of(items.items[k])
        x = given
        kept = 0
        for j in range(count):
            y = partials[j]
            if fabs(x) < fabs(y):
                larger = y
                y = x
                x = larger
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                partials[kept] = low
                kept += 1
            x = high
        count = kept
        if x != 0.0:
            if is_finite(x):
                partials[count] = x
                count += 1
            else:
                good = good and not is_finite(given)
                if given == given:
                    infinite = infinite + given
                special = special + given
                count = 0
    out[0] = special if special != 0.0 else total_of_partials(partials, count)
    free(partials)
    if not good:
        fail(context, ErrorCode.OVERFLOW_ERROR, c("intermediate overflow in fsum"))
        return False
    if infinite != infinite:
        fail(context, ErrorCode.VALUE_ERROR, c("-inf + inf in fsum"))
        return False
    return True


@native
def total_of_partials(partials: Array[float], count: int) -> float:
    if count == 0:
        return 0.0
    n = count - 1
    high = partials[n]
    low = 0.0
    while n > 0 and low == 0.0:
        n -= 1
        x = high
        y = partials[n]
        high = x + y
        low = y - (high - x)
    # A tie is rounded by what is below it.
    if n > 0 and ((low < 0.0 and partials[n - 1] < 0.0) or (low > 0.0 and partials[n - 1] > 0.0)):
        twice = low * 2.0
        rounded = high + twice
        if twice == rounded - high:
            return rounded
    return high


SPLIT = 134217729.0


@native
def math_norm(items: List) -> float:
    """Return the Euclidean norm of floats, accurate to one unit in the last place. Squares are summed as pairs of
    floats."""
    largest = 0.0
    has_nan = False
    for i in range(items.length):
        size = fabs(float_of(items.items[i]))
        has_nan = has_nan or size != size
        if size > largest:
            largest = size
    if largest == INFINITY:
        return INFINITY
    if has_nan:
        return INFINITY - INFINITY
    if largest == 0.0 or items.length == 1:
        return largest
    exponent = cast("Array[Int32]", stack(8))
    frexp(largest, exponent)
    sums = cast("Array[float]", stack(32))
    sums[0] = 1.0
    sums[1] = 0.0
    sums[2] = 0.0
    for j in range(items.length):
        add_square(sums, ldexp(float_of(items.items[j]), -exponent[0]), 1.0)
    root = sqrt(sums[0] - 1.0 + (sums[1] + sums[2]))
    add_square(sums, root, -1.0)
    root = root + (sums[0] - 1.0 + (sums[1] + sums[2])) / (2.0 * root)
    return ldexp(root, exponent[0])


@native
def add_square(sums: Array[float], a: float, sign: float) -> None:
    """Add the exact square of a float, times ``sign``, to ``sums``, which hold partial sums and their rounding
    errors."""
    wide = a * SPLIT
    high = wide - (wide - a)
    low = a - high
    add_part(sums, sign * (high * high), 1)
    add_part(sums, sign * (2.0 * high * low), 2)
    add_part(sums, sign * (low * low), 2)


@native
def add_part(sums: Array[float], part: float, index: int) -> None:
    before = sums[0]
    after = before + part
    sums[0] = after
    sums[index] = sums[index] + ((before - after) + part)


# ------------------------------------------------------------------------------------------------------------ rounding


@native
def round_to_digits(context: Context, a: float, digits: int, out: Array[float]) -> bool:
    """Write ``round(a, digits)`` to ``out[0]``: the float nearest to the decimal that is nearest to ``a``, halves to
    the even digit. Return False after an error."""
    out[0] = a
    if not is_finite(a) or a == 0.0 or digits > 323:
        return True
    if digits < -308:
        out[0] = copysign(0.0, a)
        return True
    buffer = cast("Array[Byte]", stack(768))
    if digits >= 0:
        snprintf(buffer, 768, c("%.*f"), digits, a)
        return write_finite(context, strtod(buffer, NULL), out)
    exponent = exponent_in(buffer, snprintf(buffer, 768, c("%.*e"), 16, a))
    kept = exponent + digits
    if kept >= 0:
        snprintf(buffer, 768, c("%.*e"), kept, a)
        rounded = strtod(buffer, NULL)
        if not is_finite(rounded):
            fail(context, ErrorCode.OVERFLOW_ERROR, c("rounded value too large to represent"))
            return False
        out[0] = rounded
        return True
    # No digit is left: the result is zero, or one unit of the last digit if the number is above half of that.
    snprintf(buffer, 768, c("%.*e"), 340, fabs(a))
    rest = 0
    at = 2
    while buffer[at] != ord("e"):
        rest = rest | (buffer[at] - ord("0"))
        at += 1
    is_above = buffer[0] > ord("5") or (buffer[0] == ord("5") and rest != 0)
    found = 0.0
    if kept == -1 and is_above:
        snprintf(buffer, 768, c("1e%lld"), -digits)
        found = strtod(buffer, NULL)
    if not is_finite(found):
        fail(context, ErrorCode.OVERFLOW_ERROR, c("rounded value too large to represent"))
        return False
    out[0] = copysign(found, a)
    return True
