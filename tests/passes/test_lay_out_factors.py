"""Constant second factors of products are stored row by row where that changes nothing but time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.analysis.constants import value_of
from rekindle.passes import LayOutFactors, run_passes


class Products(nn.Module):
    """A vector or matrix times the transpose of a weight, which is also read elsewhere."""

    def __init__(self, outputs: int, inputs: int, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs, dtype=dtype))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        weight = self.weight.t()
        return x.mm(weight), torch.matmul(x, weight), weight * 2.0


def strides_of_factors(module: rekindle.ScriptModule) -> list[tuple[int, ...]]:
    found = [node for node in module.graph.all_nodes() if node.kind in ("aten::mm", "aten::matmul")]
    constants = [value_of(node.inputs[1].node) for node in found]
    assert all(isinstance(each, Tensor) for each in constants)
    return [each.stride() for each in constants if isinstance(each, Tensor)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_transposes_are_stored_row_by_row_for_products_alone(dtype: torch.dtype) -> None:
    net = Products(48, 20, dtype).eval()
    frozen = rekindle.freeze(rekindle.script(net))
    assert strides_of_factors(frozen) == [(1, 20)] * 2
    assert run_passes(frozen.graph, [LayOutFactors()])
    assert strides_of_factors(frozen) == [(48, 1)] * 2
    assert not run_passes(frozen.graph, [LayOutFactors()])
    fast = rekindle.optimize_for_inference(rekindle.script(net))
    for rows in (1, 3):
        x = torch.randn(rows, 20, dtype=dtype)
        with torch.no_grad():
            expected = net(x)
            for _ in range(4):
                found = fast(x)
                torch.testing.assert_close(found, expected)
                assert [each.stride() for each in found] == [each.stride() for each in expected]


def test_others_stay() -> None:
    for net in (Products(1024, 1024), Products(4, 4, torch.float16), Products(1, 8)):
        frozen = rekindle.freeze(rekindle.script(net.eval()))
        assert not run_passes(frozen.graph, [LayOutFactors()])


@pytest.mark.parametrize("columns", [1, 15, 16, 64, 79, 127, 128, 255, 256, 300, 529])
@pytest.mark.parametrize("depth", [1, 7, 64, 130, 300])
def test_rows_of_all_sizes(columns: int, depth: int) -> None:
    net = Products(columns, depth).eval()
    fast = rekindle.optimize_for_inference(rekindle.script(net))
    x = torch.randn(1, depth)
    with torch.no_grad():
        exact = x.double() @ net.weight.double().t()
        for _ in range(4):
            for found in fast(x)[:2]:
                limit = 3 * torch.finfo(torch.float32).eps * (x.abs().double() @ net.weight.abs().double().t())
                assert ((found - exact).abs() <= limit).all()
