"""Operands of other dtypes beside tensors of half precision: PyTorch rounds them to half precision before it computes,
except a single number that multiplies or divides. A number that was not rounded would change results of comparisons
and remainders, not only last bits."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.codegen.layout import Layout
from rekindle.codegen.loop_ir.nodes import LoopNest
from rekindle.codegen.loop_ir.scalar_types import F16
from rekindle.codegen.lowering import lower
from rekindle.ir.text.parser import parse_graph

NUMBERS = [
    *("x + v", "x - v", "v - x", "x * v", "v * x", "x / v", "v / x", "x % v", "torch.fmod(x, v)", "v ** x"),
    *("x == v", "x != v", "x < v", "x >= v", "v > x", "x.gt(v).float()", "x * v + v", "torch.relu(x - v)"),
]
FACTORS = [
    *(
        "torch.add(x, x, alpha=v)",
        "torch.sub(x, x, alpha=v)",
        "torch.rsub(x, x, alpha=v)",
        "torch.sub(x, 2.5, alpha=v)",
    ),
    *("torch.lerp(x, x + 1, v)", "torch.addcmul(x, x, x, value=v)", "torch.nn.functional.leaky_relu(-x, v)"),
]
TENSORS = [
    *("x + n", "n - x", "x * n", "n * x", "x / n", "n / x", "torch.fmod(x, n)", "torch.atan2(n, x)", "x == n", "n < x"),
    *("torch.where(x > 1, x, n)", "torch.maximum(x, n)", "torch.addcmul(x, x, n)", "(x.sum(-1, keepdim=True) * n) + x"),
    *("torch.relu(x * n) + x", "x ** 2 * n"),
]


def _assert_as_eager(expression: str, *inputs: Any) -> None:
    types = {Tensor: "Tensor", float: "float", int: "int"}
    declared = ", ".join(f"{name}: {types[type(each)]}" for name, each in zip("xnv", inputs, strict=False))
    source = f"def f({declared}):\n    x = -(-x)\n    return {expression}\n"
    names: dict[str, Any] = {"torch": torch, "Tensor": Tensor}
    exec(source, names)
    compiled, expected = rekindle.CompilationUnit(source).f, names["f"](*inputs)
    for _ in range(4):
        torch.testing.assert_close(compiled(*inputs), expected, rtol=0, atol=0, equal_nan=True)


def _inputs(dtype: torch.dtype, number: float) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.cat([torch.tensor([number, -number] * 16), torch.rand(32, generator=generator) * 4 + 0.1]).to(dtype)


@pytest.mark.parametrize("number", [2.7003, 0.1, 2049.0])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("expression", [*NUMBERS, *FACTORS])
def test_numbers(expression: str, dtype: torch.dtype, number: float, refused: list[str]) -> None:
    """Kernels of float16 take no factors from calls: they might not fit."""
    x = _inputs(dtype, number)
    _assert_as_eager(re.sub(r"\bv\b", repr(number), expression), x)
    assert not refused
    _assert_as_eager(expression, x, 0, number)
    assert not refused or (expression in FACTORS and dtype is torch.float16)


@pytest.mark.parametrize("shape", [(), (1,), (64,), (2, 1)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("expression", TENSORS)
def test_integers(expression: str, dtype: torch.dtype, shape: tuple[int, ...], refused: list[str]) -> None:
    others = torch.randint(1, 9000, shape, generator=torch.Generator().manual_seed(5))
    _assert_as_eager(expression, _inputs(dtype, 4097.0), others)
    assert not refused


@pytest.mark.parametrize("wide", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("expression", TENSORS)
def test_floats_without_dimensions(expression: str, dtype: torch.dtype, wide: torch.dtype, refused: list[str]) -> None:
    _assert_as_eager(expression, _inputs(dtype, 0.1), torch.tensor(0.1, dtype=wide))
    assert not refused


@pytest.mark.parametrize(("device", "rounded"), [("cpu", {"lt", "add"}), ("cuda", {"lt"})])
def test_numbers_on_gpus(device: str, rounded: set[str]) -> None:
    """PyTorch's sums and products on GPUs take numbers as they are, its comparisons round them."""
    graph = parse_graph(
        """graph(%x : Tensor, %v : float):
  %one : int = prim::Constant[value=1]()
  %sum : Tensor = aten::add(%x, %v, %one)
  %less : Tensor = aten::lt(%x, %v)
  return (%sum, %less)
"""
    )
    kernel = lower(graph, [Layout((64,), (1,), torch.float16), float], device).kernel
    found = set()
    stack = [
        store.value
        for nest in kernel.nests
        if isinstance(nest, LoopNest)
        for phase in nest.phases
        for store in phase.stores
    ]
    while stack:
        expression = stack.pop()
        stack += expression.operands
        number = expression.operands[-1] if expression.kind in ("add", "lt") else None
        if number is not None and number.operands[0].scalar is F16:
            found.add(expression.kind)
    assert found == rounded
