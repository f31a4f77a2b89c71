"""Errors of functions that the package writes as programs are reported at the line of the user's program that calls
them.

Python's own functions are written in C, and leave no frames. The error, its text and its place are Python's, unless a
row says otherwise.
"""

from __future__ import annotations

import bisect
import cmath
import collections
import copy
import functools
import heapq
import inspect
import io
import itertools
import math
import operator
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import CompileError
from rekindle.frontend.python.library import _sources, library_function


def dist(p: list[float], q: list[float]) -> float:
    return math.dist(p, q)


def is_close(x: float) -> bool:
    return math.isclose(x, 1.0, rel_tol=-1.0)


def is_close_complex(x: complex) -> bool:
    return cmath.isclose(x, 1.0, rel_tol=-1.0)


def comb(n: int) -> int:
    return math.comb(n, 2)


def perm(n: int) -> int:
    return math.perm(n)


def isqrt(n: int) -> int:
    return math.isqrt(n)


def power(n: int) -> int:
    return 2**n  # type: ignore[no-any-return]


def power_of_zero(n: int) -> int:
    found: int = 0**n
    return found


def power_modulo_nothing(n: int) -> int:
    return pow(3, 2, n)


def power_modulo(n: int) -> int:
    return pow(2, n, 4)


def int_of_text(text: str) -> int:
    return int(text, 7)


def base_of_text(base: int) -> int:
    return int("9", base)


def least_row(x: Tensor) -> Any:
    return min(x)


def greatest_row(x: Tensor) -> Any:
    return max(x)


def first(xs: list[int]) -> int:
    return next(iter(xs))


def delete_places(xs: list[int], step: int) -> list[int]:
    del xs[::step]
    return xs


def assign_places(xs: list[int]) -> list[int]:
    xs[::2] = [1, 2, 3]
    return xs


def head_and_tail(xs: list[int]) -> tuple[int, list[int]]:
    head, *tail = xs
    return head, tail


def pop_left(n: int) -> int:
    queue = collections.deque([n])
    queue.popleft()
    return queue.popleft()


def pop_right(n: int) -> int:
    queue = collections.deque([n])
    queue.pop()
    return queue.pop()


def move_to_end(key: str) -> list[str]:
    found = collections.OrderedDict([("a", 1)])
    found.move_to_end(key)
    return list(found.keys())


def pop_item(key: str) -> tuple[str, int]:
    found = collections.OrderedDict([(key, 1)])
    found.popitem()
    return found.popitem()


def reduce(xs: list[int]) -> int:
    return functools.reduce(lambda a, b: a + b, xs)


def islice(xs: list[int], start: int) -> list[int]:
    return list(itertools.islice(xs, start, 3))


def least_by(xs: list[int]) -> int:
    return min(xs, key=lambda x: -x)


def heap_pop(xs: list[int]) -> int:
    return heapq.heappop(xs)


def heap_replace(xs: list[int]) -> int:
    return heapq.heapreplace(xs, 1)


def bisect_right(xs: list[int], low: int) -> int:
    return bisect.bisect_right(xs, 1, low)


def bisect_left(xs: list[int], low: int) -> int:
    return bisect.bisect_left(xs, 1, low)


def bisect_right_by(xs: list[int], low: int) -> int:
    return bisect.bisect_right(xs, 1, low, key=lambda x: -x)


def bisect_left_by(xs: list[int], low: int) -> int:
    return bisect.bisect_left(xs, 1, low, key=lambda x: -x)


def insort(xs: list[int], low: int) -> list[int]:
    bisect.insort(xs, 1, low)
    return xs


def beyond_the_end(xs: list[int]) -> int:
    return bisect.bisect_left(xs, 1, 0, 7)


def index_of(xs: list[int]) -> int:
    return operator.indexOf(xs, 5)


def floordiv(n: int) -> int:
    found: int = operator.floordiv(3, n)
    return found


def getitem(xs: list[int]) -> int:
    return operator.getitem(xs, 5)


def remove(n: int) -> int:
    found = {1, 2}
    found.remove(n)
    return len(found)


def row_by_number(x: Tensor, first: bool) -> Tensor:
    k = 1 if first else True
    return x[k]


def item_by_number(xs: list[int], first: bool) -> int:
    k = 1 if first else 0.5
    return xs[k]  # type: ignore[index]


def item_of_a_flag(x: Tensor, flag: Tensor, row: Tensor) -> Tensor:
    return x[flag, row]


def doubled(x: float) -> float:
    return x * 2


def float_of_number(real: bool) -> float:
    k = 1.0 if real else 1j
    return doubled(k)  # type: ignore[arg-type]


def sorted_by(xs: list[int]) -> list[int]:
    return sorted(xs, key=lambda x: 1 // x)


def accumulate(xs: list[int]) -> list[int]:
    return list(itertools.accumulate(xs, lambda a, b: a // b))


class Row(NamedTuple):
    """A program, its arguments, the function of the library that raises, if it is not an operator that does, and the
    error where it is not Python's."""

    program: Callable[..., Any]
    arguments: tuple[Any, ...]
    raises: str = ""
    error: str = ""


ROWS = [
    Row(dist, ([1.0], [1.0, 2.0]), "dist"),
    Row(is_close, (1.0,), "isclose"),
    Row(is_close_complex, (1j,), "cmath_isclose"),
    Row(comb, (-1,), "check_count"),
    Row(perm, (-1,), "perm"),
    Row(isqrt, (-1,), "isqrt"),
    Row(
        power,
        (-1,),
        "int_power",
        "ValueError: 2 ** -1 is not an int: write float(base) ** exponent where it may be negative",
    ),
    Row(power_of_zero, (-1,), "int_power"),
    Row(power_modulo_nothing, (0,), "power_modulo"),
    Row(power_modulo, (-1,), "power_modulo"),
    Row(int_of_text, ("9",), "int_of_text"),
    Row(base_of_text, (50,), "int_of_text"),
    Row(least_row, (torch.ones(0),), "min_row"),
    Row(greatest_row, (torch.ones(0),), "max_row"),
    Row(first, ([],), "first_of"),
    Row(delete_places, ([1], 0), "places"),
    Row(assign_places, ([1],), "assign_places"),
    Row(head_and_tail, ([],), "check_length"),
    Row(pop_left, (1,), "popleft_"),
    Row(pop_right, (1,), "pop_"),
    Row(move_to_end, ("b",), "move_to_end_"),
    Row(pop_item, ("b",), "popitem_"),
    Row(reduce, ([],), "reduce"),
    Row(islice, ([1], -1), "islice"),
    Row(least_by, ([],), "first_by"),
    Row(heap_pop, ([],), "heappop"),
    Row(heap_replace, ([],), "heapreplace"),
    Row(bisect_right, ([1], -1), "bisect_right"),
    Row(bisect_left, ([1], -1), "bisect_left"),
    Row(bisect_right_by, ([1], -1), "bisect_right_by"),
    Row(bisect_left_by, ([1], -1), "bisect_left_by"),
    Row(insort, ([1], -1), "bisect_right"),
    Row(beyond_the_end, ([0],)),
    Row(index_of, ([1],), "operator_index_of"),
    Row(floordiv, (0,)),
    Row(getitem, ([],)),
    Row(remove, (9,)),
    Row(
        row_by_number,
        (torch.arange(3), False),
        "number_as_index",
        "TypeError: a bool that is known only at run time cannot be the index of a Tensor",
    ),
    Row(
        item_of_a_flag,
        (torch.arange(3), torch.tensor(True), torch.tensor(1)),
        "select_numbers",
        "IndexError: a bool Tensor without dimensions indexes only by itself here: x[index]",
    ),
    Row(item_by_number, ([1], False), "number_as_int", "TypeError: expected an int, got 0.5"),
    Row(float_of_number, (False,), "number_as_float", "TypeError: expected a float, got 1j"),
]


def raised(program: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, str]:
    """The class and the text of the error; the file, the line and the function of the innermost place."""
    try:
        program(*copy.deepcopy(arguments))
    except Exception as error:
        *_, last = traceback.extract_tb(error.__traceback__)
        return f"{type(error).__name__}: {error}", f"{last.filename}:{last.lineno} in {last.name}"
    raise AssertionError("it raises nothing")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.program.__name__)
def test_errors_stand_in_the_program_of_the_user(row: Row) -> None:
    compiled = rekindle.script(row.program)
    found = raised(compiled, row.arguments)
    lines, start = inspect.getsourcelines(row.program)
    here = f"{__file__}:{start + len(lines) - 1} in {row.program.__name__}"
    assert found == ((row.error, here) if row.error else raised(row.program, row.arguments))


def test_every_function_of_the_library_is_known_as_one() -> None:
    """What is a text of the package's own has no frame. That holds for all of them, whether they have a row or not."""
    names = set(_sources())
    assert names >= {row.raises for row in ROWS if row.raises}
    assert [n for n in names if not library_function(n).function.definition.range.source.is_library] == []


@pytest.mark.parametrize("program", [sorted_by, accumulate], ids=lambda each: each.__name__)
def test_what_the_library_calls_is_told(program: Callable[..., Any]) -> None:
    """The line is that of the function that the user passed. Python calls the frame after that function."""
    told, place = raised(rekindle.script(program), ([1, 0],))
    assert (told, place.rpartition(" in ")[0]) == (
        raised(program, ([1, 0],))[0],
        raised(program, ([1, 0],))[1].rpartition(" in ")[0],
    )


def test_archives_keep_the_place() -> None:
    file = io.BytesIO()
    rekindle.save(rekindle.script(is_close), file)
    file.seek(0)
    told, place = raised(rekindle.load(file), (1.0,))
    assert told == raised(is_close, (1.0,))[0]
    assert place.rpartition(" in ")[0] == raised(is_close, (1.0,))[1].rpartition(" in ")[0]


def test_problems_within_a_function_of_the_library_are_told_at_its_call() -> None:
    def program(xs: list[tuple[int, str]]) -> Any:
        return math.prod(xs)

    with pytest.raises(CompileError) as caught:
        rekindle.script(program)
    first, *_, line, carets = str(caught.value).split("\n")
    assert first == "no overload of 'aten::mul' can be called with (int, Tuple[int, str]). The candidates are"
    assert line.strip() == "return math.prod(xs)"
    assert carets == "                   ^^^^^^^^^^^^^"
    assert "def prod" not in str(caught.value)
