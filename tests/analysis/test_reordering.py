"""Which nodes may change places, and what moves along."""

from __future__ import annotations

from typing import Optional

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.analysis.aliases import Named

GRAPH = """
graph(%x : Tensor, %y : Tensor, %n : int, %s : str, %c : bool):
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%a)
  %d : Tensor = aten::neg(%y)
  %e : Tensor = aten::add_(%d, %one, %one)
  %f : Tensor = aten::neg(%d)
   = aten::warn(%s, %one)
  %g : Tensor = aten::bernoulli(%x, %none)
  %h : Tensor = aten::bernoulli(%x, %none)
  %i : int = aten::add(%n, %one)
   = aten::warn(%s, %i)
  %k : Tensor = prim::If(%c)
    block0():
      %l : Tensor = aten::mul(%a, %d)
      -> (%l)
    block1():
      -> (%b)
  %m : Tensor = aten::relu_(%a)
  return (%k)
"""


def _check_move(named: Named, could: bool, did: bool, before: list[str], at: int, moved: list[str] | None) -> None:
    """The position of ``moved`` in the order is ``at``, and the others as before; None: nothing has moved."""
    after = named.order()
    assert could == did == (moved is not None)
    if moved is None:
        assert after == before
        return
    assert after[at : at + len(moved)] == moved
    assert [name for name in after if name not in moved] == [name for name in before if name not in moved]


@pytest.mark.parametrize(
    ("move", "place", "moved"),
    [
        ("a", "d", ["a", "b"]),  # with what uses it
        ("b", "f", ["b"]),
        ("d", "f", None),  # the place itself reads what moves
        ("d", "i", ["d", "e", "f"]),  # the write and what reads it afterwards
        ("g", "h", None),  # random numbers keep their order
        ("g", "i", ["g", "h"]),
        ("i", "k", ["i", "aten::warn"]),
        ("b", "k", None),  # used in a block
        ("f", "a", ["d", "e", "f"]),  # upwards, with what it needs
        ("m", "h", ["k", "m"]),  # … and with what must come before the write
    ],
)
def test_moving_behind(move: str, place: str, moved: list[str] | None) -> None:
    named = Named(GRAPH)
    before = named.order()
    node, target = named.node(move), named.node(place)
    could = named.db.could_move_after_topologically(node, target)
    assert named.order() == before
    did = named.db.move_after_topologically_valid(node, target)
    _check_move(named, could, did, before, named.order().index(place) + 1, moved)


@pytest.mark.parametrize(
    ("move", "place", "moved"),
    [
        ("f", "a", ["d", "e", "f"]),
        ("f", "e", None),
        ("h", "g", None),
        ("h", "a", ["g", "h"]),
        ("i", "a", ["i"]),
        ("a", "e", ["a", "b"]),
        ("d", "f", ["d", "e"]),
        ("b", "k", ["b"]),
        ("k", "b", None),  # returned by a block
        ("m", "k", None),  # what is written to is read in a block
    ],
)
def test_moving_before(move: str, place: str, moved: list[str] | None) -> None:
    named = Named(GRAPH)
    before = named.order()
    node, target = named.node(move), named.node(place)
    could = named.db.could_move_before_topologically(node, target)
    assert named.order() == before
    did = named.db.move_before_topologically_valid(node, target)
    _check_move(named, could, did, before, named.order().index(place) - len(moved or ()), moved)


def test_moving_to_the_end_of_a_block() -> None:
    named = Named(GRAPH)
    assert named.db.move_before_topologically_valid(named.node("d"), named.graph.return_node)
    assert named.order()[-5:] == ["d", "e", "f", "k", "m"]


def test_nothing_moves_into_another_block() -> None:
    named = Named(GRAPH)
    inner, outer = named.node("l"), named.node("d")
    assert not named.db.could_move_after_topologically(outer, inner)
    assert not named.db.could_move_before_topologically(outer, inner)
    assert not named.db.move_after_topologically_valid(inner, outer)
    assert not named.db.can_swap(inner, outer)
    assert not named.db.could_move_after_topologically(outer, named.graph.return_node)


@pytest.mark.parametrize(
    ("first", "second", "can_swap"),
    [
        ("a", "b", False),  # data
        ("d", "a", True),
        ("e", "f", False),  # a write, then a read
        ("a", "m", False),
        ("b", "m", False),  # a read, then a write
        ("g", "h", False),
        ("g", "i", True),
        ("k", "m", False),
        ("k", "i", True),
        ("h", "f", True),
    ],
)
def test_pairs(first: str, second: str, can_swap: bool) -> None:
    named = Named(GRAPH)
    assert named.db.can_swap(named.node(first), named.node(second)) == can_swap
    assert named.db.can_swap(named.node(second), named.node(first)) == can_swap


EFFECTS = """
graph(%x : Tensor, %n : int, %s : str, %c : bool, %o : Any):
  %true : bool = prim::Constant[value=1]()
  %fresh : Tensor = aten::neg(%x)
  %size : int = aten::dim(%fresh)
  %derived : Tensor = aten::neg(%fresh)
  %other : Tensor = aten::neg(%x)
  %tensors : Tensor[] = prim::ListConstruct(%other)
  %joined : Tensor = aten::cat(%tensors, %n)
  %single : Tensor = prim::ListUnpack(%tensors)
  %changed : Tensor = aten::relu_(%other)
  %longer : Tensor[] = aten::append(%tensors, %fresh)
  %list : int[] = prim::ListConstruct(%n)
  %length : int = aten::len(%list)
   = prim::Print(%s)
   = prim::If(%c)
    block0():
       = prim::RaiseException(%s, %s)
      -> ()
    block1():
      -> ()
  %written : Tensor = aten::relu_(%x)
  %own : Tensor = aten::neg(%n)
   = aten::set_grad_enabled(%true)
  %after : Tensor = aten::neg(%fresh)
  %entered : Any = prim::Enter(%o)
  %mystery : int = mystery::op(%n)
  %python : int = prim::PythonOp(%n)
  return (%list)
"""


@pytest.mark.parametrize(
    ("first", "second", "can_swap"),
    [
        ("fresh", "aten::set_grad_enabled", False),  # what it records depends on the mode
        ("derived", "aten::set_grad_enabled", False),
        ("aten::set_grad_enabled", "after", False),
        ("joined", "changed", False),  # what is in the list is written to
        ("single", "changed", True),  # what is in the list is not read
        ("single", "longer", False),
        ("joined", "longer", False),
        ("changed", "longer", True),
        ("length", "aten::set_grad_enabled", True),
        ("list", "aten::set_grad_enabled", True),
        ("fresh", "entered", False),
        ("length", "entered", True),
        ("fresh", "mystery", False),
        ("length", "mystery", True),
        ("fresh", "python", False),
        ("prim::Print", "prim::If", False),  # a message comes before the error
        ("prim::Print", "mystery", False),
        ("prim::Print", "written", False),  # if it raises, the text was printed
        ("prim::Print", "fresh", False),
        ("python", "own", False),
        ("prim::If", "written", False),  # an ``except`` block sees what was written
        ("prim::If", "fresh", True),
        ("prim::If", "list", True),
    ],
)
def test_effects(first: str, second: str, can_swap: bool) -> None:
    named = Named(EFFECTS)
    assert named.db.can_swap(named.node(first), named.node(second)) == can_swap


ALWAYS_RAISES = """
graph(%x : Tensor, %y : Tensor, %s : str, %c : bool):
  %none : NoneType = prim::Constant()
  %sum : Tensor = aten::add(%x, %y, %c)
   = prim::RaiseException(%s, %s)
  %n : int = prim::unchecked_cast(%none)
  %product : Tensor = aten::mul(%sum, %n)
  %other : Tensor = aten::neg(%y)
  return (%product, %other)
"""


def test_nothing_moves_past_what_always_raises() -> None:
    named = Named(ALWAYS_RAISES)
    error = named.node("prim::RaiseException")
    assert not named.db.could_move_after_topologically(named.node("sum"), error)
    for name in ("n", "other"):
        assert not named.db.could_move_before_topologically(named.node(name), error)
    along = named.db.nodes_to_move_before(named.node("sum"), named.node("product"))
    assert along == [named.node("sum"), error, named.node("n")]  # in their order


class _Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = torch.ones(2)
        self.scale: Optional[float] = None

    def forward(self, x: Tensor, n: Optional[int]) -> Tensor:
        x = x + self.bias
        if self.scale is not None:
            return x * self.scale
        if n is None:
            raise TypeError("there is nothing to scale by")
        return x * n


@pytest.mark.parametrize("requires_grad", [False, True])
def test_the_first_of_two_errors_is_raised(requires_grad: bool) -> None:
    module = rekindle.script(_Scaled())
    fitting, other = (torch.ones(3, size, requires_grad=requires_grad) for size in (2, 3))
    assert module(fitting, 2).tolist() == [[4.0, 4.0]] * 3
    for _ in range(3):
        with pytest.raises(TypeError, match=r"^there is nothing to scale by$"):
            module(fitting, None)
        for n in (None, 2):
            with pytest.raises(RuntimeError, match=r"^The size of tensor a \(3\) must match"):
                module(other, n)


WITH_A_BAILOUT = """
graph(%x : Tensor, %y : Tensor, %n : int):
  %none : NoneType = prim::Constant()
  %t : int = prim::BailoutTemplate()
  %a : Tensor = aten::neg(%x)
  %local : Tensor = aten::neg(%a)
  %kept : Tensor = aten::neg(%a)
  %w : Tensor = aten::add_(%y, %n, %n)
  %v : Tensor = aten::add_(%local, %n, %n)
  %u : Tensor = aten::add_(%kept, %n, %n)
  %r : Tensor = aten::bernoulli(%a, %none)
  %g : Float(2) = prim::BailOut[index=0](%x, %t, %kept)
  %w2 : Tensor = aten::add_(%y, %n, %n)
  %v2 : Tensor = aten::add_(%local, %n, %n)
  %u2 : Tensor = aten::add_(%kept, %n, %n)
  %r2 : Tensor = aten::bernoulli(%a, %none)
  %p : Tensor = aten::relu(%a)
  return (%kept, %local)
"""


@pytest.mark.parametrize(
    ("node", "can_cross"),
    [
        ("p", True),  # its computation cannot be observed
        ("v", True),  # the rest of the program does not read it
        ("v2", True),
        ("w", False),  # the caller sees it, whichever branch runs
        ("w2", False),
        ("u", False),  # captured
        ("u2", False),
        ("r", False),  # the rest of the program draws too
        ("r2", False),
    ],
)
def test_what_may_cross_a_bailout(node: str, can_cross: bool) -> None:
    named = Named(WITH_A_BAILOUT)
    first, second = (named.db.effects_of(named.node(name)) for name in (node, "g"))
    assert first.conflicts_with(second) == (not can_cross)
    assert not named.db.has_untracked_effects(named.node("g"))
    assert not named.db.has_untracked_effects(named.node("t"))


@pytest.mark.parametrize(
    ("reader", "can_cross"),
    [("aten::str", False), ("archive::str", False), ("aten::hash", False), ("aten::len", True), ("aten::list", True)],
)
def test_reads_of_elements_conflict_with_writes_to_them(reader: str, can_cross: bool) -> None:
    result = {"aten::len": "int", "aten::hash": "int", "aten::list": "int[][]"}.get(reader, "str")
    named = Named(f"""
graph(%rows : int[][]):
  %zero : int = prim::Constant[value=0]()
  %row : int[] = aten::__getitem__(%rows, %zero)
  %w : int[] = aten::append(%row, %zero)
  %r : {result} = {reader}(%rows)
  return (%r)
""")
    first, second = (named.db.effects_of(named.node(name)) for name in ("w", "r"))
    assert first.conflicts_with(second) == (not can_cross)
