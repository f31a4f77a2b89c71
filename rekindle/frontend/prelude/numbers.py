"""``math``, and numbers that are read from texts."""

from typing import List, Optional, Tuple

from torch import Tensor

from rekindle.frontend.prelude.primitives import (
    exact_sum,
    float_power,
    isinf,
    isnan,
    nextafter,
    norm,
    number,
    phase,
    scalar_tensor,
    unchecked_cast,
)


def hypot(*coordinates):
    xs: List[float] = []
    for x in coordinates:
        xs.append(float(x))
    return norm(xs)


def fsum(seq) -> float:
    xs: List[float] = []
    for x in seq:
        xs.append(float(x))
    return exact_sum(xs)


def dist(p, q):
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return norm([float(p[i]) - float(q[i]) for i in range(len(p))])


def isclose(a, b, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError("tolerances must be non-negative")
    x = float(a)
    y = float(b)
    if x == y:
        return True
    if isinf(x) or isinf(y):
        return False
    difference = abs(y - x)
    return difference <= abs(rel_tol * y) or difference <= abs(rel_tol * x) or difference <= abs_tol


def ulp(x) -> float:
    y = abs(float(x))
    if isnan(y) or isinf(y):
        return y
    above = nextafter(y, float("inf"))
    if isinf(above):
        return y - nextafter(y, 0.0)
    return above - y


def check_count(n: int, k: int):
    if n < 0:
        raise ValueError("n must be a non-negative integer")
    if k < 0:
        raise ValueError("k must be a non-negative integer")


def comb(n: int, k: int) -> int:
    check_count(n, k)
    if k > n:
        return 0
    result = 1
    for i in range(min(k, n - k)):
        result = result * (n - i) // (i + 1)
    return result


def perm(n: int, k: Optional[int] = None) -> int:
    many = n if k is None else k
    if n < 0 and k is None:
        raise ValueError("factorial() not defined for negative values")
    check_count(n, many)
    if many > n:
        return 0
    result = 1
    for i in range(many):
        result *= n - i
    return result


def gcd(*integers):
    result = 0
    for integer in integers:
        x: int = integer
        a = abs(result)
        b = abs(x)
        while b != 0:
            rest = a % b
            a = b
            b = rest
        result = a
    return result


def lcm(*integers):
    result = 1
    for integer in integers:
        x: int = integer
        if x == 0:
            result = 0
        elif result != 0:
            result = abs(result * x) // gcd(result, x)
    return result


def isqrt(n: int) -> int:
    if n < 0:
        raise ValueError("isqrt() argument must be nonnegative")
    if n == 0:
        return 0
    root = n
    better = (n + 1) // 2
    while better < root:
        root = better
        better = (root + n // root) // 2
    return root


def prod_from(iterable, start):
    result = start
    for x in iterable:
        result = result * x
    return result


def prod(iterable):
    result = 1
    for x in iterable:
        result = result * x
    return result


def sum_of_numbers(xs) -> number:
    result: number = 0
    for x in xs:
        result = result + x
    return result


def sum_from(xs, start):
    result = start
    for x in xs:
        result = result + x
    return result


def polar(z) -> Tuple[float, float]:
    return abs(complex(z)), phase(complex(z))


def cmath_isclose(a, b, rel_tol: float = 1e-09, abs_tol: float = 0.0) -> bool:
    if rel_tol < 0.0 or abs_tol < 0.0:
        raise ValueError("tolerances must be non-negative")
    x = complex(a)
    y = complex(b)
    if x == y:
        return True
    if isinf(abs(x)) or isinf(abs(y)):
        return False
    difference = abs(x - y)
    return difference <= rel_tol * abs(y) or difference <= rel_tol * abs(x) or difference <= abs_tol


def int_power(base: int, exponent: int) -> int:
    if exponent < 0:
        if base == 0:
            raise ZeroDivisionError("0.0 cannot be raised to a negative power")
        raise ValueError(f"{base} ** {exponent} is not an int: write float(base) ** exponent where it may be negative")
    result = 1
    factor = base
    left = exponent
    while left > 0:
        if left % 2 == 1:
            result *= factor
        left //= 2
        if left > 0:
            factor *= factor
    return result


def number_power(base, exponent) -> number:
    if isinstance(base, int) and isinstance(exponent, int):
        if exponent >= 0:
            return int_power(int(base), int(exponent))
    return float_power(base, exponent)


def number_as_bool(x: number) -> bool:
    if isinstance(x, bool):
        return bool(x)
    raise TypeError(f"expected a bool, got {x!r}")


def number_as_int(x: number) -> int:
    if isinstance(x, int):
        return int(x)
    raise TypeError(f"expected an int, got {x!r}")


def numbers_as_ints(xs: List[number]) -> List[int]:
    return [number_as_int(x) for x in xs]


def tolist_of_row(x: Tensor) -> List[number]:
    if x.dim() != 1:
        raise RuntimeError(
            "tolist() without a declared type takes a Tensor of one dimension, and this one has {}; declare the "
            "result, for example: values: List[List[float]] = x.tolist()".format(x.dim())
        )
    if x.dtype == 11:
        bools: List[bool] = x.tolist()
        return unchecked_cast(List[number], bools)
    if x.is_complex():
        complexes: List[complex] = x.tolist()
        return unchecked_cast(List[number], complexes)
    if x.is_floating_point():
        floats: List[float] = x.tolist()
        return unchecked_cast(List[number], floats)
    ints: List[int] = x.tolist()
    return unchecked_cast(List[number], ints)


def number_as_index(x: number) -> int:
    if isinstance(x, bool):
        raise TypeError("a bool that is known only at run time cannot be the index of a Tensor")
    return number_as_int(x)


def check_real(x: number) -> None:
    if isinstance(x, complex):
        raise TypeError("must be real number, not complex")


def number_as_float(x: number) -> float:
    if isinstance(x, complex):
        raise TypeError(f"expected a float, got {x!r}")
    return float(x)


def truth_of_number(x: number) -> bool:
    if isinstance(x, int):
        return x != 0
    if isinstance(x, float):
        return x != 0.0
    return bool(scalar_tensor(x, dtype=10))  # of a complex, and in torch.jit also of a bool, which is not an int there


def number_as_real(x: number) -> number:
    if isinstance(x, complex):
        raise TypeError(f"expected a float, got {x!r}")
    return x


def number_as_complex(x: number) -> complex:
    return complex(x)


def round_number(x) -> int:
    number = x  # one that native code knows: isinstance makes an int or a bool of x
    return int(number) if isinstance(x, int) else round(float(x))


def round_number_to(x: number, digits: int) -> number:
    number = x
    return round(int(number), digits) if isinstance(x, int) else round(float(x), digits)


def positive_number(x: number) -> number:
    return int(x) if isinstance(x, bool) else x


def power_modulo(base: int, exponent: int, modulus: int) -> int:
    if modulus == 0:
        raise ValueError("pow() 3rd argument cannot be 0")
    factor = base % modulus
    left = exponent
    if exponent < 0:
        left = -exponent
        a = factor
        b = abs(modulus)
        before = 1
        now = 0
        while b != 0:
            quotient = a // b
            rest = a - quotient * b
            a = b
            b = rest
            then = before - quotient * now
            before = now
            now = then
        if a != 1 and abs(modulus) != 1:
            raise ValueError("base is not invertible for the given modulus")
        factor = before % modulus
    result = 1 % modulus
    while left > 0:
        if left % 2 == 1:
            result = result * factor % modulus
        factor = factor * factor % modulus
        left //= 2
    return result


def bit_length(n: int) -> int:
    if n == -9223372036854775807 - 1:
        return 64
    left = abs(n)
    count = 0
    while left > 0:
        left //= 2
        count += 1
    return count


def bit_count(n: int) -> int:
    left = abs(n)
    count = 0
    while left > 0:
        count += left % 2
        left //= 2
    return count


def is_integer(x: float) -> bool:
    return not isinf(x) and not isnan(x) and x % 1.0 == 0.0


def itself(x):
    return x


def zero(x: int) -> int:
    return 0


def zero_float(x: float) -> float:
    return 0.0


def number_real(x: number) -> number:
    if isinstance(x, complex):
        return complex(x).real
    return positive_number(x)


def number_imag(x: number) -> number:
    if isinstance(x, complex):
        return complex(x).imag
    return 0.0 if isinstance(x, float) else 0


def number_conjugate(x: number) -> number:
    if isinstance(x, complex):
        return complex(x).conjugate()
    return positive_number(x)


def number_is_integer(x: number) -> bool:
    return True if isinstance(x, int) else is_integer(number_as_float(x))


def float_is_integer(x: number) -> bool:
    if isinstance(x, bool):
        raise AttributeError("'bool' object has no attribute 'is_integer'")
    if isinstance(x, int):
        raise AttributeError("'int' object has no attribute 'is_integer'")
    return is_integer(number_as_float(x))


def number_bit_length(x: number) -> int:
    if not isinstance(x, int):
        raise AttributeError("'float' object has no attribute 'bit_length'")
    return bit_length(int(x))


def number_bit_count(x: number) -> int:
    if not isinstance(x, int):
        raise AttributeError("'float' object has no attribute 'bit_count'")
    return bit_count(int(x))


def number_numerator(x: number) -> int:
    if isinstance(x, bool):
        return int(x)
    if not isinstance(x, int):
        raise AttributeError("'float' object has no attribute 'numerator'")
    return int(x)


def number_denominator(x: number) -> int:
    if not isinstance(x, int):
        raise AttributeError("'float' object has no attribute 'denominator'")
    return 1


def one(x: int) -> int:
    return 1


def round_int(n: int, digits: int) -> int:
    if digits >= 0:
        return n
    unit = 1
    for _ in range(-digits):
        unit *= 10
    down = n // unit * unit
    rest = n - down
    if 2 * rest > unit or (2 * rest == unit and (n // unit) % 2 == 1):
        return down + unit
    return down


def int_of_text(text: str, base: int) -> int:
    if base != 0 and (base < 2 or base > 36):
        raise ValueError("int() base must be >= 2 and <= 36, or 0")
    wrong = f"invalid literal for int() with base {base}: {text!r}"
    digits = text.strip().lower()
    negative = digits.startswith("-")
    if negative or digits.startswith("+"):
        digits = digits[1:]
    radix = base
    prefix = digits[:2]
    named = 16 if prefix == "0x" else 8 if prefix == "0o" else 2 if prefix == "0b" else 0
    if named != 0 and (base == 0 or base == named):
        radix = named
        digits = digits[2:]
        if digits.startswith("_"):
            digits = digits[1:]
    elif base == 0:
        radix = 10
        if digits.startswith("0") and len(digits.strip("0_")) > 0:
            raise ValueError(wrong)
    if len(digits) == 0 or digits.startswith("_") or digits.endswith("_") or digits.find("__", 0, len(digits)) != -1:
        raise ValueError(wrong)
    result = 0
    for character in digits:
        if character == "_":
            continue
        code = ord(character)
        value = 36
        if 48 <= code and code <= 57:
            value = code - 48
        elif 97 <= code and code <= 122:
            value = code - 87
        if value >= radix:
            raise ValueError(wrong)
        result = result * radix + value
    return -result if negative else result
