"""Gradients that many iterations of a loop add to are computed for many iterations at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import rekindle
from rekindle.autodiff.backward_operators.matmul import accumulate, embedded, placed
from rekindle.autodiff.reverse_mode import gradient_accumulation
from rekindle.autodiff.reverse_mode.gradient_accumulation import batch_gradient_accumulation
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from tests.support.golden import GoldenTexts

BACKWARD = """
graph(%n : int, %gs : Tensor, %xs : Tensor(*, *, *), %v : Tensor(*, *), %is : Tensor, %whole : Tensor):
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %ten : int = prim::Constant[value=10]()
  %missing : Tensor? = prim::Constant()
  %weight : int[] = prim::Constant[value=[4, 3]]()
  %bias : int[] = prim::Constant[value=[4]]()
  %size : int[] = aten::size(%xs)
  %w : Tensor?, %b : Tensor?, %x : Tensor, %e : Tensor? = prim::Loop(%n, %true, %missing, %missing, %whole, %missing)
    block0(%j : int, %w.1 : Tensor?, %b.1 : Tensor?, %x.1 : Tensor, %e.1 : Tensor?):
      %g : Tensor = aten::select(%gs, %zero, %j)
      %part : Tensor = aten::select(%xs, %zero, %j)
      %w.2 : Tensor = autodiff::linear_weight(%g, %part, %weight)
      %w.3 : Tensor = autodiff::plus(%w.2, %w.1)
      %b.2 : Tensor = autodiff::sum_to(%g, %bias)
      %b.3 : Tensor = autodiff::plus(%b.2, %b.1)
      %d : Tensor = aten::matmul(%g, %v)
      %x.2 : Tensor = aten::select_backward(%d, %size, %zero, %j)
      %x.3 : Tensor = aten::add(%x.1, %x.2, %one)
      %i : Tensor = aten::select(%is, %zero, %j)
      %e.2 : Tensor = aten::embedding_backward(%g, %i, %ten, %zero, %no, %no)
      %e.3 : Tensor = autodiff::plus(%e.2, %e.1)
      -> (%true, %w.3, %b.3, %x.3, %e.3)
  return (%w, %b, %x, %e)
"""


def test_graph(golden: GoldenTexts) -> None:
    graph = parse_graph(BACKWARD.lstrip())
    before = str(graph)
    batch_gradient_accumulation(graph)
    verify(graph)
    golden("autodiff/accumulation", f"{before}\n# becomes\n\n{graph}")


def weights(n: int, xs: Tensor, w: Tensor, b: Tensor, e: Tensor) -> Tensor:
    h = xs[0]
    total = xs.sum()
    for t in range(n):
        h = torch.tanh(F.linear(h * xs[t], w, b) + F.embedding(torch.arange(3).view(3) + t, e))
        total = total + (h * xs[n - 1 - t]).sum()
    return total * w.sum()


@pytest.mark.parametrize("elements", [1, 30, 1 << 17])
def test_gradients(elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient_accumulation, "MAX_ELEMENTS", elements)

    def again(n: int, xs: Tensor, w: Tensor, b: Tensor, e: Tensor) -> Tensor:
        return weights(n, xs, w, b, e)

    compiled = rekindle.script(again)
    torch.manual_seed(0)
    for n in (5, 5, 5, 1, 7, 0, 5):
        sizes = ((max(n, 1), 3, 4), (4, 4), (4,), (12, 4))
        values = [torch.randn(size).double().requires_grad_() for size in sizes]
        found = [
            torch.autograd.grad(function(n, *values), values, allow_unused=True) for function in (compiled, weights)
        ]
        torch.testing.assert_close(*found)


def one_by_one(adds: Callable[[Tensor], Tensor], grads: Sequence[Tensor]) -> Tensor:
    return torch.stack([adds(each) for each in grads]).sum(0)


def test_weights_and_sums() -> None:
    grads = [torch.randn(rows, 4).double() for rows in (2, 3, 1)]
    inputs = [torch.randn(rows, 3).double() for rows in (2, 3, 1)]
    start = torch.randn(4, 3).double()
    given = list(grads)
    weight, row, bias = accumulate(given, [inputs], [start, None, None], [[4, 3], [1, 4], [4]])
    assert given == []
    pairs = list(zip(grads, inputs, strict=True))
    torch.testing.assert_close(weight, start + torch.stack([a.t() @ b for a, b in pairs]).sum(0))
    torch.testing.assert_close(row, one_by_one(lambda each: each.sum(0, keepdim=True), grads))
    torch.testing.assert_close(bias, one_by_one(lambda each: each.sum(0), grads))
    assert accumulate([], [[]], [start, None], [[4, 3], [4]]) == [start, None]


def test_sums_of_gradients_of_other_ranks() -> None:
    grads = [torch.randn(()).double() for _ in range(3)]
    (total,) = accumulate(list(grads), [], [None], [None])
    torch.testing.assert_close(total, torch.stack(grads).sum())
    (total,) = accumulate(list(grads), [], [None], [[]])
    torch.testing.assert_close(total, torch.stack(grads).sum())
    vectors = [torch.randn(4).double() for _ in range(3)]
    vector, total = accumulate(list(vectors), [[each[:3] for each in vectors]], [None, None], [[4, 3], None])
    torch.testing.assert_close(vector, one_by_one(lambda each: torch.outer(each, each[:3]), vectors))
    torch.testing.assert_close(total, torch.stack(vectors).sum(0))


def test_a_weight_that_is_a_vector() -> None:
    grads = [torch.randn(5).double() for _ in range(2)]
    inputs = [torch.randn(5, 3).double() for _ in range(2)]
    (weight,) = accumulate(list(grads), [inputs], [None], [[3]])
    torch.testing.assert_close(weight, torch.stack([b.t() @ a for a, b in zip(grads, inputs, strict=True)]).sum(0))


@pytest.mark.parametrize("indices", [[3, 2, 1, 0], [0, 1, 2, 3], [2, 2, -1], [-4]])
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("is_multiplied", [True, False])
def test_parts_of_a_tensor(indices: list[int], dim: int, is_multiplied: bool) -> None:
    size = [4, 4, 4]
    weight = torch.randn(4, 4).double() if is_multiplied else None
    grads = [torch.randn(4, 4).double() for _ in indices]
    start = torch.randn(size).double()
    expected = torch.zeros(size).double()
    for grad, index in zip(grads, indices, strict=True):
        expected.select(dim, index).add_(grad if weight is None else grad @ weight)
    torch.testing.assert_close(placed(grads, indices, None, size, dim, weight), expected)
    torch.testing.assert_close(placed(grads, indices, start, size, dim, weight), start + expected)
    assert placed([], [], None, size, dim, weight) is None


def test_rows_of_an_embedding() -> None:
    indices = [torch.tensor([[1, 0], [3, 1]]), torch.tensor([2, 3])]
    grads = [torch.randn(*index.shape, 3).double() for index in indices]
    expected = torch.zeros(5, 3).double()
    for grad, index in zip(grads, indices, strict=True):
        expected += torch.ops.aten.embedding_backward(grad, index, 5, 0, False, False)
    torch.testing.assert_close(embedded(grads, indices, None, 5, 0), expected)
    torch.testing.assert_close(embedded(grads, indices, expected, 5, 0), 2 * expected)
