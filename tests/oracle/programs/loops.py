"""while and for, with break, continue and return."""

from typing import Dict, List, Tuple

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


@program((ramp(3, 2, start=0.5),))
def overview_loop(x):
    z = x
    for i in range(x.size(0)):
        z = z * z
    return z


@program((0,), (5,))
def overview_continue(i: int) -> int:
    while i < 5:
        if i == 3:
            i += 1
            continue
        i += 2
    return i


@program((5,), (0,), (-1,))
def count_down(n: int) -> int:
    total = 0
    while n > 0:
        total += n
        n -= 1
    return total


@program((ramp(3, start=1.0), 3), (ramp(3, start=1.0), 100))
def loop_on_data(x: Tensor, limit: int) -> Tensor:
    steps = 0
    while bool(x.sum() > 0.0):
        x = x - 1.0
        steps += 1
        if steps == limit:
            break
    return x


@program((4,), (0,))
def range_one(n: int) -> int:
    s = 0
    for i in range(n):
        s += i * i
    return s


@program((2, 8), (8, 2))
def range_two(a: int, b: int) -> int:
    s = 0
    for i in range(a, b):
        s = s * 2 + i
    return s


@program((10, 0, -3), (0, 10, 4), (0, 10, -1))
def range_three(a: int, b: int, c: int) -> List[int]:
    out: List[int] = []
    for i in range(a, b, c):
        out.append(i)
    return out


@program(([3, 1, 2],), ([],))
def over_list(values: List[int]) -> int:
    s = 0
    for v in values:
        s = s * 10 + v
    return s


@program((ramp(3, 2),))
def over_tensor(x: Tensor) -> Tensor:
    s = torch.zeros(2)
    for row in x:
        s = s + row
    return s


@program((1,))
def over_tuple(n: int) -> float:
    s = 0.0
    for v in (1, 2.5, n):
        s += v
    return s


@program(("hello",), ("",))
def over_string(s: str) -> str:
    r = ""
    for c in s:
        r = c + r
    return r


@program(({"a": 1, "b": 2},))
def over_dict(d: Dict[str, int]) -> int:
    s = 0
    for k in d:
        s += d[k] * len(k)
    for k, v in d.items():
        s += v
    for v in d.values():
        s *= v + 1
    return s


@program(([4, 5, 6],))
def with_enumerate(values: List[int]) -> int:
    s = 0
    for i, v in enumerate(values):
        s += i * v
    return s


@program(([4, 5, 6],))
def with_enumerate_start(values: List[int]) -> int:
    s = 0
    for i, v in enumerate(values, 1):
        s += i * v
    return s


@program(([1, 2, 3], [4.0, 5.0]))
def with_zip(a: List[int], b: List[float]) -> float:
    s = 0.0
    for x, y in zip(a, b):
        s += x * y
    return s


@program(([1, 2, 3], [4, 5, 6]))
def with_enumerate_of_zip(a: List[int], b: List[int]) -> int:
    s = 0
    for i, (x, y) in enumerate(zip(a, b)):
        s += i * (x - y)
    return s


@program(([(1, 2.0), (3, 4.0)],))
def over_list_of_tuples(pairs: List[Tuple[int, float]]) -> float:
    s = 0.0
    for a, b in pairs:
        s += a * b
    return s


@program(([1, 2, 3, 4, 5],), ([9],))
def break_in_for(values: List[int]) -> int:
    s = 0
    for v in values:
        if v > 3:
            break
        s += v
    return s


@program((10,))
def continue_in_for(n: int) -> int:
    s = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        s += i
    return s


@program((10,), (3,))
def break_and_continue(n: int) -> int:
    s = 0
    i = 0
    while True:
        i += 1
        if i > n:
            break
        if i % 2 == 0:
            continue
        s += i
        if s > 20:
            break
    return s


@program((3, 4), (0, 0))
def nested_loops(n: int, m: int) -> int:
    s = 0
    for i in range(n):
        for j in range(m):
            s += i * j
    return s


@program((4, 5))
def nested_break(n: int, m: int) -> int:
    s = 0
    for i in range(n):
        for j in range(m):
            if j > i:
                break
            if (i + j) % 2 == 0:
                continue
            s += j
        if s > 3:
            break
        s += 100 * i
    return s


@program((6,), (2,))
def return_from_for(n: int) -> int:
    for i in range(n):
        if i * i > 10:
            return i
    return -1


@program((5, 6), (1, 1))
def return_from_nested(n: int, m: int) -> int:
    for i in range(n):
        for j in range(m):
            if i * j == 6:
                return i * 10 + j
    return 0


@program((6,), (0,))
def return_from_while(n: int) -> int:
    i = 0
    while i < n:
        i += 1
        if i == 4:
            return i * 100
    return i


@program((ramp(2), 3))
def carried_tensors(x, n: int):
    a, b = x, x + 1
    for i in range(n):
        a, b = b, a + b
    return a, b


@program((3,))
def variable_after_loop(n: int) -> int:
    last = -1
    for i in range(n):
        last = i
    return last


@program((5,))
def while_with_compound_condition(n: int) -> int:
    i = 0
    j = 10
    while i < n and j > 3:
        i += 1
        j -= 2
    return i * 100 + j


@program((4,))
def shadowed_loop_variable(n: int) -> int:
    s = 0
    for i in range(n):
        i = i * 2
        s += i
    return s


@program((3,))
def bound_is_read_once(n: int) -> int:
    s = 0
    for i in range(n):
        n = n + 1
        s += n
    return s


@program((7,))
def loop_with_branch_values(n: int) -> Tuple[int, int]:
    even = 0
    odd = 0
    for i in range(n):
        if i % 2 == 0:
            even += i
        else:
            odd += i
    return even, odd


@program((3,), (0,))
def type_stays(n: int) -> List[Tensor]:
    out: List[Tensor] = []
    for i in range(n):
        out.append(torch.full([2], i))
    return out


@program((4,))
def nested_while(n: int) -> int:
    total = 0
    i = 0
    while i < n:
        j = 0
        while j < i:
            if j == 2:
                j += 1
                continue
            total += j
            j += 1
        i += 1
    return total


@program((0,))
def constant_range(n: int) -> int:
    for i in range(3):
        n += i
    return n


@program((5,), (25,))
def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@program(([5, 3, 9, 1],))
def bubble_sort(values: List[int]) -> List[int]:
    n = len(values)
    for i in range(n):
        for j in range(n - i - 1):
            if values[j] > values[j + 1]:
                values[j], values[j + 1] = values[j + 1], values[j]
    return values
