"""Functions: parameters, overloads, closures, marks, questions to the compiler."""

from typing import Callable, Dict, Final, List, Optional, Tuple

import torch
from torch import Tensor

import rekindle
from rekindle.errors import UndefinedNameError, UnsupportedError
from tests.language.corpus import program, refused

LIMIT: Final[int] = 10
TABLE = {"a": 1}
NAMES = ["x", "y"]
FACTOR = 2.5


def scaled(x: Tensor, factor: float = 2.0, *, shift: int) -> Tensor:
    return x * factor + shift


def total(xs: List[int], start: int = 0) -> int:
    for x in xs:
        start += x
    return start


def unannotated(x):
    return x + 1


def two(n: int):
    return n, n + 1


def type_comment(a, b):
    # type: (int, float) -> float
    return a * b


@program("default_arguments", (torch.ones(2),), (torch.zeros(1), 3))
def defaults(x: Tensor, n: int = 1, s: str = "a", f: float = 0.5, flag: bool = True) -> Tuple[Tensor, str]:
    return x * n if flag else x * f, s


@program("kwonly_arguments", (torch.ones(2), 1), (torch.zeros(1), -1))
def keyword_only(x: Tensor, n: int) -> Tensor:
    return scaled(x, shift=n) + scaled(x, 0.5, shift=2)


@program("default_arguments call.keywords", ([1, 2],), ([],))
def keyword_calls(xs: List[int]) -> Tuple[int, int, int]:
    return total(xs), total(start=5, xs=xs), total(xs, 1)


@program("call.star_args", ((1, 2.5),), ((3, -1.0),))
def star_arguments(t: Tuple[int, float]) -> float:
    return type_comment(*t)


@program("function.unannotated", (torch.ones(2),), (torch.zeros(1),))
def parameters_are_tensors(x):
    return unannotated(x) * 2


@program("function.inferred_result", (1,), (-1,))
def results_are_inferred(n: int):
    a, b = two(n)
    return [a, b], {"a": float(a)}


@program("function.type_comment", (2, 1.5), (0, 1.0))
def typed_by_comment(a, b):
    # type: (int, float) -> Tuple[int, float]
    return a, b * 2


@program("function.globals", (1,), (20,), torch="refuses")
def constants_of_the_file(n: int) -> Tuple[bool, float]:
    return n > LIMIT, n * FACTOR


@program("function.nested", (torch.ones(2),), (torch.arange(3),), torch="refuses")
def inner_function(x: Tensor) -> Tensor:
    def double(y: Tensor) -> Tensor:
        return y * 2

    return double(x)


@program("function.none_result", ([1],), ([],))
def gives_nothing(xs: List[int]) -> None:
    xs.append(5)


@program("function.recursion", (5,), (0,), torch="refuses")
def factorial(n: int) -> int:
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@torch.jit._overload
def doubled(x: int) -> int: ...


@torch.jit._overload
def doubled(x: str) -> str: ...  # noqa: F811


def doubled(x):  # noqa: F811
    return x + x


@program("function.overloads", (2, "ab"), (-1, ""))
def overloads_of_functions(n: int, s: str) -> Tuple[int, str]:
    return doubled(n), doubled(s)


@program("method.overloads", (2, torch.ones(2)), (-1, torch.zeros(1)))
class OverloadsOfMethods(torch.nn.Module):
    @torch.jit._overload_method
    def twice(self, x: int) -> int: ...

    @torch.jit._overload_method
    def twice(self, x: Tensor) -> Tensor: ...  # noqa: F811

    def twice(self, x):  # noqa: F811
        return x * 2

    def forward(self, n: int, x: Tensor) -> Tuple[int, Tensor]:
        return self.twice(n), self.twice(x)


@torch.jit.ignore
def in_python(x: int) -> int:
    return sum(i for i in range(x))


@torch.jit.ignore
def in_python_untyped(x):
    return torch.flip(x, [0])


@torch.jit.unused
def never(x: Tensor) -> Tensor:
    return x + len({1, 2})


@program("decorator.ignore", (4,), (0,))
def ignored_function(n: int) -> int:
    return in_python(n) + 1


@program("decorator.ignore", (torch.arange(3),), (torch.zeros(1),))
def ignored_untyped(x: Tensor) -> Tensor:
    return in_python_untyped(x) + 1


@program("decorator.ignore", (torch.ones(2),), (torch.zeros(1),))
class IgnoredMethod(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    @torch.jit.ignore
    def log(self, x: Tensor) -> int:
        return int(sum(v * 10 for v in x.tolist()))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.log(x)


@program("decorator.ignore statement.raise", (1,), (-1,))
def ignored_that_raises(n: int) -> int:
    return checked_in_python(n)


@torch.jit.ignore
def checked_in_python(n: int) -> int:
    if n < 0:
        raise KeyError("negative")
    return n


@program("decorator.unused", (torch.ones(2), False), (torch.zeros(1), False))
def unused_function(x: Tensor, flag: bool) -> Tensor:
    if flag:
        return never(x)
    return x


@program("decorator.export", (torch.ones(2),), (torch.zeros(1),))
class ExportedMethod(torch.nn.Module):
    @torch.jit.export
    def other(self, x: Tensor) -> Tensor:
        return x - 1

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


@program("question.is_scripting", (torch.ones(2),), (torch.zeros(1),))
def not_in_eager(x: Tensor) -> Tensor:
    if torch.jit.is_scripting():
        return x + 1
    else:
        return x.no_such_method() if x.dim() > 9 else x + 1


@program("question.is_scripting", (1,), (2,))
def both_answer(n: int) -> int:
    if not torch.jit.is_scripting():
        return n.bit_length()
    return n


@program("question.is_tracing", (1,), (2,))
def is_tracing(n: int) -> int:
    if torch.jit.is_tracing():
        return -n
    return n


@program("function.annotate", (1,), (2,))
def annotated_values(n: int) -> Tuple[List[int], Optional[int], Dict[str, float]]:
    xs = torch.jit.annotate(List[int], [])
    xs.append(n)
    return xs, torch.jit.annotate(Optional[int], None), torch.jit.annotate(Dict[str, float], {})


@program("module.Attribute", (1,), (2,))
class AttributeOfModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.names = torch.jit.Attribute([], List[str])
        self.sizes = torch.jit.Attribute({"a": 1}, Dict[str, int])

    def forward(self, n: int) -> int:
        if torch.jit.is_scripting():
            return n + len(self.names) + self.sizes["a"]
        return n + len(self.names.value) + self.sizes.value["a"]


@program("rekindle.names", (3,), (0,), torch="refuses")
def names_of_rekindle(n: int) -> List[int]:
    xs = rekindle.annotate(List[int], [])
    if rekindle.is_tracing():
        return xs
    future = rekindle.fork(total, [n, 1])
    xs.append(rekindle.wait(future))
    return xs


@program("expression.lambda", (1,), (-3,), torch="refuses")
def lambda_called(n: int) -> int:
    f = lambda k: k + 1  # noqa: E731
    return f(n)


def apply(f: Callable[[int], int], n: int) -> int:
    return f(n)


def increment(n: int) -> int:
    return n + 1


@program("function.as_value", (1,), (5,), torch="refuses")
def function_as_argument(n: int) -> int:
    return apply(increment, n)


@refused(
    "function.varargs", UnsupportedError, "Functions with a variable number of arguments ('*args') are not supported."
)
def variable_arguments(*xs: int) -> int:
    return 1


@refused(
    "function.kwargs", UnsupportedError, "Functions with arbitrary keyword arguments ('**kwargs') are not supported."
)
def variable_keywords(**xs: int) -> int:
    return 1


@refused("function.generator", UnsupportedError, "Generators ('yield') are not supported.")
def generator(n: int):
    yield n


@refused("function.async", UnsupportedError, "Asynchronous functions are not supported.")
async def coroutine(n: int) -> int:
    return n


@program("statement.global", (3,), (-1,), torch="refuses")
def global_constant(n: int) -> float:
    global FACTOR
    return FACTOR * n


@refused("statement.global", UnsupportedError, "'global' is not supported.")
def global_statement(n: int) -> int:
    global FACTOR
    FACTOR = n
    return n


@refused("function.undefined", UndefinedNameError, "the name 'no_such_name' is not defined")
def undefined_name(n: int) -> int:
    return n + no_such_name  # type: ignore[name-defined]  # noqa: F821


@program("function.mutable_global", ("a",), ("b",), torch="refuses")
def global_dict(k: str) -> int:
    return TABLE[k]
