"""Operators and builtins of Python that TorchScript lacks."""

import bisect
import heapq
import itertools
from typing import Dict, List, Optional, Tuple

import torch

from tests.language.corpus import program


@program("statement.for_else", ([1, 2, 3], 4), ([], 0), torch="refuses")
def nested_for_else(xs: List[int], n: int) -> int:
    count = 0
    for x in xs:
        for y in xs:
            if x + y == n:
                break
        else:
            count += 1
            continue
        count += 10
    return count


@program("statement.while_else", (9,), (4,), torch="refuses")
def while_with_else(n: int) -> int:
    k = 0
    while n > 1:
        if n == 7:
            break
        n -= 1
        k += 1
    else:
        k = 100 + k
    return k


@program("int.pow_constant", (3,), (-2,), torch="refuses")
def int_powers(n: int) -> Tuple[int, int, int, int]:
    return n**2, 2**5, (-n) ** 3, n**0


def takes_float(x: float) -> float:
    return x * 1.0


@program("int.pow_constant builtin.round", (3, 2.5), (-4, 0.49))
def ints_where_floats_are_taken(n: int, x: float) -> Tuple[float, float]:
    return takes_float(n**2), takes_float(round(x))


@program("builtin.round", (2.5, 3), (-1.5, 0), torch="refuses")
def rounded_ints(x: float, n: int) -> int:
    return round(x) + round(x * 2) + n


@program("builtin.round_digits", (2.675,), (-1.005,), torch="refuses")
def rounded_to_digits(x: float) -> Tuple[float, float, float]:
    return round(x, 2), round(x, 0), round(x * 100, 1)


@program("str.repeat", ("ab", 2), ("x", -1), torch="refuses")
def repeated_strings(s: str, n: int) -> Tuple[str, str]:
    return s * n, 3 * s + "-" * 5


@program("list.slice_assign list.del", ([1, 2, 3],), ([],), torch="refuses")
def slices_assigned(xs: List[int]) -> List[int]:
    xs[1:2] = [7, 8, 9]
    xs[5:3] = [0]
    xs[:0] = [1]
    del xs[-1:]
    return xs


@program("list.slice_assign list.aliasing", ([1, 2, 3, 4], -2), ([5], 7), torch="refuses")
def slices_of_another_name(xs: List[int], n: int) -> Tuple[List[int], List[int]]:
    same = xs
    xs[n:] = xs[:1]
    xs[1:1] = same
    return same, xs


@program("dict.equality", ({"a": [1]}, {"a": [1]}), ({"a": [1]}, {"a": [2]}), torch="refuses")
def dicts_of_lists_compared(a: Dict[str, List[int]], b: Dict[str, List[int]]) -> Tuple[bool, bool]:
    return a == b, a != b


@program("list.compare", ([1, 2], [1, 3]), ([], [1]), torch="refuses")
def lists_compared(a: List[int], b: List[int]) -> Tuple[bool, bool, bool, bool]:
    return a < b, a <= b, a > b, a >= b


@program("list.compare", (["a", "b"], ["a"]), ([], []), torch="refuses")
def lists_of_strings_compared(a: List[str], b: List[str]) -> Tuple[bool, bool]:
    return a < b, a >= b


@program("str.format_keywords", (2.5, "x"), (-1.0, ""), torch="refuses")
def fields_by_name(x: float, s: str) -> str:
    return "{name:>5} {0} {v:.2f} {{}}".format(s, name=s, v=x)


@program("str.repr", ("a'", 0.1), ("", -2.0), torch="refuses")
def representations(s: str, x: float) -> str:
    return repr(s) + repr(x) + repr([s])


@program("statement.print_options", (1, "a"), (-1, ""), torch="refuses")
def printed_with_options(n: int, s: str) -> None:
    print(n, s, sep=", ")  # noqa: T201
    print(n, s, 2.5, end="\n")  # noqa: T201
    print(n, end="!\n")  # noqa: T201


@program("type.optional_equals", (None,), ([],), torch="refuses")
def optional_list_equals_none(xs: Optional[List[int]]) -> Tuple[bool, bool]:
    return xs == None, xs != None


@program("library.heapq", ([5, 1, 4, 2, 8],), ([3, 3],), torch="refuses")
def heaps(xs: List[int]) -> Tuple[List[int], List[int], int, int]:
    heap: List[int] = []
    for x in xs:
        heapq.heappush(heap, x)
    out = [heapq.heappop(heap) for _ in range(2)]
    heapq.heapify(xs)
    return out, heap, heapq.heappushpop(xs, 0), heapq.heapreplace(xs, 7)


@program("library.heapq", ([(2, "b"), (1, "z"), (2, "a")],), ([(0, "")],), torch="refuses")
def heap_of_tuples(xs: List[Tuple[int, str]]) -> List[str]:
    heapq.heapify(xs)
    found = []
    while len(xs) > 0:
        found.append(heapq.heappop(xs)[1])
    return found


@program("library.heapq", ([5, 1, 4, 2, 8], 2), ([], 3), torch="refuses")
def largest_and_smallest(xs: List[int], n: int) -> Tuple[List[int], List[int]]:
    return heapq.nlargest(n, xs), heapq.nsmallest(n, xs)


@program("library.bisect", ([1, 3, 5], 3), ([], 0), torch="refuses")
def bisected(xs: List[int], x: int) -> Tuple[int, int, List[int]]:
    bisect.insort(xs, x)
    return bisect.bisect_left(xs, x), bisect.bisect(xs, x), xs


@program("library.itertools", ([1, 3, 5], [3, 4]), ([], []), torch="refuses")
def chained_and_accumulated(xs: List[int], ys: List[int]) -> Tuple[List[int], List[int], List[int]]:
    products = [a * b for a, b in itertools.product(xs, ys)]
    return list(itertools.chain(xs, ys)), list(itertools.accumulate(xs)), products


@program("library.itertools", ([1, 3, 5],), ([2],), torch="refuses")
def pairs_of_elements(xs: List[int]) -> List[Tuple[int, int]]:
    return list(itertools.combinations(xs, 2)) + list(itertools.pairwise(xs)) + list(itertools.permutations(xs, 2))


@program("library.itertools", ([1, 3, 5, 0, 2],), ([],), torch="refuses")
def taken_and_dropped(xs: List[int]) -> Tuple[List[int], List[int], List[int]]:
    taken = itertools.takewhile(lambda x: x > 0, xs)
    dropped = itertools.dropwhile(lambda x: x > 0, xs)
    return list(taken), list(dropped), list(itertools.islice(xs, 1, 4, 2))


@program("library.itertools", ([1.5, 3.0],), ([],), torch="refuses")
def accumulated_by_a_function(xs: List[float]) -> List[float]:
    return list(itertools.accumulate(xs, lambda a, b: a * b))


@program("builtin.range_value", (4,), (-1,), torch="refuses")
def lengths_of_ranges(n: int) -> Tuple[int, int]:
    return len(range(n)), len(range(1, n, 2))


@program("list.slice_assign slice.step", ([1, 2, 3, 4, 5], -2), ([], 3), torch="refuses")
def slices_with_steps_assigned(xs: List[int], k: int) -> List[int]:
    xs[::-1] = list(range(len(xs)))
    xs[1::k] = [9] * len(xs[1::k])
    xs[0:2:1] = [7, 8, 9]
    return xs


@program("list.slice_assign slice.step exception.of_python", ([1, 2, 3], 2), ([1, 2], 0), torch="refuses")
def slices_of_other_lengths(xs: List[int], k: int) -> List[int]:
    xs[::k] = [9]
    return xs


@program("list.del slice.step", ([1, 2, 3, 4, 5], 2), ([5, 6, 7], -2), torch="refuses")
def slices_with_steps_deleted(xs: List[int], k: int) -> List[int]:
    del xs[::k]
    return xs


@program("builtin.round_digits", (2.675, -1), (-17.25, 0), torch="refuses")
def rounded_to_digits_of_variables(x: float, n: int) -> Tuple[float, float, int]:
    return round(x, n), round(x, ndigits=1), round(x, None)


@program("builtin.round_digits", (12345, -2), (-15, -1), torch="refuses")
def ints_rounded_to_digits(n: int, k: int) -> List[int]:
    return [round(n, k), round(n, 2 * k + 9), round(n, -10), round(25, -1), round(35, -1)]


@program("dict.merge", ({"a": 1}, {"b": 2}), ({}, {"a": 3}), torch="refuses")
def dicts_merged(a: Dict[str, int], b: Dict[str, int]) -> Tuple[Dict[str, int], Dict[str, int]]:
    return a | b, dict.fromkeys(["x", "y"], 1) | b


@program("list.builtins", ([1, 2], [[1], [2]]), ([], []), torch="refuses")
def sums_that_begin_with_something(xs: List[int], ys: List[List[int]]) -> Tuple[int, float, List[int]]:
    return sum(xs, 10), sum([0.5 * x for x in xs], start=1.0), sum(ys, [0])


@program("list.builtins", ({"b": 1, "a": 2},), ({},), torch="refuses")
def sorted_keys(d: Dict[str, int]) -> List[str]:
    return sorted(d) + sorted(d, reverse=True)


@program("int.methods", (10, 2.0), (-7, 2.5), torch="refuses")
def methods_of_numbers(n: int, x: float) -> Tuple[List[int], bool, float]:
    return [n.bit_length(), n.bit_count(), n.real, n.imag, n.numerator, n.denominator], x.is_integer(), x.conjugate()


@program("dict.equality list.literal", ([1, 2], 1), ([], 0), torch="refuses")
def compared_with_empty_lists_in_literals(xs: List[int], n: int) -> List[bool]:
    return [
        {"k": xs} == {"k": []},
        {"k": []} != {"k": xs},
        [xs, [n]] == [[], []],
        {"a": {"b": xs}} == {"a": {}},
        {"a": [[n]], "b": [xs]} == {"a": [], "b": [[]]},
    ]


@program("str.find str.startswith", ("abcabc", "c", -1), ("añb", "b", -7), torch="differs")
def searches_up_to_a_negative_index(s: str, t: str, end: int) -> Tuple[List[int], List[bool]]:
    found = [s.find(t, 0, end), s.rfind(t, -3, end), s.count(t, 1, end), s.find(t, 0, -1), s.count(t, 0, -2)]
    return found, [s.startswith(t, 2, end), s.endswith(t, 0, -1), s.endswith("b", 0, end)]


@program("str.find", ("abcabc", "b", -2), ("abc", "c", -1), torch="differs")
def index_up_to_a_negative_index(s: str, t: str, end: int) -> List[int]:
    return [s.rindex(t, 0, end), s.index(t, 0, end)]


@program("tuple.index", ((5, 6, 7), torch.tensor(1)), ((1, 2, 3), torch.tensor(-3)), torch="refuses")
def tuple_indexed_by_a_tensor(t: Tuple[int, int, int], i: torch.Tensor) -> List[int]:
    return [t[i], t[torch.tensor(2)]]


@program("list.builtins", (["a", ""], [[1], [2]]), ([], [[]]), torch="refuses")
def any_and_all_of_containers(s: List[str], xs: List[List[int]]) -> List[bool]:
    return [all(s), any(s), all(xs), any(xs), any([{"a": n} for n in range(len(s))]), all([(n, n) for n in xs])]


class Grid:
    def __init__(self, width: int) -> None:
        self.width = width
        self.cells = [0] * (2 * width)

    def __getitem__(self, place: Tuple[int, int]) -> int:
        return self.cells[place[0] * self.width + place[1]]

    def __setitem__(self, place: Tuple[int, int], value: int) -> None:
        self.cells[place[0] * self.width + place[1]] = value


@program("class.magic_container", (1, 3), (0, 2), torch="refuses")
def objects_subscripted_by_tuples(row: int, width: int) -> Tuple[int, List[int]]:
    grid = Grid(width)
    grid[row, 1] = 7
    grid[row, 1] += 2
    place = (1 - row, 0)
    grid[place], grid[0, 0] = 4, 5
    return grid[row, 1] + grid[place], grid.cells


class Plain:
    def __init__(self, n: int) -> None:
        self.n = n


@program("class.identity", (1,), (-1,), torch="refuses")
def objects_compared_with_none(n: int) -> List[bool]:
    maybe: Optional[Plain] = Plain(n) if n > 0 else None
    return [maybe == None, None != maybe, Plain(n) == None]


@program("str.strip", ("\r \n ab\x1c\t", "\r"), (" a ", " \n\t\f\v"))
def strips_of_spelled_white_space(s: str, chars: str) -> List[str]:
    white = " \n\t\f\v"
    return [s.strip(" \n\t\f\v"), s.lstrip(white), s.rstrip(chars), s.strip(chars + white[len(chars) :])]


@program("list.slice_assign", ([1, 2, 3, 4], 2), ([5], -3), torch="refuses")
def slices_replaced_by_nothing(xs: List[int], k: int) -> List[int]:
    xs[:1] = []
    xs[k:] = []
    return xs
