"""Numbers and tensors: operators, precedence, promotion, comparison, conversion."""
# The programs are spelled as people spell them.
# ruff: noqa: B002, RUF021

from typing import Tuple

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


@program((ramp(3), ramp(3, start=1.0)))
def overview(a, b):
    c = a + b
    d = c * c
    e = torch.tanh(d * c)
    return d + (e + e)


@program((ramp(2, 2), ramp(2, 2, start=1.0)))
def tensor_operators(a, b):
    return a + b - a * b / (b + 1) + a @ b - (-a)


@program((ramp(3, start=1.0), 2, 0.5))
def tensor_with_numbers(x, n: int, f: float):
    return x + n - f * x + n / x - f**x + x**n + (n - x) * (f / x)


@program((7, 3), (-7, 3), (7, -3), (0, 5))
def integer_division(a: int, b: int) -> Tuple[int, int, float]:
    return a // b, a % b, a / b


@program((7.5, 2.0), (-7.5, 2.0), (7.5, -2.0))
def float_division(a: float, b: float) -> Tuple[float, float, float]:
    return a // b, a % b, a / b


@program((7, 2.5), (-3, 0.5))
def mixed_numbers(a: int, b: float) -> float:
    return a + b * a - b / a + (a - b) + a * 2 + 1.5 * b


@program((3, 2), (2, 3), (2, 2))
def integer_comparisons(a: int, b: int) -> Tuple[bool, bool, bool, bool, bool, bool]:
    return a < b, a <= b, a > b, a >= b, a == b, a != b


@program((1.5, 2), (2.0, 2))
def float_int_comparisons(a: float, b: int) -> Tuple[bool, bool, bool]:
    return a < b, a == b, a >= b


@program((ramp(4), ramp(4, start=1.0)))
def tensor_comparisons(a, b):
    return (a < b) & (a <= b) | (a > b) ^ (a >= b), a == b, a != b, ~(a < 1)


@program((12, 10), (255, 1))
def bits(a: int, b: int) -> Tuple[int, int, int, int, int]:
    return a & b, a | b, a ^ b, a << 2, a >> 1


@program((True, False), (False, False))
def booleans(a: bool, b: bool) -> Tuple[bool, bool, bool, bool]:
    return a and b, a or b, not a, (a and not b) or (b and not a)


@program((2, 3), (5, 2))
def powers(a: int, b: int) -> Tuple[float, float]:
    return float(a) ** b, float(b) ** 0.5


@program((3,), (-3,))
def unary(a: int) -> Tuple[int, int]:
    return -a, -(-a)


@program((2, 3, 4))
def precedence(a: int, b: int, c: int) -> int:
    return a + b * c - (a - b) * c // 2 + -a * -b % c


@program((4,))
def folded_constants(a: int) -> int:
    return a + (2 * 3 + 4) - (10 // 3) * (7 % 4) + -5


@program((1.0,))
def folded_floats(a: float) -> float:
    return a * (0.5 + 0.25) - 1e-5 * 1e5 + 2.0**0.5


@program((3,))
def chained_comparison(a: int) -> bool:
    return (1 < a) and (a < 5)


@program((3, 2.5, True))
def conversions(i: int, f: float, b: bool) -> Tuple[int, float, bool, int, float]:
    return int(f), float(i), bool(i), int(b), float(b)


@program((torch.tensor(3), torch.tensor(2.5)))
def conversions_of_tensors(i, f) -> Tuple[int, float, bool, int]:
    return int(i), float(f), bool(i), int(f)


@program((5, 3), (-5, 3))
def absolute_and_round(a: int, b: int) -> Tuple[int, float, int, int]:
    return abs(a), abs(float(a) / 2), max(a, b), min(a, b)


@program((ramp(3, start=1.0),))
def integer_tensor_division(x):
    n = x.to(torch.int64)
    return n // 2, n % 2, n / 2, n - 7, n << 1, n >> 1


@program((2 + 3j, 1.5))
def complex_numbers(z: complex, f: float) -> complex:
    return z * z + f - z / (1 + 2j)


@program((ramp(3), 2))
def ternary(x, n: int):
    y = x + 1 if n > 1 else x - 1
    return y if n > 2 else y * 2


@program((1, 2), (2, 1), (3, 3))
def nested_ternary(a: int, b: int) -> int:
    return 1 if a > b else 2 if a < b else 3


@program((0, 3), (2, 3), (2, 0))
def short_circuit(a: int, b: int) -> bool:
    return a > 0 and b > 0 and b // a > 0 or a == 0 and b == 3


@program((ramp(2, 3),))
def sizes_in_arithmetic(x: Tensor) -> int:
    return x.size(0) * x.size(1) + x.dim() - x.numel() // 2
