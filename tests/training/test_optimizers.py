"""Compiled models learn what eager ones learn, under every optimizer of PyTorch."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.training.models import WAYS, Words, assert_trains_alike, batches

OPTIMIZERS = sorted(
    (
        each
        for each in vars(torch.optim).values()
        if inspect.isclass(each) and issubclass(each, torch.optim.Optimizer) and each is not torch.optim.Optimizer
    ),
    key=lambda each: each.__name__,
)
SPARSE = ("Adagrad", "SGD", "SparseAdam")
"""Those that take sparse gradients; all others say that they do not."""
DENSE = [each for each in OPTIMIZERS if each is not torch.optim.SparseAdam]


def _parameters(model: nn.Module, optimizer: type[torch.optim.Optimizer]) -> list[Tensor]:
    """What ``optimizer`` is for: Muon takes matrices only, and those of sparse gradients have no others beside them."""
    if optimizer is torch.optim.Muon:
        return [value for value in model.parameters() if value.dim() == 2]
    return list(model.parameters())


def _train(model: Any, steps: torch.optim.Optimizer) -> list[float]:
    losses = []
    for x, target in batches(5):

        def closure(x: Tensor = x, target: Tensor = target) -> float:
            steps.zero_grad()
            loss = model(x, target)
            loss.backward()
            losses.append(loss.item())
            return losses[-1]

        steps.step(closure)
    return losses


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("optimizer", DENSE, ids=lambda each: each.__name__)
def test_dense_gradients(optimizer: type[torch.optim.Optimizer], way: str) -> None:
    torch.manual_seed(12)
    model = Words().double()
    assert_trains_alike(model, way, lambda each: _train(each, optimizer(_parameters(each, optimizer), lr=0.02)))


class Sums(nn.Module):
    """Nothing but words, whose gradients are sparse."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8, sparse=True)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return (self.words(x).tanh().mean(1).sum(1) - target).square().mean()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_gradients(name: str, way: str) -> None:
    torch.manual_seed(12)
    optimizer = getattr(torch.optim, name)

    def train(model: Any) -> list[float]:
        with torch.sparse.check_sparse_tensor_invariants():  # Adagrad warns if it is not decided whether to check
            losses = _train(model, optimizer(model.parameters(), lr=0.1))
        assert model.words.weight.grad.is_sparse
        return losses

    assert_trains_alike(Sums().double(), way, train)


def test_every_optimizer_is_here() -> None:
    assert len(OPTIMIZERS) >= 15
    assert {*SPARSE} <= {each.__name__ for each in OPTIMIZERS}
