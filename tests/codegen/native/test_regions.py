"""Loops over numbers become machine code that agrees with Python."""

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import List, Tuple

import pytest
import torch

from rekindle.codegen.native import FormNativeRegions, region_executor
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from tests.codegen.native.support import assert_same_outcome, compiled, left_to_the_plan, outcome


def collatz(n: int) -> int:
    best = 0
    for start in range(1, n):
        k = start
        steps = 0
        while k != 1:
            if k % 2 == 0:
                k = k // 2
            else:
                k = 3 * k + 1
            steps += 1
        best = max(best, steps)
    return best


def edit_distance(a: List[int], b: List[int]) -> int:
    before = [j for j in range(len(b) + 1)]
    for i in range(len(a)):
        row = [i + 1]
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            row.append(min(min(before[j + 1] + 1, row[j] + 1), before[j] + cost))
        before = row
    return before[-1]


def sieve(n: int) -> List[int]:
    is_prime = [True] * n
    primes: List[int] = []
    for i in range(2, n):
        if is_prime[i]:
            primes.append(i)
            j = i * i
            while j < n:
                is_prime[j] = False
                j += i
    return primes


def insertion_sort(xs: List[float]) -> List[float]:
    for i in range(1, len(xs)):
        x = xs[i]
        j = i - 1
        while j >= 0 and xs[j] > x:
            xs[j + 1] = xs[j]
            j -= 1
        xs[j + 1] = x
    return xs


def bisect(xs: List[int], x: int) -> int:
    low, high = 0, len(xs)
    while low < high:
        middle = (low + high) // 2
        if xs[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


def mandelbrot(x: float, y: float, most: int) -> Tuple[int, float]:
    a, b = 0.0, 0.0
    steps = 0
    for i in range(most):
        a, b = a * a - b * b + x, 2.0 * a * b + y
        if a * a + b * b > 4.0:
            break
        steps += 1
    return steps, a


def simpson(n: int) -> float:
    total = 0.0
    for i in range(n):
        total += math.sin(i / n) * math.exp(-float(i)) + math.sqrt(i)
    return total


def stack_machine(code: List[int]) -> int:
    stack: List[int] = []
    for word in code:
        if word >= 0:
            stack.append(word)
        else:
            b = stack.pop()
            a = stack.pop()
            if word == -1:
                stack.append(a + b)
            elif word == -2:
                stack.append(a * b)
            else:
                raise ValueError("no such instruction")
    return stack[-1]


def bits(n: int) -> Tuple[int, int, bool]:
    count, mixed, odd = 0, 0, False
    while n > 0:
        count += n & 1
        mixed = (mixed << 1) ^ n
        odd = odd != (n & 1 == 1)
        n >>= 1
        mixed &= 65535
    return count, mixed, odd


def first_of(xs: List[int], x: int) -> int:
    for i in range(len(xs)):
        if xs[i] == x:
            return i
    return -1


def rows(xs: List[int], n: int) -> List[int]:
    for i in range(n):
        row = [i] * 2
        if xs[i] < 0:
            return row
        xs.append(row[0])
    return xs


def backwards(n: int) -> List[int]:
    result: List[int] = []
    for i in range(n, -n, -3):
        result.append(i // 2 * (i % 5) - abs(i))
    return result


def edit_table(a: str, b: str) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        table[i][0] = i
    for j in range(len(b) + 1):
        table[0][j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = 0 if a[i - 1] == b[j - 1] else 1
            table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + cost)
    return table[len(a)][len(b)]


def shortest_paths(distances: List[List[float]]) -> List[List[float]]:
    n = len(distances)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                distances[i][j] = min(distances[i][j], distances[i][k] + distances[k][j])
    return distances


def transposed(matrix: List[List[bool]]) -> List[List[bool]]:
    result: List[List[bool]] = []
    for j in range(len(matrix[0])):
        column: List[bool] = []
        for row in matrix:
            column.append(row[j])
        result.append(column)
    return result


def shared_rows(rows: List[List[int]], n: int) -> List[List[int]]:
    first = rows[0]
    for i in range(n):
        rows.append(first)
        first.append(i)
        rows[i % 2] = [i]
    return rows


PROGRAMS = [
    (collatz, [(1,), (30,), (-5,)]),
    (edit_distance, [([1, 2, 3, 4], [2, 3, 5]), ([], []), ([7] * 20, [7, 8] * 12)]),
    (sieve, [(2,), (100,)]),
    (insertion_sort, [([3.0, -1.0, 2.5, 2.5, math.inf, -0.0, 0.0],), ([],)]),
    (bisect, [(list(range(0, 300, 3)), 100), ([], 1), ([5], 9)]),
    (mandelbrot, [(-0.5, 0.5, 50), (1.0, 1.0, 50), (0.3, 0.5, 0)]),
    (simpson, [(40,), (0,)]),
    (stack_machine, [([2, 3, -1, 4, -2],), ([1],)]),
    (bits, [(123456789,), (0,)]),
    (first_of, [([4, 5, 6], 5), ([4, 5, 6], 7), ([], 1)]),
    (rows, [([1, 2, 3], 3), ([1, -2, 3], 3), ([], 0)]),
    (backwards, [(20,), (0,), (-3,)]),
    (edit_table, [("kitten", "sitting"), ("", "ab"), ("", "")]),
    (shortest_paths, [([[0.0, 3.0, math.inf], [3.0, 0.0, 1.0], [math.inf, 1.0, 0.0]],), ([],)]),
    (transposed, [([[True, False], [False, False], [True, True]],), ([[]],)]),
    (shared_rows, [([[1], [2]], 5), ([[1]] * 2, 2), ([[]], 1), ([[7], [8]], 0)]),
]


@pytest.mark.parametrize(("function", "calls"), PROGRAMS, ids=[function.__name__ for function, _ in PROGRAMS])
def test_answers(function, calls, monkeypatch):
    both = compiled(function)
    assert both.regions
    left = left_to_the_plan(monkeypatch)
    for arguments in calls:
        assert_same_outcome(outcome(both.native, arguments), outcome(function, arguments))
        assert_same_outcome(outcome(both.plan, arguments), outcome(function, arguments))
    assert left == []


def factorial(n: int) -> int:
    product = 1
    for i in range(1, n + 1):
        product *= i
    return product


def nothing_but_errors(xs: List[int], i: int, d: int, n: int) -> int:
    total = 0
    for k in range(n):
        xs[k] = k
        total += xs[i] // d
    return total


def roots(x: float, y: float, n: int) -> float:
    total = 0.0
    for k in range(n):
        total += math.sqrt(x) / y + x // y + math.log(x + 4.0)
    return total


def to_ints(xs: List[float]) -> int:
    total = 0
    for x in xs:
        total += int(x) + math.floor(x)
    return total


LEFT = [
    (factorial, [(20,), (21,), (30,)], 2),
    (
        nothing_but_errors,
        [([9] * 3, 2, 1, 3), ([9] * 3, 3, 1, 3), ([9] * 3, -4, 1, 3), ([9] * 2, 0, 1, 3), ([9] * 4, 3, 0, 3)],
        4,
    ),
    (
        roots,
        [(1.0, 2.0, 2), (-1.0, 2.0, 2), (1.0, 0.0, 2), (-5.0, 1.0, 2), (math.inf, 1.0, 2), (math.nan, 1.0, 2)],
        5,
    ),
    (to_ints, [([1.5, -2.5],), ([math.nan],), ([math.inf],), ([1e30],), ([-1e18],)], 3),
    (stack_machine, [([1, -1],), ([1, 1, -7],), ([],)], 3),
]


@pytest.mark.parametrize(("function", "calls", "count"), LEFT, ids=[function.__name__ for function, _, _ in LEFT])
def test_what_code_cannot_do_the_plan_does(function, calls, count, monkeypatch):
    """Ints of more than 64 bits and errors: answers, texts, and what was written to lists before, are Python's."""
    both = compiled(function)
    assert both.regions
    left = left_to_the_plan(monkeypatch)
    for arguments in calls:
        assert_same_outcome(outcome(both.native, arguments), outcome(function, arguments))
    assert len(left) == count


def test_arguments_that_do_not_fit(monkeypatch):
    def total(xs: List[int], n: int) -> int:
        result = 0
        for i in range(n):
            result += xs[i]
        return result

    both = compiled(total)
    left = left_to_the_plan(monkeypatch)

    class Ints(list):
        pass

    class Whole(int):
        pass

    for arguments in (([1, 2**64], 2), (Ints([1, 2]), 2), ([1, True], 2), ([1, 2], Whole(2)), ([2**70], 0)):
        assert both.native(*arguments) == total(*arguments)
    assert len(left) == 4


# --------------------------------------------------------------------------------------------------------------- lists


def swap_through_both(a: List[int], b: List[int]) -> Tuple[List[int], List[int]]:
    for i in range(len(a)):
        a[i] = b[-1 - i] + 1
        b.append(a[i])
    return b, a


def test_lists_that_are_the_same_stay_the_same():
    both = compiled(swap_through_both)
    shared, expected = [1, 2, 3], [1, 2, 3]
    results = both.native(shared, shared)
    swap_through_both(expected, expected)
    assert results[0] is shared
    assert results[1] is shared
    assert shared == expected


def test_what_is_written_the_caller_sees():
    both = compiled(swap_through_both)
    a, b = [1, 2, 3], [4, 5, 6]
    objects = list(map(id, (a, b)))
    first, second = both.native(a, b)
    assert list(map(id, (second, first))) == objects
    expected = swap_through_both([1, 2, 3], [4, 5, 6])
    assert (first, second) == expected


def test_one_new_list_is_one_object():
    def twice(n: int) -> Tuple[List[int], List[int]]:
        xs: List[int] = []
        for i in range(n):
            xs.append(i)
        ys = xs
        return xs, ys

    first, second = compiled(twice).native(3)
    assert first == [0, 1, 2]
    assert first is second


def drain(xs: List[int], n: int) -> List[int]:
    for i in range(n):
        xs.pop(0)
        xs.append(i)
        xs.pop()
    return xs


@pytest.mark.parametrize("n", [0, 1, 3, 5, 6])
def test_lists_become_shorter(n):
    both = compiled(drain)
    assert_same_outcome(outcome(both.native, ([1, 2, 3, 4, 5], n)), outcome(drain, ([1, 2, 3, 4, 5], n)))


def touch(xs: List[int], places: List[int]) -> int:
    total = 0
    for place in places:
        total += xs[place]
    return total


@pytest.mark.parametrize("count", [0, 1, 3, 249, 250, 251, 2000])
def test_elements_are_taken_one_by_one_and_then_all(count):
    """A list of a thousand, of which some are read: what is wrong with the others does not matter before all are."""
    both = compiled(touch)
    xs = list(range(1000))
    places = [i * 7 % 1000 for i in range(count)]
    assert both.native(xs, places) == touch(xs, places)


def test_a_large_list_of_which_little_is_read(monkeypatch):
    both = compiled(bisect)
    left = left_to_the_plan(monkeypatch)
    xs = [*range(1000), "not a number"]
    assert both.native(xs, 400) == 400
    assert left == []


def lists_without_end(n: int) -> int:
    total = 0
    for i in range(n):
        row = [i] * 1000
        total += row[i % 1000]
    return total


def test_a_region_that_needs_too_much_memory_is_left_to_the_plan(monkeypatch):
    both = compiled(lists_without_end)
    left = left_to_the_plan(monkeypatch)
    assert both.native(1000) == lists_without_end(1000)
    assert left == []
    assert both.native(80_000) == lists_without_end(80_000)
    assert len(left) == 1


# ------------------------------------------------------------------------------------------------------------- regions


def test_loops_with_tensors_stay_and_those_within_are_compiled():
    def mixed(x: torch.Tensor, n: int) -> torch.Tensor:
        for i in range(n - 3):
            k = 0
            for j in range(n):
                k += j * i
            x = x + k
        return x

    both = compiled(mixed)
    assert [node.kind for node in both.graph.nodes if node.kind == "prim::Loop"] == ["prim::Loop"]
    assert len(both.regions) == 1
    assert torch.equal(both.native(torch.ones(2), 5), mixed(torch.ones(2), 5))


def test_hundreds_of_lists_are_told_apart():
    """More than fit into the table of lists at first; some of them are the same."""

    def total(rows: List[List[int]], n: int) -> int:
        found = 0
        for i in range(n):
            for row in rows:
                row.append(i)
                found += len(row)
        return found

    both = compiled(total)
    rows = [[k] for k in range(500)]
    for arguments in ((rows, 3), (rows + rows[::2], 2)):
        assert_same_outcome(outcome(both.native, arguments), outcome(total, arguments))


def test_rows_live_as_long_as_code_holds_them():
    """Another thread takes the rows out of the list that has them, while a loop over them runs."""
    rows = [[k] * 300 for k in range(50)]

    def total(rows: List[List[int]], n: int) -> int:
        found = 0
        for i in range(n):
            for row in rows:
                found = (found + row[i % 300]) % 1000003
        return found

    both = compiled(total)
    expected = both.native([list(row) for row in rows], 200_000)
    thread = threading.Timer(0.005, rows.clear)
    thread.start()
    assert both.native(rows, 200_000) in (expected, 0)  # 0 where the thread was faster than the call
    thread.join()


def test_code_without_a_loop_stays():
    def straight(a: int, b: int) -> int:
        return (a * b + a) // b if a > b else a

    assert compiled(straight).regions == []


def test_text_of_a_region(golden):
    graph = parse_graph(
        """
        graph(%n : int, %xs : int[], %message : str):
          %zero : int = prim::Constant[value=0]()
          %two : int = prim::Constant[value=2]()
          %true : bool = prim::Constant[value=1]()
          %before : int = aten::add(%n, %two)
           = prim::Print(%message)
          %total : int = prim::Loop(%n, %true, %zero)
            block0(%i : int, %a : int):
              %x : int = aten::__getitem__(%xs, %i)
              %b : int = aten::add(%a, %x)
              -> (%true, %b)
          %twice : int = aten::mul(%total, %two)
           = prim::Print(%message)
          return (%before, %twice, %total)
        """
    )
    assert FormNativeRegions().run(graph)
    assert not FormNativeRegions().run(graph)
    verify(graph)
    golden("codegen/native_region", str(graph))


def test_simple_loops_are_compiled_when_they_have_taken_some_time(monkeypatch):
    monkeypatch.setattr(region_executor, "PATIENCE", 1e-9)
    monkeypatch.setattr(region_executor, "SECONDS_PER_NODE", 0.0)

    def triangle(n: int) -> int:
        total = 0
        for i in range(n):
            total += i
        return total

    left = left_to_the_plan(monkeypatch)
    both = compiled(triangle)
    assert [both.native(n) for n in (3, 4, 5)] == [3, 6, 10]
    assert left == [(3,)]
    left.clear()
    both = compiled(collatz)
    assert both.native(5) == 7
    assert left == []


def test_simple_loops_with_many_iterations_are_compiled_in_the_first_call(monkeypatch):
    monkeypatch.setattr(region_executor, "PATIENCE", 1e-3)

    def triangle(n: int) -> int:
        total = 0
        for i in range(n):
            total += i
        return total

    def every_third(xs: List[int], n: int) -> int:
        total = 0
        for i in range(2, len(xs) - n // 7, 3):
            total += xs[i]
        return total

    left = left_to_the_plan(monkeypatch)
    assert compiled(triangle).native(10**6) == 499_999_500_000
    assert compiled(every_third).native(list(range(10**6)), 7) == sum(range(2, 10**6 - 1, 3))
    assert left == []
    assert compiled(triangle).native(4) == 6
    assert left == [(4,)]


def test_how_long_a_plan_of_a_region_takes_follows_from_its_trip_counts():
    region = parse_graph(
        """
        graph(%n : int, %m : int):
          %true : bool = prim::Constant[value=1]()
          %zero : int = prim::Constant[value=0]()
          %trips : int = aten::floordiv(%n, %m)
          %first : int = prim::Loop(%trips, %true, %zero)
            block0(%i : int, %total : int):
              %sum : int = aten::add(%total, %i)
              -> (%true, %sum)
          %second : int = prim::Loop(%first, %true, %zero)
            block0(%j : int, %count : int):
              %next : int = aten::add(%count, %j)
              -> (%true, %next)
          return (%second)
        """
    )
    estimate = region_executor.duration_estimate(region)
    assert estimate((10**9, 10)) == 10**8 * region_executor.SECONDS_PER_NODE
    assert estimate((-5, 1)) == 0
    assert estimate((5, 0)) == 0  # the plan raises ZeroDivisionError


def test_the_estimate_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_executor, "PATIENCE", 60.0)

    def triangle(n: int) -> int:
        total = 0
        for i in range(n):
            total += i
        return total

    prepared = []
    prepare = region_executor.duration_estimate
    monkeypatch.setattr(region_executor, "duration_estimate", lambda graph: prepared.append(graph) or prepare(graph))
    native = compiled(triangle).native
    assert [native(n) for n in (3, 4, 5)] == [3, 6, 10]
    assert len(prepared) == 1


@contextmanager
def interrupts() -> Iterator[None]:
    """Within, Ctrl-C is pressed every second: one that comes where Python ignores exceptions is lost."""
    stopped = threading.Event()
    # A shell that runs the tests in the background has them ignore interrupts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt():
        while not stopped.wait(1):
            signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
        signal.signal(signal.SIGINT, before)


def test_a_long_loop_can_be_interrupted():
    def endless(n: int) -> int:
        k = 0
        while n != 0:
            k = (k + n) % 1000
        return k

    both = compiled(endless)
    both.native(0)
    with interrupts(), pytest.raises(KeyboardInterrupt):
        both.native(3)


def test_an_interrupted_loop_has_written_what_it_wrote():
    def endless(rows: List[List[int]], xs: List[float], n: int) -> int:
        rows[0].append(n)
        rows.append([n, n])
        xs[0] = 0.5
        k = 0
        while n != 0:
            k = (k + n) % 1000
        return k

    both = compiled(endless)
    assert both.regions
    rows, xs = [[1], [2]], [1.0]
    with interrupts(), pytest.raises(KeyboardInterrupt):
        both.native(rows, xs, 3)
    assert (rows, xs) == ([[1, 3], [2], [3, 3]], [0.5])


def test_other_threads_run_meanwhile():
    def long(n: int) -> int:
        k = 1
        for i in range(n):
            k = (k * 48271) % 2147483647
        return k

    both = compiled(long)
    both.native(1)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(both.native(1000)))
    thread.start()
    both.native(30_000_000)
    assert seen == [long(1000)]
    thread.join()
