"""Tuples and named tuples."""

from typing import List, NamedTuple, Optional, Tuple

from torch import Tensor

from tests.oracle.corpus import program, ramp


class Point(NamedTuple):
    x: int
    y: float


class Pair(NamedTuple):
    first: Tensor
    second: Optional[Tensor]


@program((1, 2.0))
def literal(a: int, b: float) -> Tuple[int, float, str]:
    return a, b, "c"


@program(((1, 2.0),))
def index(t: Tuple[int, float]) -> float:
    return t[0] + t[1] + t[-1]


@program(((1, 2, 3, 4),))
def slices(t: Tuple[int, int, int, int]) -> Tuple[int, int]:
    return t[1:3]


@program(((1, (2.0, "s")),))
def nested(t: Tuple[int, Tuple[float, str]]) -> str:
    a, (b, c) = t
    return c if b > a else "no"


@program((1, 2))
def swap(a: int, b: int) -> Tuple[int, int]:
    a, b = b, a
    return a, b


@program((1,))
def single(a: int) -> Tuple[int]:
    return (a,)


@program(((1, 2), (1, 2)), ((1, 2), (2, 1)))
def comparison(a: Tuple[int, int], b: Tuple[int, int]) -> bool:
    return a == b


@program((1, 2.5))
def named_construct(a: int, b: float) -> Point:
    return Point(a, b)


@program((1, 2.5))
def named_keywords(a: int, b: float) -> float:
    p = Point(y=b, x=a)
    return p.x + p.y


@program((Point(1, 2.5),))
def named_argument(p: Point) -> float:
    x, y = p
    return x + y + p[0] + p.y


@program((ramp(2),))
def named_with_optional(t: Tensor) -> Pair:
    return Pair(t, None)


@program(((1, 2, 3),))
def length(t: Tuple[int, int, int]) -> int:
    return len(t)


@program((3,))
def loop_over_literal(n: int) -> int:
    s = 0
    for a, b in ((1, 2), (3, 4), (n, n)):
        s += a * b
    return s


@program(([1, 2, 3],))
def tuple_in_loop(v: List[int]) -> Tuple[int, int]:
    state = (0, 1)
    for x in v:
        state = (state[0] + x, state[1] * x)
    return state


@program((1, 2))
def concatenated(a: int, b: int) -> Tuple[int, int, int]:
    return (a, b) + (a,)


@program((3,))
def star_unpack(n: int) -> Tuple[int, int]:
    a, *rest = (n, 2, 3)
    return a, rest[0] + rest[1]


@program((3,))
def star_middle(n: int) -> Tuple[int, int, int]:
    a, *b, c = (n, 2, 3, 4)
    return a, b[0] * b[1], c


@program((True,), (False,))
def tuple_from_branch(c: bool) -> Tuple[int, float]:
    if c:
        t = (1, 2.0)
    else:
        t = (3, 4.0)
    return t
