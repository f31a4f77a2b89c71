"""Dead code in graphs of uncommon shapes."""

from __future__ import annotations

import math
from typing import Union

import pytest

import rekindle
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.passes import DeadCodeElimination, PassManager, run_passes
from rekindle.rewriting.changes import ChangeCounter
from tests.versions.differences import NO_LOGARITHM


def test_loops_in_loops_take_no_longer_than_their_text() -> None:
    """Going over each body twice for each time that the one around it is gone over would never end here."""
    depth = 60
    lines = ["graph(%n : int):", "  %true : bool = prim::Constant[value=1]()", "  %l : int[] = prim::ListConstruct(%n)"]
    for level in range(depth):
        indent = "  " * (2 * level + 1)
        lines += [f"{indent} = prim::Loop(%n, %true)", f"{indent}  block0(%i{level} : int):"]
    inside = "  " * (2 * depth + 1)
    lines.append(f"{inside}%more : int[] = aten::append(%l, %n)")
    for level in reversed(range(depth)):
        lines.append(f"{'  ' * (2 * level + 3)}-> (%true)")
    graph = parse_graph("\n".join([*lines, "  return (%l)", ""]))
    before = str(graph)
    assert not run_passes(graph, [DeadCodeElimination()], verify)
    assert str(graph) == before


def test_a_write_in_one_iteration_is_for_the_next() -> None:
    text = """graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %a : int[] = prim::ListConstruct(%n)
  %b : int[] = prim::ListConstruct(%n)
   = prim::Loop(%n, %true)
    block0(%i : int):
      %x : int = aten::len(%a)
      %1 : int[] = aten::append(%b, %x)
      %y : int = aten::len(%b)
      %2 : int[] = aten::append(%a, %y)
      -> (%true)
  return (%b)
"""
    graph = parse_graph(text)
    assert run_passes(graph, [DeadCodeElimination()], verify)
    assert [node.kind for node in graph.find_nodes("prim::Loop")[0].blocks[0].nodes] == [
        "aten::len",
        "aten::append",
        "aten::len",
        "aten::append",
    ]


def test_a_list_that_only_grows_goes() -> None:
    graph = parse_graph(
        """graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %a : int[] = prim::ListConstruct(%n)
   = prim::Loop(%n, %true)
    block0(%i : int):
      %1 : int[] = aten::append(%a, %i)
      -> (%true)
  return (%n)
"""
    )
    assert run_passes(graph, [DeadCodeElimination()], verify)
    assert [node.kind for node in graph.all_nodes()] == ["prim::Constant"]


def test_unused_operators_that_may_raise_stay_unless_told_otherwise() -> None:
    text = """graph(%l : int[], %i : int):
  %zero : int = prim::Constant[value=0]()
  %1 : int = aten::__getitem__(%l, %i)
  %2 : int = aten::floordiv(%1, %zero)
  return (%i)
"""
    graph = parse_graph(text)
    assert not run_passes(graph, [DeadCodeElimination()], verify)
    assert run_passes(graph, [DeadCodeElimination(keep_raising=False)], verify)
    assert list(graph.all_nodes()) == []


def test_index_of_a_list_may_raise_and_that_of_a_tensor_is_an_operator_on_tensors() -> None:
    text = """graph(%x : Tensor, %mask : Tensor, %list : int[], %n : int):
  %indices : Tensor?[] = prim::ListConstruct(%mask)
  %1 : Tensor = aten::index(%x, %indices)
  %2 : int = aten::index(%list, %n)
  return (%n)
"""
    graph = parse_graph(text)
    assert run_passes(graph, [DeadCodeElimination()], verify)
    assert [str(node.schema) for node in graph.nodes] == ["aten::index.list_int(int[] self, int el) -> int"]


@pytest.mark.parametrize(
    "kind", ["lt(%a, %b)", "pow(%a, %two)", "floordiv(%a, %b)", "floordiv(%a, %two)", "ceil(%a)", "sqrt(%a)"]
)
def test_numbers_that_may_be_complex_raise(kind: str) -> None:
    made = "bool" if kind.startswith("lt") else "float" if kind.startswith("sqrt") else "Scalar"
    made = "int" if kind.startswith("ceil") else made
    two = "  %two : int = prim::Constant[value=2]()\n" if "%two" in kind else ""
    graph = parse_graph(f"graph(%a : Scalar, %b : Scalar):\n{two}  %1 : {made} = aten::{kind}\n  return (%a)\n")
    assert not run_passes(graph, [DeadCodeElimination()], verify)


def rounds_in_a_loop(m: float) -> int:
    [math.ceil(m) for _, _ in enumerate(range(3))]
    return 1


def test_a_loop_as_machine_code_raises_though_nobody_uses_its_results() -> None:
    compiled = rekindle.script(rounds_in_a_loop)
    for _ in range(3):
        with pytest.raises(ValueError, match=r"^cannot convert float NaN to integer$"):
            compiled(math.nan)
    assert compiled(0.5) == 1


def logarithm(x: Union[int, float]) -> None:
    math.log(x)


def test_an_int_or_a_float_raises() -> None:
    with pytest.raises(ValueError, match=f"^{NO_LOGARITHM}$"):
        rekindle.script(logarithm)(0)


def formatted(x: float) -> int:
    _ = f"{x} {x!r}"
    _ = f"{x:03d}"
    return 1


def test_a_format_that_the_value_does_not_have_raises() -> None:
    compiled = rekindle.script(formatted)
    with pytest.raises(ValueError, match=r"^Unknown format code 'd' for object of type 'float'$"):
        compiled(0.5)
    assert len(list(compiled.graph.find_nodes("aten::format"))) == 1


def removed() -> int:
    values = [0.5]
    values.remove(min(0.1, 0))
    return 1


def test_a_method_of_a_list_of_several_types_raises() -> None:
    with pytest.raises(ValueError, match=r"^list\.remove\(x\): x not in list$"):
        rekindle.script(removed)()


UNUSED_TWICE = """graph(%x : Tensor):
  %a : Tensor = aten::exp(%x)
  %b : Tensor = aten::neg(%x)
  return (%x)
"""


def test_what_a_limit_left_is_removed_later() -> None:
    graph = parse_graph(UNUSED_TWICE)
    limited = ChangeCounter({"dead_code_elimination": 1})
    assert PassManager(changes=limited).run(graph, [DeadCodeElimination()])
    assert len(list(graph.nodes)) == 1
    assert run_passes(graph, [DeadCodeElimination()], verify)
    assert not list(graph.nodes)


def test_dead_code_that_appears_after_an_elimination_is_removed() -> None:
    graph = parse_graph(UNUSED_TWICE)
    assert run_passes(graph, [DeadCodeElimination()], verify)
    assert not run_passes(graph, [DeadCodeElimination()], verify)
    copy = graph.copy()
    for each in (graph, copy):
        each.append_node(each.create("aten::exp", [each.inputs[0]]))
        assert run_passes(each, [DeadCodeElimination()], verify)
        assert not list(each.nodes)
