"""The steps of the conversion to SSA, each on its own."""

from __future__ import annotations

import pytest

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.errors import InternalError
from rekindle.frontend.ssa.conversion import (
    add_control_flow_loads_and_stores,
    add_loop_continuations,
    convert_to_ssa,
    erase_loads_and_stores,
    inline_loop_conditions,
)
from rekindle.frontend.ssa.exits import merge_consecutive_ifs, transform_exits, unwrap_with_bodies, wrap_with_bodies
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import INT
from rekindle.ir.verifier import verify
from tests.support.golden import GoldenTexts

OVERVIEW_LOOP = """
graph(%i : int):
  %five : int = prim::Constant[value=5]()
  %three : int = prim::Constant[value=3]()
  %one : int = prim::Constant[value=1]()
  %max : int = prim::Constant[value=9223372036854775807]()
   = prim::Store[name="i"](%i)
   = prim::EmittedLoop(%max)
    block0(%trip : int):
      %1 : int = prim::Load[name="i"]()
      %2 : bool = aten::eq(%1, %three)
       = prim::If(%2)
        block0():
          %3 : int = prim::Load[name="i"]()
          %4 : int = aten::add(%3, %one)
           = prim::Store[name="i"](%4)
           = prim::ContinueStmt()
          -> ()
        block1():
          -> ()
      %5 : int = prim::Load[name="i"]()
      %6 : int = aten::add(%5, %one)
       = prim::Store[name="i"](%6)
      -> ()
    block1():
      %7 : int = prim::Load[name="i"]()
      %8 : bool = aten::lt(%7, %five)
      -> (%8)
  %9 : int = prim::Load[name="i"]()
   = prim::ReturnStmt(%9)
  return ()
"""
"""``while i < 5``, with ``if i == 3: i += 1; continue`` and ``i += 2`` in it."""

BRANCHES = """
graph(%c : bool, %x : int):
  %none : NoneType = prim::Constant()
   = prim::Store[name="x"](%x)
   = prim::If(%c)
    block0():
      %1 : int = prim::Load[name="x"]()
      %2 : int = aten::neg(%1)
       = prim::Store[name="y"](%2)
       = prim::Store[name="b"](%none)
       = prim::Store[name="only_here"](%2)
       = prim::Store[name="x"](%2)
      -> ()
    block1():
      %3 : int = prim::Load[name="x"]()
       = prim::Store[name="y"](%none)
       = prim::Store[name="b"](%3)
      -> ()
  %4 : int? = prim::Load[name="y"]()
   = prim::ReturnStmt(%4)
  return ()
"""

EXITING_BRANCHES = """
graph(%c : bool, %x : int):
   = prim::Store[name="x"](%x)
   = prim::If(%c)
    block0():
      %1 : int = prim::Load[name="x"]()
       = prim::ReturnStmt(%1)
      -> ()
    block1():
      %2 : int = prim::Load[name="x"]()
      %3 : int = aten::neg(%2)
       = prim::Store[name="fresh"](%3)
       = prim::Store[name="x"](%3)
      -> ()
  %4 : int = prim::Load[name="fresh"]()
  %5 : int = prim::Load[name="x"]()
  %6 : int = aten::add(%4, %5)
   = prim::ReturnStmt(%6)
  return ()
"""

WITH_AN_EXIT = """
graph(%c : bool, %x : int, %m : __torch__.Manager):
   = prim::Store[name="x"](%x)
  %1 : int = prim::Enter(%m)
   = prim::If(%c)
    block0():
       = prim::ReturnStmt(%1)
      -> ()
    block1():
      -> ()
  %2 : int = prim::Load[name="x"]()
  %3 : int = aten::add(%2, %1)
   = prim::Store[name="y"](%3)
  %4 : NoneType = prim::Exit(%m)
  %5 : int = prim::Load[name="y"]()
   = prim::ReturnStmt(%5)
  return ()
"""

WITH_IN_A_LOOP = """
graph(%n : int, %m : __torch__.Manager):
  %true : bool = prim::Constant[value=1]()
  %three : int = prim::Constant[value=3]()
   = prim::Store[name="n"](%n)
   = prim::EmittedLoop(%n)
    block0(%i : int):
      %1 : int = prim::Enter(%m)
      %2 : bool = aten::gt(%i, %three)
       = prim::If(%2)
        block0():
           = prim::BreakStmt()
          -> ()
        block1():
          -> ()
       = prim::Print(%i)
      %3 : NoneType = prim::Exit(%m)
       = prim::Print(%n)
      -> ()
    block1():
      -> (%true)
   = prim::ReturnStmt(%n)
  return ()
"""


def _emitted(text: str) -> Graph:
    """The graph that ``text`` spells. Loops as the emitter makes them, not valid yet, are ``prim::EmittedLoop``."""
    graph = parse_graph(text.lstrip())
    for node in graph.find_nodes("prim::EmittedLoop"):
        node.kind = "prim::Loop"
    return graph


ALL_STEPS = (
    add_control_flow_loads_and_stores,
    add_loop_continuations,
    inline_loop_conditions,
    erase_loads_and_stores,
    transform_exits,
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("overview_loop", OVERVIEW_LOOP),
        ("branches", BRANCHES),
        ("exiting_branches", EXITING_BRANCHES),
        ("with_an_exit", WITH_AN_EXIT),
        ("with_in_a_loop", WITH_IN_A_LOOP),
    ],
)
def test_steps(name: str, text: str, golden: GoldenTexts) -> None:
    graph = _emitted(text)
    before = str(graph)
    parts = [f"# emitted\n\n{before}"]
    for step in ALL_STEPS:
        step(graph)
        if str(graph) != before:
            before = str(graph)
            parts.append(f"# {step.__name__}\n\n{before}")
    verify(graph)
    golden(f"ssa/{name}", "\n".join(parts))


@pytest.mark.parametrize("text", [OVERVIEW_LOOP, BRANCHES, EXITING_BRANCHES, WITH_AN_EXIT, WITH_IN_A_LOOP])
def test_conversion_is_all_the_steps(text: str) -> None:
    whole, stepwise = _emitted(text), _emitted(text)
    convert_to_ssa(whole)
    for step in ALL_STEPS:
        step(stepwise)
    assert str(whole) == str(stepwise)


def test_a_graph_that_always_raises_returns_nothing_that_is_ever_read() -> None:
    graph = parse_graph(
        """
graph(%s : str):
   = prim::RaiseException(%s, %s)
  return ()
""".lstrip()
    )
    convert_to_ssa(graph, INT)
    verify(graph)
    assert str(graph) == (
        "graph(%s : str):\n  %5 : int = prim::Uninitialized()\n   = prim::RaiseException(%s, %s)\n  return (%5)\n"
    )


def test_what_stands_behind_an_exit_is_deleted() -> None:
    graph = parse_graph(
        """
graph(%x : int, %c : bool):
  %1 : int = aten::neg(%x)
   = prim::ReturnStmt(%1)
  %2 : int = aten::neg(%1)
   = prim::If(%c)
    block0():
      %3 : int = aten::neg(%2)
       = prim::Print(%3)
      -> ()
    block1():
      -> ()
   = prim::ReturnStmt(%2)
  return ()
""".lstrip()
    )
    transform_exits(graph)
    assert str(graph) == "graph(%x : int,\n      %c : bool):\n  %1 : int = aten::neg(%x)\n  return (%1)\n"


def test_ifs_with_equal_flags_are_left_to_constant_propagation() -> None:
    text = """
graph(%c : bool, %x : int):
  %true : bool = prim::Constant[value=1]()
  %1 : bool = prim::If(%c)
    block0():
      -> (%true)
    block1():
      -> (%true)
  %2 : int = prim::If(%1)
    block0():
      -> (%x)
    block1():
      %3 : int = aten::neg(%x)
      -> (%3)
  return (%2)
""".lstrip()
    graph = parse_graph(text)
    before = str(graph)
    assert not merge_consecutive_ifs(graph.block)
    assert str(graph) == before


def test_the_second_if_may_read_what_the_first_gives() -> None:
    graph = parse_graph(
        """
graph(%c : bool, %x : int):
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %1 : bool, %y : int = prim::If(%c)
    block0():
      -> (%false, %x)
    block1():
      %2 : int = aten::neg(%x)
      -> (%true, %2)
  %z : int = prim::If(%1)
    block0():
      -> (%y)
    block1():
      %3 : int = prim::If(%c)
        block0():
          %4 : int = aten::neg(%y)
          -> (%4)
        block1():
          -> (%y)
      -> (%3)
  return (%z)
""".lstrip()
    )
    assert merge_consecutive_ifs(graph.block)
    verify(graph)
    assert str(graph) == (
        "graph(%c : bool,\n"
        "      %x : int):\n"
        "  %true : bool = prim::Constant[value=1]()\n"
        "  %false : bool = prim::Constant[value=0]()\n"
        "  %1 : bool, %y : int, %z : int = prim::If(%c)\n"
        "    block0():\n"
        "      %3 : int = prim::If(%c)\n"
        "        block0():\n"
        "          %4 : int = aten::neg(%x)\n"
        "          -> (%4)\n"
        "        block1():\n"
        "          -> (%x)\n"
        "      -> (%false, %x, %3)\n"
        "    block1():\n"
        "      %2 : int = aten::neg(%x)\n"
        "      -> (%true, %2, %2)\n"
        "  return (%z)\n"
    )


def test_with_bodies_wrapped_and_unwrapped() -> None:
    text = """
graph(%m : __torch__.Manager, %k : __torch__.Manager):
  %1 : int = prim::Enter(%m)
  %2 : int = prim::Enter(%k)
  %3 : int = aten::add(%1, %2)
  %4 : NoneType = prim::Exit(%k)
   = prim::Print(%3)
  %5 : NoneType = prim::Exit(%m)
  return (%3)
""".lstrip()
    graph = parse_graph(text)
    before = str(graph)
    wrap_with_bodies(graph.block)
    assert [node.kind for node in graph.all_nodes()] == [
        "prim::Enter",
        "prim::With",
        "prim::Enter",
        "prim::With",
        "aten::add",
        "prim::Exit",
        "prim::Print",
        "prim::Exit",
    ]
    unwrap_with_bodies(graph.block)
    assert str(graph) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('%1 : int = prim::Load[name="x"]()', "the variable 'x' is read before anything is stored to it"),
        ("= prim::BreakStmt()", "prim::BreakStmt is not in a loop"),
        ("%1 : NoneType = prim::Exit(%m)", "prim::Exit has no prim::Enter"),
        ("%1 : int = prim::Enter(%m)", "prim::Enter has no prim::Exit"),
    ],
)
def test_what_the_emitter_must_not_make(text: str, message: str) -> None:
    graph = parse_graph(f"graph(%m : __torch__.Manager):\n  {text}\n  return ()\n")
    with pytest.raises(InternalError) as caught:
        convert_to_ssa(graph)
    assert str(caught.value) == (
        f"{message}\nThis is a bug in rekindle. Please report it with the program that you compiled and this message."
    )
