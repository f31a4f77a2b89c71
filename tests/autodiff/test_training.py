"""Scripted models learn as eager ones do, step by step, their operators in differentiable graphs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.runtime.executor import last_executed_graph
from tests.differential.ways import WAYS


@pytest.fixture(autouse=True)
def derivatives() -> Iterator[None]:
    """Calls split what has formulas into differentiable graphs."""
    (way,) = [way for way in WAYS if way.name == "derivatives"]
    with way.entered():
        yield


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        y = F.relu(self.norm(self.first(x)))
        y = F.max_pool2d(y + self.second(y), 2)
        return F.cross_entropy(self.last(y.flatten(1)), target)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 16)
        self.norm = nn.LayerNorm(16)
        self.all = nn.Linear(16, 48)
        self.inner = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Dropout(0.2), nn.Linear(32, 16))
        self.last = nn.Linear(16, 11)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        h = self.words(x)
        q, k, v = self.all(self.norm(h)).chunk(3, -1)
        scores = (q @ k.transpose(-2, -1) / 4.0).softmax(-1)
        h = h + scores @ v
        h = h + self.inner(self.norm(h))
        return F.cross_entropy(self.last(h).flatten(0, 1), target.flatten())


class Recurrence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(6 + 8, 32)
        self.last = nn.Linear(8, 1)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 8, dtype=x.dtype)
        c = torch.zeros(x.size(1), 8, dtype=x.dtype)
        for t in range(x.size(0)):
            i, f, g, o = self.cell(torch.cat([x[t], h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return F.mse_loss(self.last(h).squeeze(1), target)


def _images() -> list[Tensor]:
    return [torch.randn(6, 3, 8, 8, dtype=torch.float64), torch.randint(0, 5, (6,))]


def _words() -> list[Tensor]:
    return [torch.randint(0, 11, (4, 7)), torch.randint(0, 11, (4, 7))]


def _series() -> list[Tensor]:
    return [torch.randn(5, 3, 6, dtype=torch.float64), torch.randn(3, dtype=torch.float64)]


MODELS: list[tuple[type[nn.Module], Callable[[], list[Tensor]]]] = [
    (Convolutions, _images),
    (Attention, _words),
    (Recurrence, _series),
]


def _train(model: Any, data: Callable[[], list[Tensor]], optimizer: type[torch.optim.Optimizer]) -> list[float]:
    steps = optimizer(model.parameters(), lr=0.01)
    torch.manual_seed(13)
    losses = []
    for _ in range(8):
        steps.zero_grad()
        loss = model(*data())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        steps.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW], ids=lambda each: each.__name__)
@pytest.mark.parametrize(("model", "data"), MODELS, ids=[model.__name__ for model, _ in MODELS])
def test_same_losses_and_parameters(
    model: type[nn.Module], data: Callable[[], list[Tensor]], optimizer: type[torch.optim.Optimizer]
) -> None:
    torch.manual_seed(12)
    eager = model().double()
    scripted = rekindle.script(copy.deepcopy(eager))
    expected = _train(eager, data, optimizer)
    found = _train(scripted, data, optimizer)
    assert "prim::DifferentiableGraph" in str(last_executed_graph())
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    state = scripted.state_dict()
    assert state.keys() == eager.state_dict().keys()
    for name, value in eager.state_dict().items():
        torch.testing.assert_close(
            state[name], value, rtol=1e-6, atol=1e-7, msg=lambda text, name=name: f"{name}: {text}"
        )


def _negated_where_negative(p: Tensor, q: Tensor) -> Tensor:
    c = p[..., 3] * q[..., 3]
    r = q.clone()
    r[c < 0] = -r[c < 0]
    c = c.unsqueeze(-1)
    return torch.sin(c) / (c * c) * r[..., 0:1]


def _padded(p: Tensor, q: Tensor) -> Tensor:
    r = q.clone()
    h = torch.sin(F.pad(r, [1, 1])) + F.pad(r, [2, -1]).sum() * torch.cos(p.sum())
    r[:, :1] = 2.0
    return h.sum() * r


def _put(p: Tensor, q: Tensor) -> Tensor:
    x = torch.zeros(2, 1, 3, 4)
    row = torch.sin(q) * p
    x[0] = row
    x[1, :, 1:] = row[:, 1:]
    h = torch.sin(x) * torch.cos(p.sum())
    row[:, :1] = p
    return h.sum() * row


@pytest.mark.parametrize("function", [_negated_where_negative, _padded, _put])
def test_a_write_to_a_tensor_of_which_a_derivative_needs_the_size_alone(function: Callable[..., Tensor]) -> None:
    compiled = rekindle.script(function)
    for seed in range(3):
        torch.manual_seed(seed)
        values = torch.randn(4), torch.randn(1, 3, 4)
        gradients = []
        for each in (function, compiled):
            given = [value.clone().requires_grad_() for value in values]
            each(*given).sum().backward()
            gradients.append([value.grad for value in given])
        torch.testing.assert_close(gradients[1], gradients[0])
