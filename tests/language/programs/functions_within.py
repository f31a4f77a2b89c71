"""Functions within functions, lambdas, functions as arguments, and what calls expand."""

import functools
from typing import Callable, Dict, List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from rekindle.errors import UnsupportedError
from tests.language.corpus import program, refused

X = torch.tensor([-1.0, 2.0])
Y = torch.tensor([[0.5], [3.0]])


@program("expression.lambda", (1,), (5,), torch="refuses")
def lambda_with_default(n: int) -> int:
    g = lambda x, k=2: x * k + n  # noqa: E731
    return g(3) + g(n, k=4)


@program("function.nested", (X, 3), (Y, -1), torch="refuses")
def reads_what_is_around(x: Tensor, n: int) -> Tensor:
    scale = 2.0

    def inner(y: Tensor) -> Tensor:
        z = y * scale
        return z + n

    scale = 3.0
    return inner(x) + inner(x + 1)


@program("function.nested", (1,), (2,), torch="refuses")
def nested_with_early_returns(n: int) -> int:
    def sign(v: int) -> int:
        if v > 0:
            return 1
        for i in range(3):
            if i == v + 1:
                return n
        return -1

    return sign(n) * 10 + sign(-n) + sign(-1)


@program("function.nested function.as_value", ([1, 5, 7], 2), ([], 1), torch="refuses")
def lambda_passed_on(xs: List[int], n: int) -> List[int]:
    def apply(f, v):
        if v > 3:
            return f(v)
        return f(0)

    return [apply(lambda a: a * n, x) for x in xs]


@program("function.nested", ([1, 3, 5], 2), ([0], -1), torch="refuses")
def function_that_makes_a_function(xs: List[int], n: int) -> List[int]:
    def twice(f):
        return lambda x: f(f(x))

    g = twice(lambda x: x + n)
    return [g(x) for x in xs]


@program("function.nested", (5,), (1,), torch="refuses")
def nested_recursion_by_loop(n: int) -> int:
    def down(k: int) -> int:
        while k > 0:
            if k % 3 == 0:
                return k
            k -= 1
        return 0

    return down(n) + down(n + 5)


@program("statement.nonlocal function.nested", (3,), (0,), torch="refuses")
def counter(n: int) -> int:
    count = 0

    def increase(by: int) -> None:
        nonlocal count
        count += by

    for i in range(n):
        increase(i)
    increase(10)
    return count


@refused("statement.nonlocal", UnsupportedError, "assigns the nonlocal variable 'count'")
def counter_with_early_return(n: int) -> int:
    count = 0

    def increase() -> int:
        nonlocal count
        if n > 3:
            return 0
        count += 1
        return count

    return increase()


@program("function.nested", ([1, 2], 4), ([], 0), torch="refuses")
def comprehension_within(xs: List[int], n: int) -> List[int]:
    def shifted(k: int) -> List[int]:
        return [x + k + n for x in xs if x != k]

    return shifted(1) + shifted(n)


@program("function.nested", (X,), (Y,), torch="refuses")
def nested_twice(x: Tensor) -> Tensor:
    def outer(a: Tensor) -> Tensor:
        def inner(b: Tensor) -> Tensor:
            return b * 2 + a

        return inner(a) + inner(x)

    return outer(x + 1)


@program("function.varargs function.kwargs", (1, 2.5), (0, -1.0), torch="refuses")
def any_arguments(a: int, b: float) -> Tuple[int, float]:
    def g(*args, **kw):
        return args[0] + len(args), kw["b"] * 2

    return g(a, 2, 3, b=b)


@program("function.varargs function.kwargs", (1,), (5,), torch="refuses")
def arguments_passed_through(n: int) -> int:
    def h(a, b=1, *, c=2):
        return a + b * c

    def k(*args, **kwargs):
        return h(*args, **kwargs)

    return k(n, 3, c=4) + k(n) + k(a=n, b=2)


def total(*xs, **options):
    s = 0
    for x in xs:
        s = s + x
    if "scale" in options:
        s = s * options["scale"]
    return s + options.get("shift", 0)


@program("function.varargs function.kwargs", (2, 3), (-1, 0), torch="refuses")
def options_of_a_call(a: int, b: int) -> int:
    return total(a, b, 3) + total(a, scale=b) + total(b, b, shift=a)


@program("function.varargs function.kwargs", (X,), (Y,), torch="refuses")
def options_of_tensors(x: Tensor) -> Tensor:
    return total(x, x * 2, scale=0.5)


def described(**parts) -> str:
    found = ""
    for name, value in parts.items():
        found += f"{name}={value} "
    return found + str(len(parts))


@program("function.kwargs", (1, "x"), (-5, ""), torch="refuses")
def keywords_in_a_loop(n: int, s: str) -> str:
    return described(n=n, s=s) + described() + described(**{"t": n})  # type: ignore[arg-type]


@program("function.varargs call.star_args", (2, 3), (0, 1), torch="refuses")
def annotated_varargs(a: int, b: int) -> int:
    def sum_of(*xs: int) -> int:
        s = 0
        for x in xs:
            s += x
        return s

    return sum_of(a, b, 3) + sum_of() + sum_of(*(a, b))


def apply(f: Callable[[int], int], n: int) -> int:
    return f(n)


def doubled(n: int) -> int:
    return 2 * n


@program("function.as_value expression.lambda", (3,), (-4,), torch="refuses")
def functions_as_arguments(n: int) -> int:
    return apply(doubled, n) + apply(lambda x: x + n, 4)


@program("function.as_value", (X,), (Y,), torch="refuses")
def functions_in_a_tuple(x: Tensor) -> List[Tensor]:
    return [f(x) for f in (torch.relu, F.gelu, lambda t: t * 2)]


@program("function.as_value", (X,), (Y,), torch="refuses")
def functions_in_a_list(x: Tensor) -> Tensor:
    for f in [torch.relu, torch.sigmoid]:
        x = f(x)
    return x


@program("function.as_value builtin.map", (Y, [2, 3], [2.5, -0.5]), (Y * 2, [-1], [0.5]), torch="refuses")
def builtins_as_values(x: Tensor, ns: List[int], xs: List[float]):
    total, nearest = sum, round
    powers = list(map(pow, ns, [2, 3])), functools.reduce(pow, ns)
    rows = list(map(sum, [x, x])), list(map(any, [x[0], x[1]])), total(x)
    return powers, rows, list(map(round, xs)), nearest(xs[0], 1), list(map(min, ns, xs)), list(map(sum, [xs]))


@program("function.table_in_run", ("sum", Y), ("all", Y * 0), torch="refuses")
def builtins_in_a_table(name: str, x: Tensor):
    table = {"sum": sum, "first": torch.relu}
    return table[name](x) if name in ("sum", "first") else torch.tensor([all(row) for row in x])


@program("function.as_value expression.ternary", (X,), (Y,), torch="refuses")
def function_chosen_while_compiling(x: Tensor) -> Tensor:
    def layer(y: Tensor, activation=None):
        f = torch.tanh if activation is None else activation
        return f(y)

    return layer(x) + layer(x, torch.relu)


def scaled(x, k=2, act=None):
    y = x * k
    if act is not None:
        y = act(y)
    return y


half = functools.partial(scaled, k=0.5)


@program("function.unannotated", (X, 3), (Y, 0), torch="refuses")
def types_from_calls(x: Tensor, n: int) -> Tuple[Tensor, int, float, Tensor]:
    return scaled(x), scaled(n), scaled(2.5, 3), scaled(x, act=torch.relu)


@program("function.partial", (X,), (Y,), torch="refuses")
def partial_of_the_file(x: Tensor) -> Tensor:
    return half(x) + half(x, act=torch.relu)


def weighted(a: int, b: int, c: int = 1) -> int:
    return a + 2 * b + 3 * c


@program("function.partial", (2,), (0,), torch="refuses")
def partial_here(n: int) -> int:
    p = functools.partial(weighted, n, c=5)
    return p(3) + p(b=2) + functools.partial(p, 7)()


@program("function.reduce", ([1, 2, 5],), ([],), torch="refuses")
def reduced(xs: List[int]) -> int:
    return functools.reduce(lambda a, b: a * b, xs, 1)


@program("function.reduce", ([1.0, 2.0, 5.0],), ([],), torch="refuses")
def reduced_without_start(xs: List[float]) -> float:
    return functools.reduce(lambda a, b: a - b, xs)


@program("function.unannotated default_arguments", (X,), (Y, 4, "b", False), torch="refuses")
def types_from_defaults(x: Tensor, n=3, name="a", flag=True):
    if flag:
        x = x * n
    return x, name


def count_up(n):
    t = 0
    for i in range(n):
        t += i
    return t


@program("function.unannotated", (4,), (0,), torch="refuses")
def int_without_annotation(n: int) -> int:
    return count_up(n) + count_up(n + 1)


def swapped(a, b):
    return b, a


@program("function.unannotated", (4, "x"), (0, ""), torch="refuses")
def each_combination(n: int, s: str) -> Tuple[Tuple[str, int], Tuple[int, str], Tuple[Tensor, int]]:
    return swapped(n, s), swapped(s, n), swapped(n, torch.zeros(1))


def first_of(pair):
    return pair[0]


@program("function.unannotated", ([1, 2], "ab"), ([5], "z"), torch="refuses")
def containers_without_annotation(xs: List[int], s: str) -> Tuple[int, str, float]:
    return first_of(xs), first_of(s), first_of((2.5, 1))


def inner_options(x, scale: float = 1.0, *, shift: int = 0):
    return x * scale + shift


def outer_options(x, **kwargs):
    return inner_options(x, **kwargs)


@program("function.kwargs kwonly_arguments", (X,), (Y,), torch="refuses")
def options_passed_on(x: Tensor) -> Tensor:
    return outer_options(x, shift=3) + outer_options(x, scale=2.0)


@program("builtin.map expression.lambda", ([1, 2], 3), ([], 1), torch="refuses")
def map_of_a_lambda(xs: List[int], k: int) -> List[int]:
    return list(map(lambda x: x * k, xs))


@program("builtin.map", ([1, 2], [3, 5]), ([1], [2, 3]), torch="refuses")
def map_of_two(xs: List[int], ys: List[int]) -> List[int]:
    return [z for z in map(lambda a, b: a - b, xs, ys)]


@program("builtin.map list.builtins", ([1, -2],), ([0],), torch="refuses")
def sum_of_a_map(xs: List[int]) -> Tuple[int, bool, str]:
    return sum(map(abs, xs)), any(map(lambda x: x > 0, xs)), ",".join(map(str, xs))


@program("builtin.filter", ([1, 2, 4],), ([],), torch="refuses")
def filter_by_a_lambda(xs: List[int]) -> List[int]:
    return list(filter(lambda x: x % 2 == 0, xs))


@program("list.sort_key", (["bb", "a", "cc"],), ([],), torch="refuses")
def sorted_by_length(xs: List[str]) -> List[str]:
    return sorted(xs, key=len)


@program("list.sort_key", ([(1, 2.0), (3, 1.0), (3, 0.5)],), ([],), torch="refuses")
def sorted_by_tuples(xs: List[Tuple[int, float]]) -> List[Tuple[int, float]]:
    return sorted(xs, key=lambda t: (-t[0], t[1]))


@program("list.sort_key list.sorted_reverse", ([5, 3, 4, 1, 9],), ([2],), torch="refuses")
def sorted_by_key_reversed(xs: List[int]) -> List[int]:
    return sorted(xs, key=lambda x: x % 3, reverse=True)


@program("list.sort_key", ([1, 3, 2], 2), ([], -1), torch="refuses")
def sort_in_place_by_key(xs: List[int], k: int) -> List[int]:
    xs.sort(key=lambda x: -x * k)
    return xs


@program("list.sort_key", (["bb", "a", "cc"],), ([],), torch="refuses")
def extremes_by_key(xs: List[str]) -> Tuple[str, str]:
    return max(xs, key=len), min(xs, key=lambda s: s[-1])


@program("list.sort_key list.min_of_empty", ([1, 3, 5],), ([],), torch="refuses")
def extremes_with_default(xs: List[int]) -> int:
    return max(xs, default=-1) + min((x for x in xs if x > 100), default=7)


@program("list.sort_key dict.iteration", ({"a": 2, "b": 1},), ({},), torch="refuses")
def items_by_value(d: Dict[str, int]) -> List[str]:
    return [k for k, _ in sorted(d.items(), key=lambda kv: kv[1])]


@program("expression.walrus", ([1, 5, 2],), ([],), torch="refuses")
def walrus_in_a_comprehension(xs: List[int]) -> List[int]:
    return [y for x in xs if (y := x * 2) > 3]


@program("expression.walrus", (10,), (1,), torch="refuses")
def walrus_in_a_loop(n: int) -> int:
    steps = 0
    while (n := n // 2) > 0:
        steps += 1
    return steps


@program("expression.walrus refine.none", ({"a": 1}, "a"), ({}, "b"), torch="refuses")
def walrus_refines(d: Dict[str, int], k: str) -> int:
    if (found := d.get(k)) is not None:
        return found + 1
    return -1


@program("dict.expansion", ({"a": 1}, 5), ({}, 0), torch="refuses")
def merged_dicts(d: Dict[str, int], n: int) -> Dict[str, int]:
    return {"n": n, **d, "z": 2, **{"a": n}}
