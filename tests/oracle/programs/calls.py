"""Calls of functions: nested, with keywords and defaults, of builtins and of library functions."""
# The programs are spelled as people spell them.
# ruff: noqa: RUF046

import math
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.oracle.corpus import program, ramp


def twice(x):
    return x * 2


def affine(x, scale: float = 2.0, shift: float = 1.0):
    return x * scale + shift


def gcd(a: int, b: int) -> int:
    while b != 0:
        a, b = b, a % b
    return a


def outer_helper(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        x = twice(x)
    return x


@program((ramp(2),))
def one_call(x):
    return twice(x) + 1


@program((ramp(2),))
def nested_calls(x):
    return twice(twice(x)) + outer_helper(x, 2)


@program((ramp(2),))
def keywords(x):
    return affine(x, shift=3.0) + affine(scale=0.5, x=x) + affine(x)


@program((12, 18))
def call_in_condition(a: int, b: int) -> int:
    if gcd(a, b) > 1:
        return gcd(b, a)
    return 0


@program((ramp(2), 2), (ramp(2),))
def defaults(x, n: int = 3, flag: bool = True, name: str = "a"):
    if flag and name == "a":
        return x * n
    return x


@program((ramp(2),))
def keyword_only(x, *, n: int):
    return x + n


@program((2.0,))
def math_functions(x: float) -> Tuple[float, float, int, int, float]:
    return math.sqrt(x) + math.sin(x), math.exp(x) - math.log(x), math.floor(x), math.ceil(x), math.pow(x, 3.0)


@program((2.0,))
def math_constants(x: float) -> float:
    return math.pi * x + math.e


@program((ramp(2, 3),))
def functional(x):
    return F.relu(x), F.softmax(x, dim=1), F.dropout(x, 0.5, False)


@program((ramp(2, 3), ramp(4, 3), ramp(4)))
def functional_linear(x, w, b):
    return F.linear(x, w, b), F.linear(x, w)


@program((ramp(1, 2, 4, 4),))
def functional_pool(x):
    return F.max_pool2d(x, 2), F.avg_pool2d(x, kernel_size=2, stride=1), F.adaptive_avg_pool2d(x, (1, 1))


@program((ramp(2, 3),))
def functional_norms(x):
    return F.layer_norm(x, [3]), F.normalize(x, dim=1)


@program((ramp(2, 3), torch.tensor([0, 2])))
def functional_losses(x, y):
    return F.cross_entropy(x, y), F.mse_loss(x, x * 2), F.smooth_l1_loss(x, x * 3, reduction="sum")


@program((ramp(1, 1, 4, 4),))
def functional_interpolate(x):
    return F.interpolate(x, scale_factor=2.0, mode="nearest"), F.pad(x, [1, 1])


@program(([1.5, 2.5],))
def builtins_on_lists(v: List[float]) -> Tuple[float, float, int]:
    return min(v), max(v), len(v)


@program((3, 7))
def divmod_and_pow(a: int, b: int) -> Tuple[int, int, int]:
    q, r = divmod(b, a)
    return q, r, a * b


@program((2.675,))
def rounding(x: float) -> Tuple[float, int]:
    return round(x), int(round(x))


@program((ramp(2), None), (ramp(2), ramp(2)))
def optional_passed_on(x: Tensor, y: Optional[Tensor]) -> Tensor:
    return helper_with_optional(x, y) + helper_with_optional(x)


def helper_with_optional(x: Tensor, y: Optional[Tensor] = None) -> Tensor:
    return x if y is None else x + y


def returns_tuple(x: Tensor, n: int) -> Tuple[Tensor, int]:
    return x + n, n + 1


@program((ramp(2), 2))
def tuple_result(x: Tensor, n: int) -> Tensor:
    y, m = returns_tuple(x, n)
    z, _ = returns_tuple(y, m)
    return z


def raises_below(n: int) -> int:
    if n < 0:
        raise ValueError("below zero")
    return n


@program((2,), (-2,))
def exception_through_call(n: int) -> int:
    return raises_below(n) + 1


@program((ramp(2),))
def fork_and_wait(x: Tensor) -> Tensor:
    future = torch.jit.fork(twice, x)
    y = x + 1
    return torch.jit.wait(future) + y


@program((ramp(2),))
def without_gradient(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 2
    return y + 1


@program((ramp(2),))
def is_scripting(x: Tensor) -> Tensor:
    if torch.jit.is_scripting():
        return x + 1
    else:
        return x + 1
