"""Graphs as boxes within boxes."""

from __future__ import annotations

import torch
from torch import nn

import rekindle
from rekindle.codegen.fusion import FuseGraph
from rekindle.viz.boxes import MAX_BOXES, Box, picture_of

LOOP = """
def f(x, n: int):
    for i in range(n):
        if i > 2:
            x = x + i
    return x.relu()
"""


def outline(box: Box, depth: int = 0) -> list[str]:
    """The titles of the boxes within, indented."""
    return [line for child in box.children for line in ("  " * depth + child.title, *outline(child, depth + 1))]


def compiled(source: str) -> rekindle.Graph:
    return rekindle.CompilationUnit(source).f.graph


def test_blocks_are_boxes_around_their_nodes() -> None:
    picture = picture_of(
        compiled(
            "def f(x, n: int):\n    for i in range(n):\n        if i > 2:\n            x = x + i\n    return x.relu()\n"
        )
    )
    assert outline(picture.root) == [
        "inputs",
        "Loop",
        "  body",
        "    carried in",
        "    gt",
        "    If",
        "      then",
        "        add",
        "        carried out",
        "      else",
        "        carried out",
        "    carried out",
        "relu",
        "outputs",
    ]
    boxes = {box.title: box for box in picture.root.walk()}
    assert boxes["gt"].text == "%9 : bool = aten::gt(%i.1, %8)"
    assert boxes["relu"].place == (0, 4)
    assert (boxes["Loop"].category, boxes["relu"].category, boxes["inputs"].category) == ("control", "operator", "edge")
    assert {(arrow.source, arrow.target) for arrow in picture.arrows} >= {(boxes["Loop"].id, boxes["relu"].id)}


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x):
        return torch.tanh(self.fc(x))


class Net(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.first = Layer()
        self.layers = nn.ModuleList([Layer() for _ in range(layers)])

    def forward(self, x):
        x = self.first(x).relu()
        for layer in self.layers:
            x = layer(x)
        return x


def test_inlined_calls_are_boxes_and_equal_ones_are_folded() -> None:
    picture = picture_of(rekindle.script(Net(3)).inlined_graph)
    layer = ["self.fc", "  GetAttr weight", "  GetAttr bias", "  linear", "tanh"]
    assert outline(picture.root) == [
        "inputs",
        "self.first",
        *(f"  {line}" for line in layer),
        "relu",
        "layer × 3",
        *(f"  {line}" for line in 3 * ["layer", *(f"  {line}" for line in layer)]),
        "outputs",
    ]


def test_scopes_of_traces_are_boxes() -> None:
    picture = picture_of(rekindle.trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.ones(1, 2)).inlined_graph)
    assert [child.category for child in picture.root.children] == ["edge", "call", "call", "edge"]


def test_long_programs_are_cut_into_pieces() -> None:
    lines = [f"    x = x + {number}.5" for number in range(250)]
    picture = picture_of(compiled("\n".join(["def f(x):", *lines, "    return x", ""])))
    assert all(len(box.children) <= MAX_BOXES for box in picture.root.walk())
    assert [box.title for box in picture.root.children] == [
        "83 nodes, lines 2–84",
        "84 nodes, lines 85–168",
        "83 nodes, lines 169–251",
    ]


def test_subgraphs_of_groups_are_boxes() -> None:
    graph = compiled("def f(x):\n    return x.tanh() * x\n")
    FuseGraph().run(graph)
    picture = picture_of(graph, kernels_of=lambda node: [7] if node.kind == "prim::FusionGroup" else [])
    assert outline(picture.root) == ["inputs", "FusionGroup", "  inputs", "  tanh", "  mul", "  outputs", "outputs"]
    assert [box.kernels for box in picture.root.children] == [(), (7,), ()]


MEMORY = """
def f(x):
    y = x.neg()
    view = y.t()
    other = x.exp()
    view.add_(1)
    return y, other
"""


def test_memory_that_may_be_shared_and_written_to() -> None:
    picture = picture_of(compiled(MEMORY.lstrip()), aliases=True)
    boxes = {box.title: box for box in picture.root.walk()}
    assert boxes["neg"].memory == boxes["t"].memory == boxes["add_"].memory == boxes["add_"].writes != ()
    assert boxes["exp"].memory == boxes["exp"].writes == boxes["neg"].writes == ()
    assert all(box.memory == () for box in picture_of(compiled(MEMORY.lstrip())).root.walk())
