"""Whole functions as Python."""

from __future__ import annotations

import traceback
import warnings
from typing import Any, List

import pytest
import torch

import rekindle
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.text.parser import parse_graph
from rekindle.runtime.executor import execute
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.plans.plan import ExecutionPlan
from rekindle.runtime.plans.python_code import MAX_LOOPS, NotCompilable
from rekindle.runtime.strategies.simple_strategy import SpecializingStrategy
from rekindle.runtime.version import Version


def general_version(record: GraphFunction) -> Version:
    """What runs any arguments."""
    return SpecializingStrategy(record).general()


def source_of(function: Any) -> str:
    """The Python that calls of a function run."""
    plan = general_version(function._record).plan
    assert plan is not None
    return plan.source


def layer(x, weight, bias):
    return torch.relu(torch.matmul(x, weight) + bias * 2)


def test_a_straight_line() -> None:
    """Operators take what they must; tensors die at their last use."""
    assert (
        source_of(rekindle.script(layer))
        == """\
def plan(r0, r1, r2):
 r5 = f0(r0, r1)
 r0 = r1 = None
 r6 = f1(r2, 2)
 r2 = None
 r7 = f2(r5, r6)
 r5 = r6 = None
 r8 = f3(r7)
 r7 = None
 return r8"""
    )


def collatz(n: int, limit: int) -> int:
    steps = 0
    while n != 1 and steps < limit:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def test_control_flow() -> None:
    compiled = rekindle.script(collatz)
    assert compiled(27, 1000) == collatz(27, 1000) == 111
    assert (
        source_of(compiled)
        == """\
def plan(r0, r1):
 if r0 != 1:
  r9 = 0 < r1
 else:
  r9 = False
 r10, r11 = 0, r0
 if r9:
  while True:
   if (r11 % 2) == 0:
    r11 = r11 // 2
   else:
    r11 = (3 * r11) + 1
   r10 = r10 + 1
   if r11 != 1:
    r16 = r10 < r1
   else:
    r16 = False
   if not r16: break
 return r10"""
    )


def containers(n: int, name: str):
    pairs = {name: (n, [n, 1]), "other": (0, [0])}
    a, b = pairs[name]
    return [1, 2, 3], pairs, a if name is not None else 7, b + [-1]


def test_what_needs_no_call() -> None:
    compiled = rekindle.script(containers)
    assert compiled(3, "x") == containers(3, "x")
    first, second = compiled(3, "x")[0], compiled(3, "x")[0]
    assert first is not second, "each call makes a new list"


def scoped(x, log: List[str], fails: bool):
    with torch.no_grad():
        y = x * 2
        if fails:
            raise ValueError("no")
    return y + x


def test_with_statements() -> None:
    compiled = rekindle.script(scoped)
    assert "try:" in source_of(compiled)
    x = torch.ones(2, requires_grad=True)
    assert compiled(x, [], False).requires_grad
    with pytest.raises(ValueError, match="no"):
        compiled(x, [], True)
    assert torch.is_grad_enabled()


def nested(depth: int, inner: str) -> str:
    """A graph of loops within each other."""
    lines = ["graph(%n : int, %s0 : int):", "  %t : bool = prim::Constant[value=1]()"]
    for level in range(depth):
        pad = "  " * (2 * level + 1)
        lines.append(f"{pad}%s{level + 1} : int = prim::Loop(%n, %t, %{'s' if not level else 'a'}{level})")
        lines.append(f"{pad}  block0(%i{level + 1} : int, %a{level + 1} : int):")
    pad = "  " * (2 * depth + 1)
    lines.append(f"{pad}%r{depth} : int = {inner}(%a{depth}, %i{depth})")
    for level in reversed(range(depth)):
        pad = "  " * (2 * level + 1)
        inner_result = f"%r{depth}" if level == depth - 1 else f"%s{level + 2}"
        lines.append(f"{pad}    -> (%t, {inner_result})")
    return "\n".join([*lines, "  return (%s1)", ""])


def test_what_python_cannot_nest_is_interpreted() -> None:
    deep = nested(MAX_LOOPS + 5, "aten::add")
    with pytest.raises(NotCompilable):
        ExecutionPlan(Code(parse_graph(deep), "f"))
    record = GraphFunction("f", parse_graph(deep), FunctionSchema("f"))
    assert execute(record, [1, 5]) == 5
    assert general_version(record).plan is None
    assert ExecutionPlan(Code(parse_graph(nested(MAX_LOOPS, "aten::add")), "f")).function(1, 5) == 5


def forks(x):
    future = rekindle.fork(layer, x, x, x)
    return rekindle.wait(future)


def test_what_may_have_to_stop_is_interpreted() -> None:
    compiled = rekindle.script(forks)
    assert general_version(compiled._record).plan is None
    assert torch.equal(compiled(torch.ones(2, 2)), layer(*[torch.ones(2, 2)] * 3))


def divides(n: int, m: int) -> int:
    total = 0
    for i in range(n):
        total += 12 // (m - i)
    return total


def calls(n: int) -> int:
    return divides(n, 2)


def test_an_error_stands_at_its_line() -> None:
    compiled = rekindle.script(calls)
    for optimize in (False, True):
        with rekindle.optimized_execution(optimize), pytest.raises(ZeroDivisionError) as caught:
            compiled(5)
        entries = traceback.extract_tb(caught.value.__traceback__)
        assert [(entry.name, entry.line) for entry in entries[-2:]] == [
            ("calls", "return divides(n, 2)"),
            ("divides", "total += 12 // (m - i)"),
        ]


IDENTITY = """
graph(%x : int?):
  %five : int = prim::Constant[value=5]()
  %name : str = prim::Constant[value="a"]()
  %none : NoneType = prim::Constant()
  %a : bool = aten::__is__(%five, %none)
  %b : bool = aten::__isnot__(%none, %name)
  %c : bool = aten::__is__(%x, %none)
  return (%a, %b, %c)
"""


def test_python_has_nothing_to_warn_of() -> None:
    """It does of a literal number that is compared by identity."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = ExecutionPlan(Code(parse_graph(IDENTITY), "f"))
    assert plan.function(None) == (False, True, True)
    assert plan.source.endswith(" return (f0(5, None), f1(None, 'a'), r0 is None)")
