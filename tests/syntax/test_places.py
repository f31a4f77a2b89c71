"""The places of trees are those that ``torch.jit`` writes after the nodes of its graphs."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from typing import Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor

from rekindle.syntax.python_ast import function_def

# fmt: off
# ruff: noqa: E702, RUF021, UP034


def arithmetic(x, y):
    a = (x + y) * x
    b = ((x - y)).relu()
    c = -(x) / (y)
    return (a @ b) + c ** 2


def calls(x, y):
    a = torch.sum((x), dim=( 1)).view( - 1)
    b = torch.nn.functional.relu( (x) )
    return (a.mul(y)
             .add(b)), (torch
                        .mul(x, y))


def branches(x, flag: bool, n: Optional[int]):
    if (flag):
        x = x + 1
    elif n is not None:
        x = x + n
    else:
        x = x * 2
    y = ((x)) if (not flag) else x.relu()
    z = flag and bool(x.sum() > 1) or n is None
    return x, y, z


def loops(xs: List[int], n: int):
    total = 0
    for i in range(n):
        total += i
    for x in xs:
        total = total + (x)
    while (total < 100) and n != 3:
        total *= 2
        if total == 64:
            break
    return [i * 2 for i in xs], total


def comparisons(a: int, b: int, c: List[int]):
    p = a < b
    q = (a) <= b < (3)
    r = 1 not in c
    s = a in c and not (b == 1)
    return p, q, r, s


def subscripts(x, xs: List[int], d: Dict[str, int]):
    a = (x)[0]
    b = x[1:, 0, ..., None]
    c = xs[(1)]
    x[0, 1:(2)] = 3.0
    d["b"] = c
    x[0] += 1
    return a, b, c, d["a"], xs[1:2]


def literals(x):
    a = [1, 2], ("b"), {"c": (1.5)}
    b = (x), x
    u, v = b
    return (u + v) * u, a, [x, (v)]


def strings(x):
    a = f"{x} and {x.size(0)}"
    b = "b {}" .format(x.dim())
    assert x.dim() == 2, "bad"
    return a, b


def raises(x: int) -> int:
    if x > 0:
        raise ValueError("é")
    y = x + 1  # é
    return y * 2


def nested(x, n: int) -> Tuple[Tensor, int]:
    for i in range(n):
        if i > 1:
            while n > 0:
                x = (x * (x + i)).sigmoid()
                n -= 1
    return x, n


def continued(x, y):
    z = x + \
        y * x
    return (z
            - y
            ).neg()

# fmt: on

PROGRAMS = [f for f in list(globals().values()) if isinstance(f, types.FunctionType) and f.__module__ == __name__]

EXPECTED = {
    "aten::add": {"+", "aug_assign", "apply"},
    "aten::add_": {"aug_assign"},
    "aten::sub": {"-", "aug_assign"},
    "aten::mul": {"*", "aug_assign", "apply"},
    "aten::div": {"/"},
    "aten::matmul": {"@"},
    "aten::pow": {"**"},
    "aten::relu": {"apply"},
    "aten::sum": {"apply"},
    "aten::view": {"apply"},
    "aten::format": {"apply"},
    "aten::sigmoid": {"apply"},
    "aten::neg": {"unary_minus", "apply"},
    "aten::lt": {"<"},
    "aten::gt": {">"},
    "aten::__contains__": {"in", "not_in"},
    "aten::select": {"subscript"},
    "aten::slice": {"subscript"},
    "aten::unsqueeze": {"subscript"},
    "aten::__getitem__": {"subscript", "for", "list_comp"},
    "aten::_set_item": {"subscript", "assign"},
    "prim::If": {"if", "if_expr", "and", "or", "assert"},
    "prim::Loop": {"for", "while", "list_comp"},
    "prim::RaiseException": {"raise", "assert"},
}
"""The kinds of tree, one of which starts at the place of a node of this kind."""

_NODE = re.compile(r"^.* = (\w+::\w+).*?\(.*\) # (.*:\d+:\d+)$", re.MULTILINE)


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_places(fn: Callable[..., object]) -> None:
    kinds_at: dict[str, set[str]] = {}
    for tree in function_def(fn).tree.walk():
        kinds_at.setdefault(tree.range.place, set()).add(tree.kind)
    nodes = _NODE.findall(str(torch.jit.script(fn).graph))
    checked = 0
    for kind, place in nodes:
        assert place in kinds_at, f"{kind} is at {place}, where no tree starts"
        if kind in EXPECTED:
            assert kinds_at[place] & EXPECTED[kind], f"{kind} is at {place}, where {kinds_at[place]} start"
            checked += 1
    assert checked >= 2


def test_columns_count_characters() -> None:
    """Where ``torch.jit`` counts bytes: the one difference there is."""

    def non_ascii(x):
        s = "é∀"; y = x + 1  # fmt: skip
        return y, s

    (place,) = [t.range.place for t in function_def(non_ascii).tree.walk() if t.kind == "+"]
    (theirs,) = [place for kind, place in _NODE.findall(str(torch.jit.script(non_ascii).graph)) if kind == "aten::add"]
    file, line, column = place.rsplit(":", 2)
    assert theirs == f"{file}:{line}:{int(column) + len('é∀'.encode()) - len('é∀')}"
