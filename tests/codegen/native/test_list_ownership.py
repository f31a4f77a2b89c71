"""Lists that a region makes itself need no code for objects of Python, and have room for what loops append."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.codegen.native.list_ownership import ListClasses
from rekindle.codegen.native.lists import NativeWriter
from rekindle.ir.graph import Graph, Value


def region_of(function: Callable[..., Any], *arguments: Any) -> Graph:
    (node,) = rekindle.script(function).graph_for(*arguments).find_nodes("prim::NativeRegion")
    graph: Graph = node.get_graph("Subgraph")
    return graph


def lists_of(graph: Graph) -> dict[str, Value]:
    """The lists that elements are taken from or put into, by the base of their names."""
    kinds = ("aten::__getitem__", "aten::_set_item", "aten::append", "aten::select")
    return {node.inputs[0].base_name: node.inputs[0] for node in graph.all_nodes() if node.kind in kinds}


def owners(function: Callable[..., Any], *arguments: Any) -> dict[str, bool]:
    graph = region_of(function, *arguments)
    classes = ListClasses(graph)
    return {name: classes.is_own(value) for name, value in lists_of(graph).items()}


def squares(n: int) -> int:
    own = [0 for _ in range(n)]
    for i in range(n):
        own[i] = i * i
    total = 0
    for i in range(n):
        total += own[i]
    return total


def given(xs: list[int], n: int) -> int:
    total = 0
    for i in range(n):
        total += xs[i]
    return total


def either(xs: list[int], n: int) -> int:
    ys = [1 for _ in range(n)]
    if n > 3:
        ys = xs
    total = 0
    for i in range(n):
        total += ys[i]
    return total


def table(n: int) -> int:
    rows = [[i * j for j in range(n)] for i in range(n)]
    total = 0
    for i in range(n):
        for j in range(n):
            total += rows[i][j]
    return total


def mixed_table(xs: list[int], n: int) -> int:
    rows = [[i for i in range(n)] for _ in range(n)]
    rows.append(xs)
    total = 0
    for i in range(n):
        row = rows[i]
        row[0] = row[0] + 1
        total += row[0]
    return total


def two(n: int) -> int:
    evens = [0 for _ in range(0)]
    for i in range(n):
        evens.append(i)
        evens.append(i + 1)
    total = 0
    for i in range(len(evens)):
        total += evens[i]
    return total


def sometimes(n: int) -> int:
    kept = [0 for _ in range(1)]
    for i in range(n):
        if i % 3 == 0:
            kept.append(i)
        kept.append(-i)
    total = 0
    for i in range(len(kept)):
        total += kept[i] * i
    return total


def until(n: int) -> int:
    kept = [0 for _ in range(1)]
    i = 0
    while i < n:
        kept.append(i)
        i += 2
    return kept[-1] + len(kept)


def popped(n: int) -> int:
    kept = [0 for _ in range(3)]
    for i in range(n):
        kept.append(i)
        if i % 2 == 0:
            kept.pop(0)
    return kept[0] + len(kept)


def nested(n: int) -> int:
    kept = [0 for _ in range(0)]
    for i in range(n):
        for j in range(i):
            kept.append(i * j)
    total = 0
    for i in range(len(kept)):
        total += kept[i]
    return total


def rows_and_one(n: int) -> int:
    rows = [[0], [1], [2]]
    first = rows[0]
    for i in range(n):
        first.append(i)
        rows[i % 3].append(i)
    s = 0
    for row in rows:
        for x in row:
            s = (s * 3 + x) % 1000003
    return s


def two_names(n: int) -> int:
    a = [0 for _ in range(2)]
    b = [1 for _ in range(1)]
    if n > 4:
        b = a
    for i in range(n):
        a.append(i)
        b.append(-i)
    s = 0
    for i in range(len(a)):
        s = s * 3 % 1000003 + a[i]
    return s + len(b)


def carried(n: int) -> int:
    a = [0 for _ in range(2)]
    b = [1 for _ in range(1)]
    for i in range(n):
        a.append(i)
        b.append(2 * i)
        a, b = b, a
    s = 0
    for i in range(len(a)):
        s = s * 3 % 1000003 + a[i]
    return s + 7 * len(b)


def test_which_lists_are_made_in_the_region() -> None:
    assert all(owners(squares, 5).values())
    assert not any(owners(given, [1, 2, 3], 3).values())
    assert not owners(either, [1, 2, 3, 4], 4)["ys"]
    assert all(owners(table, 3).values())
    found = owners(mixed_table, [1, 2, 3], 2)
    assert not found["row"], "one of the rows is the caller's"
    assert found["rows"], "the list of rows is not"


@pytest.mark.parametrize(
    ("function", "with_room", "without"),
    [
        (squares, 1, 0),
        (table, 2, 0),
        (two, 2, 0),
        (sometimes, 0, 3),  # how many elements there are depends on the condition
        (until, 0, 2),
        (popped, 1, 3),  # the first three are appended before the loop
        (nested, 1, 0),
        (two_names, 2, 3),
    ],
)
def test_loops_that_append_reserve_memory(function: Callable[[int], int], with_room: int, without: int) -> None:
    text = NativeWriter().function(region_of(function, 5), "region")
    assert (text.count("@list_push("), text.count("@list_append(")) == (with_room, without)


@pytest.mark.parametrize(
    "function", [squares, table, two, sometimes, until, popped, nested, rows_and_one, two_names, carried]
)
def test_results(function: Callable[[int], int]) -> None:
    compiled = rekindle.script(function)
    for n in (5, 1, 0, 3, 200, 0, 7):
        try:
            expected = function(n)
        except IndexError:
            with pytest.raises(IndexError):
                compiled(n)
            continue
        assert compiled(n) == expected, n


def test_lists_of_the_caller() -> None:
    for function in (given, either, mixed_table):
        compiled = rekindle.script(function)
        for n in (2, 3, 4, 3):
            mine, theirs = [3, 1, 4, 1, 5], [3, 1, 4, 1, 5]
            assert compiled(mine, n) == function(theirs, n)
            assert mine == theirs


def test_more_elements_than_there_is_memory_for() -> None:
    def many(x: Tensor, n: int) -> int:
        kept = [0 for _ in range(0)]
        for i in range(n):
            kept.append(i)
            if i > 5:
                raise ValueError("enough")
        return len(kept)

    compiled = rekindle.script(many)
    for _ in range(4):
        assert compiled(torch.ones(1), 3) == 3
        with pytest.raises(ValueError, match=r"^enough$"):
            compiled(torch.ones(1), 1 << 40)
        assert compiled(torch.ones(1), -7) == 0
