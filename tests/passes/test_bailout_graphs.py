"""The rest of a program, from each bailout on."""

from __future__ import annotations

import pytest

from rekindle.errors import GraphError
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.passes import InsertBailOuts
from rekindle.passes.speculation.bailout_graphs import bailout_graph
from rekindle.passes.speculation.insert_bailouts import BAILOUT, TEMPLATE, template_of
from tests.passes.cases.insert_bailouts import CASES
from tests.support.golden import GoldenTexts


def test_every_rest(golden: GoldenTexts) -> None:
    texts = []
    for title, text in CASES.items():
        graph = parse_graph(text.lstrip())
        InsertBailOuts().run(graph)
        for bailout in graph.find_nodes(BAILOUT):
            rest = bailout_graph(template_of(bailout), int(str(bailout["index"])))
            verify(rest)
            assert len(rest.inputs) == len(bailout.inputs) - 1
            assert len(rest.outputs) == len(graph.outputs)
            assert not rest.find_nodes(BAILOUT)
            texts.append(f"# {title}: from bailout {bailout['index']} on\n\n{rest}")
    golden("passes/bailout_graphs", "\n".join(texts))


def test_there_is_no_such_bailout() -> None:
    graph = parse_graph("graph(%x : Tensor):\n  %1 : Float(2) = prim::Guard(%x)\n  return (%1)\n")
    InsertBailOuts().run(graph)
    (template,) = graph.find_nodes(TEMPLATE)
    with pytest.raises(GraphError, match=r"^the template has no bailout 1$"):
        bailout_graph(template.get_graph("Subgraph"), 1)
