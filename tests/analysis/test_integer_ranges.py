"""Integer range analysis: intervals of single values, and none that an execution leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, List

import pytest

import rekindle
from rekindle.analysis.integer_ranges import FULL, MAX, MAX_COUNT, MIN, IntegerRanges, Interval
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.passes import run_passes
from rekindle.runtime.pipelines import OPTIMIZATION


def graph_of(function: Callable[..., Any]) -> Graph:
    graph: Graph = rekindle.script(function).graph.copy()
    run_passes(graph, OPTIMIZATION)
    return graph


def ranges_of(function: Callable[..., Any], kind: str) -> list[Interval]:
    """The intervals of the results of the operators of one kind, in their order."""
    graph = graph_of(function)
    ranges = IntegerRanges(graph)
    return [ranges.of(node.output) for node in graph.all_nodes() if node.kind == kind]


def results_of(function: Callable[..., Any]) -> list[Interval]:
    graph = graph_of(function)
    ranges = IntegerRanges(graph)
    return [ranges.of(value) for value in graph.outputs]


def remainders(a: int, n: int) -> int:
    total = 0
    for i in range(n):
        total += a % 7 + a % -7 + i % 7
    return total


def test_a_remainder_lies_between_zero_and_the_divisor():
    assert ranges_of(remainders, "aten::remainder") == [Interval(0, 6), Interval(-6, 0), Interval(0, 6)]


def counted(n: int) -> int:
    up = 10
    down = 0
    for i in range(n):
        if i > 3:
            up += 2
            down -= 1
    return up * 0 + down


def test_counters_stay_within_what_a_program_can_count():
    up, down = ranges_of(counted, "aten::add")[0], ranges_of(counted, "aten::sub")[0]
    assert up == Interval(12, 10 + MAX_COUNT + 2)
    assert down == Interval(-MAX_COUNT - 1, -1)


def nested_counter(n: int) -> int:
    count = 0
    for _ in range(n):
        for _ in range(n):
            count += 1
        count += 3
    return count


def test_a_counter_of_nested_loops():
    assert results_of(nested_counter) == [Interval(0, MAX_COUNT)]


def test_a_counter_that_many_branches_step():
    """The time is linear in the number of branches: with a visit for each path through them, this would not end."""
    count = 2000
    branches = "".join(
        f"""
      %s{i + 1} : int = prim::If(%c)
        block0():
          %t{i} : int = aten::add(%s{i}, %one)
          -> (%t{i})
        block1():
          -> (%s{i})"""
        for i in range(count)
    )
    graph = parse_graph(
        f"""graph(%n : int, %c : bool):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %total : int = prim::Loop(%n, %true, %zero)
    block0(%i : int, %s0 : int):{branches}
      -> (%true, %s{count})
  return (%total)
"""
    )
    [total] = graph.outputs
    assert IntegerRanges(graph).of(total) == Interval(0, MAX_COUNT)


def test_a_variable_of_many_nested_loops():
    """The time is polynomial in the depth: with two iterations of a loop for each of the one around it, this would not
    end."""
    depth = 100
    heads = "".join(
        f"""
      %s{i} : int = prim::Loop(%n, %true, %t0)
        block0(%i{i} : int, %t{i + 1} : int):"""
        for i in range(depth)
    )
    ends = "".join(f"\n          -> (%true, %s{i})" for i in range(depth, 0, -1))
    graph = parse_graph(
        f"""graph(%n : int):
  %t0 : int = prim::Constant[value=0]()
  %three : int = prim::Constant[value=3]()
  %seven : int = prim::Constant[value=7]()
  %true : bool = prim::Constant[value=1](){heads}
          %y : int = aten::add(%t{depth}, %three)
          %s{depth} : int = aten::remainder(%y, %seven){ends}
  return (%s0)
"""
    )
    [total] = graph.outputs
    assert IntegerRanges(graph).of(total) == Interval(0, 6)


def doubled(n: int) -> int:
    x = 1
    for _ in range(n):
        x = x + x
    return x


def large_steps(n: int) -> int:
    x = 0
    for _ in range(n):
        x = x + 129
    return x


def unknown_start(x: int, n: int) -> int:
    for _ in range(n):
        x += 1
    return x


@pytest.mark.parametrize(
    ("function", "interval"),
    [(doubled, Interval(1, MAX)), (large_steps, Interval(0, MAX)), (unknown_start, FULL)],
)
def test_variables_that_are_not_counters_are_widened(function, interval):
    assert results_of(function) == [interval]


def greatest_common_divisor(n: int) -> int:
    a = n % 100
    b = n % 1000
    while b != 0:
        a, b = b, a % b
    return a


def test_variables_that_depend_on_each_other():
    assert results_of(greatest_common_divisor) == [Interval(0, 999)]


def elements_of_ranges(a: int, n: int) -> int:
    total = 0
    for i in range(5, n):
        for j in range(n, i, -2):
            for k in range(a, n, 3):
                total += i + j + k
    return total


def test_elements_of_ranges_lie_between_the_ends():
    assert ranges_of(elements_of_ranges, "aten::__derive_index") == [
        Interval(5, MAX - 1),
        Interval(6, MAX),
        Interval(MIN, MAX - 1),
    ]


def merged(n: int, xs: List[int]) -> int:
    if n > 0:
        x = len(xs) % 3
    else:
        x = -4
    return x


def test_branches_are_joined():
    assert results_of(merged) == [Interval(-4, 2)]


def multiples(n: int) -> int:
    x = 1
    for _ in range(n):
        x = x * 3 % 1000 + 1
    return x * 3 + 1


def test_widened_intervals_are_narrowed():
    assert results_of(multiples) == [Interval(4, 3001)]


def product_and_one(n: int) -> int:
    return n * 3 + 1


def test_products_that_fit_leave_room_for_a_sum():
    [product] = ranges_of(product_and_one, "aten::mul")
    assert product.high + 1 == MAX  # 3 divides 2^63 - 2
