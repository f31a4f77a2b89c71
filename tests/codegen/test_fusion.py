"""The fusion pass: which operators become groups, and what it says of the others."""

from __future__ import annotations

import pytest

import rekindle
import rekindle.ops  # whose operators the graphs call
from rekindle.codegen.fusion import FuseGraph, blockers_of
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
