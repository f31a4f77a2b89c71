"""Models of matrix products, whose gradients kernels compute: as near to float64 as eager's gradients are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import rekindle

pytestmark = pytest.mark.usefixtures("kernels_are_faster")


class Perceptron(nn.Module):
    def __init__(self, inputs: int, width: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width, bias=bias)
        self.second = nn.Linear(width, width, bias=bias)
        self.last = nn.Linear(width, outputs, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(F.gelu(self.second(F.relu(self.first(x)))))


class Shared(nn.Module):
    """One weight for two products, and once transposed."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, inputs) / inputs**0.5)
        self.last = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(F.linear(x, self.weight) + F.linear(x * 0.5, self.weight))
        return self.last(torch.tanh(torch.matmul(hidden, self.weight)))


class Batches(nn.Module):
    """Products of batches of matrices, as attention has them, written out."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.query = nn.Linear(inputs, width)
        self.key = nn.Linear(inputs, width)
        self.last = nn.Parameter(torch.randn(inputs, outputs) / inputs**0.5)

    def forward(self, x: Tensor) -> Tensor:
        scores = torch.matmul(self.query(x), self.key(x).transpose(-2, -1))
        return torch.matmul(torch.matmul(torch.softmax(scores * 0.1, -1), x), self.last)


class Matrices(nn.Module):
    """``mm`` and ``addmm`` of matrices."""

    def __init__(self, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(inputs, width) / inputs**0.5)
        self.bias = nn.Parameter(torch.randn(outputs))
        self.second = nn.Parameter(torch.randn(width, outputs) / width**0.5)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.size(-1))
        return torch.addmm(self.bias, torch.sigmoid(torch.mm(flat, self.first)), self.second)


MODELS: Final = (Perceptron, Shared, Batches, Matrices)
SIZES: Final = ((7, 13, 5), (33, 70, 1), (64, 257, 10), (1, 1, 1))
LEADING: Final = ((1,), (3,), (2, 5), (17,), (3, 1), (0,), (2, 0))


def gradients(model: Callable[..., Any], x: Tensor, *more: Tensor) -> list[Tensor | None]:
    """The result, and the gradients of a sum with random signs by the input and the parameters."""
    parameters = [each for each in model.parameters() if each.requires_grad]  # type: ignore[attr-defined]
    result = model(x, *more)
    signs = torch.randn(result.shape, generator=torch.Generator().manual_seed(5)).to(result)
    wanted = [*([x] if x.requires_grad else []), *parameters]
    return [result, *torch.autograd.grad((result * signs).sum(), wanted, allow_unused=True)]


def check(model: nn.Module, compiled: Callable[..., Any], x: Tensor) -> None:
    """Compare with eager in float64: the error is at most some times that of eager, or rounding in float64 itself."""
    exact = gradients(copy.deepcopy(model).double(), x.detach().double().requires_grad_(x.requires_grad))
    for eager, mine, expected in zip(gradients(model, x), gradients(compiled, x), exact, strict=True):
        if eager is None or expected is None:
            assert mine is None
            continue
        assert mine is not None
        assert mine.dtype == eager.dtype
        assert mine.shape == eager.shape
        scale = float(expected.abs().max()) if expected.numel() else 1.0
        error, least = (
            float((each.double() - expected).abs().max()) if each.numel() else 0.0 for each in (mine, eager)
        )
        assert error <= 4 * least + 32 * torch.finfo(mine.dtype).eps * max(scale, 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kind", MODELS)
def test_gradients_of_odd_sizes(kind: type[nn.Module], sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = kind(*sizes).to(dtype)
    compiled = rekindle.script(copy.deepcopy(model))
    for _ in range(2):
        for leading in LEADING:
            if kind is Batches and len(leading) == 1:
                continue
            for needs_gradient in (False, True):
                x = torch.randn(*leading, sizes[0], dtype=dtype, requires_grad=needs_gradient)
                for _ in range(3):
                    check(model, compiled, x)


@pytest.mark.parametrize("kind", MODELS)
def test_inputs_with_gaps(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model = kind(24, 40, 6)
    compiled = rekindle.script(copy.deepcopy(model))
    inputs = [
        torch.randn(24, 9, 4).permute(2, 1, 0),
        torch.randn(4, 1, 24).expand(4, 9, 24),
        torch.randn(4, 9, 48)[..., ::2],
        torch.randn(9, 4, 24).transpose(0, 1),
    ]
    for _ in range(3):
        for x in inputs:
            check(model, compiled, x.detach())


def test_frozen_parameters_and_none() -> None:
    torch.manual_seed(0)
    model = Perceptron(9, 30, 4, bias=False)
    for frozen in (("first",), ("second", "last"), ("first", "second", "last")):
        for name in ("first", "second", "last"):
            getattr(model, name).requires_grad_(name not in frozen)
        compiled = rekindle.script(copy.deepcopy(model))
        for _ in range(3):
            check(model, compiled, torch.randn(5, 9, requires_grad=True))


def test_gradients_of_gradients() -> None:
    torch.manual_seed(0)
    model = Perceptron(9, 30, 4).double()
    compiled = rekindle.script(copy.deepcopy(model))
    x = torch.randn(5, 9, dtype=torch.double, requires_grad=True)

    def penalty(module: Any) -> tuple[Tensor, ...]:
        (first,) = torch.autograd.grad(module(x).square().sum(), [x], create_graph=True)
        return torch.autograd.grad(first.square().sum(), [x, *module.parameters()], allow_unused=True)

    for _ in range(4):
        torch.testing.assert_close(penalty(compiled), penalty(model))


def test_rows_change_between_calls() -> None:
    """Calls with one row have graphs of their own, if the matrices are large; either may be the first."""
    torch.manual_seed(0)
    for order in ((1, 8, 1, 3), (8, 1, 8, 3)):
        model = Perceptron(300, 300, 7)
        compiled = rekindle.script(copy.deepcopy(model))
        for rows in order * 2:
            check(model, compiled, torch.randn(rows, 300, requires_grad=True))


class Checked(nn.Module):
    """A check of the sizes between operators that are differentiated together."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 300)
        self.second = nn.Linear(300, 16)

    def forward(self, x: Tensor) -> Tensor:
        turned = x.transpose(0, 1)
        rows, width = turned.size(1), turned.size(0)
        x = torch.tanh(x + 1.0)
        if width != 16:
            raise ValueError(f"{rows} rows of {width} instead of 16")
        return torch.relu(self.second(torch.tanh(self.first(x))))


def test_checks_come_first() -> None:
    torch.manual_seed(0)
    model = Checked()
    compiled = rekindle.script(copy.deepcopy(model))
    for _ in range(3):
        check(model, compiled, torch.randn(20, 16, requires_grad=True))
        with pytest.raises(ValueError, match="20 rows of 15 instead of 16"):
            compiled(torch.randn(20, 15, requires_grad=True))
