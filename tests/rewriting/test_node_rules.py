"""Node rules: what a rewrite site changes, what it refuses, and that every change is announced."""

from __future__ import annotations

import pytest

import rekindle.ops  # noqa: F401  (the operators)
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import BOOL
from rekindle.ir.verifier import verify
from rekindle.rewriting.changes import ChangeCounter
from rekindle.rewriting.node_rules import NodeRule, RewriteSite, apply_node_rules

NEGATIONS = """
graph(%a : bool):
  %b : bool = aten::__not__(%a)
  %c : bool = aten::__not__(%b)
  return (%c)
"""

SUMS = """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %z : Tensor = aten::add(%x, %y, %one)
  %w : Tensor = aten::add(%z, %y, %one)
  return (%w)
"""


def rewritten(text: str, kind: str, rule: NodeRule, limit: int | None = None) -> tuple[bool, list[str]]:
    """Whether ``rule`` changed the graph, and its lines without constants, the heads and the end."""
    graph = parse_graph(text)
    changes = ChangeCounter({} if limit is None else {"test": limit})
    with changes.attributed_to("test"):
        changed = apply_node_rules(graph, {kind: (rule,)}, "try")
    verify(graph)
    return changed, _body(graph)


def _body(graph: Graph) -> list[str]:
    lines = [line.strip() for line in str(graph).splitlines()[1:]]
    return [line for line in lines if "prim::Constant" not in line and not line.startswith("%y : Tensor):")]


def test_a_bypassed_node_is_destroyed() -> None:
    changed, lines = rewritten(NEGATIONS, "aten::__not__", lambda at: at.bypass(at.node.input))
    assert changed
    assert lines == ["return (%a)"]


def test_uses_are_replaced_and_the_node_stays() -> None:
    changed, lines = rewritten(NEGATIONS, "aten::__not__", lambda at: at.replace_uses(at.node.input))
    assert changed
    assert lines == ["%b : bool = aten::__not__(%a)", "%c : bool = aten::__not__(%a)", "return (%a)"]


def test_a_value_of_another_type_replaces_nothing() -> None:
    def rule(at: RewriteSite) -> bool:
        return at.replace_uses(at.constant(3))

    changed, lines = rewritten(NEGATIONS, "aten::__not__", rule)
    assert not changed
    assert lines == ["%b : bool = aten::__not__(%a)", "%c : bool = aten::__not__(%b)", "return (%c)"]


def test_a_node_without_uses_is_not_folded() -> None:
    text = NEGATIONS.replace("return (%c)", "return (%a)")
    changed, lines = rewritten(text, "aten::__not__", lambda at: at.fold(True))
    assert changed  # %b, which %c uses
    assert lines[-1] == "return (%a)"
    assert sum("aten::__not__" in line for line in lines) == 2


def test_a_replaced_node_hands_on_name_and_place() -> None:
    def rule(at: RewriteSite) -> bool:
        left, right, _ = at.node.inputs
        return at.replace_node("aten::mul", [left, right])

    changed, lines = rewritten(SUMS, "aten::add", rule)
    assert changed
    assert lines == ["%z : Tensor = aten::mul(%x, %y)", "%w : Tensor = aten::mul(%z, %y)", "return (%w)"]


def test_several_nodes_are_one_change() -> None:
    def rule(at: RewriteSite) -> bool:
        left, right, _ = at.node.inputs
        return at.begin() and at.finish(at.insert_tensor("aten::neg", at.insert_tensor("aten::mul", left, right)))

    changed, lines = rewritten(SUMS, "aten::add", rule, limit=1)
    assert changed
    assert [line.partition(" = ")[2].partition("(")[0] for line in lines[:-1]] == [
        "aten::mul",
        "aten::neg",
        "aten::add",
    ]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_changes_are_counted_and_limited(limit: int) -> None:
    def rule(at: RewriteSite) -> bool:
        return at.replace_node("aten::eq", [at.node.input, at.constant(False, BOOL)])

    changed, lines = rewritten(NEGATIONS, "aten::__not__", rule, limit)
    assert changed == (limit > 0)
    assert sum("aten::eq" in line for line in lines) == limit
