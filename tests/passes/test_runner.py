"""Lists of passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.errors import VerificationError
from rekindle.errors.debug_settings import Settings
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.passes import PassManager, pass_manager, run_passes
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import CLEANUP_AFTER_EMISSION


@dataclass(slots=True)
class _Noted:
    """Does nothing but record that it ran."""

    ran: list[str] = field(default_factory=list)
    changes: bool = False
    name: ClassVar[str] = "noted"

    def run(self, graph: Graph) -> bool:
        self.ran.append(self.name)
        return self.changes


@dataclass(slots=True)
class _Break:
    """Uses a value before it is defined."""

    name: ClassVar[str] = "break"

    def run(self, graph: Graph) -> bool:
        first = next(graph.nodes)
        first.move_before(graph.return_node)
        return True


_TEXT = """graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  %z : Tensor = aten::neg(%y)
  return (%z)
"""


def test_all_run_in_order_and_tell_whether_anything_changed() -> None:
    graph = parse_graph(_TEXT)
    ran: list[str] = []
    assert not run_passes(graph, [_Noted(ran), _Noted(ran)], verify)
    assert ran == ["noted", "noted"]
    assert run_passes(graph, [_Noted(ran, True), _Noted(ran)], verify)
    assert not run_passes(graph, [])


def test_the_pass_that_broke_the_graph_is_named() -> None:
    graph = parse_graph(_TEXT)
    ran: list[str] = []
    with pytest.raises(VerificationError) as caught:
        run_passes(graph, [_Noted(ran), _Break(), _Noted(ran)], verify)
    assert str(caught.value).startswith("after the pass 'break': aten::neg")
    assert ran == ["noted"]


def test_graphs_are_verified_where_they_have_changed_and_at_the_end() -> None:
    seen: list[Graph] = []
    graph = parse_graph(_TEXT)
    still, changing = _Noted(), _Noted(changes=True)
    run_passes(graph, [still, changing, still, still], seen.append)
    assert len(seen) == 2
    run_passes(graph, [still, changing], seen.append)
    assert len(seen) == 3


def test_a_pass_that_hides_its_change_is_found_at_the_end() -> None:
    class Hides(_Break):
        name: ClassVar[str] = "hides"

        def run(self, graph: Graph) -> bool:
            super().run(graph)
            return False

    with pytest.raises(VerificationError) as caught:
        run_passes(parse_graph(_TEXT), [_Noted(), Hides()], verify)
    assert str(caught.value).startswith("after the pass 'hides': aten::neg")


def test_every_list_of_passes_is_verified_in_tests() -> None:
    """conftest.py sets it in the environment: tests that run passes need not."""
    with pytest.raises(VerificationError, match="after the pass 'break'"):
        run_passes(parse_graph(_TEXT), [_Break()])
    with pytest.raises(VerificationError, match="after the pass 'break'"):
        PassManager().run(parse_graph(_TEXT), [_Break()])
    with pytest.raises(VerificationError, match="after the pass 'break'"):
        optimize(parse_graph(_TEXT), [_Break()])


def test_nothing_is_verified_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_manager, "settings", Settings)
    assert optimize(parse_graph(_TEXT), [_Break()])
    assert run_passes(parse_graph(_TEXT), [_Break()])


def test_cleanup_of_a_graph_that_is_clean() -> None:
    graph = parse_graph(_TEXT)
    assert not run_passes(graph, CLEANUP_AFTER_EMISSION, verify)
    assert str(graph) == _TEXT
