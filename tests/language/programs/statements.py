"""Statements: loops, branches, exits, assert, raise, del, print, with."""

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from rekindle.errors import UndefinedNameError
from tests.language.corpus import program, refused


class Manager:
    def __init__(self, log: List[str], name: str):
        self.log = log
        self.name = name

    def __enter__(self) -> str:
        self.log.append("enter " + self.name)
        return self.name

    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.log.append("exit " + self.name)


class Scope:
    def __init__(self, start: int):
        self.depth = start

    def __enter__(self):
        self.depth += 1
        return self

    def __exit__(self, type: Any, value: Any, traceback: Any):
        self.depth -= 1


@program("statement.if", (1,), (-1,))
def branches(n: int) -> str:
    if n > 5:
        return "large"
    elif n > 0:
        s = "small"
    else:
        s = "none"
    return s


@program("statement.while", (5,), (0,))
def while_loop(n: int) -> Tuple[int, int]:
    total, i = 0, 0
    while i < n:
        i += 1
        if i == 2:
            continue
        if total > 7:
            break
        total += i
    return total, i


@program("statement.while_else", (9,), (2,), torch="refuses")
def while_else(n: int) -> int:
    while n > 3:
        n -= 1
        if n == 4:
            break
    else:
        return -1
    return n


@program("statement.for_range", (2, 9), (5, 5))
def for_range(a: int, b: int) -> Tuple[int, List[int]]:
    seen: List[int] = []
    i = -1
    for i in range(a, b, 3):
        seen.append(i)
    return i, seen


@program("statement.for_else", ([1, 2], 2), ([1], 5), torch="refuses")
def for_else(xs: List[int], n: int) -> int:
    for x in xs:
        if x == n:
            break
    else:
        return -1
    return n


@program("statement.for_list", ([1, 2, 3],), ([],))
def for_list(xs: List[int]) -> int:
    total = 0
    for i, x in enumerate(xs):
        for y in xs:
            if y > x:
                break
            total += i * y
    return total


@program("statement.for_tensor", (torch.arange(6).reshape(3, 2),), (torch.zeros(1, 2),))
def for_tensor(x: Tensor) -> Tensor:
    total = torch.zeros(2)
    for row in x:
        total = total * 2 + row
    return total


@program("statement.for_tuple", ((1, 2.5),), ((0, 0.0),))
def for_mixed_tuple(t: Tuple[int, float]) -> float:
    total = 0.0
    for x in t:
        total += x
    return total


@program("statement.return", (3,), (-1,))
def early_returns(n: int) -> int:
    for i in range(10):
        if i * i > n:
            return i
    return -1


@program("statement.pass", (3,), (-1,))
def pass_and_docstring(n: int) -> int:
    """Says nothing."""
    if n > 0:
        pass
    return n


@program("statement.assert", (3,), (-1,))
def asserts(n: int) -> int:
    assert n > 0, "n must be positive"
    return n


@program("statement.assert", (3,), (-1,))
def asserts_without_message(n: int) -> int:
    assert n > 0
    return n


@program("statement.assert", (3,), (-1,))
def asserts_with_format(n: int) -> int:
    assert n > 0, f"n is {n}"
    return n


@program("statement.raise", (3,), (-1,))
def raises(n: int) -> int:
    if n < 0:
        raise ValueError("n is negative: " + str(n))
    return n


@program("statement.raise", (0,), (1,))
def raises_of_many_classes(n: int) -> int:
    if n == 0:
        raise IndexError("index")
    elif n == 1:
        raise NotImplementedError("later")
    raise RuntimeError("other")


@program("statement.raise_class", (0,), (1,))
def raises_class(n: int) -> int:
    if n == 0:
        raise ValueError
    return n


class CustomError(ValueError):
    pass


@program("statement.raise_own", (0,), (1,))
def raises_class_of_the_user(n: int) -> int:
    if n == 0:
        raise CustomError("mine")
    return n


@program("statement.raise", ([1],), ([],))
def error_after_mutation(xs: List[int]) -> int:
    xs.append(7)
    if len(xs) == 1:
        raise RuntimeError("was empty")
    return len(xs)


@program("exception.of_python", ([1, 2], 5), ([1, 2], 0))
def index_error(xs: List[int], i: int) -> int:
    return xs[i]


@program("exception.of_python", ({"a": 1}, "b"), ({"a": 1}, "a"))
def key_error(d: Dict[str, int], k: str) -> int:
    return d[k]


@program("exception.of_python", (1, 0), (1, 2))
def zero_division(a: int, b: int) -> Tuple[int, int, float]:
    return a // b, a % b, a / b


@program("exception.of_torch", (torch.ones(2), torch.ones(3)), (torch.ones(2), torch.ones(2)))
def shape_mismatch(x: Tensor, y: Tensor) -> Tensor:
    return x + y


@program("statement.print", (1, 2.5, "s", torch.ones(2)), (0, 0.0, "", torch.zeros(1)))
def prints(n: int, f: float, s: str, x: Tensor) -> None:
    print(n, f, s)  # noqa: T201
    print(x)  # noqa: T201
    print()  # noqa: T201
    print([n], {"a": f}, (n, s), None, True)  # noqa: T201


@program("statement.print_options", (1, "a"), (-1, ""), torch="refuses")
def print_options(n: int, s: str) -> None:
    print(n, s, sep="-", end="!\n")  # noqa: T201


@program("statement.del", (1,), (2,))
def del_variable(n: int) -> int:
    m = n + 1
    del n
    return m


@program("statement.augmented", (7, 2.5), (-3, 0.5), torch="refuses")
def augmented(n: int, f: float) -> Tuple[int, float]:
    n += 3
    n -= 1
    n *= 5
    n %= 100
    f /= 4.0
    return n, f


@program("statement.augmented_others", (7, 2.5), (-3, 0.5), torch="refuses")
def augmented_others(n: int, f: float) -> Tuple[int, float]:
    n //= 2
    f **= 2.0
    return n, f


@program("statement.augmented_bits", (12,), (7,))
def augmented_bits(n: int) -> int:
    n <<= 2
    n |= 3
    n &= 29
    n ^= 5
    n >>= 1
    return n


@program("statement.augmented_tensor", (torch.ones(3),), (torch.zeros(2),))
def augmented_tensor(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x
    x += 1
    x *= 3
    x -= 0.5
    return x, y


@program("statement.chained_assignment", (1,), (2,))
def chained_assignment(n: int) -> Tuple[int, int]:
    a = b = n + 1
    return a, b


@program("statement.annotated_assignment", (1,), (2,))
def annotated_assignment(n: int) -> Tuple[float, Optional[int]]:
    f: float = 2.5
    m: Optional[int] = None
    if n > 1:
        m = n
    return f, m


@program("statement.unpack", ((1, 2), [torch.ones(1), torch.zeros(1)]), ((0, 0), [torch.ones(1), torch.ones(1)]))
def unpacking(t: Tuple[int, int], xs: List[Tensor]) -> Tensor:
    (a, b), (x, y) = t, (xs[0], xs[1])
    return x * a + y * b


@program("with.class", (["start"], 1), ([], 0))
def with_class(log: List[str], n: int) -> List[str]:
    with Manager(log, "a") as name:
        log.append(name + str(n))
    return log


@program("with.class", ([],), (["x"],))
def with_two(log: List[str]) -> List[str]:
    with Manager(log, "a"), Manager(log, "b") as b:
        log.append(b)
    return log


@program("with.return", ([], 1), ([], 0))
def with_early_return(log: List[str], n: int) -> int:
    with Manager(log, "a"):
        if n > 0:
            return 1
        log.append("went on")
    return 2


@program("with.raise", ([], -1), ([], 1))
def with_exception(log: List[str], n: int) -> List[str]:
    with Manager(log, "a"):
        if n < 0:
            raise ValueError("left by an exception")
    return log


@program("with.class", (1,), (5,))
def with_returns_self(n: int) -> Tuple[int, int]:
    scope = Scope(n)
    with scope as inner:
        inside = inner.depth
    return inside, scope.depth


@program("with.loop", ([], 3), ([], 0))
def with_in_loop(log: List[str], n: int) -> List[str]:
    for i in range(n):
        with Manager(log, str(i)):
            if i == 1:
                break
    return log


@program("with.no_grad", (torch.ones(2, requires_grad=True),), (torch.zeros(1),), torch="differs")
def with_no_grad(x: Tensor) -> Tuple[Tensor, bool, bool]:
    with torch.no_grad():
        y = x * 2
    z = x * 2
    return y, y.requires_grad, z.requires_grad


@program("with.enable_grad", (torch.ones(2, requires_grad=True),), (torch.zeros(1),), torch="refuses")
def with_enable_grad(x: Tensor) -> Tuple[bool, bool]:
    with torch.no_grad():
        with torch.enable_grad():
            y = x * 2
        z = x * 2
    return y.requires_grad, z.requires_grad


@program(
    "with.set_grad_enabled",
    (torch.ones(2, requires_grad=True), True),
    (torch.ones(1, requires_grad=True), False),
    torch="refuses",
)
def with_set_grad_enabled(x: Tensor, flag: bool) -> bool:
    with torch.set_grad_enabled(flag):
        y = x * 2
    return y.requires_grad


@program("with.inference_mode", (torch.ones(2),), (torch.zeros(1),), torch="refuses")
def with_inference_mode(x: Tensor) -> bool:
    with torch.inference_mode():
        y = x * 2
    return y.is_inference()


@program("with.autocast", (torch.ones(2, 2),), (torch.zeros(2, 2),))
def with_autocast(x: Tensor) -> Tuple[Tensor, Tensor]:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.mm(x, x)
    return y, torch.mm(x, x)


@program("with.autocast", (torch.ones(2, 2),), (torch.zeros(2, 2),))
def with_autocast_of_one_device(x: Tensor) -> Tuple[Tensor, Tensor]:
    with torch.cpu.amp.autocast():
        y = torch.mm(x, x)
        with torch.cpu.amp.autocast(enabled=False):
            z = torch.mm(x, x)
    return y, z


@program("with.flags", (torch.ones(1, 2, 3, 4),), (torch.zeros(1, 1, 2, 2),), torch="refuses")
def with_flags(q: Tensor) -> Tuple[Tensor, Tensor]:
    with torch.backends.cudnn.flags(enabled=False):
        x = q + 1
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q), x


@program("with.record_function", (torch.ones(2),), (torch.zeros(1),))
def with_record_function(x: Tensor) -> Tensor:
    with torch.autograd.profiler.record_function("a part"):
        y = x + 1
    return y


@program("statement.expression", ([1], 2), ([], 0))
def statements_of_expressions(xs: List[int], n: int) -> List[int]:
    xs.append(n)
    n + 1
    [xs.append(i) for i in range(2)] if False else xs.append(3)
    return xs


@program("statement.nested_control", (4,), (0,))
def nested_control(n: int) -> List[int]:
    found: List[int] = []
    for i in range(n):
        j = 0
        while True:
            j += 1
            if j > i:
                break
            if (i + j) % 2 == 0:
                continue
            if j == 3:
                return found
            found.append(i * 10 + j)
    return found


@program("statement.try", (3,), (0,), torch="refuses")
def try_except(n: int) -> int:
    try:
        return 1 // n
    except ZeroDivisionError:
        return 0


@program("statement.import", (3,), (-2,), torch="refuses")
def import_inside(n: int) -> int:
    import math

    return math.floor(n)


@program("statement.match", (0,), (5,), torch="refuses")
def match_statement(n: int) -> int:
    match n:
        case 0:
            return 1
        case _:
            return 2


@program("statement.nonlocal", (1,), (5,), torch="refuses")
def nonlocal_inside(n: int) -> int:
    def inner() -> int:
        nonlocal n
        n = 2
        return n

    return inner()


@refused("with.other", UndefinedNameError, "the name 'open' is not defined")
def with_open(path: str) -> int:
    with open(path) as file:
        return 1
