"""``rekindle.stages``: what each pass makes of a graph."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import torch

import rekindle
from rekindle.api.stages import stages_of
from rekindle.errors import ArgumentError
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.passes import DeadCodeElimination, Inlining, PartialEvaluation
from rekindle.runtime.pipelines import FUSION, OPTIMIZATION, SPECIALIZATION
from rekindle.runtime.strategies.simple_strategy import SpecializeArguments
from tests.support.equality import assert_same


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def outer(x: torch.Tensor) -> torch.Tensor:
    return doubled(x)


def program(x: torch.Tensor, n: int):
    y = doubled(x)
    for i in range(n):
        if i > 1:
            y = y + doubled(x)[1:]
    items = [1]
    items.append(n)
    return y, str(n), items


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


def test_stages_read_as_what_each_pass_changed() -> None:
    found = stages_of(rekindle.script(outer).graph, (Inlining(), DeadCodeElimination()))
    assert str(found) == (
        """# compiled
graph(%x.1 : Tensor):
  %1 : Function = prim::Constant[name="doubled"]()
  %2 : Tensor = prim::CallFunction(%1, %x.1)
  return (%2)

# inlining: 1 change
--- compiled
+++ inlining
@@ -1,4 +1,4 @@
 graph(%x.1 : Tensor):
-  %1 : Function = prim::Constant[name="doubled"]()
-  %2 : Tensor = prim::CallFunction(%1, %x.1)
-  return (%2)
+  %3 : int = prim::Constant[value=2]()
+  %4 : Tensor = aten::mul(%x.1, %3)
+  return (%4)

# dead_code_elimination: no changes
"""
    )
    found = rekindle.stages(outer, torch.ones(3))
    passes = (PartialEvaluation(), *OPTIMIZATION, SpecializeArguments(()), *SPECIALIZATION, *FUSION)
    expected = [each.name for each in passes]
    assert [stage.name for stage in found] == ["compiled", *expected]
    assert str(found[0]) == f"# compiled\n{found[0].text}"


def test_each_strategy_has_its_stages() -> None:
    before = rekindle.set_execution_strategy("simple")
    try:
        found = rekindle.stages(outer, torch.ones(3))
    finally:
        rekindle.set_execution_strategy(before)
    expected = [each.name for each in (PartialEvaluation(), *OPTIMIZATION, SpecializeArguments(()), *SPECIALIZATION)]
    assert [stage.name for stage in found] == ["compiled", *expected]


def test_texts_are_graphs_and_diffs_lead_from_one_to_the_next() -> None:
    found = rekindle.stages(program)
    for before, after in itertools.pairwise(found):
        assert str(parse_graph(after.text)) == after.text
        assert bool(after.diff) == (before.text != after.text) == bool(after.changes)
        if after.diff:
            assert after.diff.splitlines()[:2] == [f"--- {before.name}", f"+++ {after.name}"]


def test_the_last_stage_is_what_calls_run() -> None:
    function = rekindle.script(program)
    run = function.graph_for(torch.ones(1), 4)
    last = rekindle.stages(function, torch.ones(1), 4)[-1]
    assert _unnumbered(last.graph.copy()) == _unnumbered(run.copy())


def _unnumbered(graph: Graph) -> str:
    """The text without the numbers that make names unique, which depend on the names that there were before."""
    return re.sub(r"(%[a-z]\w*)\.\d+", r"\1", str(graph))


def test_stages_are_python_that_runs_by_itself() -> None:
    stage = rekindle.stages(program, torch.ones(1), 4)[-1]
    assert stage.python is not None
    names: dict[str, object] = {}
    exec(stage.python, names)
    expected = program(torch.ones(2), 4)
    assert_same(names["plan"](torch.ones(2), 4), expected)
    assert_same(stage.function(torch.ones(2), 4), expected)
    assert "f0 = torch.mul\n" in stage.python
    assert "f9 = builtins.str\n" in stage.python


def gated(x: torch.Tensor, y: torch.Tensor):
    return torch.tanh(x) * y, torch.kron(x, y)


def test_groups_of_operators_are_python_too() -> None:
    stage = rekindle.stages(gated, torch.ones(3), torch.ones(3))[-1]
    assert (
        stage.python
        == """\
import torch

f1 = torch.kron

def f0():  # prim::FusionGroup
    import torch

    f0 = torch.tanh
    f1 = torch.mul

    def plan(r0, r1):
     r2 = f0(r0)
     r0 = None
     r3 = f1(r2, r1)
     r2 = r1 = None
     return r3
    return plan

f0 = f0()

def plan(r0, r1):
 r2 = f0(r0, r1)
 r3 = f1(r0, r1)
 r0 = r1 = None
 r4 = (r2, r3, )
 r2 = r3 = None
 return r4
"""
    )
    names: dict[str, Any] = {}
    exec(stage.python, names)
    x, y = torch.linspace(-1, 1, 3), torch.linspace(0, 2, 3)
    assert_same(names["plan"](x, y), gated(x, y))


def test_calls_that_are_not_inlined_are_for_the_interpreter() -> None:
    first = rekindle.stages(program)[0]
    assert first.python is None
    assert first.function is None


def test_modules_take_themselves_first() -> None:
    module = Scaled()
    compiled = rekindle.script(module)
    for subject in (module, compiled, compiled.forward):
        stage = rekindle.stages(subject, torch.ones(2))[-1]
        assert_same(stage.function(compiled, torch.ones(2)), module(torch.ones(2)))


def test_arguments_have_to_fit() -> None:
    with pytest.raises(ArgumentError):
        rekindle.stages(program, torch.ones(1))


def test_nothing_is_changed_by_looking() -> None:
    unit = rekindle.CompilationUnit("def f(x):\n  return x * (1 + 1)\n")
    function = unit.f
    before = str(function.graph)
    rekindle.stages(function)
    assert str(function.graph) == before
    assert function.get_debug_state().execution_plans == ()
