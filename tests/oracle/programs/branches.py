"""if, elif, else, and what flows out of them."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


@program((ramp(3), ramp(3), True), (ramp(3), ramp(3), False))
def overview_if(a, b, c: bool):
    d = a + b
    if c:
        e = d + d
    else:
        e = b + d
    return e


@program((torch.tensor(1),), (torch.tensor(0),))
def tensor_condition(c):
    if c:
        r = 1
    else:
        r = 2
    return r


@program((ramp(2), 3), (ramp(2), 0))
def without_else(x, n: int):
    if n > 1:
        x = x + n
    return x


@program((-1,), (0,), (4,), (10,))
def chain(n: int) -> int:
    if n < 0:
        r = -1
    elif n == 0:
        r = 0
    elif n < 5:
        r = 1
    else:
        r = 2
    return r


@program((1, 2), (2, 1), (-1, -1))
def nested(a: int, b: int) -> int:
    r = 0
    if a > 0:
        if b > a:
            r = a
        else:
            r = b
            if b == 1:
                r += 10
    else:
        if b < 0:
            r = a * b
    return r


@program((True,), (False,))
def several_outputs(c: bool) -> Tuple[int, float, str]:
    if c:
        a, b, s = 1, 2.0, "yes"
    else:
        s = "no"
        a = 3
        b = 4.5
    return a, b, s


@program((3,), (-3,))
def local_to_a_branch(n: int) -> int:
    if n > 0:
        m = n * 2
        n = m + 1
    return n


@program((1,), (0,))
def condition_on_number(n: int) -> str:
    if n != 0:
        return "nonzero"
    return "zero"


@program(([1, 2],), ([],))
def condition_on_length(values: List[int]) -> int:
    if len(values) > 0:
        return values[0]
    return -1


@program((ramp(4),), (ramp(4, start=9.0),))
def condition_on_data(x: Tensor) -> Tensor:
    if bool(x.sum() > 10.0):
        y = x * 2
    else:
        y = x / 2
    return y


@program((True, True), (True, False), (False, True))
def and_or_with_side_branches(a: bool, b: bool) -> int:
    if a and b:
        return 1
    if a or b:
        return 2
    return 3


@program((5,), (None,))
def merged_optional(n: Optional[int]) -> int:
    if n is None:
        m = 0
    else:
        m = n
    return m


@program((ramp(2), True), (ramp(2), False))
def in_place_in_branch(x, c: bool):
    if c:
        x.add_(1)
    else:
        x.mul_(2)
    return x


@program((2,), (3,))
def static_none(n: int) -> int:
    x = None
    if x is None:
        n += 1
    else:
        n += 2
    return n


@program((ramp(2),))
def is_scripting_free_condition(x):
    if 2 > 1:
        return x + 1
    return x - 1


@program((True,), (False,))
def list_from_branch(c: bool) -> List[int]:
    if c:
        r = [1, 2, 3]
    else:
        r = [4]
    r.append(5)
    return r


@program((1, True), (2, False))
def not_conditions(n: int, c: bool) -> int:
    if not c:
        n = n * 10
    if not (n > 5 and c):
        n = n + 1
    return n


@program((1,), (7,))
def ternary_in_condition(n: int) -> int:
    if (n > 3) if n > 2 else (n > 0):
        return 10
    return 20
