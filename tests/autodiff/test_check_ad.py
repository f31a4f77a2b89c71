"""Every operator with a formula is in a differentiable graph, and gives eager's gradients there."""

from __future__ import annotations

import pytest
import torch

import rekindle
from rekindle.analysis.type_propagation import propagate_types, refine_types
from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.autodiff.formula import operators_with_formulas
from rekindle.codegen.fusion import FuseGraph
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.types import TensorType
from rekindle.ir.verifier import verify
from rekindle.passes import run_passes
from rekindle.runtime.pipelines import OPTIMIZATION
from tests.autodiff.check_ad import INPUTS, Check, checks
from tests.sweeps.gradients import asserted, database


def split_graph(check: Check) -> Graph:
    graph = rekindle.CompilationUnit(check.source).f.graph.copy()
    run_passes(graph, OPTIMIZATION)
    types = [TensorType.of(INPUTS[name]).with_rank_only() for name in check.names]
    refine_types(graph, propagate_types(graph, types))
    run_passes(graph, (*OPTIMIZATION, CreateDifferentiableGraphs(threshold=1)))
    verify(graph)
    return graph


def _kinds_in_kernels(graph: Graph) -> set[str]:
    """The nodes of fusion groups, where the subgraphs of differentiable graphs are fused."""
    kinds = set()
    for each in graph.find_nodes("prim::DifferentiableGraph"):
        inner = each.get_graph("Subgraph").copy()
        FuseGraph(least=1, alone=True).run(inner)
        for group in inner.find_nodes("prim::FusionGroup"):
            kinds |= {node.kind for node in group.get_graph("Subgraph").nodes}
    return kinds


@pytest.mark.parametrize("check", checks(), ids=str)
def test_operator_stands_in_a_differentiable_graph(check: Check) -> None:
    graph = split_graph(check)
    within = [
        node.kind
        for each in graph.find_nodes("prim::DifferentiableGraph")
        for node in each.get_graph("Subgraph").all_nodes()
    ]
    missing = [kind for kind in (*check.nonfusible, *check.fusible) if kind not in within]
    assert not missing, str(graph)
    assert set(check.fusible) <= _kinds_in_kernels(graph)
    run = callable_of(graph, "f")
    answers = []
    names: dict[str, object] = {"torch": torch}
    exec(check.source, names)
    for function in (run, names["f"]):
        inputs = [INPUTS[name].detach().clone().requires_grad_(INPUTS[name].requires_grad) for name in check.names]
        torch.manual_seed(9)
        result = function(*inputs)
        wanted = [value for value in inputs if value.requires_grad]
        answers.append((result.detach(), torch.autograd.grad(result.sum(), wanted, allow_unused=True)))
    torch.testing.assert_close(answers[0], answers[1])


def test_operators_without_a_formula_stay_outside() -> None:
    for expression, kind in (
        ("torch.special.i1e(x).exp()", "aten::special_i1e"),
        ("torch.linalg.matrix_exp(s).exp()", "aten::linalg_matrix_exp"),
    ):
        graph = split_graph(Check(expression, (), ()))
        outside = [node.kind for node in graph.nodes]
        assert kind in outside
        assert "prim::DifferentiableGraph" in outside


SAME_AS = {"__rmatmul__": "matmul", "__rsub__": "sub", "torch.ops.aten._safe_softmax.default": "_safe_softmax"}
"""Entries of PyTorch's table that are written with other operators."""


def test_operators_that_pytorch_asserts_are_in_the_table() -> None:
    kinds = {kind.removeprefix("aten::") for check in checks() for kind in (*check.nonfusible, *check.fusible)}
    missing = []
    for entry in asserted():
        op = database()[entry]
        listed = [*(op.autodiff_nonfusible_nodes or ()), *(op.autodiff_fusible_nodes or ())]
        names = {SAME_AS.get(op.aten_name, op.aten_name), *(name.removeprefix("aten::") for name in listed)}
        if not names & kinds:
            missing.append(entry)
    assert not missing


def test_common_operators_are_in_the_table() -> None:
    kinds = {kind for check in checks() for kind in (*check.nonfusible, *check.fusible)}
    assert len(kinds) >= 150
    have = {f"aten::{name.partition('.')[0]}" for name in operators_with_formulas()}
    assert kinds <= have
