"""What may share memory: never less than what does."""

from __future__ import annotations

import pytest

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.analysis.alias_groups import AliasGroups
from rekindle.ir.graph import Graph
from rekindle.ir.parser import parse_graph


def _graph(text: str) -> Graph:
    return parse_graph(text.lstrip())


def _aliases(graph: Graph, first: str, second: str) -> bool:
    groups = AliasGroups(graph)
    values = [graph.find_value(name) for name in (first, second)]
    assert None not in values
    found = [groups.group(value) for value in values if value is not None]
    return found[0] is not None and found[0] is found[1]


TENSORS = """
graph(%x : Tensor, %y : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %fresh : Tensor = aten::neg(%x)
  %other : Tensor = aten::neg(%x)
  %view : Tensor = aten::select(%fresh, %zero, %zero)
  %written : Tensor = aten::add_(%other, %y, %n)
  %list : Tensor[] = prim::ListConstruct(%fresh)
  %got : Tensor = aten::__getitem__(%list, %zero)
  %numbers : int[] = prim::ListConstruct(%n)
  %more : int[] = aten::add(%numbers, %numbers)
  %copy : Tensor[] = aten::list(%list)
  %third : Tensor = aten::neg(%x)
  %typed : Tensor = aten::type_as(%third, %third)
  return (%got)
"""


@pytest.mark.parametrize(
    ("first", "second", "may_alias"),
    [
        ("x", "y", True),  # the caller may pass one tensor twice
        ("x", "fresh", False),
        ("fresh", "other", False),
        ("fresh", "view", True),
        ("other", "written", True),
        ("list", "fresh", True),
        ("got", "fresh", True),
        ("got", "other", False),
        ("list", "numbers", False),
        ("copy", "fresh", True),  # a new list holds the old tensors
        ("typed", "third", True),  # a composite may return its input, which its schema does not tell
        ("n", "zero", False),
    ],
)
def test_tensors_and_lists(first: str, second: str, may_alias: bool) -> None:
    assert _aliases(_graph(TENSORS), first, second) == may_alias


CONTROL_FLOW = """
graph(%c : bool, %n : int):
  %true : bool = prim::Constant[value=1]()
  %a : int[] = prim::ListConstruct()
  %b : int[] = prim::ListConstruct()
  %d : int[] = prim::ListConstruct()
  %e : int[] = prim::If(%c)
    block0():
      -> (%a)
    block1():
      -> (%b)
  %f : int[] = prim::Loop(%n, %true, %d)
    block0(%i : int, %g : int[]):
      %h : int[] = prim::ListConstruct(%i)
      -> (%true, %h)
  return (%f)
"""


@pytest.mark.parametrize(
    ("first", "second", "may_alias"),
    [("e", "a", True), ("e", "b", True), ("e", "d", False), ("f", "d", True), ("f", "h", True), ("g", "h", True)],
)
def test_control_flow(first: str, second: str, may_alias: bool) -> None:
    assert _aliases(_graph(CONTROL_FLOW), first, second) == may_alias


def test_an_unknown_operator_may_do_anything() -> None:
    graph = _graph(
        """
graph(%x : Tensor):
  %fresh : Tensor = aten::neg(%x)
  %result : Tensor = mystery::op(%fresh)
  return (%result)
"""
    )
    groups = AliasGroups(graph)
    (node,) = graph.find_nodes("mystery::op")
    fresh = graph.find_value("fresh")
    assert fresh is not None
    assert _aliases(graph, "fresh", "x")
    assert _aliases(graph, "result", "x")
    assert groups.written_groups(node) == [groups.group(fresh)]
    assert all(groups.outlives_call(group) for group in groups.written_groups(node))


def test_what_a_future_holds() -> None:
    graph = _graph(
        """
graph(%f : Future(Tensor), %x : Tensor):
  %result : Tensor = aten::wait(%f)
  %fresh : Tensor = aten::neg(%x)
  return (%result)
"""
    )
    assert _aliases(graph, "result", "f")
    assert not _aliases(graph, "fresh", "f")


def test_writes() -> None:
    graph = _graph(TENSORS)
    groups = AliasGroups(graph)
    other = graph.find_value("other")
    assert other is not None
    assert groups.all_written_groups() == {groups.group(other)}
    assert not groups.outlives_call(groups.group(other))
    assert groups.outlives_call(groups.group(graph.inputs[0]))


def test_a_constant_outlives_the_call() -> None:
    graph = _graph(
        """
graph():
  %x : Tensor = prim::Constant[value={1}]()
  %y : Tensor = prim::Constant[value={2}]()
  return (%x)
"""
    )
    groups = AliasGroups(graph)
    x, y = (graph.find_value(name) for name in "xy")
    assert x is not None
    assert y is not None
    assert groups.outlives_call(groups.group(x))
    assert groups.group(x) is not groups.group(y)
    assert not groups.is_outside(x)
