"""return and raise in every position, and what is reached after them."""

import math
from typing import List, Optional

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


@program((4.0,), (-1.0,))
def overview_raise(i: float) -> float:
    if i < 0:
        raise Exception("Negative input")
    else:
        return math.sqrt(i)


@program((1,), (0,), (-1,))
def returns_everywhere(n: int) -> str:
    if n > 0:
        return "positive"
    elif n < 0:
        return "negative"
    else:
        return "zero"


@program((3,), (-3,))
def return_then_code(n: int) -> int:
    if n < 0:
        return 0
    n = n * 2
    n += 1
    return n


@program((1, 2), (2, 1), (5, 5))
def return_from_nested_if(a: int, b: int) -> int:
    if a < b:
        if a == 1:
            return 100
        a += 1
    else:
        if a == b:
            return 200
        b += 1
    return a * 10 + b


@program((5,), (15,))
def return_or_raise_in_loop(n: int) -> int:
    for i in range(n):
        if i == 12:
            raise ValueError("too far")
        if i == 30:
            return i
    return n


@program((3,), (None,))
def raise_refines(n: Optional[int]) -> int:
    if n is None:
        raise RuntimeError("needs a number")
    return n + 1


@program((1,), (2,), (3,))
def raise_in_else(n: int) -> int:
    if n == 1:
        r = 10
    elif n == 2:
        r = 20
    else:
        raise NotImplementedError("only one and two")
    return r


@program((2,), (-2,))
def assertion(n: int) -> int:
    assert n > 0
    return n


@program((2,), (-2,))
def assertion_with_message(n: int) -> int:
    assert n > 0, "n must be positive"
    return n


@program((2,), (-2,))
def assertion_with_formatted_message(n: int) -> int:
    assert n > 0, f"n must be positive, not {n}"
    return n


@program((ramp(2),), (ramp(3),))
def assertion_on_shape(x: Tensor) -> Tensor:
    assert x.size(0) == 2, "two, please"
    return x.view(1, 2)


@program((1,))
def unreachable_code(n: int) -> int:
    return n
    n = n + 1
    return n


@program((4,), (1,))
def return_in_both_arms_inside_loop(n: int) -> int:
    i = 0
    while i < n:
        if i == 2:
            return 20
        else:
            if i == 7:
                return 70
        i += 1
    return i


@program((3,), (0,))
def loop_that_always_returns(n: int) -> int:
    for i in range(n):
        return i + 100
    return -1


@program((True,), (False,))
def return_none_or_not(c: bool) -> Optional[int]:
    if c:
        return 3
    return None


@program((ramp(2),))
def returns_nothing(x: Tensor):
    x.add_(1)


@program((ramp(2), True), (ramp(2), False))
def bare_return(x: Tensor, c: bool) -> None:
    if c:
        return
    x.add_(1)


@program(([1, 2, 3], 2), ([1, 2, 3], 9))
def find(values: List[int], wanted: int) -> int:
    i = 0
    found = -1
    while i < len(values):
        if values[i] == wanted:
            found = i
            break
        i += 1
    if found < 0:
        return len(values)
    return found


@program((5,), (2,))
def break_after_return(n: int) -> int:
    r = 0
    for i in range(n):
        if i == 3:
            return r
        r += i
        if r > 100:
            break
    r += 1000
    return r


@program((6,), (1,))
def everything_at_once(n: int) -> int:
    total = 0
    for i in range(n):
        if i == 1:
            continue
        j = 0
        while True:
            j += 1
            if j > i:
                break
            if i * j > 20:
                return total
            if j == 2:
                continue
            total += i * j
        if total > 50:
            break
    return total


@program((1,), (0,))
def raise_in_loop_condition_path(n: int) -> int:
    x = 0
    while x < 3:
        if n == 0:
            raise IndexError("zero")
        x += n
    return x


@program((torch.tensor([1.0, 2.0]),))
def early_return_of_tuples(x: Tensor):
    if x.numel() == 2:
        return x, x + 1
    return x * 2, x


@program((3,))
def continue_in_else(n: int) -> int:
    s = 0
    for i in range(n):
        if i > 0:
            s += i
        else:
            continue
        s *= 2
    return s


@program((5,))
def return_inside_three_levels(n: int) -> int:
    for i in range(n):
        for j in range(n):
            k = 0
            while k < n:
                if i + j + k == 7:
                    return i * 100 + j * 10 + k
                k += 1
    return -1
