"""Numbers of several types together, as Python types what comes of them."""

from typing import List, Optional, Union

import torch
from torch import Tensor

from tests.language.corpus import program


@program("int.pow", (2, 3), (-3, 5), torch="differs")
def powers_of_variables(a: int, b: int):
    return a**b, pow(a, b), 2**a**2, -(a**2), (-a) ** b


@program("int.pow", (7, 2), (10, 30), torch="differs")
def powers_beyond_a_word(a: int, b: int):
    return a ** (b + 20), a**b % 1000, (a**b) // 7


@program("int.pow exception.of_python", (0, -1), (0, -3))
def power_of_nothing(a: int, b: int):
    return a**b


@program("int.pow", (3, 2), (5, 0), torch="differs")
def powers_in_place(a: int, b: int):
    a **= b
    counts = [a]
    counts[0] **= 2
    return a, counts


@program("int.pow", (2, 3), (10, -2))
def powers_that_are_scaled(n: int, k: int):
    inverse: float = n**k
    return 0.5 * n**k, n**k * 2.0, inverse * 1.0, 1.0 - n**k


@program("int.pow_negated", (2, 3), (10, 2))
def powers_with_a_minus(n: int, k: int):
    return n**-k, n**-2, 2 ** -(k + 1)


@program("int.pow bool.arithmetic", (True, False), (False, True), torch="differs")
def powers_of_bools(a: bool, b: bool):
    return a**2, a**b, 2**a, 0.5**b


@program("int.pow", (torch.ones(4, 4), 2), (torch.ones(2, 2), 1), torch="refuses")
def powers_as_sizes(x: Tensor, k: int):
    return torch.zeros(2**k, k**2), x.view(2**k, -1), x * 2**k, x**k, 2**x, torch.arange(2**k)[: 2**k - 1]


class Doubles(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.times = 3

    def forward(self, x: Tensor):
        return x * 2**self.times, x.size(0) ** self.times, x.size(0) ** -0.5


program("int.pow", (torch.ones(3),), (torch.zeros(2),), torch="differs")(Doubles)


@program("number.of_tensor int.pow", (torch.tensor(3),), (torch.tensor(-2.5),), torch="differs")
def items_of_tensors(x: Tensor):
    n = x.item()
    return n**2, 2**n, round(n), n + 1, n * 2, n / 2, n // 2, n % 2, -n, abs(n), min(n, 2), int(n), float(n)


@program("number.of_tensor", (torch.tensor(3), torch.ones(2)), (torch.tensor(-2.5), torch.ones(2)), torch="differs")
def items_with_tensors(x: Tensor, y: Tensor):
    n = x.item()
    return n - y, n / y, n + y, y - n, n < y, y**n


@program("bool.arithmetic", (True, 3), (False, -2), torch="refuses")
def signs_of_bools(a: bool, n: int):
    return -a, +a, abs(a), round(a), a + n, n - a, a & n, n | a, a ^ n, n << a, a / 2, n // (a + 1), n % (a + 2)


@program("int.negative_divisor", (7, 2), (-7, 2))
def divided_ints(a: int, b: int):
    return divmod(a, b), divmod(a, -b), a // -b, a % -b, -a // b, -a % b, divmod(a, 2.5), a // 0.5


@program("int.negative_divisor", (7.5, 2.0), (-7.5, 2.0))
def divided_floats(x: float, y: float):
    return divmod(x, y), x // -y, x % -y, x // 2, 7 % x, divmod(x, 2)


@program("exception.of_python int.negative_divisor", (7.5, 0.0), (0.0, 0.0), torch="differs")
def remainders_of_nothing(x: float, y: float):
    return x % y


@program("number.either expression.ternary", (1, 2.5, True), (3, 1.0, False), torch="refuses")
def int_or_float(a: int, b: float, first: bool):
    x = a if first else b
    texts = [str(x), f"{x:4}"]
    whole = isinstance(x, int)
    return x, x + 1, x * 2.5, x // 2, x % 2, x**2, -x, x / 2, x > 1, x == 1, round(x), max(x, 1.5), texts, whole


@program("number.either statement.if", (1, 2.5), (4, 1.5), torch="refuses")
def int_or_float_of_branches(a: int, b: float):
    if a > 3:
        x = a
    elif a > 2:
        x = b
    else:
        x = a * b
    for _ in range(3):
        x = x * 2
    return x


@program("number.either statement.return", (1, 2.5), (4, 1.5), torch="refuses")
def int_or_float_returned(a: int, b: float):
    for i in range(a):
        if b > 2:
            return b * i
    return a


@program("number.either", (torch.ones(2), 2.5, True), (torch.ones(2), 0.5, False), torch="refuses")
def int_or_float_with_tensors(x: Tensor, b: float, first: bool):
    scale = 2 if first else b
    return x * scale, scale - x, x / scale, torch.full([2], scale)


@program("number.either type.union", (1,), (2.5,), torch="refuses")
def unions_of_numbers(u: Union[int, float]):
    if u:
        return u**2, u + 1, -u, u > 1
    return u, u, u, False


@program("expression.equal_kinds", (1, "1"), (0, "0"), torch="refuses")
def strings_and_numbers(n: int, s: str):
    return n == s, n != s, s == 1, (n, s) == (s, n), n == True, 1.0 == n


@program("expression.equal_kinds list.operators", ([1, 2], [1.0, 2.0]), ([1], [2.5]), torch="refuses")
def lists_of_other_numbers(a: List[int], b: List[float]):
    return a == b, a != b, [a] == [b], [[1]] == [[1.0]], [(1, "a")] == [(1, "a")], [a] != [a]


@program("logic.values", (3, 2.5), (0, 0.0), torch="differs")
def one_of_two_numbers(n: int, x: float):
    return n and x, n or x, n > 1 and n, not (n or x)


@program("logic.values", ("", [1]), ("a", []), torch="differs")
def one_of_several_kinds(s: str, xs: List[int]):
    first = s and xs
    if first:
        return xs or [7], xs or [], s or "none", 1
    return xs or [7], xs or [], s or "none", 2


@program("logic.values", (torch.ones(1), 3), (torch.zeros(1), 0), torch="differs")
def one_of_two_tensors(x: Tensor, n: int):
    y = torch.full([1], 2.0)
    found = x and y
    compared = x.sum() > 0 and y.sum() > 0
    mixed = n > 1 and x.any()
    if mixed:
        n += 1
    return found, x or y, compared, mixed, n


@program("logic.values", (3, None), (5, 0), torch="refuses")
def or_of_optionals(n: int, m: Optional[int]):
    found = m or n
    return found + 1, (m or 0) + (n or 1), m and n


@program("builtin.abs_sum", ([torch.ones(2), torch.zeros(2)],), ([torch.ones(1, dtype=torch.int32)],), torch="refuses")
def sums_of_tensors(xs: List[Tensor]):
    return sum(xs), sum(x * 2 for x in xs), sum([x.sum() for x in xs])


@program("builtin.abs_sum number.either", (torch.tensor(3), 2.5, 1), (torch.tensor(2.5), 1.5, 2), torch="refuses")
def sums_of_mixed_numbers(x: Tensor, a: float, n: int):
    return (
        sum([y.item() for y in (x, x)]),
        sum([1, 2.5, n]),
        sum([n, a]),
        sum([n, n]),
        sum([True, n > 1]),
        sum(range(n)),
    )
