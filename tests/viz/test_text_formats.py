"""Graphs for Graphviz and Mermaid."""

from __future__ import annotations

from torch import nn

import rekindle

SOURCE = """
def f(x, flag: bool):
    if flag:
        x = x.tanh() * 2
    return x
"""


DOT = """
digraph {
  compound=true
  node [shape=box, fontname="sans-serif", fontsize=10]
  edge [fontname="sans-serif", fontsize=8]
  n1 [label="inputs", shape=plaintext, tooltip="%x.1 : Tensor, %flag.1 : bool"]
  subgraph cluster2 {
    label="If"
    subgraph cluster3 {
      label="then"
      n4 [label="tanh", shape=box, tooltip="%4 : Tensor = aten::tanh(%x.1)"]
      n5 [label="mul", shape=box, tooltip="%x.5 : Tensor = aten::mul(%4, %5)"]
      n6 [label="carried out", shape=plaintext, tooltip="%x.5"]
    }
    subgraph cluster7 {
      label="else"
      n8 [label="carried out", shape=plaintext, tooltip="%x.1"]
    }
  }
  n9 [label="outputs", shape=plaintext, tooltip="%x"]
  n1 -> n4 [label="%flag.1", tooltip="bool", lhead=cluster2]
  n1 -> n4 [label="%x.1", tooltip="Tensor"]
  n4 -> n5 [label="%4", tooltip="Tensor"]
  n5 -> n6 [label="%x.5", tooltip="Tensor"]
  n1 -> n8 [label="%x.1", tooltip="Tensor"]
  n4 -> n9 [label="%x", tooltip="Tensor", ltail=cluster2]
}
"""

MERMAID = """
flowchart TD
  n1(["inputs"])
  subgraph n2 ["If"]
    subgraph n3 ["then"]
      n4["tanh"]
      n5["mul"]
      n6(["carried out"])
    end
    subgraph n7 ["else"]
      n8(["carried out"])
    end
  end
  n9(["outputs"])
  n1 -->|"%flag.1"| n2
  n1 -->|"%x.1"| n4
  n4 -->|"%4"| n5
  n5 -->|"%x.5"| n6
  n1 -->|"%x.1"| n8
  n2 -->|"%x"| n9
"""


def graph() -> rekindle.Graph:
    return rekindle.CompilationUnit(SOURCE.lstrip()).f.graph


def test_dot() -> None:
    assert rekindle.to_dot(graph()) == DOT.lstrip()


def test_mermaid() -> None:
    assert rekindle.to_mermaid(graph()) == MERMAID.lstrip()


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"a<b>": nn.ReLU()})

    def forward(self, x):
        return self.parts["a<b>"](x)


def test_what_would_end_a_label() -> None:
    graph = rekindle.script(Named()).inlined_graph
    assert '    label="self.parts[\\"a<b>\\"]"\n' in rekindle.to_dot(graph)
    assert 'subgraph n11 ["self.parts[#quot;a#lt;b#gt;#quot;]"]\n' in rekindle.to_mermaid(graph)
