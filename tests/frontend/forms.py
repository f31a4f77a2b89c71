"""Programs for every form of the language, each with arguments to call it with, as text.

A program has two reasons, where they apply: ``unlike`` says why its graph is not torch.jit's, ``unlike_eager`` why its
answer is not Python's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

REFUSED = "torch.jit refuses it"
IN_PLACE = "torch.jit makes a new tensor, or takes another operator"


@dataclass(slots=True, frozen=True)
class Form:
    """One program. ``loads`` asks for its graph before SSA as well."""

    text: str
    samples: tuple[tuple[Any, ...], ...]
    unlike: str | None = None
    unlike_eager: str | None = None
    loads: bool = False


def form(text: str, *samples: Any, unlike: str | None = None, eager: str | None = None, loads: bool = False) -> Form:
    """A program and its samples; another object than a tuple is the only argument."""
    calls = tuple(sample if isinstance(sample, tuple) else (sample,) for sample in samples)
    return Form(text.strip("\n") + "\n", calls, unlike, eager, loads)


def numbers(*values: float) -> torch.Tensor:
    return torch.tensor(values)


GRID = torch.arange(24.0).reshape(2, 3, 4)

LITERALS = (
    form("def f(x: int):\n    return 1, 1.5, 2j, True, None, 'a', -3, -2.5, 1e10, x\n", 1),
    form("def f(x: int):\n    return [1, 2], [1.5], ['a'], [[1], [2]], [(1, 'a')]\n", 1),
    form("def f(x: int):\n    return {'a': 1, 'b': x}, {1: 'x'}, {1.5: [1]}\n", 1),
    form("def f(x: int):\n    return [1, 2.5], [x, 'a'], [x, None]\n", 1),
    form("def f(x: int):\n    return [], {}, ()\n", 1),
    form("def f(x: Tuple[int, int]):\n    return [1, *x], (*x, 3)\n", ((1, 2),)),
    form(
        "def f(x: int):\n    return f'{x} and {x}', 'a' 'b', r'\\n'\n",
        3,
        unlike="torch.jit's text parser takes no f-strings, raw strings or strings side by side",
    ),
    form(
        """
def f(x: int):
    a: List[float] = []
    b: Dict[str, List[int]] = {}
    c: Optional[int] = None
    d: Tuple[int, Optional[int]] = (1, None)
    e: List[Optional[int]] = [1, None]
    return a, b, c, d, e
""",
        1,
    ),
    form("def f(x: int):\n    a: List[List[int]] = [[]]\n    a[0].append(x)\n    return a\n", 1, unlike=REFUSED),
)

OPERATORS = (
    form(
        """
def f(x: int, y: int):
    return x + y, x - y, x * y, x / y, x // y, x % y, x & y, x | y, x ^ y, x << y, x >> y, -x
""",
        (7, 2),
        (-7, 2),
    ),
    form("def f(x: int, y: int):\n    return x == y, x != y, x < y, x <= y, x > y, x >= y\n", (7, 2), (2, 2)),
    form("def f(x: float, y: int):\n    return x + y, x - y, x * y, x / y, x // y, x % y, x ** y\n", (7.5, -2)),
    form(
        "def f(x: int, y: int):\n    return x ** y\n",
        (7, 2),
        unlike="the power of ints is a float there",
    ),
    form(
        "def f(x: Tensor, y: Tensor):\n    return x + y, x - y, x * y, x / y, x // y, x % y, x ** y, -x\n",
        (numbers(7.0, 2.0), numbers(2.0, 3.0)),
    ),
    form("def f(x: Tensor):\n    return x & 3, x | 3, x ^ 3, x << 1, x >> 1, ~x, x == 2, x < 7\n", numbers(7, 2)),
    form(
        "def f(x: Tensor):\n    return 2 + x, 2 - x, 2 * x, 2 / x, 2 % x, 2 ** x, 2 < x, 2 == x\n",
        numbers(7.0, 2.0),
        unlike="torch.jit's 2 - x is neg(x) + 2, which wraps small ints before they promote",
    ),
    form(
        "def f(x: Tensor):\n    return 20 // x, 2 & x, 2 | x, 2 ^ x, 2 << x, 20 >> x\n",
        numbers(7, 2),
        numbers(3),
        unlike="torch.jit takes the tensor for an int, which works for one element only; Python asks the tensor",
    ),
    form("def f(x: Tensor, y: Tensor):\n    return x @ y\n", (numbers(7.0, 2.0), numbers(2.0, 3.0))),
    form("def f(x: bool, y: int):\n    return x + y, x * 2.5, x == y, x < y, x + x, not x\n", (True, 3)),
    form(
        "def f(x: Tensor, y: bool):\n    return x + True, torch.full([2], y)\n",
        (torch.tensor([True]), True),
        unlike="torch.jit makes an int of a bool; with the bool itself the answer is Python's",
    ),
    form("def f(x: str):\n    return x + x, x == x, 'a' in x, 'z' not in x, x < 'b'\n", "abc"),
    form("def f(x: List[int]):\n    return x + x, x * 2, 2 * x, x == x, 1 in x, 5 not in x\n", ([1, 2],)),
    form("def f(x: Dict[str, int]):\n    return 'a' in x, 'b' not in x\n", {"a": 1}),
    form("def f(x: Tuple[int, int]):\n    return x == x\n", ((1, 2),)),
    form("def f(x: Tuple[int, int]):\n    return x + (3,)\n", ((1, 2),)),
    form(
        "def f(x: int):\n    return 1 < x < 5\n",
        3,
        7,
        unlike="torch.jit compares the bool 1 < x with 5",
    ),
    form("def f(x: Tensor):\n    return +x\n", numbers(1.0), unlike=REFUSED),
)

NAMES_AND_CALLS = (
    form("def f(été: int):\n    нет = été + 1\n    return нет\n", 1, unlike=REFUSED),
    form("def f(x: int):\n    _ = 1\n    __ = 2\n    _1 = 3\n    _a = x\n    return _, __, _1, _a\n", 1),
    form("def f(x: int):\n    len = 3\n    range = x\n    torch = len + range\n    return torch\n", 1),
    form("def f(x: List[int]):\n    a = len\n    return a(x)\n", [1]),
    form("def f(x: Tensor):\n    add = x.add\n    return add(1), x.add(1, alpha=2), torch.add(x, x)\n", numbers(1.0)),
    form(
        """
def g(a: int, b: int = 2, *, c: int = 3) -> int:
    return a + b * c

def f(x: int):
    return g(x), g(x, 3), g(x, c=4), g(b=1, a=x)
""",
        1,
    ),
    form("def g(a: Optional[int] = None):\n    return a\n\ndef f(x: int):\n    return g(), g(x), g(None)\n", 1),
    form("def g(a: List[int]):\n    a.append(1)\n\ndef f(x: List[int]):\n    g(x)\n    return x\n", [1]),
    form("def g(a: int, b: int):\n    return a - b\n\ndef f(x: Tuple[int, int]):\n    return g(*x)\n", ((1, 2),)),
    form("def f(x: Tensor):\n    return x.view(-1), x.view(6, 4), x.view([6, 4]), x.view((6, 4)), x.sum(0)\n", GRID),
    form(
        "def f(x: Tensor):\n    return torch.zeros(2, 3), torch.zeros((2, 3)), torch.cat((x, x)), x.mean([0])\n", GRID
    ),
    form("def f(x: Tensor):\n    return x.shape, x.device, x.ndim, x.T, x.requires_grad\n", numbers(1.0)),
    form("def f(x: Tensor):\n    a, b = x.max(0)\n    return a, b, x.max(dim=1).values, x.max(1)[1]\n", GRID),
    form("def f(x: Tensor):\n    y = torch.empty(1)\n    torch.add(x, x, out=y)\n    return y\n", numbers(1.0)),
    form("def f(x: Tensor):\n    return x.float(), x.int(), x.double(), x.to(torch.int32)\n", numbers(1.5)),
)

CONDITIONS = (
    form("def f(x: int):\n    return x > 1 and x < 5, x < 1 or x > 5, not x\n", 0, 3, 7, loads=True),
    form("def f(x: int, y: int):\n    return x > 1 and y > 1 and x > y or x == y\n", (2, 3), (3, 2), (0, 0)),
    form(
        "def f(x: List[int], y: int):\n    return x or [7], y and 5 or 3\n",
        ([], 0),
        ([1], 2),
        unlike="torch.jit makes a bool of it; Python gives one of the operands",
    ),
    form(
        "def f(x: int, y: str, z: Tensor):\n    return x or y, z.sum() > 0 and z.sum() < 9\n",
        (0, "", numbers(1.0)),
        unlike="torch.jit makes bools of the operands",
    ),
    form("def f(x: List[int], y: str, z: Tensor):\n    return not x, not y, not z\n", ([], "a", numbers(0.0))),
    form("def f(x: int):\n    return 1 if x > 0 else 2\n", 0, 1, loads=True),
    form("def f(x: int):\n    return 'a' if x > 1 else 'b' if x > 0 else 'c'\n", 0, 1, 2),
    form("def f(x: Optional[int]):\n    return x + 1 if x is not None else 0\n", 1, None),
    form("def f(x: Optional[int]):\n    if x is None:\n        return 0\n    return x + 1\n", 1, None, loads=True),
    form(
        """
def f(x: Optional[int], y: Optional[int]) -> int:
    if x is None or y is None:
        return 0
    return x + y
""",
        (1, 2),
        (1, None),
    ),
    form(
        """
def f(x: Optional[int], y: Optional[int]) -> int:
    if not (x is None or y is None):
        return x + y
    return 0
""",
        (1, 2),
        (1, None),
    ),
    form("def f(x: Optional[int]):\n    assert x is not None\n    return x + 1\n", 1, None),
    form("def f(x: Optional[int]):\n    if x is None:\n        x = 1\n    return x + 1\n", 1, None, loads=True),
    form(
        """
def f(x: Optional[int]):
    y = 0
    if x is not None:
        y = x
        x = None
    return y, x
""",
        1,
        None,
    ),
    form(
        """
def f(x: Optional[int]):
    y = 0
    while x is not None:
        y += x
        x = None
    return y
""",
        1,
        None,
        unlike="torch.jit does not refine the condition of a while",
        loads=True,
    ),
    form(
        """
def f(x: Union[int, str, List[int]]) -> int:
    if isinstance(x, int):
        return x
    elif isinstance(x, str):
        return len(x)
    return x[0]
""",
        1,
        "abc",
        [7],
    ),
    form("def f(x: Any):\n    if isinstance(x, int):\n        return x + 1\n    return 0\n", 1, "a"),
    form("def f(x: int):\n    if isinstance(x, str):\n        return x.nothing()\n    return x\n", 1),
    form(
        "def f(x: bool):\n    return isinstance(x, int)\n",
        True,
        unlike="a bool is not an int to torch.jit",
    ),
)

NUMBERS_SELECT = "a Tensor without dimensions indexes as the number that it holds, as in Python"
WRITTEN_OUT = "torch.jit writes out the ends that slice(…) leaves open; here they are those of `:`"
SUBSCRIPTS_READ = (
    form("def f(x: Tensor, i: int):\n    return x[0], x[-1], x[i], x[0, 1], x[0, 1, i]\n", (GRID, 1)),
    form(
        "def f(x: Tensor, i: int, j: int):\n    return x[:], x[1:], x[:, 1], x[i:j], x[:, ::2], x[0:2, :, -2:-1]\n",
        (GRID, 0, 1),
    ),
    form("def f(x: Tensor):\n    return x[..., 0], x[0, ..., 1], x[None], x[:, None, 1], x[..., None]\n", GRID),
    form("def f(x: Tensor):\n    return x[...]\n", GRID, unlike=REFUSED),
    form(
        "def f(x: Tensor, i: Tensor, m: Tensor):\n    return x[i], x[:, i], x[m], x[0, i], x[i, i]\n",
        (GRID, torch.tensor([1, 0]), GRID > 3),
        unlike=NUMBERS_SELECT,
    ),
    form("def f(x: Tensor, i: int):\n    return x[[0, 1]], x[:, [i, 0]], x[[0, 1], [i, 0]]\n", (GRID, 1)),
    form(
        "def f(x: Tensor):\n    return x[[True, False]]\n",
        GRID,
        unlike="torch.jit takes bools for the indices 0 and 1; Python for a mask",
    ),
    form(
        "def f(x: List[int], i: int):\n    return x[0], x[-1], x[i], x[1:], x[:i], x[::2], x[::-1]\n",
        ([1, 2, 3], 1),
        ([1], 5),
    ),
    form("def f(x: str, i: int):\n    return x[0], x[-1], x[i], x[1:], x[:i]\n", ("abc", 1)),
    form("def f(x: Tuple[int, str, float]):\n    return x[0], x[-1], x[1:], x[::-1]\n", ((1, "a", 2.5),)),
    form("def f(x: Tuple[int, int], i: int):\n    return x[i]\n", ((1, 2), 1), ((1, 2), 2)),
    form("def f(x: Dict[str, int], k: str):\n    return x['a'], x[k]\n", ({"a": 1}, "a"), ({"a": 1}, "b")),
    form(
        "def f(x: Tensor, n: int):\n"
        "    return x[slice(1)], x[(Ellipsis, slice(None, n, None))], x[slice(0, n), slice(None, None, 2)]\n",
        (GRID, 1),
        unlike=REFUSED,
    ),
    form(
        "def f(x: List[int], n: int):\n    return x[slice(n)], x[slice(None, None, 2)]\n",
        ([1, 2, 3], 1),
        unlike=WRITTEN_OUT,
    ),
)

SUBSCRIPTS_WRITTEN = (
    form(
        "def f(x: Tensor):\n    x[slice(1), slice(1, None)] = 0\n    x[slice(1)] += 1\n    return x\n",
        GRID,
        unlike=WRITTEN_OUT,
    ),
    form("def f(x: Tensor):\n    x[0] = x[1]\n    x[1, 2] = 5.5\n    x[:, 0] = 1\n    return x\n", GRID),
    form(
        "def f(x: Tensor, i: Tensor):\n    x[i] = 1\n    x[x > 3] = 0\n    x[0, i] = 2\n    return x\n",
        (GRID, torch.tensor([1])),
        unlike=NUMBERS_SELECT,
    ),
    form(
        "def f(x: Tensor):\n    x[0][1] += 7\n    x[0] *= 2\n    x[x > 3] -= 1\n    return x\n",
        GRID,
        unlike=NUMBERS_SELECT,
    ),
    form("def f(x: List[int]):\n    x[0] = 5\n    x[-1] += 2\n    return x\n", [1, 2], []),
    form("def f(x: Dict[str, int]):\n    x['a'] = 5\n    x['b'] += 2\n    return x\n", {"b": 1}, {}),
    form("def f(x: List[int]):\n    x[0], x[1] = x[1], x[0]\n    return x\n", [1, 2]),
    form("def f(x: List[int]):\n    i = 0\n    i, x[i] = 1, 9\n    return x, i\n", [1, 2]),
    form("def f(x: List[List[int]]):\n    x[0][0] = 5\n    return x\n", [[1]]),
    form("def f(x: List[int]):\n    del x[0]\n    return x\n", [1, 2], []),
    form("def f(x: Dict[str, int]):\n    del x['a']\n    return x\n", {"a": 1}, {}),
)

LOOPS = (
    form("def f(n: int):\n    r = 0\n    for i in range(n):\n        r += i\n    return r\n", 4, 0, -1, loads=True),
    form("def f(n: int):\n    r = 0\n    for i in range(n, 9, 2):\n        r += i\n    return r\n", 0, 9),
    form("def f(n: int):\n    i = 7\n    for i in range(n):\n        pass\n    return i\n", 3, 0),
    form("def f(x: List[int]):\n    r = 0\n    for y in x:\n        r += y\n    return r\n", [1, 2], []),
    form("def f(x: Tensor):\n    r = torch.zeros(4)\n    for y in x:\n        r = r + y.sum(0)\n    return r\n", GRID),
    form("def f(x: str):\n    r = 0\n    for y in x:\n        r += ord(y)\n    return r\n", "ab"),
    form("def f(x: Dict[str, int]):\n    r = ''\n    for k in x:\n        r += k\n    return r\n", {"a": 1, "b": 2}),
    form("def f(x: Dict[str, int]):\n    r = 0\n    for k, v in x.items():\n        r += v\n    return r\n", {"a": 1}),
    form("def f(x: Tuple[int, float]):\n    r = 0\n    for y in x:\n        r += int(y)\n    return r\n", ((1, 2.5),)),
    form(
        "def f(x: List[int]):\n    r = 0\n    for i, y in enumerate(x, 1):\n        r += i * y\n    return r\n", [1, 2]
    ),
    form(
        "def f(x: List[int], y: List[int]):\n    r = 0\n    for a, b in zip(x, y):\n        r += a * b\n    return r\n",
        ([1, 2], [3]),
    ),
    form(
        """
def f(x: List[int], y: List[int]):
    r = 0
    for i, (a, b) in enumerate(zip(x, y)):
        r += i * a * b
    return r
""",
        ([1, 2], [3, 4]),
    ),
    form(
        "def f(x: List[int]):\n    r = ''\n    for y in reversed(x):\n        r += str(y)\n    return r\n",
        [1, 2],
        unlike=REFUSED,
    ),
    form("def f(n: int):\n    while n < 10:\n        n = n * 2 + 1\n    return n\n", 1, 20, loads=True),
    form(
        """
def f(n: int):
    r = 0
    while True:
        r += 1
        if r == 3:
            continue
        if r > n:
            break
    return r
""",
        1,
        5,
        loads=True,
    ),
    form(
        """
def f(n: int):
    r = 0
    for i in range(n):
        for j in range(i):
            if j == 2:
                break
            if i == 3:
                continue
            if i == 5:
                return -r
            r += j
    return r
""",
        3,
        5,
        9,
    ),
)

COMPREHENSIONS = (
    form("def f(x: List[int]):\n    return [y * 2 for y in x]\n", [1, 2], []),
    form("def f(x: List[int]):\n    return [y * 2 for y in x if y > 1]\n", [1, 2], unlike=REFUSED),
    form("def f(x: List[int]):\n    return [y + z for y in x for z in range(y)]\n", [1, 2], unlike=REFUSED),
    form("def f(x: List[int]):\n    return [[z for z in range(y)] for y in x]\n", [1, 2]),
    form("def f(x: List[int]):\n    return {str(y): y for y in x}\n", [1, 2]),
    form("def f(x: List[int]):\n    return {a: b for a, b in zip(x, x)}\n", [1, 2], unlike=REFUSED),
    form("def f(x: Tuple[int, int]):\n    return [y + 1 for y in x]\n", ((1, 2),)),
    form("def f(x: List[int]):\n    r: List[Optional[int]] = [y for y in x]\n    return r\n", [1]),
    form("def f(x: List[int]):\n    y = 5\n    z = [y for y in x]\n    return y, z\n", [1, 2]),
    form("def f(x: List[int]):\n    return [[x for x in range(x)] for x in x], x\n", [1, 2], unlike=REFUSED),
    form(
        "def f(x: List[Optional[int]]):\n    return [y + 1 for y in x if y is not None]\n",
        [1, None],
        unlike=REFUSED,
    ),
    form("def f(x: List[int]):\n    return list(x), list(range(3)), list(zip(x, x)), list('ab')\n", [1, 2]),
    form("def f(x: Dict[str, int]):\n    return dict(x), dict([('a', 1)])\n", {"b": 1}),
    form(
        "def f(x: Dict[str, int]):\n    return dict(a=1, b=2), dict(x, c=3)\n",
        {"b": 1},
        unlike="torch.jit makes a list of pairs of the keywords first, and loops over it",
    ),
    form("def f(x: Tuple[int, float]):\n    return tuple(x)\n", ((1, 2.5),)),
    form("def f(x: int):\n    return tuple()\n", 1, unlike=REFUSED),
)

ASSIGNMENTS = (
    form(
        "def f(x: int):\n    a = b = x\n    c: int = a\n    d: Optional[int] = b\n    return a, b, c, d\n",
        1,
        loads=True,
    ),
    form("def f(x: Tuple[int, Tuple[int, str]]):\n    a, (b, c) = x\n    return c, b, a\n", ((1, (2, "a")),)),
    form("def f(x: List[int]):\n    a, b = x\n    return a, b\n", [1, 2], [1]),
    form("def f(x: Tensor):\n    a, b = x\n    return a, b\n", GRID, unlike=REFUSED),
    form("def f(x: int):\n    a, b = x, x + 1\n    a, b = b, a\n    return a, b\n", 1),
    form(
        "def f(x: Tuple[int, int, int]):\n    a, *b = x\n    *c, d = x\n    e, *g, h, i = x\n    return b, c, g\n",
        ((1, 2, 3),),
        unlike="a starred target is a tuple to torch.jit, and a list to Python",
    ),
    form(
        "def f(x: bool):\n    if x:\n        a = 1\n    else:\n        a = 2\n    return a\n", True, False, loads=True
    ),
    form("def f(x: bool):\n    if x:\n        a = 1\n    else:\n        a = None\n    return a\n", True, False),
    form("def f(x: bool):\n    a = 1\n    if x:\n        b = a\n        a = b + 1\n    return a\n", True, False),
    form("def f(x: int):\n    a = x\n    a = 'b'\n    return a\n", 1),
    form("def f(x: int):\n    a = x\n    del a\n    a = 'b'\n    return a\n", 1),
)

AUGMENTED = (
    form("def f(x: int):\n    x += 2\n    x -= 1\n    x *= 3\n    x |= 8\n    x <<= 1\n    return x\n", 1),
    form(
        "def f(x: int):\n    x %= 3\n    x //= 2\n    return x\n",
        7,
        unlike="torch.jit takes C's fmod for %=, and refuses //=",
    ),
    form(
        "def f(x: Tensor):\n    y = x\n    y += 1\n    y -= 2\n    y *= 3\n    y /= 4\n    return x, y\n",
        numbers(1.0, 2.0),
    ),
    form(
        "def f(x: Tensor):\n    y = x\n    y **= 2\n    y %= 3\n    y //= 2\n    return x, y\n",
        numbers(4.0, 5.0),
        unlike=IN_PLACE,
    ),
    form(
        "def f(x: Tensor):\n    y = x\n    y &= 6\n    y |= 1\n    y ^= 2\n    return x, y\n",
        numbers(4, 5),
        unlike=IN_PLACE,
    ),
    form("def f(x: Tensor):\n    x += 1.5\n    return x\n", numbers(1.0), numbers(1)),
    form("def f(x: List[int]):\n    y = x\n    y += [3]\n    y *= 2\n    return x, y\n", [1]),
    form("def f(x: List[int]):\n    y = x\n    y = y + [3]\n    return x, y\n", [1]),
    form("def f(x: List[Tensor]):\n    y = x[0]\n    x[0] += 1\n    return x, y\n", [numbers(1.0)]),
    form("def f(x: List[Tensor]):\n    y = x[0]\n    x[0] = x[0] + 1\n    return x, y\n", [numbers(1.0)]),
    form(
        "def f(x: List[List[int]]):\n    y = x[0]\n    x[0] += [2]\n    return x, y\n",
        [[1]],
        unlike="torch.jit makes what is added before it reads the item",
    ),
    form(
        "def f(x: Dict[str, List[int]]):\n    y = x['a']\n    x['a'] += [2]\n    return x, y\n",
        {"a": [1]},
        unlike=IN_PLACE,
    ),
    form("def f(x: str):\n    y = x\n    y += 'b'\n    return x, y\n", "a"),
    form("def f(x: Tensor):\n    y = 1\n    y += x\n    return y\n", numbers(1.0)),
)

STATEMENTS = (
    form("def f(x: bool):\n    'A docstring.'\n    pass\n", True),
    form("def f(x: bool):\n    if x:\n        return 1\n    return 2\n", True, False, loads=True),
    form("def f(x: bool):\n    if x:\n        return 1\n    else:\n        return 2\n", True, False),
    form("def f(x: bool):\n    if x:\n        return 1\n    return None\n", True, False),
    form("def f(x: bool) -> Optional[int]:\n    if x:\n        return 1\n", True, False, unlike=REFUSED),
    form("def f(x: int):\n    return x\n    return 'a' + 1\n", 1),
    form(
        """
def f(x: int):
    if x > 0:
        if x > 5:
            return 'a'
        elif x > 3:
            x += 1
        else:
            raise RuntimeError('small')
    elif x < -3:
        pass
    return str(x)
""",
        9,
        4,
        1,
        -1,
        -9,
    ),
    form(
        "def f(x: int):\n    for i in range(3):\n        if i == x:\n            return i\n    return -1\n",
        1,
        5,
        loads=True,
    ),
    form("def f(x: int):\n    while True:\n        x += 1\n        if x > 3:\n            return x\n", 1),
    form("def f(x: int):\n    assert x > 0\n    assert x > 1, 'small'\n    return x\n", 0, 1, 2, loads=True),
    form(
        "def f(x: bool):\n    if x:\n        raise ValueError('a')\n    raise IndexError\n",
        True,
        False,
        unlike="torch.jit does not name a class that is raised without a call",
    ),
    form(
        "def f(x: bool):\n    if x:\n        y = 1\n    else:\n        raise KeyError('b')\n    return y\n", True, False
    ),
    form("def f(x: int):\n    print(x, 'a')\n    return x\n", 1),
)

TYPES = (
    form("def f(x: 'List[int]', y: \"Optional[str]\" = None):\n    return x, y\n", ([1], None), unlike=REFUSED),
    form(
        "def f(x: int | None, y: list[int], z: dict[str, int], w: tuple[int, str]):\n    return x, y, z, w\n",
        (1, [1], {"a": 1}, (1, "a")),
    ),
    form(
        "def f(x: Union[int, str], y: Optional[Union[int, str]], z: Any):\n    return x, y, z\n",
        (1, None, 2),
        unlike="torch.jit spells the optional of a union apart from the union with None",
    ),
    form(
        "def f(x: Tuple[()], y: Tuple[int], z: List[Tuple[int, Dict[str, Tensor]]]):\n    return x, y, z\n",
        ((), (1,), []),
    ),
    form(
        "def f(x, y: int = 1, z: List[int] = [1, 2], v: float = -1.5) -> Tuple[int, float]:\n    return y, v\n",
        (numbers(1.0), 2, [1], 1.0),
    ),
    form("def f(x: float) -> List[float]:\n    y = [x]\n    return y\n", 1.5),
    form(
        "def f(x: Tensor) -> Tuple[int, float]:\n    return x, x\n",
        numbers(3)[0],
        eager="where an int is declared, a tensor gives its number",
    ),
)

BUILTINS = (
    form("def f(x: int):\n    return int(x), float(x), bool(x), str(x), complex(x)\n", 3),
    form("def f(x: float):\n    return int(x), float(x), bool(x), str(x)\n", 3.5),
    form("def f(x: Tensor):\n    return int(x), float(x), bool(x)\n", numbers(3.5)),
    form(
        "def f(x: List[int]):\n    return len(x), min(x), max(x), sum(x), sorted(x), any(x), all(x), bool(x)\n", [3, 1]
    ),
    form("def f(x: int):\n    return min(x, 1), max(x, 5, 7), abs(x), divmod(x, 2), hex(x), chr(x), ord('a')\n", 3),
    form("def f(x: Tensor):\n    return abs(x), len(x)\n", numbers(-1.5, 2.5)),
    form(
        "def f(x: Tensor):\n    return min(x[0], x[1]), max(x[0], x[1])\n",
        numbers(-1.5, 2.5),
        unlike="torch.jit takes the tensors for ints, and fails on floats",
    ),
    form("def f(x: int):\n    return math.sqrt(x), math.floor(2.5), math.pi, math.ceil(2.1)\n", 4),
    form(
        "def f(x: int):\n    return '{} {}'.format(x, 'a'), '%d %s' % (x, 'b'), 'a'.upper(), ','.join(['a', 'b'])\n", 1
    ),
    form(
        """
def f(x: List[int]):
    x.append(1)
    x.extend([2])
    x.insert(0, 5)
    y = x.pop()
    x.remove(1)
    x.sort()
    x.reverse()
    return x, y, x.index(5), x.count(5), x.copy()
""",
        [1],
    ),
    form(
        """
def f(x: Dict[str, int]):
    x.update({'a': 1})
    y = x.pop('a')
    z = x.get('b')
    w = x.get('b', 3)
    x.setdefault('d', 5)
    return x, y, z, w, list(x.keys()), list(x.values()), list(x.items()), len(x)
""",
        {},
    ),
)

SPECIAL_FORMS = (
    form("def f(x: int):\n    return torch.jit.annotate(List[int], []), torch.jit.annotate(Optional[int], None)\n", 1),
    form("def f(x: Tensor):\n    return getattr(x, 'shape')[0], getattr(x, 'sum')()\n", numbers(1.0)),
    form(
        "def f(x: Tensor):\n    return hasattr(x, 'nothing'), getattr(x, 'nothing', 3)\n", numbers(1.0), unlike=REFUSED
    ),
    form(
        "def f(x: Tensor):\n    a: List[float] = x.tolist()\n    b: float = x[0].tolist()\n    return a, b\n",
        numbers(1.0, 2.0),
    ),
    form("def f(x: Tensor):\n    a: List[List[List[float]]] = x.tolist()\n    return a\n", GRID),
    form(
        "def f(x: Union[int, str]):\n    return isinstance(x, int) and x > 1, not isinstance(x, int) or x > 1\n", 3, "a"
    ),
    form(
        "def f(x: Union[int, str]):\n    return isinstance(x, (str, float, int)), isinstance(x, (float, str))\n", 3, "a"
    ),
    form(
        "def f(x: Optional[int]) -> int:\n    return unchecked_cast(int, x)\n",
        3,
        unlike="torch.jit has no name for it in source text",
    ),
    form(
        "def f(x: int):\n    if x > 0:\n        y = x\n    else:\n        y = uninitialized(int)\n    return x\n",
        3,
        unlike="torch.jit has no name for it in source text",
    ),
)

FORMS: dict[str, tuple[Form, ...]] = {
    "literals": LITERALS,
    "operators": OPERATORS,
    "names_and_calls": NAMES_AND_CALLS,
    "conditions": CONDITIONS,
    "subscripts_read": SUBSCRIPTS_READ,
    "subscripts_written": SUBSCRIPTS_WRITTEN,
    "loops": LOOPS,
    "comprehensions": COMPREHENSIONS,
    "assignments": ASSIGNMENTS,
    "augmented_assignments": AUGMENTED,
    "statements": STATEMENTS,
    "types": TYPES,
    "builtins": BUILTINS,
    "special_forms": SPECIAL_FORMS,
}
"""The programs by the golden file that shows them."""
