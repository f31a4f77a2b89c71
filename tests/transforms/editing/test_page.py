"""The page's table names everything that torch's classes have, and only what is here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from rekindle.ir.building import Builder
from rekindle.ir.graph import Block, Graph, Node, Use, Value

PAGE = Path(__file__).parents[3] / "docs" / "editing.md"
ROW = re.compile(r"^\| (`(?:Graph|Node|Value|Block|Use)\..*?) \| (.*) \|$", re.MULTILINE)
ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))
OURS = {"Graph": Graph, "Node": Node, "Value": Value, "Block": Block, "Use": Use, "Builder": Builder}


@pytest.mark.parametrize("name", ["Graph", "Node", "Value", "Block", "Use"])
def test_every_name_of_torch_is_in_the_table(name: str) -> None:
    theirs = {item for item in dir(getattr(torch._C, name)) if not item.startswith("_")}
    told = [item for row, _ in ROWS for item in re.findall(rf"`{name}\.(\w+)`", row)]
    assert len(told) == len(set(told))
    assert set(told) == theirs


def test_what_the_table_names_is_here() -> None:
    named = [item for _, row in ROWS for item in re.findall(r"`(Graph|Node|Value|Block|Use|Builder)\.(\w+)`", row)]
    graph = Graph()
    node = graph.append_node(graph.create("t::node"))
    examples = {"Graph": graph, "Node": node, "Value": node.output, "Block": graph.block, "Use": Use(node, 0)}
    assert len(named) >= 100
    for owner, name in named:
        assert hasattr(OURS[owner], name) or hasattr(examples[owner], name), f"{owner}.{name}"
