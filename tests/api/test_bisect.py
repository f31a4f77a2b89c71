"""``rekindle.bisect``, tested on passes that are wrong on purpose."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

import rekindle
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.errors import ArgumentError
from rekindle.ir import subgraph_execution
from rekindle.ir.graph import Graph
from rekindle.passes import ConstantPooling, ConstantPropagation, DeadCodeElimination, Inlining, Pass
from rekindle.rewriting.changes import may_change
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.pipelines import OPTIMIZATION


@dataclass(slots=True)
class SwapOperands:
    """Wrong for what is not commutative."""

    name: ClassVar[str] = "swap_operands"
    kinds: tuple[str, ...] = ("aten::mul", "aten::sub")
    asks: bool = True

    def run(self, graph: Graph) -> bool:
        changed = False
        for kind in self.kinds:
            for node in graph.find_nodes(kind):
                first, second = node.inputs[:2]
                alike = first.type == second.type
                if alike and (not self.asks or may_change("swap the operands of", node)):
                    node.replace_input(0, second)
                    node.replace_input(1, first)
                    changed = True
        return changed


@dataclass(slots=True)
class UseBeforeDefinition:
    """Breaks the graph."""

    name: ClassVar[str] = "use_before_definition"

    def run(self, graph: Graph) -> bool:
        node = graph.find_nodes("aten::sub")[0]
        if not may_change("move to the end", node):
            return False
        node.move_before(graph.return_node)
        return True


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * (1 + 1)


def program(x: torch.Tensor, y: torch.Tensor):
    a = scaled(x) * y
    b = a - y
    return b * y


def written_to(x: torch.Tensor, y: torch.Tensor):
    x.copy_(x - y)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = torch.nn.Parameter(torch.tensor([7.0, 9.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - self.bias


X, Y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
BROKEN: tuple[Pass, ...] = (Inlining(), ConstantPropagation(), SwapOperands(), DeadCodeElimination(), ConstantPooling())


def test_the_passes_of_the_package_are_right() -> None:
    assert rekindle.bisect(program, (X, Y)) is None
    assert rekindle.bisect(Net(), (X,)) is None
    assert rekindle.bisect(program, (X,), {"y": Y}) is None


def test_the_wrong_change_among_right_ones_is_found() -> None:
    """Products may be swapped; the pass swaps all of them before it comes to the difference."""
    unit = rekindle.CompilationUnit("def f(x, y):\n  return (x * y - y) * y * y\n")
    culprit = rekindle.bisect(unit.f, (X, Y), passes=BROKEN)
    assert culprit is not None
    assert str(culprit) == (
        "change 4 of the pass 'swap_operands' changes the result: "
        "swap the operands of %4 : Tensor = aten::sub(%3, %y.1, %2)\n"
        "\n"
        "# before: tensor([  0., 125.])\n"
        "graph(%x.1 : Tensor,\n"
        "      %y.1 : Tensor):\n"
        "  %2 : int = prim::Constant[value=1]()\n"
        "  %3 : Tensor = aten::mul(%y.1, %x.1)\n"
        "  %4 : Tensor = aten::sub(%3, %y.1, %2)\n"
        "  %5 : Tensor = aten::mul(%y.1, %4)\n"
        "  %6 : Tensor = aten::mul(%y.1, %5)\n"
        "  return (%6)\n"
        "\n"
        "# after: tensor([   0., -125.])\n"
        "graph(%x.1 : Tensor,\n"
        "      %y.1 : Tensor):\n"
        "  %2 : int = prim::Constant[value=1]()\n"
        "  %3 : Tensor = aten::mul(%y.1, %x.1)\n"
        "  %4 : Tensor = aten::sub(%y.1, %3, %2)\n"
        "  %5 : Tensor = aten::mul(%y.1, %4)\n"
        "  %6 : Tensor = aten::mul(%y.1, %5)\n"
        "  return (%6)\n"
    )


def test_changes_of_other_passes_are_told_apart() -> None:
    culprit = rekindle.bisect(program, (X, Y), passes=BROKEN)
    assert culprit is not None
    assert (culprit.pass_name, culprit.number) == ("swap_operands", 3)
    assert culprit.limit.startswith("inlining=1:")
    assert "swap_operands=3" in culprit.limit.split(":")


def test_the_script_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    culprit = rekindle.bisect(program, (X, Y), passes=BROKEN, script=path)
    assert culprit is not None
    root = str(Path(__file__).parent.parent.parent)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        env={"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"before: {culprit.right.result!r}\nafter:  {culprit.wrong.result!r}\n"
    assert culprit.script == path.read_text(encoding="utf-8")


def test_what_is_written_to_arguments_counts_and_they_stay_as_they_were() -> None:
    x = X.clone()
    culprit = rekindle.bisect(written_to, (x, Y), passes=(SwapOperands(),))
    assert culprit is not None
    assert (culprit.pass_name, culprit.number) == ("swap_operands", 1)
    assert torch.equal(culprit.right.arguments[0], X - Y)
    assert torch.equal(culprit.wrong.arguments[0], Y - X)
    assert torch.equal(x, X)


def test_a_pass_that_does_not_ask() -> None:
    culprit = rekindle.bisect(program, (X, Y), passes=(*OPTIMIZATION, SwapOperands(asks=False)))
    assert culprit is not None
    assert (culprit.pass_name, culprit.number) == ("swap_operands", 0)
    assert culprit.change == "all that it does, as it does not count its changes"


def test_a_pass_that_was_added() -> None:
    with rekindle.add_pass(SwapOperands(asks=False)):
        culprit = rekindle.bisect(program, (X, Y))
    assert culprit is not None
    assert culprit.pass_name == "swap_operands"


def test_a_pass_that_breaks_the_graph() -> None:
    culprit = rekindle.bisect(program, (X, Y), passes=(*OPTIMIZATION, UseBeforeDefinition()))
    assert culprit is not None
    assert (culprit.pass_name, culprit.number) == ("use_before_definition", 1)
    assert str(culprit.wrong).startswith("VerificationError: after the pass 'use_before_definition': ")


def test_a_plan_that_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The graph is right after all passes, and what calls run in its place is not."""

    def swapped(graph: Graph, name: str, optimized: bool, from_list: bool) -> Callable[..., Any]:
        return lambda *inputs: InterpreterState(Code(graph, name)).run(inputs[::-1])

    monkeypatch.setattr(subgraph_execution.runner, "_value", swapped)
    unit = rekindle.CompilationUnit("def f(x, y):\n  return x - y\n")
    culprit = rekindle.bisect(unit.f, (X, Y), script=tmp_path / "wrong.py")
    assert culprit is not None
    assert (culprit.pass_name, culprit.number) == ("plan", 0)
    assert culprit.before == culprit.after
    assert str(culprit).startswith("the plan changes the result: the graph as Python\n\n# before: tensor([-2., -3.])\n")
    assert "# after: tensor([2., 3.])\n" in str(culprit)
    assert 'print("after: ", repr(answer(AFTER, planned)))' in (tmp_path / "wrong.py").read_text(encoding="utf-8")
    monkeypatch.undo()
    assert rekindle.bisect(unit.f, (X, Y)) is None


def test_a_kernel_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups need not wait for their third call, and what fuses is a change like others."""
    assert rekindle.bisect(program, (X, Y)) is None
    monkeypatch.setattr(FusionExecutor, "__call__", lambda self, *inputs: torch.zeros(2))
    culprit = rekindle.bisect(program, (X, Y))
    assert culprit is not None
    assert (culprit.pass_name, culprit.number) == ("fuse_graph", 1)
    assert "prim::FusionGroup" not in culprit.before
    assert "prim::FusionGroup" in culprit.after
    assert culprit.script is not None


def test_modules_have_no_script(tmp_path: Path) -> None:
    culprit = rekindle.bisect(Net(), (X,), passes=BROKEN)
    assert culprit is not None
    assert (culprit.pass_name, culprit.number, culprit.script) == ("swap_operands", 1, None)
    with pytest.raises(ValueError, match="no program can show this: its graph or its arguments have no text"):
        rekindle.bisect(Net(), (X,), passes=BROKEN, script=tmp_path / "wrong.py")


def test_arguments_have_to_fit() -> None:
    with pytest.raises(ArgumentError):
        rekindle.bisect(program, (X,))
