"""The harness finds what a wrong pass does, whatever it is that goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import torch

import rekindle
from rekindle.ir.graph import Graph, Node
from rekindle.runtime.pipelines import OPTIMIZATION
from rekindle.runtime.strategies import simple_strategy
from tests.differential.checks import check, expect, sequence
from tests.differential.subjects import Subject
from tests.differential.ways import WAYS, Way
from tests.oracle.corpus import ramp

SIMPLE = next(way for way in WAYS if way.name == "simple")


def of_two(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    z = (x - y).relu()
    y.mul_(2)
    x.add_(1)
    return z, y.view(-1)


@dataclass(slots=True, frozen=True)
class _Wrong:
    """Changes all nodes of one kind."""

    kind: str
    change: Callable[[Graph, Node], None]
    name: str = "wrong"

    def run(self, graph: Graph) -> bool:
        for node in graph.find_nodes(self.kind):
            self.change(graph, node)
        return True


def _swap(graph: Graph, node: Node) -> None:
    first, second = node.inputs[0], node.inputs[1]
    node.replace_input(0, second)
    node.replace_input(1, first)


def _without_result(graph: Graph, node: Node) -> None:
    node.output.replace_all_uses_with(node.inputs[0])
    node.destroy()


def _before(kind: str) -> Callable[[Graph, Node], None]:
    """The node's first input goes through an operator of this kind."""

    def change(graph: Graph, node: Node) -> None:
        more = graph.create(kind, [node.inputs[0]])
        more.insert_before(node)
        node.replace_input(0, more.output)

    return change


def _unbound(graph: Graph, node: Node) -> None:
    node.move_before(next(graph.nodes))


def _subject() -> Subject:
    return Subject("of_two", lambda: rekindle.script(of_two), (((ramp(2, 3, start=3.0), ramp(2, 3, start=1.0)), {}),))


def _way(wrong: _Wrong) -> Way:
    @contextmanager
    def entered() -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch, SIMPLE.entered():
            patch.setattr(simple_strategy, "OPTIMIZATION", (*OPTIMIZATION, wrong))
            yield

    return Way("wrong", entered)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (_Wrong("aten::sub", _swap), "call 1 of of_two (sample), wrong,[0]: Tensor-likes are not close!"),
        (
            _Wrong("aten::add_", _without_result),
            "what call 1 of of_two (sample), wrong, wrote to its arguments[0][0]: ",
        ),
        (_Wrong("aten::view", _before("aten::abs")), "call 1 of of_two (sample), wrong, shares memory so: ["),
        (_Wrong("aten::mul_", _before("aten::detach")), "gradients of call 18 of of_two (doubled_1_requires_grad), "),
        (
            _Wrong("aten::relu", _before("aten::detach")),
            "call 18 of of_two (doubled_1_requires_grad), wrong,, tensor 0 ",
        ),
        (_Wrong("aten::relu", _unbound), "call 1 of of_two (sample), wrong, raises VerificationError("),
    ],
    ids=["value", "write", "sharing", "gradient", "history", "structure"],
)
def test_a_wrong_pass_is_found(wrong: _Wrong, message: str) -> None:
    subject = _subject()
    expected = expect(subject, sequence(subject, None, subject.name))
    assert check(subject, _way(_Wrong("aten::neg", _swap)), expected) == len(expected.kinds)
    with pytest.raises(AssertionError) as caught:
        check(subject, _way(wrong), expected)
    assert str(caught.value).startswith(message)
