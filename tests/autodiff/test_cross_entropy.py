"""The gradients of ``cross_entropy``: of classes and of probabilities, of all ranks, with all options."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradgradcheck

import rekindle
from rekindle.autodiff import differentiate
from rekindle.autodiff.differentiable_graph import DifferentiableOperation
from rekindle.ir.types import TensorType
from tests.autodiff.graphs import graph_of

PROGRAM = """
def program(x: Tensor, t: Tensor, w: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(x * 2, t, {weight}, ignore_index={ignored}, reduction='{reduction}',
        label_smoothing={smoothing})
"""


@pytest.mark.parametrize("sizes", [(5,), (4, 5), (2, 5, 3), (2, 5, 3, 2)])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("has_weight", [False, True])
@pytest.mark.parametrize("of_classes", [True, False])
def test_gradients(
    sizes: tuple[int, ...], reduction: str, smoothing: float, has_weight: bool, of_classes: bool
) -> None:
    torch.manual_seed(5)
    x = torch.randn(sizes, dtype=torch.double, requires_grad=True)
    w = torch.rand(5, dtype=torch.double) if has_weight else None
    if of_classes:
        t = torch.randint(0, 5, sizes[:1] + sizes[2:] if len(sizes) > 1 else ())
        t.view(-1)[:1] = 0
        ignored = 1
    else:
        t = torch.rand(sizes, dtype=torch.double)
        ignored = -100
    text = PROGRAM.format(
        weight="w" if has_weight else "None", ignored=ignored, reduction=reduction, smoothing=smoothing
    )
    run = DifferentiableOperation(rekindle.CompilationUnit(text).program.graph.copy())

    def eager(x: Tensor) -> Tensor:
        options: Any = {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": ignored}
        return torch.nn.functional.cross_entropy(x * 2, t, w, **options)

    given = torch.zeros(5, dtype=torch.double) if w is None else w
    for _ in range(3):  # for any sizes, then for these
        expected = torch.autograd.grad(eager(x).square().sum(), x)
        torch.testing.assert_close(torch.autograd.grad(run(x, t, given).square().sum(), x), expected)
    assert gradgradcheck(lambda x: run(x, t, given).square(), (x,))


def of_classes(x: Tensor, t: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(x * 2, t)


def test_classes_of_a_batch_are_left_to_pytorch() -> None:
    """Its operators take less time than one that Python composes."""
    run = DifferentiableOperation(graph_of(of_classes))
    x = torch.randn(4, 5, requires_grad=True)
    t = torch.randint(0, 5, (4,))
    for _ in range(3):
        run(x, t).backward()
    with torch.profiler.profile(acc_events=True) as profile:  # without it, PyTorch 2.11 warns
        run(x, t).backward()
    names = {event.name for event in profile.events()}
    assert {"aten::nll_loss_backward", "aten::_log_softmax_backward_data"} <= names
    assert "aten::scatter_add" not in names


def test_nothing_but_the_operand_is_saved() -> None:
    found = differentiate(graph_of(of_classes), [True, False])
    residuals = [value for value in found.forward.outputs[found.results :] if isinstance(value.type, TensorType)]
    assert [value.node.kind for value in residuals] == ["aten::mul"]
