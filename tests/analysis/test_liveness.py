"""Last uses of values: in straight-line code, in branches, in loops and after them."""

from __future__ import annotations

import pytest

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.analysis.liveness import Liveness, liveness
from rekindle.ir.graph import Graph, Value
from rekindle.ir.text.parser import parse_graph
from tests.support.graphs import random_graph


def names(values: object) -> list[str]:
    assert isinstance(values, (list, set))
    return sorted(value.name for value in values if isinstance(value, Value))


def deaths(graph: Graph, found: Liveness) -> dict[str, list[str]]:
    """For each node that something dies at, by its kind and first output: what."""
    lines = {}
    for node in [*graph.all_nodes(), graph.return_node]:
        label = f"{node.kind} {node.outputs[0].name}" if node.outputs else node.kind
        if node in found.dies_at:
            lines[label] = names(found.dies_at[node])
        for index, block in enumerate(node.blocks):
            if block in found.dies_at_entry:
                lines[f"{label} entry {index}"] = names(found.dies_at_entry[block])
            if block.return_node in found.dies_at:
                lines[f"{label} return {index}"] = names(found.dies_at[block.return_node])
        if node in found.dies_after:
            lines[f"{label} after"] = names(found.dies_after[node])
    return lines


def test_a_straight_line() -> None:
    graph = parse_graph("""
graph(%x : Tensor, %y : Tensor, %unused : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::mul(%a, %a)
  %dead : Tensor = aten::neg(%y)
  return (%b)
""")
    found = liveness(graph)
    assert deaths(graph, found) == {
        "aten::mul a": ["x"],
        "aten::mul b": ["a"],
        "aten::neg dead": ["y"],
        "prim::Return": ["b"],
    }
    assert names(found.dies_at_entry[graph.block]) == ["unused"]


def test_what_one_branch_uses_dies_at_the_start_of_the_other() -> None:
    graph = parse_graph("""
graph(%c : bool, %x : Tensor, %z : Tensor):
  %y : Tensor = prim::If(%c)
    block0():
      %n : Tensor = aten::neg(%x)
      -> (%n)
    block1():
      -> (%z)
  return (%y)
""")
    assert deaths(graph, liveness(graph)) == {
        "prim::If y": ["c", "x", "z"],
        "prim::If y entry 0": ["z"],
        "prim::If y return 0": ["n"],
        "prim::If y entry 1": ["x"],
        "prim::If y return 1": ["z"],
        "aten::neg n": ["x"],
        "prim::Return": ["y"],
    }


def test_what_a_loop_reads_from_outside_dies_behind_it() -> None:
    graph = parse_graph("""
graph(%n : int, %x : Tensor, %w : Tensor):
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::mul(%a, %w)
      -> (%t, %b)
  return (%y)
""")
    assert deaths(graph, liveness(graph)) == {
        "prim::Loop y": ["n", "t", "w", "x"],
        "prim::Loop y entry 0": ["i"],
        "prim::Loop y return 0": ["b"],
        "prim::Loop y after": ["t", "w"],
        "aten::mul b": ["a"],
        "prim::Return": ["y"],
    }


def test_an_output_that_nobody_needs_keeps_nothing_alive() -> None:
    graph = parse_graph("""
graph(%c : bool, %x : Tensor):
  %y : Tensor, %dead : Tensor = prim::If(%c)
    block0():
      %n : Tensor = aten::neg(%x)
      -> (%n, %x)
    block1():
      %m : Tensor = aten::neg(%x)
      %k : Tensor = aten::neg(%m)
      -> (%k, %m)
  return (%y)
""")
    found = liveness(graph)
    dead = graph.find_value("dead")
    assert dead is not None
    assert not found.is_needed(dead)
    died = deaths(graph, found)
    assert died["aten::neg n"] == ["x"]
    assert died["aten::neg k"] == ["m"]


LOOP = """
graph(%n : int, %x : Tensor, %w : Tensor, %v : Tensor):
  %t : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = aten::mul(%a, %w)
      %c : Tensor = aten::mul(%b, %b)
      -> (%t, %c)
  %z : Tensor = aten::mul(%y, %v)
  return (%z)
"""


@pytest.mark.parametrize(
    ("at", "alive"),
    [
        ("t", ["n", "t", "v", "w", "x"]),
        ("b", ["b", "t", "v", "w"]),
        ("c", ["c", "t", "v", "w"]),
        ("y", ["v", "y"]),
        ("z", ["z"]),
    ],
)
def test_what_is_live_after_a_node(at: str, alive: list[str]) -> None:
    graph = parse_graph(LOOP)
    value = graph.find_value(at)
    assert value is not None
    assert names(liveness(graph).live_after(value.node)) == alive


@pytest.mark.parametrize("seed", range(60))
def test_a_sweep_tells_of_all_nodes_what_is_live_after_them(seed: int) -> None:
    graph = random_graph(seed, size=40)
    found = liveness(graph)
    swept = {node: names(set(live)) for node, live in found.sweep(graph)}
    assert swept == {node: names(found.live_after(node)) for node in graph.all_nodes()}
