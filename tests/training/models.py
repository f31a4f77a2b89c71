"""A small model, its data, and what compares two trainings of it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle


class Words(nn.Module):
    """Which of three classes a bag of words belongs to; returns the loss."""

    def __init__(self, *, dropout: float = 0.0, sparse: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8, sparse=sparse)
        self.inner = nn.Linear(8, 16)
        self.norm = nn.LayerNorm(16)
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(16, 3)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        h = self.norm(torch.tanh(self.inner(self.words(x).mean(1))))
        return F.cross_entropy(self.last(self.dropout(h)), target)


def batches(count: int, seed: int = 7) -> Iterator[tuple[Tensor, Tensor]]:
    """Words and classes, the same in every training."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield torch.randint(0, 11, (4, 5), generator=generator), torch.randint(0, 3, (4,), generator=generator)


def compiled(model: nn.Module, way: str) -> nn.Module:
    """A copy of ``model``, made a program in the ``way`` given: ``script`` or ``trace``."""
    own = copy.deepcopy(model)
    if way == "script":
        return rekindle.script(own)
    (example,) = batches(1)
    return rekindle.trace(own, example, check_trace=False)


WAYS = ("script", "trace")


def assert_trains_alike(
    model: nn.Module, way: str, train: Callable[[Any], list[float]], *, rtol: float = 1e-9, atol: float = 1e-9
) -> None:
    """``train`` takes a model and returns what it saw. It sees the same of ``model`` and of a program made of it, and
    leaves the same parameters and buffers."""
    program = compiled(model, way)
    answers = []
    for each in (model, program):
        torch.manual_seed(13)
        answers.append(train(each))
    torch.testing.assert_close(answers[1], answers[0], rtol=rtol, atol=atol, equal_nan=True)
    found, expected = program.state_dict(), model.state_dict()
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(
            found[name], value, rtol=rtol, atol=atol, msg=lambda text, name=name: f"{name}: {text}"
        )
