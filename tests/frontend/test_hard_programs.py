"""Programs that are easy to get wrong: scopes, aliases, jumps, lists that change, unusual places for statements."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rekindle.errors import CompileError
from rekindle.ir.verifier import verify
from rekindle.runtime.executor import execute
from tests.support.equality import assert_same
from tests.support.frontend import compiled, python_function


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values)


ANSWERED: dict[str, tuple[str, tuple[tuple[Any, ...], ...]]] = {
    "comprehension has its own names": (
        """
def f(x: List[int]):
    y = 'kept'
    z = [y for y in x]
    return [[x for x in range(x)] for x in x], x, y, z
""",
        (([1, 2],), ([],)),
    ),
    "comprehension in a loop reads what the loop assigns": (
        """
def f(x: List[int]):
    n = 1
    for i in range(3):
        z = [y + n for y in x if y > i]
        n += len(z)
    return n
""",
        (([1, 2, 3],),),
    ),
    "second generator sees the first": (
        "def f(x: List[int]):\n    return [y for x in x for y in range(x) if y != x - 1]\n",
        (([1, 3],),),
    ),
    "the loop variable is defined after the loop": (
        "def f(n: int):\n    i = 9\n    for i in range(n):\n        pass\n    return i\n",
        ((0,), (3,)),
    ),
    "the loop variable may be assigned": (
        """
def f(n: int):
    r = 0
    for i in range(n):
        i *= 2
        n = 1
        r += i
    return r, n
""",
        ((0,), (4,)),
    ),
    "one variable for two loops within one another": (
        """
def f(n: int):
    r = 0
    for i in range(n):
        for i in range(i, i + 3):
            r += i
        r += 10 * i
    return r
""",
        ((4,),),
    ),
    "a list that grows while it is looped over": (
        """
def f(x: List[int]):
    r = 0
    for y in x:
        r += y
        if len(x) < 6:
            x.append(y)
            continue
        r += 100
    return r, x
""",
        (([1, 2, 3],), ([],)),
    ),
    "a list that shrinks while it is looped over": (
        """
def f(x: List[int]):
    r = 0
    for y in x:
        if y == 2:
            x.remove(y)
        elif y == 5:
            break
        elif y == 7:
            return r, x
        r += y
    return r, x
""",
        (([1, 2, 3],), ([1, 2, 2, 3],), ([2, 5, 1],), ([2, 7, 7],)),
    ),
    "a list that gets another meaning while it is looped over": (
        """
def f(x: List[int]):
    r = 0
    for y in x:
        x = x + [y]
        x.append(1)
        r += y
    return r, x
""",
        (([1, 2, 3],),),
    ),
    "augmented assignment changes what has two names": (
        """
def f(x: Tensor, y: List[int]):
    a, b = x, y
    a += 1
    b += [3]
    b *= 2
    c = x[0]
    c -= 5
    for i in range(2):
        a *= 2
        b += [i]
    return x, y, a, b
""",
        ((tensor(1.0, 2.0), [1]),),
    ),
    "plain assignment does not": (
        """
def f(x: Tensor, y: List[int]):
    a, b = x, y
    a = a + 1
    b = b + [3]
    return x, y, a, b
""",
        ((tensor(1.0, 2.0), [1]),),
    ),
    "augmented assignment of a number to a tensor": (
        "def f(x: Tensor):\n    y = 1\n    y += x\n    y += 1\n    return x, y\n",
        ((tensor(1.0),),),
    ),
    "an element of a list changes in place": (
        """
def f(x: List[Tensor], y: Dict[str, List[int]]):
    a = x[0]
    x[0] += 1
    y['a'] += [2]
    b = y['a']
    y['a'] = y['a'] + [3]
    return a, b, x, y
""",
        (([tensor(1.0)], {"a": [1]}),),
    ),
    "names that mean builtins elsewhere": (
        """
def f(x: List[int]):
    len = 3
    range = [len]
    int = range[0] + len
    print = int
    return len, range, int, print, x
""",
        (([1],),),
    ),
    "a name is a function, then a value": (
        "def f(x: List[int]):\n    a = len\n    b = a(x)\n    a = 'text'\n    return a, b\n",
        (([1],),),
    ),
    "a variable of another type after del": (
        "def f(x: int):\n    y = x\n    del y\n    y = 'a'\n    return y\n",
        ((1,),),
    ),
    "names in other alphabets": (
        "def f(été: int):\n    нет = été + 1\n    变量 = [нет for нет in range(нет)]\n    return 变量, нет\n",
        ((2,),),
    ),
    "code that is never reached need not compile": (
        """
def f(x: int):
    for i in range(3):
        if i == x:
            return i
        continue
        nothing()
    while True:
        break
        nothing()
    if x > 5:
        raise ValueError('big')
        nothing()
    return -1
    nothing()
""",
        ((1,), (4,), (9,)),
    ),
    "returns in every position": (
        """
def f(x: int) -> int:
    if x == 0:
        return 0
    for i in range(x):
        while i < 3:
            if x == 1:
                return 1
            elif x == 2:
                break
            i += 1
        else_ = i
        if else_ > 2:
            if x == 3:
                return 3
            continue
        if x == 4:
            return 4
    if x > 6:
        return 7
    else:
        if x > 5:
            return 6
    return 5
""",
        tuple((x,) for x in range(9)),
    ),
    "both branches leave": (
        """
def f(x: int):
    for i in range(5):
        if i == x:
            break
        else:
            continue
    else_ = 1
    while True:
        if x > 2:
            return else_
        else:
            raise ValueError('small')
""",
        ((1,), (3,)),
    ),
    "nothing at all": ("def f():\n    pass\n", ((),)),
    "a docstring alone": ("def f():\n    'Does nothing.'\n", ((),)),
    "widening in a branch": (
        """
def f(x: Optional[int], b: bool):
    a = None
    if b:
        a = 3
    if x is not None:
        if b:
            x = None
        else:
            x += 1
    return a, x
""",
        ((1, True), (1, False), (None, True)),
    ),
    "becoming None again within the loop that asks": (
        """
def f(x: Optional[int], n: int) -> int:
    r = 0
    while x is not None and n > 0:
        n -= 1
        r += x
        if r > 3:
            x = None
            continue
        if n == 4:
            break
        x = r if n % 2 == 0 else None
    if x is None:
        return r
    return r * x
""",
        ((1, 9), (1, 5), (2, 3), (None, 1)),
    ),
    "elements of different types, one by one": (
        """
def f(x: int):
    r = ''
    for i, y in enumerate((1, 'a', [x], (2, 'b'))):
        r += str(i)
        if isinstance(y, int):
            r += str(y + 1)
        elif isinstance(y, str):
            r += y
        elif isinstance(y, list):
            r += str(len(y))
        else:
            r += y[1]
    return r
""",
        ((1,),),
    ),
    "evaluation from left to right, once": (
        """
def g(x: List[int]) -> int:
    x.append(len(x))
    return x[-1]

def f(x: List[int]):
    a = g(x) - g(x) * g(x)
    b = g(x) < g(x) < g(x)
    c = [g(x), g(x)], (g(x), g(x)), {g(x): g(x)}
    d = g(x) if g(x) > 100 else -g(x)
    h = g(x) < g(x) * 2 < g(x) * 9 < 10 * g(x) != g(x), 5 > g(x) > 2 and g(x) > 0
    e = g(x) > 100 and g(x) > 0 or g(x) > 1
    x[g(x) - g(x) + 1] = g(x)
    return a, b, c, d, e, h, x
""",
        (([],), ([1, 2, 3, 4],)),
    ),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_answer_is_that_of_python(name: str) -> None:
    text, samples = ANSWERED[name]
    text = text.strip("\n") + "\n"
    record, function = compiled(text), python_function(text)
    verify(record.graph)
    for sample in samples:
        ours, theirs = copy.deepcopy(sample), copy.deepcopy(sample)
        assert_same(_outcome(lambda *given: execute(record, given), ours), _outcome(function, theirs))
        assert_same(ours, theirs, "arguments after the call")


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "returned", function(*arguments)
    except ValueError as error:
        return "raised", str(error)


REFUSED: dict[str, tuple[str, str]] = {
    "the target of a comprehension": (
        "def f(x: List[int]):\n    z = [y for y in x]\n    return y\n",
        """\
the name 'y' is not defined
  File "program.py", line 3
    def f(x: List[int]):
        z = [y for y in x]
        return y
               ^""",
    ),
    "a function as the result of a branch": (
        "def f(b: bool):\n    if b:\n        g = len\n    else:\n        g = len\n    return g([1])\n",
        """\
'g' is not defined here: the operator 'aten::len' exists only while compiling, so that no branch can give it
  File "program.py", line 6
            g = len
        else:
            g = len
        return g([1])
               ^""",
    ),
    "None for what a loop was entered with": (
        """\
def f(x: Optional[int], n: int):
    r = 0
    if x is not None:
        for i in range(n):
            r += x
            x = None
    return r
""",
        """\
variable 'x' is int, but is assigned a value of type NoneType here
  File "program.py", line 6
        if x is not None:
            for i in range(n):
                r += x
                x = None
                ^
Hint: declare the variable as Optional where it is first assigned: x: Optional[…] = …""",
    ),
    "another type in a nested generator": (
        "def f(x: List[int]):\n    return [a for a in x for b in x for a in ['a']]\n",
        """\
variable 'a' is int, but is assigned a value of type str here
  File "program.py", line 2
    def f(x: List[int]):
        return [a for a in x for b in x for a in ['a']]
                                            ^""",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_error(name: str) -> None:
    text, expected = REFUSED[name]
    with pytest.raises(CompileError) as caught:
        compiled(text)
    assert str(caught.value) == expected
