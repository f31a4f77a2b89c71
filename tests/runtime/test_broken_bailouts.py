"""Guards and bailouts that are broken on purpose: the results of some program show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.ir.graph import Node, Value
from rekindle.passes.speculation import bailout_graphs
from rekindle.runtime.strategies import bailouts
from rekindle.runtime.strategies.bailouts import failing_guards
from tests.language.running import assert_same_outcome, outcome
from tests.runtime.test_bailouts import PROGRAMS, inputs
from tests.support.profiled import Profiled

Patch = pytest.MonkeyPatch


def shrinks(x: Tensor, log: list[Tensor]) -> int:
    """Asks for sizes of what it writes to, and of what depends on data."""
    total = 0
    for _ in range(3):
        total = total * 10 + x.dim()
        x.unsqueeze_(0)
        y = x.relu()
        total = total * 10 + y.dim()
    return total + x.nonzero().size(0)


def disagreements() -> list[str]:
    """The programs that do not answer as eager does, with no guard failing, or any, on the same and other inputs."""
    found: list[str] = []
    for program in (*PROGRAMS, shrinks):
        if program.__name__ in ("fails", "forked"):
            continue
        try:
            _check(program)
        except (AssertionError, rekindle.RekindleError):
            found.append(program.__name__)
    return found


def _check(program: Callable[..., object]) -> None:
    compiled = rekindle.script(program)
    others = (torch.tensor([[1.0, 2.0], [0.5, 3.0], [-1.0, 4.0]]), [torch.ones(1)])
    with failing_guards() as faults, Profiled(guarding=(), patience=1 << 30, fusion=(("STATIC", 1),)).calls():
        compiled(*inputs())
        for given in (inputs(), others):
            expected = outcome(program, given)
            faults.begin()
            assert_same_outcome(outcome(compiled, given), expected, "no guard fails")
            for guard in range(faults.queries):
                faults.begin(guard)
                assert_same_outcome(outcome(compiled, given), expected, f"guard {guard} fails")


def _repeats_the_turn(patch: Patch) -> None:
    number = bailout_graphs._BailoutGraphBuilder._number

    def same(self: Any, kind: str, left: Value, right: Value, loop: Node) -> Value:
        return left if kind == "aten::add" else number(self, kind, left, right, loop)

    patch.setattr(bailout_graphs._BailoutGraphBuilder, "_number", same)


def _counts_from_zero(patch: Patch) -> None:
    patch.setattr(bailout_graphs._BailoutGraphBuilder, "_count_on", lambda *_: None)


def _does_the_node_before_again(patch: Patch) -> None:
    copy_following = bailout_graphs._BailoutGraphBuilder.copy_following

    def again(self: bailout_graphs._BailoutGraphBuilder, node: Node) -> None:
        before = node.prev
        if node is self.bailout and before.kind in ("prim::Print", "aten::append", "aten::add_"):
            self.graph.append_node(self.graph.create_clone(before, self.of))
        copy_following(self, node)

    patch.setattr(bailout_graphs._BailoutGraphBuilder, "copy_following", again)


def _lets_all_pass(patch: Patch) -> None:
    patch.setattr(bailouts, "guard_test", lambda type: lambda value: True)


BROKEN = {
    "the turn that a bailout leaves is done again": _repeats_the_turn,
    "the remaining turns count from zero": _counts_from_zero,
    "what ran right before is done again": _does_the_node_before_again,
    "guards let everything pass": _lets_all_pass,
}


@pytest.mark.parametrize("how", BROKEN)
def test_answers_tell(how: str, monkeypatch: Patch) -> None:
    assert disagreements() == []
    with monkeypatch.context() as patch:
        BROKEN[how](patch)
        assert disagreements(), "no result differs"
