"""Programs with assignment expressions in operands that may not run."""

from __future__ import annotations

from typing import Optional


def both_true(n: int):
    if n > 0 and (v := n + 1) > 2:
        return v
    return 0


def negated(n: int):
    if not (n > 0 and (v := n + 1) > 2):
        return 0
    return v


def both_false(n: int):
    if n < 0 or (v := n + 1) > 5:
        return -1
    return v


def asserted(n: int):
    assert n > 0 and (v := n + 1) > 2  # noqa: PT018, RUF018
    return v


def loop(n: int):
    total = 0
    while n > 0 and (v := n - 1) >= 0:
        total += v
        n = v
    return total


def loop_until(n: int):
    while not (n > 5 and (v := n * 2)):
        n += 1
    return v


def comprehension(n: int):
    return [v for x in range(n) if x > 1 and (v := x + 1) > 2]


def ternary_condition(n: int):
    return v if n > 0 and (v := n + 1) > 2 else 0


def both_arms(n: int):
    y = (v := n) if n > 0 else (v := -n)
    return y + v


def either_type(n: int):
    if (n > 1 and (v := n)) or (n < -1 and (v := str(n))):
        return v
    return None


def nested(n: int):
    if ((a := n % 3) == 0 or (b := n % 5) > 1) and (a == 0 or b > 2):
        return a
    return -1


def chain(n: int):
    if n > 0 and 1 < (v := n + 1) < 5:
        return v
    return 0


def may_be_unassigned(n: int):
    if n > 0 and (v := n + 1) > 2:
        pass
    return v


def one_arm(n: int):
    y = (v := n) if n > 0 else 1
    return y + v


def deleted(n: int):
    found = n > 0 and (v := n + 1) > 2
    if n > 3:
        if found:
            del v
    if found:
        return v
    return -1


def kept_truth(n: int):
    found = n > 0 and (v := n + 1) > 2
    return v if found else 0


def other_number(n: int):
    v = 1
    found = n > 2 and (v := 2.5) > 1
    return v, found


def none_before(n: int):
    v = None
    found = n > 2 and (v := n) > 1
    return v is None, v, found


def assigned_none(n: int):
    v: Optional[int] = n
    if v is not None and ((v := None) is None or n > 0):
        return v
    return 3
