"""Attention with dropout in training: the random numbers, results and gradients of eager, in operators that are
fused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import rekindle
from rekindle.ir.graph import Graph


def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, dropout_p=0.25)


def attend_causally(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query * 2.0, key, value, dropout_p=0.25, is_causal=True).tanh()


def attend_with_scale(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, dropout_p=0.25, scale=-0.3)


def attend_to_nothing(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, dropout_p=1.0)


def assert_trains_like_eager(function: object, arguments: list[Tensor], rtol: float | None = None) -> None:
    assert callable(function)
    compiled = rekindle.script(function)
    for call in range(4):
        answers = []
        for each in (function, compiled):
            given = [value.clone().requires_grad_() for value in arguments]
            torch.manual_seed(call)
            result = each(*given)
            result.square().sum().backward()
            answers.append((result, [value.grad for value in given], torch.get_rng_state()))
        torch.testing.assert_close(answers[1], answers[0], rtol=rtol, atol=rtol)


@pytest.mark.parametrize("function", [attend, attend_causally, attend_with_scale, attend_to_nothing])
@pytest.mark.parametrize("sizes", [(2, 3, 5, 8), (1, 1, 1, 1), (2, 4, 33, 16), (2, 3, 0, 8)])
def test_training(function: object, sizes: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    arguments = [torch.randn(sizes).transpose(1, 2).contiguous().transpose(1, 2) for _ in range(3)]
    assert_trains_like_eager(function, arguments)


def attend_to_itself(x: Tensor, p: float) -> Tensor:
    query = x.view(2, 3, 5, 4)
    return F.scaled_dot_product_attention(query, query, query, dropout_p=p)


def test_dropout_that_is_decided_in_each_call() -> None:
    """The branches of the formula return tensors of the rank that the operator's result is known to have."""
    compiled = rekindle.script(attend_to_itself)
    for call in range(4):
        for p in (0.5, 0.0):
            found = []
            for each in (attend_to_itself, compiled):
                x = torch.linspace(-1, 1, 120).requires_grad_()
                torch.manual_seed(call)
                result = each(x, p)
                result.square().sum().backward()
                found.append((result, x.grad))
            torch.testing.assert_close(found[1], found[0])


def test_sizes_that_differ_and_are_broadcast() -> None:
    torch.manual_seed(3)
    assert_trains_like_eager(attend, [torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 4)])
    assert_trains_like_eager(attend, [torch.randn(2, 3, 5, 8), torch.randn(1, 3, 7, 8), torch.randn(7, 4)])


@pytest.mark.parametrize("function", [attend, attend_causally])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite(function: object, number: float) -> None:
    torch.manual_seed(3)
    arguments = [torch.randn(1, 2, 5, 8) for _ in range(3)]
    arguments[1][0, 0, 3, 2] = number
    compiled = rekindle.script(function)
    for call in range(3):
        answers = []
        for each in (function, compiled):
            assert callable(each)
            torch.manual_seed(call)
            answers.append(each(*[value.clone().requires_grad_() for value in arguments]).detach())
        torch.testing.assert_close(answers[1], answers[0], equal_nan=True)


def test_a_head_of_no_elements() -> None:
    assert_trains_like_eager(attend, [torch.randn(2, 3, 5, 0), torch.randn(2, 3, 5, 0), torch.randn(2, 3, 5, 8)])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_dtypes(dtype: torch.dtype) -> None:
    """PyTorch computes attention of halves in float32; only the last operator rounds."""
    torch.manual_seed(3)
    arguments = [torch.randn(2, 3, 5, 8).to(dtype) for _ in range(3)]
    assert_trains_like_eager(attend, arguments, rtol=1e-12 if dtype == torch.float64 else 2e-2)


def test_gradients_of_gradients() -> None:
    arguments = [torch.randn(1, 2, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    compiled = rekindle.script(attend)

    def seeded(*given: Tensor) -> Tensor:
        torch.manual_seed(5)
        found: Tensor = compiled(*given)
        return found

    for _ in range(3):
        seeded(*arguments).sum().backward()
    # The first calls run operators one by one, later ones kernels, which round differently.
    assert torch.autograd.gradgradcheck(seeded, arguments, nondet_tol=1e-9)


def test_it_is_one_differentiable_graph_that_is_written_out() -> None:
    arguments = [torch.randn(2, 3, 5, 8, requires_grad=True) for _ in range(3)]
    graph: Graph = rekindle.script(attend).graph_for(*arguments)
    found = [node.get_graph("Subgraph") for node in graph.all_nodes() if node.kind == "prim::DifferentiableGraph"]
    assert [node.kind for each in found for node in each.nodes if node.kind != "prim::Constant"] == [
        "aten::scaled_dot_product_attention"
    ]


@pytest.mark.filterwarnings("ignore:.*kernel")  # PyTorch lists its reasons
def test_excluded_implementation() -> None:
    arguments = [torch.randn(2, 3, 5, 8, requires_grad=True) for _ in range(3)]
    compiled = rekindle.script(attend)
    for _ in range(3):
        compiled(*arguments)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        for each in (attend, compiled):
            with pytest.raises(RuntimeError, match=r"No available kernel\.  Aborting execution\."):
                each(*arguments)


def attend_without_dropout(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value)


@pytest.mark.parametrize("function", [attend, attend_without_dropout])
@pytest.mark.parametrize(
    ("sizes", "dtypes"),
    [
        ([(3,), (3,), (3,)], ["float32"] * 3),
        ([(2, 3), (3,), (2, 3)], ["float32"] * 3),
        ([(2, 3), (2, 3), (2, 3)], ["float32", "float64", "float32"]),
    ],
)
def test_errors_are_those_of_eager(function: object, sizes: list[tuple[int, ...]], dtypes: list[str]) -> None:
    assert callable(function)
    compiled = rekindle.script(function)
    arguments = [
        torch.ones(size, dtype=getattr(torch, dtype), requires_grad=True)
        for size, dtype in zip(sizes, dtypes, strict=True)
    ]
    with pytest.raises(RuntimeError) as expected:
        function(*arguments)
    for _ in range(4):
        with pytest.raises(RuntimeError) as caught:
            compiled(*arguments)
        assert str(caught.value).partition("\n")[0] == str(expected.value).partition("\n")[0]
