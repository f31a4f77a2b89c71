"""Training curves: three models are trained for 200 steps, in eager and scripted, from the same start and data.

The losses of both are compared step by step; ``--plot`` draws them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle

STEPS: Final = 200


class Block(nn.Module):
    """Attention, then two linear layers for each token, both with residual connections."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.all = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.between = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.all(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(found.transpose(1, 2).reshape(batch, length, width))
        return x + self.inner(self.between(x))


class GPT(nn.Module):
    """Two transformer blocks that predict the next letter."""

    def __init__(self, letters: int = 12, width: int = 32, length: int = 16) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.places = nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, letters)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        h = self.blocks(self.letters(x) + self.places[: x.size(1)])
        return F.cross_entropy(self.last(self.norm(h)).flatten(0, 1), target.flatten())


class Residual(nn.Module):
    """Two convolutions with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.one = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.two = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.two(self.second(F.relu(self.one(self.first(x))))))


class ResidualCNN(nn.Module):
    """A network that predicts in which quarter of an image there is a bright spot."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.inner = nn.Sequential(Residual(width), nn.MaxPool2d(2), Residual(width), nn.MaxPool2d(2))
        self.last = nn.Linear(width * 4, 4)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(self.last(self.inner(F.relu(self.first(x))).flatten(1)), target)


class LoopLSTM(nn.Module):
    """An LSTM written as a loop, which is trained to add the marked numbers."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.width = width
        self.cell = nn.Linear(2 + width, 4 * width)
        self.last = nn.Linear(width, 1)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.width, dtype=x.dtype)
        c = torch.zeros(x.size(1), self.width, dtype=x.dtype)
        for t in range(x.size(0)):
            i, f, g, o = self.cell(torch.cat([x[t], h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return F.mse_loss(self.last(h).squeeze(1), target)


def _letters(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return sequences of letters at a constant distance of one to three, so that two letters determine the rest."""
    start = torch.randint(0, 12, (8, 1), generator=generator)
    step = torch.randint(1, 4, (8, 1), generator=generator)
    text = (start + step * torch.arange(17)) % 12
    return text[:, :-1], text[:, 1:]


def _pictures(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    places = torch.randint(0, 8, (16, 2), generator=generator)
    pictures = torch.rand(16, 1, 8, 8, generator=generator)
    pictures[torch.arange(16), 0, places[:, 0], places[:, 1]] += 1.5
    return pictures, places[:, 0] // 4 * 2 + places[:, 1] // 4


def _numbers(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    numbers = torch.rand(12, 16, generator=generator)
    marks = (torch.rand(12, 16, generator=generator) < 0.3).float()
    return torch.stack([numbers, marks], 2), (numbers * marks).sum(0)


Data = Callable[[torch.Generator], tuple[Tensor, Tensor]]


@dataclass(slots=True, frozen=True)
class Lesson:
    """A model, its data, and the learning rate."""

    name: str
    model: Callable[[], nn.Module]
    data: Data
    rate: float


LESSONS: Final = (
    Lesson("small GPT", GPT, _letters, 3e-3),
    Lesson("residual CNN", ResidualCNN, _pictures, 1e-2),
    Lesson("loop LSTM", LoopLSTM, _numbers, 3e-3),
)


def train(model: Any, lesson: Lesson, steps: int, dtype: torch.dtype = torch.float32) -> list[float]:
    """Train a model and return the loss of each step."""
    generator = torch.Generator().manual_seed(17)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lesson.rate)
    losses = []
    for _ in range(steps):
        x, target = (value.to(dtype) if value.is_floating_point() else value for value in lesson.data(generator))
        optimizer.zero_grad()
        loss = model(x, target)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


@dataclass(slots=True)
class Row:
    """The losses of both trainings. ``difference`` is their largest difference, divided by eager's first loss."""

    what: str
    eager: list[float]
    ours: list[float]
    difference: float = field(init=False)

    def __post_init__(self) -> None:
        self.difference = max(abs(a - b) for a, b in zip(self.eager, self.ours, strict=True)) / self.eager[0]

    @property
    def ratio(self) -> float:
        """The last loss divided by eager's."""
        return self.ours[-1] / self.eager[-1]


def lesson_row(lesson: Lesson, steps: int = STEPS, dtype: torch.dtype = torch.float32) -> Row:
    """Train a model in eager and scripted; return both losses."""
    torch.manual_seed(5)
    eager = lesson.model().to(dtype)
    ours = rekindle.script(copy.deepcopy(eager))
    return Row(lesson.name, train(eager, lesson, steps, dtype), train(ours, lesson, steps, dtype))


def run(steps: int = STEPS) -> list[Row]:
    """Train all models, with the strategy ``native`` and one thread."""
    threads = torch.get_num_threads()
    before = rekindle.set_execution_strategy("native")
    torch.set_num_threads(1)
    try:
        return [lesson_row(lesson, steps) for lesson in LESSONS]
    finally:
        torch.set_num_threads(threads)
        rekindle.set_execution_strategy(before)


def curves(rows: Sequence[Row], every: int = 10) -> dict[str, list[tuple[float, float]]]:
    """Return curves of mean losses, divided by eager's first loss."""
    lines = {}
    for row in rows:
        for who, losses in (("eager", row.eager), ("rekindle", row.ours)):
            means = [sum(losses[i : i + every]) / every / row.eager[0] for i in range(0, len(losses), every)]
            lines[f"{row.what}, {who}"] = [((i + 0.5) * every, mean) for i, mean in enumerate(means)]
    return lines


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line of text for each row, after a row of column names."""
    lines = [["model", "first loss", "last, eager", "last, rekindle", "greatest difference"]]
    for row in rows:
        last = (f"{row.eager[-1]:.6f}", f"{row.ours[-1]:.6f}")
        lines.append([row.what, f"{row.eager[0]:.4f}", *last, f"{row.difference:.1e}"])
    return lines
