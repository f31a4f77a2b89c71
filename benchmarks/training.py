"""Forward and backward together: eager, rekindle and ``torch.jit``, in turn; Inductor by option.

Each round runs each peer once. A ratio is the median over the rounds of the ratio to eager in the same round, by the
clock of the thread, on one thread. The time of the first step includes compilation. Memory is the peak of tensors
during a step, without the parameters; temporary memory of kernels and libraries is not included.
"""

from __future__ import annotations

import copy
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

import rekindle
from benchmarks import recurrence, training_programs
from benchmarks.execution import interleaved, peak_memory
from benchmarks.learning import Block, LoopLSTM, ResidualCNN

ROUNDS: Final = 15


class Cell(nn.Module):
    """An LSTM cell with a scalar result."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_input = nn.Linear(width, 4 * width)
        self.of_state = nn.Linear(width, 4 * width)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        i, f, g, o = (self.of_input(x) + self.of_state(h)).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return (torch.sigmoid(o) * torch.tanh(c)).sum()


class Encoder(nn.Module):
    """A transformer block with a scalar result."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.block = Block(width, heads)

    def forward(self, x: Tensor) -> Tensor:
        return self.block(x).square().mean()


class Squared(nn.Module):
    """A layer of ``torch.nn`` with a scalar result."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.layer(x)
        return found.square().mean()


def perceptron() -> nn.Module:
    """Return three linear layers with activations between them."""
    return Squared(
        nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 64))
    )


def encoder_layer() -> nn.Module:
    """Return PyTorch's encoder layer, with dropout."""
    return Squared(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True))


@dataclass(slots=True, frozen=True)
class Subject:
    """A model that returns a scalar, and its arguments."""

    name: str
    model: Callable[[], nn.Module]
    arguments: Callable[[], tuple[Tensor, ...]]


SUBJECTS: Final = (
    Subject("LSTM cell 1x32", lambda: Cell(32), lambda: (torch.randn(1, 32), torch.randn(1, 32), torch.randn(1, 32))),
    Subject(
        "LSTM cell 32x256",
        lambda: Cell(256),
        lambda: (torch.randn(32, 256), torch.randn(32, 256), torch.randn(32, 256)),
    ),
    Subject("loop LSTM, T=100, 1x32", lambda: LoopLSTM(32), lambda: (torch.randn(100, 1, 2), torch.randn(1))),
    Subject("transformer block 1x16x64", lambda: Encoder(64, 4), lambda: (torch.randn(1, 16, 64),)),
    Subject("transformer block 4x64x128", lambda: Encoder(128, 4), lambda: (torch.randn(4, 64, 128),)),
    Subject("residual network 16x1x8x8", ResidualCNN, lambda: (torch.randn(16, 1, 8, 8), torch.randint(0, 4, (16,)))),
    Subject("perceptron 1x256-1024-1024-64", perceptron, lambda: (torch.randn(1, 256),)),
    Subject("perceptron 64x256-1024-1024-64", perceptron, lambda: (torch.randn(64, 256),)),
    Subject("nn.TransformerEncoderLayer 8x64x256", encoder_layer, lambda: (torch.randn(8, 64, 256),)),
    *(Subject(*each) for each in recurrence.MODELS),
    *(Subject(*each) for each in training_programs.MODELS),
)


@dataclass(slots=True)
class Row:
    """``times`` are ratios to eager, ``memory`` is in bytes, ``first`` in seconds. Peers that do not run the model are
    omitted."""

    what: str
    eager_us: float
    times: dict[str, float]
    memory: dict[str, int]
    first: dict[str, float]

    @property
    def ratio(self) -> float:
        """Rekindle's time divided by eager's."""
        return self.times["rekindle"]


def _made(model: nn.Module, peer: str) -> Callable[..., Any]:
    own = copy.deepcopy(model)
    match peer:
        case "rekindle":
            return rekindle.script(own)  # type: ignore[no-any-return]
        case "torch.jit":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return torch.jit.script(own)  # type: ignore[no-any-return]
        case "inductor":
            return torch.compile(own)  # type: ignore[no-any-return]
        case _:
            return own


def _step(model: Callable[..., Any], arguments: Sequence[Tensor]) -> Callable[[], None]:
    parameters = list(model.parameters())  # type: ignore[attr-defined]

    def step() -> None:
        for parameter in parameters:
            parameter.grad = None
        model(*arguments).backward()

    return step


def row(subject: Subject, peers: Sequence[str], rounds: int) -> Row:
    """Measure a model with all peers."""
    torch.manual_seed(3)
    model, arguments = subject.model(), subject.arguments()
    steps, first = {}, {}
    for peer in peers:
        started = time.perf_counter()
        step = _step(_made(model, peer), arguments)
        step()
        first[peer] = time.perf_counter() - started
        for _ in range(5):  # compiles, and looks again
            step()
        steps[peer] = step
    times = interleaved(list(steps.values()), rounds, 0.02, time.thread_time)
    parts = {
        peer: statistics.median([a / b for a, b in zip(found, times[0], strict=True)])
        for peer, found in zip(steps, times, strict=True)
    }
    memory = {peer: peak_memory(step) for peer, step in steps.items()}
    return Row(subject.name, statistics.median(times[0]) * 1e6, parts, memory, first)


def run(rounds: int = ROUNDS, more: Sequence[str] = (), named: str = "") -> list[Row]:
    """Measure the models with ``named`` in their names. ``more`` are peers besides eager, rekindle and
    ``torch.jit``."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        peers = dict.fromkeys(["eager", "rekindle", "torch.jit", *more])
        return [row(subject, list(peers), rounds) for subject in SUBJECTS if named in subject.name]
    finally:
        torch.set_num_threads(threads)


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line of text for each row, after a row of column names."""
    peers = list(rows[0].times)[1:]
    head = ["forward and backward", "eager", *(f"{peer} / eager" for peer in peers)]
    lines = [[*head, "memory / eager", *(f"first step, {peer}" for peer in peers)]]
    for each in rows:
        part = each.memory["rekindle"] / max(1, each.memory["eager"])
        times = [f"{each.times[peer]:.2f}" for peer in peers]
        first = [f"{each.first[peer]:.2f} s" for peer in peers]
        lines.append([each.what, f"{each.eager_us:.0f} µs", *times, f"{part:.2f}", *first])
    return lines
