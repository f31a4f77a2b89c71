"""Formulas with many forms: attention, einsum, reductions by scattering. Values, gradients, gradients of gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.autodiff.differentiable_graph import DifferentiableOperation
from tests.autodiff.graphs import graph_of
from tests.sweeps.gradients import answer, difference


def assert_same(expression: str, arguments: list[Tensor], *, twice: bool = True) -> None:
    """``expression`` of ``a``, ``b`` … gives what eager gives, by formulas alone."""
    names = ", ".join("abcde"[: len(arguments)])
    source = f"def f({names}):\n    return {expression}\n"
    function: dict[str, Any] = {"torch": torch}
    exec(source, function)
    program = DifferentiableOperation(rekindle.CompilationUnit(source).f.graph)
    wanted = tuple(value.requires_grad for value in arguments)
    assert "autodiff::backward_of" not in str(program.derivative(wanted).gradient.backward)
    expected = answer(function["f"], arguments, twice=twice)
    assert difference(answer(program, arguments, twice=twice), expected) is None


def _random(*sizes: int) -> Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(
    "options",
    ["", ", is_causal=True", ", scale=0.3", ", dropout_p=0.4", ", is_causal=True, dropout_p=0.4"],
)
def test_attention(options: str) -> None:
    torch.manual_seed(3)
    arguments = [_random(2, 3, 5, 8), _random(2, 3, 7, 8), _random(2, 3, 7, 8)]
    # PyTorch's kernel has no gradients of gradients.
    assert_same(
        f"torch.nn.functional.scaled_dot_product_attention(a, b, c{options})", arguments, twice="dropout" in options
    )


@pytest.mark.parametrize("kind", ["learned", "numbers", "booleans"])
def test_attention_with_a_mask(kind: str) -> None:
    torch.manual_seed(3)
    mask = torch.randn(5, 7, dtype=torch.float64, requires_grad=kind == "learned")
    if kind == "booleans":
        mask = mask > -0.5
    arguments = [_random(2, 3, 5, 8), _random(2, 3, 7, 8), _random(2, 3, 7, 8), mask]
    assert_same("torch.nn.functional.scaled_dot_product_attention(a, b, c, d)", arguments, twice=kind == "learned")


def test_attention_of_rows_and_of_shared_heads() -> None:
    torch.manual_seed(3)
    assert_same(
        "torch.nn.functional.scaled_dot_product_attention(a, b, c)", [_random(5, 8), _random(7, 8), _random(7, 8)]
    )
    heads = [_random(2, 4, 5, 8), _random(2, 2, 7, 8), _random(2, 2, 7, 8)]
    assert_same("torch.nn.functional.scaled_dot_product_attention(a, b, c, enable_gqa=True)", heads, twice=False)


@pytest.mark.parametrize(
    ("equation", "sizes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
        ("...ij,...jk->...ik", [(2, 2, 3), (3, 4)]),
        ("i...,j...->ij", [(2, 3), (4, 3)]),
        ("ii->i", [(3, 3)]),
        ("iij,j->i", [(3, 3, 2), (2,)]),
        ("ijk->j", [(2, 3, 4)]),
        ("i,j,k->ijk", [(2,), (3,), (4,)]),
        ("bi,oij,bj->bo", [(2, 3), (5, 3, 4), (2, 4)]),
        ("ij,ij->", [(2, 3), (2, 3)]),
        ("ij,ij->ij", [(2, 3), (1, 3)]),
    ],
)
def test_einsum(equation: str, sizes: list[tuple[int, ...]]) -> None:
    torch.manual_seed(3)
    names = ", ".join("abc"[: len(sizes)])
    assert_same(f'torch.einsum("{equation}", [{names}])', [_random(*size) for size in sizes])


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin", "prod"])
def test_scatter_reduce(reduce: str, include_self: bool) -> None:
    torch.manual_seed(3)
    index = torch.tensor([[0, 0, 2, 2], [1, 1, 1, 4]])
    source = torch.tensor([[1.5, 0.0, 2.0, 2.0], [0.0, 0.0, 3.0, -1.0]], dtype=torch.float64, requires_grad=True)
    expression = f'a.scatter_reduce(1, b, c, "{reduce}", include_self={include_self})'
    assert_same(expression, [_random(2, 5), index, source], twice=reduce != "prod")


def test_scatter_reduce_of_a_part_of_what_is_given() -> None:
    """Eager raises there: its gradient has the sizes of the index."""
    source = 'def f(a, b, c):\n    return a.scatter_reduce(1, b, c, "sum")\n'
    program = DifferentiableOperation(rekindle.CompilationUnit(source).f.graph)
    a, c = _random(2, 5), _random(2, 4)
    result = program(a, torch.tensor([[0, 0, 2]]), c)
    gradient = torch.arange(10.0, dtype=torch.float64).reshape(2, 5)
    of_a, of_c = torch.autograd.grad(result, [a, c], gradient)
    assert of_a.tolist() == gradient.tolist()
    assert of_c.tolist() == [[0, 0, 2, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.float32])
def test_cosine_similarity_of_two_dtypes(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    assert_same("torch.nn.functional.cosine_similarity(a, b)", [_random(3, 4), (torch.rand(3, 4) * 3 + 1).to(dtype)])


def test_nanmean_in_another_dtype() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    program = DifferentiableOperation(graph_of(mean_in_double))
    found, expected = program(x), mean_in_double(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(torch.autograd.grad(found, x), torch.autograd.grad(expected, x))


def mean_in_double(x: Tensor) -> Tensor:
    return torch.nanmean(x, dtype=torch.float64).exp()


def test_mvlgamma_computes_on_the_device_of_its_argument() -> None:
    x = torch.empty(3, device="meta", requires_grad=True)
    (found,) = torch.autograd.grad(DifferentiableOperation(graph_of(multivariate))(x).sum(), x)
    assert found.device == x.device


def multivariate(x: Tensor) -> Tensor:
    return torch.mvlgamma(x, 2)


@pytest.mark.parametrize(
    "expression",
    ["a.exp().tensor_split(2, 0)[0].tanh()", "a.exp().tensor_split([1], 1)[1].tanh()", "a.exp().hsplit([1])[1].tanh()"],
)
def test_parts_in_lists_that_are_saved(expression: str) -> None:
    assert_same(expression, [_random(3, 4)])
