"""Functions that call themselves, match statements, imports within functions."""

import enum
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from rekindle.errors import CompileError, UndefinedNameError
from tests.language.corpus import program, refused

X = torch.tensor([[1.0, -2.0]])
Y = torch.tensor([[0.5, 3.0], [1.0, 1.0]])


def fibonacci(n: int):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@program("function.recursion", (10,), (1,), torch="refuses")
def result_of_recursion_is_inferred(n: int) -> int:
    return fibonacci(n)


def is_even(n: int) -> bool:
    if n == 0:
        return True
    return is_odd(n - 1)


def is_odd(n: int) -> bool:
    if n == 0:
        return False
    return is_even(n - 1)


@program("function.recursion", (10,), (7,), torch="refuses")
def mutual_recursion(n: int) -> Tuple[bool, bool]:
    return is_even(n), is_odd(n)


@program("function.recursion function.nested", (9,), (-1,), torch="refuses")
def recursion_of_a_local_function(n: int) -> int:
    step = 2

    def down(k):
        if k <= 0:
            return 0
        return k + down(k - step)

    return down(n)


def summed(n, start):
    if n == 0:
        return start
    return summed(n - 1, start + n)


@program("function.recursion function.unannotated", (4, 0.5), (0, 1.5), torch="refuses")
def recursion_for_each_type(n: int, x: float) -> Tuple[int, float]:
    return summed(n, 0), summed(n, x)


@program("function.recursion", (2, 2), (1, 3), torch="refuses")
def ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@program("function.recursion", (1,), (2,), torch="refuses")
def recursion_without_end(n: int) -> int:
    return recursion_without_end(n + 1)


@refused("function.recursion", CompileError, "before it is known what it returns")
def recursion_of_unknown_type(n: int):
    return recursion_of_unknown_type(n - 1) if n > 0 else 0


@program("function.recursion module.methods", (X, 2), (Y, 0), torch="refuses")
class RecursiveMethod(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def descend(self, x: Tensor, depth: int) -> Tensor:
        if depth == 0:
            return x
        return self.lin(self.descend(x, depth - 1)) + x

    def forward(self, x: Tensor, depth: int) -> Tensor:
        return self.descend(x, depth)


class Shade(enum.Enum):
    RED = 1
    BLUE = 2


class Place(NamedTuple):
    x: int
    y: int


@program("statement.match", (0,), (500,), torch="refuses")
def match_numbers(n: int) -> str:
    match n:
        case 0:
            return "zero"
        case 1 | 2:
            return "few"
        case x if x > 100:
            return f"many {x}"
        case _:
            return "some"


@program("statement.match", (2,), (-7,), torch="refuses")
def match_negative_numbers(n: int) -> int:
    match n:
        case -7:
            return 1
        case 2:
            return 2
    return 3


@program("statement.match", (Shade.RED,), (Shade.BLUE,), torch="refuses")
def match_enums(shade: Shade) -> int:
    match shade:
        case Shade.RED:
            return 1
        case Shade.BLUE:
            return 2
    return 3


@program("statement.match", ((0, 5),), ((3, 3),), torch="refuses")
def match_tuples(p: Tuple[int, int]) -> int:
    match p:
        case (0, y):
            return y
        case (x, 0):
            return x
        case (x, y) if x == y:
            return 100 * x
        case (x, y):
            return x * y


@program("statement.match", ([],), ([1, 2, 3],), torch="refuses")
def match_lists(xs: List[int]) -> int:
    match xs:
        case []:
            return 0
        case [x]:
            return x
        case [first, *rest, last]:
            return first + last + len(rest)
    return -1


@program("statement.match type.union", (3,), ([1],), torch="refuses")
def match_classes(v: Union[int, str, List[int]]) -> str:
    match v:
        case int(n):
            return str(n + 1)
        case str():
            return v + "!"
        case _:
            return "list"


@program("statement.match type.optional", (None, "a"), (5, "c"), torch="refuses")
def match_none_and_expressions(x: Optional[int], s: str) -> str:
    match x:
        case None:
            found = "none"
        case 3:
            found = "three"
        case n:
            found = str(n)
    match s.upper():
        case "A":
            found += "a"
        case other:
            found += other
    return found


@program("statement.match", (Place(0, 7),), (Place(2, 1),), torch="refuses")
def match_fields(p: Place) -> int:
    match p:
        case Place(x=0, y=b):
            return b
        case Place(x=a):
            return a
    return 0


@program("statement.match", ({"a": 1},), ({"b": 5},), torch="refuses")
def match_keys(d: Dict[str, int]) -> int:
    match d:
        case {"a": 1}:
            return 1
        case {"b": v}:
            return v
    return 0


@program("statement.match", (Place(0, 5),), (Place(1, 2),), torch="refuses")
def match_positional_fields(p: Place) -> int:
    match p:
        case Place(0, y):
            return y
    return 0


@program("statement.import", (2.5,), (4.0,), torch="refuses")
def imports_of_names(x: float) -> float:
    import math
    from math import floor as down, pi

    import torch.nn.functional as F

    return math.sqrt(x) + down(x) + pi + F.relu(torch.tensor(x)).item()


@program("statement.match", ({"a": 1, "b": 2},), ({"c": 1},), torch="refuses")
def matches_the_rest_of_a_dict(d: Dict[str, int]) -> Tuple[int, Dict[str, int]]:
    match d:
        case {"a": x, **rest}:
            return x, rest
        case {**everything}:
            return -1, everything
    return 0, d


@program("statement.match_alternatives", ([1, 0],), ([0, 0],), torch="refuses")
def match_either_end(xs: List[int]) -> int:
    match xs:
        case [x, 0] | [0, x]:
            return x
        case [x, _, *_] | [x]:
            return -x
    return 100


@program("statement.match_alternatives", ([0, 5],), ([5, 0],), torch="refuses")
def match_either_with_a_guard(xs: List[int]) -> int:
    match xs:
        case [x, _] | [_, x] if x > 1:  # the first that fits is asked, and no other
            return x
        case [x, *rest]:
            return -len(rest) - x
    return 100


@program("statement.match_alternatives", (3, 2), (1, 7), torch="refuses")
def match_either_of_tuples(n: int, m: int) -> int:
    match (n, m):
        case (3 as k, j) | (k, 2 as j) | (k, j):
            return k * 10 + j


@program("statement.match_alternatives", ({"a": 1},), ({"b": 2},), torch="refuses")
def match_either_key(d: Dict[str, int]) -> int:
    match d:
        case {"a": x} | {"b": x}:
            return x
    return -1


@program("statement.try_import", (3,), (0,), torch="refuses")
def imports_that_fail(n: int) -> Tuple[int, int]:
    try:
        import a_library_that_nobody_has  # type: ignore[import-not-found]

        k = a_library_that_nobody_has.count(n)
    except (ImportError, OSError):
        k = n + 1
    try:
        from math import nothing_of_this_name  # type: ignore[attr-defined]

        k += nothing_of_this_name(n)
    except ModuleNotFoundError:
        k += 100
    except ImportError:
        k += 10
    finally:
        n += 1
    return n, k


@program("statement.try_import exception.of_python", (3,), (0,), torch="refuses")
def imports_that_succeed(n: int) -> int:
    try:
        import math as m
    except ImportError:
        m = None
    try:
        from math import floor

        return floor(m.sqrt(4.0) / n)
    except ZeroDivisionError:
        return -1


@refused("statement.try_import", UndefinedNameError, "this import fails: No module named 'a_library_that_nobody_has'")
def text_of_a_failed_import(n: int) -> str:
    try:
        import a_library_that_nobody_has  # type: ignore[import-not-found]  # noqa: F401
    except ImportError as error:
        return str(error)
    return "there"


@program("list.slice_assign", ([1, 2, 3, 4], 1), ([], 0), torch="refuses")
def slices_that_grow(xs: List[int], n: int) -> List[int]:
    xs[n:2] += [9, n]
    xs[:] += [7]
    return xs
