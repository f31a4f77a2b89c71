"""Loops over numbers that are ints or floats become machine code that returns Python's numbers, with their types."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, List, Union

import pytest
from hypothesis import HealthCheck, given, note, settings, strategies as st

import rekindle
from rekindle.codegen.native import FormNativeRegions
from rekindle.codegen.native.lists import NativeWriter
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from tests.codegen.native.number_programs import NUMBER_ARGUMENTS, number_programs
from tests.codegen.native.support import assert_same_outcome, compiled, function_of, left_to_the_plan, outcome
from tests.support.shares import portion


def accumulated(n: int):
    total = 0
    for i in range(n):
        total += 0.5 * i
    return total


def maximum(n: int, x: float):
    best = 0
    for i in range(n):
        v = i * x
        if v > best:
            best = v
    return best


def nested(n: int):
    total = 0
    for _ in range(n):
        part = 1
        j = 0
        while j < 5:
            part = part * 1.5 if j % 2 else part + 1
            j += 1
        total += part
    return total


def scaled(n: int):
    scale = 1
    if n > 10:
        scale = 0.5
    total = 0.0
    for i in range(n):
        total += scale * i
    return total, scale


def bisection(n: int, target: float):
    low, high = 0, 10
    for _ in range(n):
        middle = (low + high) / 2
        if middle > target:
            high = middle
        else:
            low = middle
    return low, high


def running_mean(n: int):
    mean = 0
    for k in range(n):
        v = k * k
        mean += (v - mean) / (k + 1)
    return mean


def counting(n: int):
    x = 0
    while x < n:
        if x > 5:
            x += 1
        else:
            x = x + 0.5
    return x


def left_early(n: int):
    total = 0
    for i in range(n):
        if i == 7:
            return total
        if i % 3 == 1:
            continue
        total = total + 0.5 if i > 2 else i
        if total > 3:
            break
    return -total


def doubled(number: Union[int, float], n: int):
    for i in range(n):
        number = number * 2 - i
    return number


def truth(number: Union[int, float], n: int):
    count = 0
    for _ in range(n):
        if number:
            count += 1
        number -= 1
    return number, count, bool(number)


def asked(n: int, x: float):
    number = 0
    ints = floats = both = 0
    for i in range(n):
        if isinstance(number, int):
            ints += 1
        if isinstance(number, float):
            floats += number
        if isinstance(number, (int, float)):
            both += 1
        number = number + x if i % 2 == 0 else i
    return number, ints, floats, both


def converted(n: int):
    number = 1
    real, whole, rounded = 0.0, 0, 0
    for i in range(n):
        real += float(number) + math.sqrt(number)
        whole += int(number)
        rounded += math.floor(number) - math.ceil(number) + round(2 * number)
        number = abs(-number) + (0.5 if i % 2 else 1)
    return number, real, whole, rounded


def extremes(n: int, x: float):
    low = high = 0
    for i in range(n):
        high = max(high, i * x)
        low = min(low, i * x - 3)
    return low, high


def zeros(n: int):
    number = 0
    for i in range(n):
        number = -number if i % 2 else number - 0.0
    return number


def of_list(xs: List[float], n: int):
    total = 0
    for i in range(n):
        total = total + xs[i]
        xs[i] = float(total)
    return total


def divided(a: Union[int, float], b: Union[int, float], n: int):
    quotient, rest = 0, 0
    for _ in range(n):
        quotient = a // b
        rest = a % b
    return quotient, rest, a / b if n else 0


def compared(a: Union[int, float], b: Union[int, float], n: int):
    count = 0
    for _ in range(n):
        count = count * 64
        count += (a < b) + 2 * (a <= b) + 4 * (a > b) + 8 * (a >= b) + 16 * (a == b) + 32 * (a != b)
    return count


def against_a_float(number: Union[int, float], v: float, n: int):
    count = 0
    for _ in range(n):
        if v >= number:
            count += 1
    return count


NAN = math.nan
PAIRS = [(a, b, 2) for a in (7, -7, 7.5, -7.5, 0.0, -0.0, 0) for b in (2, -2, 2.0, -0.5)]

PROGRAMS = [
    (accumulated, [(0,), (1,), (9,)]),
    (maximum, [(0, 0.5), (1, 0.5), (5, 0.5), (5, -0.5), (5, -0.0), (5, NAN)]),
    (nested, [(0,), (5,)]),
    (scaled, [(3,), (11,)]),
    (bisection, [(0, 7.3), (1, 7.3), (20, 7.3), (20, 11.0)]),
    (running_mean, [(0,), (1,), (20,)]),
    (counting, [(0,), (3,), (20,)]),
    (left_early, [(0,), (3,), (20,)]),
    (doubled, [(1, 5), (1.5, 5), (-0.0, 0), (-0.0, 3), (3, 0), (NAN, 2), (math.inf, 2), (2.0**63, 3), (-(2**63), 0)]),
    (truth, [(3, 5), (2.0, 5), (NAN, 3), (0, 0), (-0.0, 0)]),
    (asked, [(0, 0.5), (1, 0.5), (6, 0.5), (5, -0.0)]),
    (converted, [(0,), (7,)]),
    (extremes, [(0, 0.5), (6, 0.5), (6, -0.5), (6, NAN), (6, 0.0)]),
    (zeros, [(0,), (1,), (2,), (3,), (4,)]),
    (of_list, [([1.0, 2.5], 0), ([1.0, 2.5], 2), ([-0.0], 1)]),
    (divided, PAIRS),
    (compared, [*PAIRS, (1, 1.0, 1), (2**53, 2.0**53, 1), (NAN, 1, 1), (1, math.inf, 1), (-(2**63), -(2**63), 1)]),
]


@pytest.mark.parametrize(("function", "calls"), PROGRAMS, ids=[function.__name__ for function, _ in PROGRAMS])
def test_numbers(function: Callable[..., Any], calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    both = compiled(function)
    assert both.regions
    assert both.graph.find_nodes("prim::Loop") == []
    left = left_to_the_plan(monkeypatch)
    for arguments in calls:
        assert_same_outcome(outcome(both.native, arguments), outcome(function, arguments))
        assert_same_outcome(outcome(both.plan, arguments), outcome(function, arguments))
    assert left == []


@pytest.mark.parametrize(("function", "calls"), PROGRAMS, ids=[function.__name__ for function, _ in PROGRAMS])
def test_executions(function: Callable[..., Any], calls: list[Any]) -> None:
    """The first call, specialized code and code that is not optimized return the same."""
    scripted = rekindle.script(function)
    for arguments in (*calls, *calls):
        assert_same_outcome(outcome(scripted, arguments), outcome(function, arguments))
    with rekindle.optimized_execution(False):
        for arguments in calls:
            assert_same_outcome(outcome(scripted, arguments), outcome(function, arguments))


class Whole(int):
    pass


LEFT = [
    (doubled, [(True, 3), (2**63, 0), (2**62, 1), (2**61, 2), (Whole(3), 2), (-(2**63) - 1, 1)], [True] * 6),
    (doubled, [(2**62 - 1, 1), (2.0**62, 1), (1 - 2**62, 1)], [False] * 3),
    (divided, [(7, 0, 2), (7.5, 0, 2), (7, 0.0, 2), (-(2**63), -1, 2), (7.5, -0.0, 2)], [True] * 5),
    (compared, [(2**53 + 1, 2.0**53, 1), (2.0**53, 2**53 + 1, 1), (2**53 + 1, 2**53, 1)], [True, True, False]),
    (against_a_float, [(2**53 + 1, 2.0**53, 2), (-(2**62), NAN, 2)], [True] * 2),
    (against_a_float, [(2**53, 2.0**53, 2), (2.0**60, 2.0**60, 2), (NAN, 1.0, 2), (1, NAN, 2)], [False] * 4),
]


@pytest.mark.parametrize(("function", "calls", "expected"), LEFT)
def test_what_code_cannot_do_the_plan_does(
    function: Callable[..., Any], calls: list[Any], expected: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ints of more than 64 bits, bools and errors: results, types and texts are Python's."""
    both = compiled(function)
    left = left_to_the_plan(monkeypatch)
    found = []
    for arguments in calls:
        left.clear()
        assert_same_outcome(outcome(both.native, arguments), outcome(function, arguments))
        found.append(bool(left))
    assert found == expected


def test_an_accumulator_leaves_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    def product(n: int):
        result = 1
        for i in range(1, n):
            result *= i
        if n > 30:
            result = 0.5
        for _ in range(3):
            result = result * 2
        return result

    both = compiled(product)
    left = left_to_the_plan(monkeypatch)
    for n in (5, 21, 22, 31):
        assert_same_outcome(outcome(both.native, (n,)), outcome(product, (n,)))
    assert left


@settings(max_examples=portion(60), suppress_health_check=list(HealthCheck))
@given(text=number_programs(), calls=st.lists(NUMBER_ARGUMENTS, min_size=4, max_size=8))
def test_random_programs(tmp_path_factory: pytest.TempPathFactory, text: str, calls: list[tuple[Any, ...]]) -> None:
    """Errors are those of the plan: an operation whose result is not used is not executed."""
    note(text)
    function = function_of(text, tmp_path_factory.getbasetemp())
    both = compiled(function)
    for arguments in calls:
        note(f"f{arguments}")
        ours, eager = outcome(both.native, arguments), outcome(function, arguments)
        assert_same_outcome(ours, outcome(both.plan, arguments))
        if eager.error is None:
            assert_same_outcome(ours, eager)


# ----------------------------------------------------------------------------------------------------------- operators


def looped(operation: str, output: str, inputs: tuple[str, ...]) -> Graph:
    """A loop that computes ``operation`` of its inputs, and carries the result."""
    declared = ", ".join(f"%{name} : {type}" for name, type in zip("ab", inputs, strict=False))
    names = ", ".join(f"%{name}" for name in "ab"[: len(inputs)])
    graph = parse_graph(
        f"""
        graph({declared}, %zero : {output}, %n : int):
          %true : bool = prim::Constant[value=1]()
          %total : {output} = prim::Loop(%n, %true, %zero)
            block0(%i : int, %x : {output}):
              %y : {output} = {operation}({names})
              -> (%true, %y)
          return (%total)
        """
    )
    verify(graph)
    return graph


SAMPLES = (0, 1, -1, 7, -3, 2**53 + 1, 2**62, 0.0, -0.0, 0.5, -2.5, 1e300, math.inf, -math.inf, NAN)
BINARY = {
    **dict.fromkeys(("aten::add", "aten::sub", "aten::mul", "aten::floordiv", "aten::remainder"), "Scalar"),
    "aten::div": "float",
    **dict.fromkeys(("aten::lt", "aten::le", "aten::gt", "aten::ge", "aten::eq", "aten::ne"), "bool"),
}
UNARY = {
    **dict.fromkeys(("aten::neg", "prim::abs", "aten::floor", "aten::ceil", "aten::round", "aten::sqrt"), "Scalar"),
    **dict.fromkeys(("aten::exp", "aten::sin", "aten::log", "aten::fabs", "aten::tanh"), "Scalar"),
    "aten::Float": "float",
    "aten::Int": "int",
    "prim::unchecked_cast": "Scalar",
    "prim::isinstance[types=[int]]": "bool",
    "prim::isinstance[types=[float]]": "bool",
    "prim::isinstance[types=[int, float]]": "bool",
    "prim::isinstance[types=[str]]": "bool",
}


@pytest.mark.parametrize("inputs", [("Scalar", "Scalar"), ("Scalar", "int"), ("float", "Scalar"), ("Scalar", "float")])
@pytest.mark.parametrize("operation", BINARY)
def test_binary_operators(operation: str, inputs: tuple[str, str]) -> None:
    _assert_as_the_plan(operation, BINARY[operation], inputs)


@pytest.mark.parametrize("operation", UNARY)
def test_unary_operators(operation: str) -> None:
    _assert_as_the_plan(operation, UNARY[operation], ("Scalar",))


def _assert_as_the_plan(operation: str, output: str, inputs: tuple[str, ...]) -> None:
    graph = looped(operation, output, inputs)
    plan = callable_of(graph.copy(), "plan")
    assert FormNativeRegions().run(graph)
    verify(graph)
    native = callable_of(graph, "native")
    zero = {"float": 0.0, "bool": False}.get(output, 0)
    samples = [[x for x in SAMPLES if type in ("Scalar", x.__class__.__name__)] for type in inputs]
    for operands in itertools.product(*samples):
        for count in (0, 2):
            arguments = (*operands, zero, count)
            assert_same_outcome(outcome(native, arguments), outcome(plan, arguments))


def test_text_of_a_region(golden: Callable[[str, str], None]) -> None:
    """A number of open type is three registers; an operator of Scalars has a case for each type, if none is a float."""
    graph = looped("aten::mul", "Scalar", ("Scalar", "int"))
    golden("codegen/native_numbers", NativeWriter().function(graph, "region"))


def test_text_of_an_operator_of_a_number_and_a_float(golden: Callable[[str, str], None]) -> None:
    """There is no case for each type: the number's own register of the float that it is, or is rounded to, is read."""
    graph = looped("aten::gt", "bool", ("float", "Scalar"))
    golden("codegen/native_number_and_float", NativeWriter().function(graph, "region"))


def test_values_that_are_no_ints_or_floats_stay() -> None:
    """A bool does not become a number of open type, and a complex has no machine code."""
    graph = parse_graph(
        """
        graph(%flag : bool, %z : complex, %n : int):
          %true : bool = prim::Constant[value=1]()
          %x : Scalar = prim::Loop(%n, %true, %flag)
            block0(%i : int, %a : Scalar):
              -> (%true, %a)
          %y : Scalar = prim::Loop(%n, %true, %z)
            block0(%j : int, %b : Scalar):
              -> (%true, %b)
          return (%x, %y)
        """
    )
    assert not FormNativeRegions().run(graph)


def test_a_cast_that_is_wrong_is_left_to_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = looped("prim::unchecked_cast", "int", ("Scalar",))
    plan = callable_of(graph.copy(), "plan")
    assert FormNativeRegions().run(graph)
    native = callable_of(graph, "native")
    left = left_to_the_plan(monkeypatch)
    assert native(3, 0, 1) == plan(3, 0, 1) == 3
    assert left == []
    assert native(0.5, 0, 1) == plan(0.5, 0, 1) == 0.5
    assert len(left) == 1
