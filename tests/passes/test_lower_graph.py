"""Methods as functions of what they read of their modules."""

from __future__ import annotations

import operator
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.ir.graph import Graph
from rekindle.ir.text.printer import print_graph
from rekindle.passes import Inlining, LowerGraph, PassManager
from rekindle.passes.canonicalization.lower_graph import lower_graph
from rekindle.rewriting.changes import ChangeCounter
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from tests.support.golden import GoldenTexts


class Scaled(nn.Module):
    """Reads attributes of several types, those of a part by two names."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.again = self.fc
        self.factors = [2.0, 0.5]
        self.register_buffer("offset", torch.tensor([1.0, 2.0, 3.0]))

    def forward(self, x: Tensor, n: int) -> Tensor:
        for i in range(n):
            x = self.fc(x) * self.factors[i % 2] + self.offset
        return self.again(x)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.fc(x) * self.calls


class Ignoring(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    @torch.jit.ignore
    def change(self, x: Tensor) -> Tensor:
        self.fc.weight.data.zero_()
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.change(x) + self.fc(x)


class Plain(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


def inlined(module: nn.Module) -> tuple[Any, Graph]:
    compiled: Any = rekindle.script(module)
    graph = compiled.script_type.methods["forward"].graph.copy()
    PassManager().run(graph, [Inlining()])
    return compiled, graph


def run(graph: Graph, *inputs: object) -> Any:
    return InterpreterState(Code(graph, "forward")).run(inputs)


def text_of(graph: Graph) -> str:
    """What other tests compiled in this process numbers the classes of modules."""
    return re.sub(r"___torch_mangle_\d+\.", "", print_graph(graph, ranges=False))


def test_graphs(golden: GoldenTexts) -> None:
    texts = []
    for module in (Scaled(), Plain(), Counting()):
        _, graph = inlined(module)
        before = text_of(graph)
        lowering = LowerGraph()
        changed = PassManager().run(graph, [lowering])
        after = text_of(graph)
        assert changed == (before != after)
        told = f"# becomes, of {', '.join(lowering.paths) or 'nothing'}\n\n{after}" if changed else "# stays as it is\n"
        texts.append(f"# {type(module).__name__}\n\n{before}\n{told}")
        assert not PassManager().run(graph, [LowerGraph()])
        assert text_of(graph) == after
    golden("passes/lower_graph", "\n".join(texts))


def test_answers() -> None:
    compiled, graph = inlined(Scaled())
    paths = lower_graph(graph)
    assert paths == ["fc.weight", "fc.bias", "factors", "offset", "again.weight", "again.bias"]
    x = torch.randn(2, 3)
    for n in range(3):
        attributes = [operator.attrgetter(path)(compiled) for path in paths]
        torch.testing.assert_close(run(graph, x, n, *attributes), compiled(x, n))
    torch.testing.assert_close(run(graph, x, 0, *attributes[:4], torch.zeros(3, 3), torch.ones(3)), torch.ones(2, 3))


@pytest.mark.parametrize("module", [Counting(), Ignoring()])
def test_modules_that_stay(module: nn.Module) -> None:
    """Their attributes are not the same all the time."""
    _, graph = inlined(module)
    before = str(graph)
    assert lower_graph(graph) is None
    assert str(graph) == before


def test_every_single_change_leaves_a_valid_graph() -> None:
    for limit in range(8):
        _, graph = inlined(Scaled())
        before = str(graph)
        lowering = LowerGraph()
        changed = PassManager(changes=ChangeCounter({"lower_graph": limit})).run(graph, [lowering])
        assert changed == (str(graph) != before) == (limit > 0)
        assert len(lowering.paths) == min(limit, 6)
        assert len(graph.inputs) == (8 if limit == 7 else 3 + len(lowering.paths))
