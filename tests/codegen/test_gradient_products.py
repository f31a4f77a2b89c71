"""Gradients of matrix products, and their sums to sizes, in kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
import torch
from torch import Tensor

from rekindle.autodiff.backward_operators.matmul import accumulate_in_kernels, placed_by_kernels
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import compile_immediately
from rekindle.ir.text.parser import parse_graph
from rekindle.runtime.executor import callable_of

PLACES: Final = {"linear_input": 1, "linear_weight": 2, "matmul_self": 1, "matmul_other": 2, "sum_to": 1}
"""Which argument is the size."""


def graph(operator: str, count: int, size: Sequence[int]) -> Graph:
    inputs = [f"%{number}" for number in range(count)]
    arguments = [*inputs[: PLACES[operator]], "%size", *inputs[PLACES[operator] :]]
    return parse_graph(
        f"""graph({", ".join(f"{each} : Tensor" for each in inputs)}):
  %size : int[] = prim::Constant[value={list(size)}]()
  %found : Tensor = autodiff::{operator}({", ".join(arguments)})
  return (%found)
"""
    )


def check(operator: str, values: Sequence[Tensor], size: Sequence[int], *, is_supported: bool = True) -> None:
    """Compare a kernel with the operator in double precision."""
    text = graph(operator, len(values), size)
    group = FusionExecutor(text)
    found = group(*values)
    assert (group.failures == []) == is_supported, group.failures
    exact = callable_of(text, operator, False)(*[value.double() for value in values])
    assert found.dtype == values[0].dtype
    assert found.shape == exact.shape
    tolerance = 8 * torch.finfo(found.dtype).eps * max(values[0].numel(), 1) ** 0.5
    torch.testing.assert_close(found.double(), exact, rtol=tolerance, atol=tolerance)


LEADING: Final = [(7,), (1,), (3, 5), (2, 3, 4), (1, 5), (5, 1), (1, 1), (2, 1, 9), ()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("leading", LEADING)
def test_of_linear(leading: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    grad, x = torch.randn(*leading, 6, dtype=dtype), torch.randn(*leading, 19, dtype=dtype)
    weight = torch.randn(6, 19, dtype=dtype)
    check("linear_weight", [grad, x], (6, 19))
    check("linear_input", [grad, weight], x.shape)


@pytest.mark.parametrize("leading", [each for each in LEADING if each])
def test_rows_with_gaps(leading: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = torch.randn(*leading, 9)
    dims = range(len(leading), -1, -1)
    turned = torch.randn(6, *leading[::-1]).permute(*dims)
    check("linear_weight", [turned, x], (6, 9))
    check("linear_weight", [torch.randn(6).expand(*leading, 6), x], (6, 9))
    check("linear_weight", [torch.randn(*leading, 12)[..., ::2], x], (6, 9))
    swapped = torch.randn(4, *leading, 6).transpose(0, -2)
    check("linear_weight", [swapped, torch.randn(*swapped.shape[:-1], 9)], (6, 9))
    check("matmul_other", [torch.randn(*leading, 6), x], (9, 6))
    if leading != (7,):
        check("matmul_self", [torch.randn(*leading, 6), torch.randn(9, 6)], x.shape)


def test_batches_of_matrices() -> None:
    torch.manual_seed(0)
    grad, a, b = torch.randn(4, 3, 5), torch.randn(4, 3, 2), torch.randn(4, 2, 5)
    for size in ((4, 3, 2), (1, 3, 2), (3, 2)):
        check("matmul_self", [grad, b], size)
    for of_second in ((4, 2, 5), (1, 2, 5)):
        check("matmul_other", [grad, a], of_second)
    wide = torch.randn(2, 4, 3, 5)
    check("matmul_self", [wide, b], (4, 3, 2))
    check("matmul_self", [wide, b], (2, 1, 3, 2))


@pytest.mark.parametrize(
    ("sizes", "size"),
    [
        ((3, 4), (4,)),
        ((3, 4), (3, 4)),
        ((2, 3, 4), (3, 1)),
        ((2, 3, 4), (1, 4)),
        ((2, 3, 4), ()),
        ((3, 4), (1, 1)),
        ((4,), (4,)),
        ((5000, 7), (7,)),
    ],
)
def test_sums(sizes: tuple[int, ...], size: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    value = torch.randn(sizes)
    check("sum_to", [value], size)
    check("sum_to", [value.double()], size)


def test_a_sum_to_the_size_that_it_has_is_a_new_tensor() -> None:
    value = torch.randn(3, 4)
    found = FusionExecutor(graph("sum_to", 1, (3, 4)))(value)
    assert torch.equal(found, value)
    assert found.data_ptr() != value.data_ptr()


def test_without_kernels() -> None:
    """Vectors, and sums of no elements, are left to PyTorch."""
    check("linear_weight", [torch.randn(0, 6), torch.randn(0, 9)], (6, 9), is_supported=False)
    check("linear_weight", [torch.randn(5), torch.randn(5, 9)], (9,), is_supported=False)
    check("linear_input", [torch.randn(5), torch.randn(9)], (5, 9), is_supported=False)
    check("matmul_self", [torch.randn(5, 3), torch.randn(4)], (5, 3, 4), is_supported=False)
    check("matmul_other", [torch.randn(5), torch.randn(5, 4)], (4,), is_supported=False)


@pytest.mark.usefixtures("kernels_are_faster")
def test_large_products_with_bias_and_activation() -> None:
    torch.manual_seed(0)
    text = parse_graph(
        """graph(%grad : Tensor, %result : Tensor, %x : Tensor, %w : Tensor):
  %weight : int[] = prim::Constant[value=[200, 130]]()
  %bias : int[] = prim::Constant[value=[200]]()
  %zero : int = prim::Constant[value=0]()
  %g : Tensor = aten::threshold_backward(%grad, %result, %zero)
  %b : Tensor = autodiff::sum_to(%g, %bias)
  %i : Tensor = autodiff::linear_input(%g, %weight, %w)
  %v : Tensor = autodiff::linear_weight(%g, %x, %weight)
  return (%b, %i, %v)
"""
    )
    values = [torch.randn(3, 67, 200), torch.randn(3, 67, 200), torch.randn(3, 67, 130), torch.randn(200, 130)]
    group = FusionExecutor(text)
    found = group(*values)
    assert group.failures == []
    exact = callable_of(text, "backward", False)(*[value.double() for value in values])
    for mine, expected in zip(found, exact, strict=True):
        torch.testing.assert_close(mine.double(), expected, rtol=1e-5, atol=2e-4)


@pytest.mark.usefixtures("kernels_are_faster")
def test_products_of_many_iterations() -> None:
    """Kernels compute what loops collect."""
    torch.manual_seed(0)
    grads, inputs = ([torch.randn(8, width) for _ in range(5)] for width in (6, 4))
    weight = torch.randn(6, 3)
    nodes = [
        """graph(%a : Tensor[], %b : Tensor[][], %c : Tensor?[], %d : int[]?[]):
  %found : Tensor?[] = autodiff::accumulate(%a, %b, %c, %d)
  return (%found)
""",
        """graph(%a : Tensor[], %b : int[], %c : Tensor?, %d : int[], %e : int, %f : Tensor?):
  %found : Tensor? = autodiff::placed(%a, %b, %c, %d, %e, %f)
  return (%found)
""",
    ]
    first, second = (parse_graph(text).nodes for text in nodes)
    with compile_immediately():
        accumulate, placed = accumulate_in_kernels(next(iter(first))), placed_by_kernels(next(iter(second)))
        for _ in range(3):
            of_weight, of_bias = accumulate([*grads], [inputs], [None, None], [[6, 4], [6]])
            whole = placed(grads, [4, 3, 2, 1, 0], None, [5, 8, 3], 0, weight)
    torch.testing.assert_close(of_weight, torch.cat(grads).t() @ torch.cat(inputs))
    torch.testing.assert_close(of_bias, torch.cat(grads).sum(0))
    torch.testing.assert_close(whole, torch.stack(grads[::-1]) @ weight)
