"""Functions of Python's library: ``math``, ``cmath``, ``itertools``, ``heapq``, ``bisect``, ``operator``."""

import bisect
import cmath
import functools
import heapq
import itertools
import math
import operator
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from rekindle.errors import UnsupportedError
from tests.language.corpus import program, refused

NUMBERS = ([3, 1, 2, 3],), ([],)
SOME = ([3, 1, 2, 3],), ([5],)


@program("math.others", (8.0, 3.0), (0.1, -2.5), torch="refuses")
def logarithms_and_roots(x: float, y: float) -> List[float]:
    return [math.log2(x), math.hypot(x, y), math.hypot(x, y, 1.0), math.hypot(), math.log(x, 3)]


@program("math.others exception.of_python", (-1.0,), (0.0,), torch="refuses")
def logarithm_of_nothing(x: float) -> float:
    return math.log2(x)


@program("math.others", ([0.1, 0.2, 0.3], [1, 2]), ([], []), torch="refuses")
def exact_sums(xs: List[float], ns: List[int]) -> Tuple[float, float]:
    return math.fsum(xs), math.fsum(ns)


@program("math.others", (2.5, 0.5), (1e30, -1.0), torch="refuses")
def neighbors(x: float, y: float) -> List[float]:
    return [math.nextafter(x, y), math.ulp(x), math.ulp(y), math.ulp(0.0), math.dist([x, 0], [y, 1])]


@program("math.others", (1.0, 1.0 + 1e-10), (float("inf"), 1.5), torch="refuses")
def close_numbers(x: float, y: float) -> List[bool]:
    loose = math.isclose(x, y, rel_tol=0.5)
    return [math.isclose(x, y), loose, math.isclose(x, y, abs_tol=0.1), math.isclose(3, 3), cmath.isclose(x, 1j)]


@program("math.integers", (8, 3), (5, 7), torch="refuses")
def counted_choices(n: int, k: int) -> List[int]:
    return [math.comb(n, k), math.perm(n, k), math.perm(n), math.isqrt(n * k), math.isqrt(0)]


@program("math.integers exception.of_python", (-1, 3), (5, -2), torch="refuses")
def counted_wrongly(n: int, k: int) -> int:
    return math.comb(n, k)


@program("math.integers", (12, 18), (-4, 0), torch="refuses")
def divisors_of_many(a: int, b: int) -> List[int]:
    return [math.gcd(a, b, 10), math.gcd(), math.gcd(a), math.lcm(a, b), math.lcm(a, 3, 5), math.lcm()]


@program("math.others", ([2, 3], [0.5, 4.0]), ([5], [1.5]), torch="refuses")
def products(ns: List[int], xs: List[float]) -> Tuple[int, float, float]:
    return math.prod(ns), math.prod(xs), math.prod(xs, start=2.0)


@program("builtin.pow_modulo", (3, 7), (-4, 10), torch="refuses")
def powers_by_a_modulus(a: int, m: int) -> List[int]:
    return [pow(a, 5, m), pow(a, 0, m), pow(a, 3, -m), pow(2, 5)]


@program("builtin.pow_modulo exception.of_python", (3, 7), (4, 10), torch="refuses")
def inverses_by_a_modulus(a: int, m: int) -> int:
    return pow(a, -1, m)


@program("complex.polar", (1 + 2j,), (-1j,), torch="refuses")
def polar_forms(z: complex) -> Tuple[Tuple[float, float], float, complex]:
    return cmath.polar(z), cmath.phase(z), cmath.rect(2.0, 0.5)


@program("library.itertools", ([3, 1, 2],), ([],), torch="refuses")
def of_different_lengths(xs: List[int]) -> Tuple[List[Tuple[int, int]], List[Tuple[int, int, int]]]:
    filled = list(itertools.zip_longest(xs, [7, 8, 9, 10], fillvalue=0))
    return filled, list(itertools.zip_longest(xs, [1], xs, fillvalue=-1))


@program("library.itertools", *NUMBERS, torch="refuses")
def filled_with_none(xs: List[int]) -> List[Tuple[Optional[int], Optional[int]]]:
    return list(itertools.zip_longest(xs, [7, 8]))


@program("library.itertools", *NUMBERS, torch="refuses")
def picked_and_left_out(xs: List[int]) -> Tuple[List[int], List[int], List[int]]:
    picked = list(itertools.compress(xs, [True, False, True]))
    return picked, list(itertools.filterfalse(lambda x: x > 1, xs)), list(itertools.filterfalse(None, [0, 1, 2]))


@program("library.itertools", *NUMBERS, torch="refuses")
def with_several_arguments(xs: List[int]) -> List[int]:
    return list(map(lambda x, y: x * 10 + y, xs, xs)) + list(itertools.starmap(max, [(2, 3)]))


@program("library.itertools statement.for_list", *NUMBERS, torch="refuses")
def without_end(xs: List[int]) -> List[int]:
    found: List[int] = []
    for i in itertools.count(3, 2):
        if i > 9:
            break
        found.append(i)
    for i, x in zip(itertools.count(), xs):
        found.append(i * x)
    for i, x in enumerate(itertools.cycle(xs)):
        if i == 6:
            break
        found.append(x)
    return found


@program("library.itertools", *NUMBERS, torch="refuses")
def parts_of_what_has_no_end(xs: List[int]) -> Tuple[List[int], List[float], List[int], List[int]]:
    around = list(itertools.islice(itertools.cycle(xs), 1, 7, 2))
    return (
        list(itertools.islice(itertools.count(5), 3)),
        list(itertools.islice(itertools.count(0.5, 0.25), 2, 4)),
        around,
        list(map(lambda x, y: x * y, xs, itertools.repeat(2))),
    )


@program("library.itertools", *NUMBERS, torch="refuses")
def slices_of_iterables(xs: List[int]) -> Tuple[List[int], List[int], List[int]]:
    even = itertools.islice(range(10), 0, None, 3)
    return list(itertools.islice(xs, 1, None, 2)), list(itertools.islice(xs, 2)), list(even)


@program("library.itertools", *NUMBERS, torch="refuses")
def groups_of_equals(xs: List[int]) -> Tuple[List[Tuple[int, int]], Dict[bool, List[int]]]:
    lengths = [(key, len(list(group))) for key, group in itertools.groupby(sorted(xs))]
    halves: Dict[bool, List[int]] = {}
    for odd, group in itertools.groupby(xs, key=lambda x: x % 2 == 1):
        halves[odd] = list(group)
    return lengths, halves


@program("library.itertools", *NUMBERS, torch="refuses")
def threes_and_ones(xs: List[int]) -> Tuple[List[Tuple[int, int, int]], List[Tuple[int]]]:
    threes = list(itertools.combinations(xs, 3)) + list(itertools.permutations(xs[:3], 3))
    return threes + list(itertools.combinations_with_replacement(xs, 3)), list(itertools.combinations(xs, r=1))


@program("library.itertools", *NUMBERS, torch="refuses")
def products_of_several(xs: List[int]) -> Tuple[List[Tuple[int, int]], List[Tuple[int, int, str, float]], int]:
    four = list(itertools.product(xs, [1], ["a", "b"], [2.5]))
    total = sum(x * y * z for x, y, z in itertools.product(range(3), repeat=3))
    return list(itertools.product(xs, repeat=2)), four, total


@program("library.itertools", *NUMBERS, torch="refuses")
def chained_and_shared(xs: List[int]) -> Tuple[List[int], List[int]]:
    first, second = itertools.tee(xs)
    return list(itertools.chain.from_iterable([xs, [7], xs])), list(first) + list(second)


@program("library.itertools", *NUMBERS, torch="refuses")
def accumulated_by_operators(xs: List[int]) -> Tuple[List[int], List[int], List[int]]:
    largest = list(itertools.accumulate(xs, max))
    return largest, list(itertools.accumulate(xs, operator.mul, initial=1)), list(itertools.accumulate(xs, func=None))


@refused("library.itertools", UnsupportedError, "itertools.count has no end; it cannot be used as a value")
def all_numbers(n: int) -> int:
    numbers = itertools.count(n)
    return len(numbers)  # type: ignore[arg-type]


@refused("library.itertools", UnsupportedError, "the second argument of itertools.combinations must be a constant")
def tuples_of_unknown_length(xs: List[int], n: int) -> int:
    return len(list(itertools.combinations(xs, n)))


@program("library.heapq", *SOME, torch="refuses")
def heaps_by_a_key(xs: List[int]) -> Tuple[List[int], List[int]]:
    return heapq.nlargest(2, xs, key=lambda x: -x), heapq.nsmallest(2, xs, key=lambda x: x % 3)


@program("library.heapq", *SOME, torch="refuses")
def merged_in_order(xs: List[int]) -> Tuple[List[int], List[int]]:
    return list(heapq.merge(sorted(xs), [2, 4], [0])), list(heapq.merge([3, 1], [2], reverse=True))


@program("library.bisect", *SOME, torch="refuses")
def found_by_a_key(xs: List[int]) -> Tuple[int, int, List[int]]:
    xs.sort(reverse=True)
    left = bisect.bisect_left(xs, -2, key=lambda x: -x)
    right = bisect.bisect(xs, -3, lo=0, hi=1, key=lambda x: -x)
    bisect.insort(xs, 2, key=lambda x: -x)
    return left, right, xs


@program("function.reduce", *SOME, torch="refuses")
def reduced_by_operators(xs: List[int]) -> Tuple[int, int, int]:
    return functools.reduce(operator.add, xs), functools.reduce(max, xs), functools.reduce(operator.xor, xs, 1)


@program("list.sort_key", *SOME, torch="refuses")
def sorted_by_comparing(xs: List[int]) -> Tuple[List[int], List[int]]:
    ordered = sorted(xs, key=functools.cmp_to_key(lambda x, y: y - x))
    return ordered, sorted(xs, key=functools.cmp_to_key(lambda x, y: x % 3 - y % 3), reverse=True)


@dataclass
class Place:
    x: int
    name: str


@program("library.operator list.sort_key", (1,), (5,), torch="refuses")
def sorted_by_items(n: int) -> Tuple[List[Tuple[int, str]], List[int], Tuple[int, str]]:
    pairs = [(n, "a"), (3, "b"), (2, "c")]
    places = sorted([Place(n, "p"), Place(2, "q")], key=operator.attrgetter("x"))
    return sorted(pairs, key=operator.itemgetter(0)), [place.x for place in places], operator.itemgetter(0, 1)(pairs[0])


@program("library.operator", (7, 2), (-9, 4), torch="refuses")
def operators_of_numbers(a: int, b: int) -> Tuple[List[int], List[float], List[bool]]:
    ints = [operator.add(a, b), operator.floordiv(a, b), operator.mod(a, b), operator.neg(a), operator.xor(a, b)]
    ints += [operator.lshift(a, b), operator.invert(a), operator.inv(b), operator.abs(a), operator.index(b)]
    bools = [operator.lt(a, b), operator.ne(a, b), operator.not_(a), operator.truth(b)]
    return ints, [operator.truediv(a, b), operator.pow(2.0, b)], bools


@program("library.operator", *SOME, torch="refuses")
def operators_of_containers(xs: List[int]) -> Tuple[List[int], bool, int, int, str]:
    operator.setitem(xs, 0, 9)
    both = operator.concat(xs, [1])
    operator.delitem(both, 0)
    upper = operator.methodcaller("replace", "a", "b")("abca")
    return both, operator.contains(xs, 9), operator.countOf(xs, 3), operator.getitem(xs, -1), upper


@program("library.operator", (torch.tensor([1.0, -2.0]),), (torch.tensor([[3.0]]),), torch="refuses")
def operators_of_tensors(x: Tensor) -> List[Tensor]:
    y = x.clone()
    operator.iadd(y, 1)
    return [operator.add(x, 1), operator.mul(2, x), operator.gt(x, 0), y, *map(operator.neg, [x])]
