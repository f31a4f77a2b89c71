"""Functions of floats, over all magnitudes: two units in the last place from PyTorch at most, and the same NaNs,
infinities, signed zeros and denormals."""

from __future__ import annotations

import pytest
import torch

import rekindle.ops
import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.operators.math_functions import LIBRARY
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from tests.codegen.comparison import assert_as_eager


def every(step: int) -> torch.Tensor:
    """Every ``step``-th float of all, NaN and infinities too, and those around zero and one."""
    bits = torch.arange(-(2**31), 2**31, step, dtype=torch.int64).to(torch.int32)
    special = torch.tensor([0.0, -0.0, 1.0, -1.0, torch.inf, -torch.inf, torch.nan, 1e-45, -1e-45, 0.62, 0.925, 4.0])
    return torch.cat([bits.view(torch.float32), special, torch.linspace(-12, 12, 20_001)])


@pytest.mark.parametrize("name", [*LIBRARY, "asinh", "acosh", "sigmoid", "sqrt", "rsqrt", "reciprocal"])
def test_of_floats(name: str) -> None:
    graph = parse_graph(f"graph(%x : Tensor):\n  %y : Tensor = aten::{name}(%x)\n  return (%y)\n")
    group = FusionExecutor(graph)
    x = every(12_007)
    if name in ("sin", "cos", "tan"):
        x = x[~(x.abs() > 1e6)]  # beyond, PyTorch's own vectors and numbers differ
    found, expected = group(x), callable_of(graph, "eager")(x)
    assert group.failures == []
    denormal = (expected.abs() < 2.0**-126) & (expected != 0)
    assert_as_eager(found[~denormal], expected[~denormal], 2)
    assert_as_eager(found[denormal], expected[denormal], 2)
