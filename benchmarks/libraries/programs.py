"""The programs that are deployed. Weights are random, from a seed; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.numeric_loops import edit_distance
from benchmarks.runtimes.networks import NETWORKS, prepared


class GreedyDecoder(nn.Module):
    """A decoder of a recurrent cell. It appends the most probable token until that is the last one: the trip count
    depends on the data."""

    def __init__(self, width: int = 64, words: int = 32) -> None:
        super().__init__()
        self.words = nn.Parameter(torch.randn(words, width))
        self.from_word = nn.Linear(width, 3 * width)
        self.from_state = nn.Linear(width, 3 * width)
        self.head = nn.Linear(width, words)

    def forward(self, state: Tensor) -> Tensor:
        token = 1
        tokens = [token]
        while token != 0 and len(tokens) < 60:
            given, kept = self.from_word(self.words[token].unsqueeze(0)), self.from_state(state)
            r1, z1, n1 = given.chunk(3, 1)
            r2, z2, n2 = kept.chunk(3, 1)
            z = torch.sigmoid(z1 + z2)
            state = (1.0 - z) * torch.tanh(n1 + torch.sigmoid(r1 + r2) * n2) + z * state
            token = int(F.linear(state, self.head.weight, self.head.bias).argmax())
            tokens.append(token)
        return torch.tensor(tokens)


class EditDistance(nn.Module):
    """The edit distance of two strings."""

    def forward(self, a: str, b: str) -> int:
        return edit_distance(a, b)


class SmallOperators(nn.Module):
    """Operators of small tensors that libraries leave to PyTorch: a call takes about as long as its dispatch."""

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(100):
            x = torch.logcumsumexp(x, 0)
        return x


@dataclass(frozen=True, slots=True)
class DeployedProgram:
    """A name, and what makes the module and its arguments."""

    name: str
    make: Callable[[], tuple[nn.Module, tuple[Any, ...]]]


def _network(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    return prepared(next(each for each in NETWORKS if each.name == name))


def _decoder() -> tuple[nn.Module, tuple[Any, ...]]:
    """Return a decoder that stops after 40 tokens. Its recurrent weights are so large that states do not converge."""
    torch.manual_seed(15)
    module = GreedyDecoder().eval()
    with torch.no_grad():
        module.from_state.weight.mul_(4.0)
        module.from_word.weight.mul_(2.0)
    return module, (torch.randn(1, 64),)


def _edit_distance() -> tuple[nn.Module, tuple[Any, ...]]:
    return EditDistance().eval(), ("kitten sitting on the fence" * 6, "sitting kittens in the yard" * 6)


PROGRAMS: Final = (
    DeployedProgram("MLP, batch of 1", partial(_network, "MLP, batch of 1")),
    DeployedProgram("LSTM, 100 steps, 1×64", partial(_network, "LSTM, 100 steps, 1×64")),
    DeployedProgram("greedy decoder, until the last token", _decoder),
    DeployedProgram("transformer block, 16×64", partial(_network, "transformer block, 16×64")),
    DeployedProgram("ResNet-18, 224", partial(_network, "ResNet-18, 224")),
    DeployedProgram("edit distance, 162 letters", _edit_distance),
    DeployedProgram("100 small operators of PyTorch", lambda: (SmallOperators().eval(), (torch.zeros(8),))),
)
