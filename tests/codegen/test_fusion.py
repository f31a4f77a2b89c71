"""The fusion pass: which operators become groups, and what it says of the others."""

from __future__ import annotations

import pytest

import rekindle
import rekindle.ops  # whose operators the graphs call
from rekindle.codegen.fusion import FuseGraph, blockers_of
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from rekindle.passes import CanonicalizeOps, DeadCodeElimination, PassManager
from rekindle.passes.pass_manager import run_passes
from rekindle.rewriting.changes import ChangeCounter
from rekindle.runtime.pipelines import OPTIMIZATION
from tests.codegen.fusion_cases import CASES
from tests.overview_programs import lstm_cell
from tests.passes.test_golden_passes import pass_for
from tests.support.golden import GoldenTexts


def test_graphs(golden: GoldenTexts) -> None:
    texts = []
    for title, text in CASES.items():
        graph = parse_graph(text.lstrip())
        verify(graph)
        before = str(graph)
        changed = run_passes(graph, [pass_for(FuseGraph.name, title)], verify)
        after = str(graph)
        assert changed == (before != after), title
        told = f"# becomes\n\n{after}" if changed else "# stays as it is\n"
        left = "".join(f"# {each.kind}: {each.reason}\n" for each in blockers_of(graph))
        texts.append(f"# {title}\n\n{before}\n{told}{left}")
    golden("passes/fuse_graph", "\n".join(texts))


@pytest.mark.parametrize("title", CASES)
def test_twice_is_once(title: str) -> None:
    graph = parse_graph(CASES[title].lstrip())
    FuseGraph().run(graph)
    before = str(graph)
    assert not FuseGraph().run(graph)
    assert str(graph) == before


@pytest.mark.parametrize("title", CASES)
def test_every_single_change_leaves_a_valid_graph(title: str) -> None:
    free = PassManager(verify)
    free.run(parse_graph(CASES[title].lstrip()), [FuseGraph()])
    for limit in range(free.changes.counts.get("fuse_graph", 0)):
        graph = parse_graph(CASES[title].lstrip())
        limited = PassManager(verify, changes=ChangeCounter({"fuse_graph": limit}))
        changed = limited.run(graph, [FuseGraph()])
        assert limit > 0 or not changed


@pytest.mark.parametrize("products", [False, True], ids=["without products", "with products"])
def test_the_lstm_of_the_overview(golden: GoldenTexts, products: bool) -> None:
    """As the overview shows it, with the products in front of the group, but that nothing has to be broadcast or cut
    there: a kernel reads the chunks where they are. And as it runs: with the products in the group."""
    graph = rekindle.script(lstm_cell).graph.copy()
    run_passes(graph, [*OPTIMIZATION, CanonicalizeOps(), FuseGraph(products=products), DeadCodeElimination()], verify)
    golden("codegen/lstm_cell_with_products" if products else "codegen/lstm_cell", print_graph(graph, ranges=False))


def _sum_of_gradients(size: list[int], count: int) -> Graph:
    """Return a graph that adds up the gradients of a weight of this ``size`` for ``count`` uses of it."""
    inputs = ", ".join(f"%g{n} : Tensor, %x{n} : Tensor" for n in range(count))
    lines = [
        f"graph({inputs}):",
        "  %one : int = prim::Constant[value=1]()",
        f"  %size : int[] = prim::Constant[value={size}]()",
    ]
    for n in range(count):
        lines.append(f"  %t{n} : Tensor = aten::tanh(%g{n})")
        lines.append(f"  %w{n} : Tensor = autodiff::linear_weight(%t{n}, %x{n}, %size)")
        total = f"%s{n - 1}" if n > 1 else "%w0"
        if n:
            lines.append(f"  %s{n} : Tensor = aten::add({total}, %w{n}, %one)")
    lines.append(f"  return (%s{count - 1})")
    return parse_graph("\n".join(lines) + "\n")


def test_gradients_of_large_weights_are_alone() -> None:
    """All that a kernel writes is in memory together with its operands."""
    graph = _sum_of_gradients([256, 256], 3)
    run_passes(graph, [FuseGraph(alone=True)], verify)
    kinds = [
        [each.kind for each in node.get_graph("Subgraph").nodes if each.kind != "prim::Constant"]
        for node in graph.find_nodes("prim::FusionGroup")
    ]
    assert sorted(kinds) == [["aten::add"]] * 2 + [["aten::tanh"]] * 3 + [["autodiff::linear_weight"]] * 3


def test_long_sums_of_products_take_several_groups() -> None:
    """A group reads few results of products, so that they are not all in memory together."""
    graph = _sum_of_gradients([16, 16], 30)
    run_passes(graph, [FuseGraph(alone=True)], verify)
    groups = graph.find_nodes("prim::FusionGroup")
    assert len(groups) > 4
    for group in groups:
        assert group.in_block
        within = sum(node.kind == "autodiff::linear_weight" for node in group.get_graph("Subgraph").nodes)
        assert within <= 4
        assert len([value for value in group.inputs if value.node.kind == "prim::FusionGroup"]) <= 5
