"""Recurrent networks as users write them, with a loss: a loop over steps, with outputs in a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn


class Unrolled(nn.Module):
    """An LSTM whose cell is written out in the loop."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_input = nn.Linear(width, 4 * width)
        self.of_state = nn.Linear(width, 4 * width)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            i, f, g, o = (self.of_input(x[t]) + self.of_state(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs).square().mean()


class OfLSTMCell(nn.Module):
    """A loop over ``nn.LSTMCell``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(width, width)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            h, c = self.cell(x[t], (h, c))
            outputs.append(h)
        return torch.stack(outputs).square().mean()


class OfGRUCell(nn.Module):
    """A loop over ``nn.GRUCell``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(width, width)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        outputs: list[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            outputs.append(h)
        return torch.stack(outputs).square().mean()


class CellOfProducts(nn.Module):
    """An LSTM cell of ``mm`` and four vectors, which takes its state as a tuple."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.of_input = nn.Parameter(torch.randn(4 * width, width) * 0.1)
        self.of_state = nn.Parameter(torch.randn(4 * width, width) * 0.1)
        self.bias = nn.Parameter(torch.randn(4 * width) * 0.1)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        h, c = state
        gates = torch.mm(x, self.of_input.t()) + torch.mm(h, self.of_state.t()) + self.bias
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, (h, c)


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = CellOfProducts(width)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        parts = x.unbind(0)
        outputs: list[Tensor] = []
        for i in range(len(parts)):
            out, state = self.cell(parts[i], state)
            outputs += [out]
        return torch.stack(outputs), state


class TwoLayers(nn.Module):
    """Two layers of an LSTM, each over the whole sequence."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = Layer(width)
        self.second = Layer(width)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        x, _ = self.first(x, (h, c))
        x, _ = self.second(x, (h, c))
        return x.square().mean()


class Decoder(nn.Module):
    """A decoder that attends to its inputs: an embedding, a GRU cell, a softmax over the steps of the encoder."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, width)
        self.cell = nn.GRUCell(2 * width, width)
        self.query = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, 50)

    def forward(self, encoded: Tensor, h: Tensor, tokens: Tensor) -> Tensor:
        keys = encoded.transpose(0, 1)
        scores: list[Tensor] = []
        for t in range(tokens.size(0)):
            weights = torch.softmax(torch.bmm(keys, self.query(h).unsqueeze(2)).squeeze(2), dim=1)
            context = torch.bmm(weights.unsqueeze(1), keys).squeeze(1)
            h = self.cell(torch.cat([self.embedding(tokens[t]), context], 1), h)
            scores.append(self.out(h))
        return torch.stack(scores).square().mean()


Model = Callable[[], nn.Module]
Arguments = Callable[[], tuple[Tensor, ...]]


def _sequence(length: int, batch: int, width: int) -> tuple[Tensor, ...]:
    return torch.randn(length, batch, width), torch.randn(batch, width), torch.randn(batch, width)


def _translated(length: int, batch: int, width: int) -> tuple[Tensor, ...]:
    tokens = torch.randint(0, 50, (length, batch))
    return torch.randn(20, batch, width), torch.randn(batch, width), tokens


def _models() -> list[tuple[str, Model, Arguments]]:
    found: list[tuple[str, Model, Arguments]] = []
    networks = {
        "LSTM in a loop": Unrolled,
        "nn.LSTMCell in a loop": OfLSTMCell,
        "nn.GRUCell in a loop": OfGRUCell,
        "two layers of LSTM": TwoLayers,
    }
    for length, batch, width in ((100, 1, 64), (50, 32, 256)):
        for name, kind in networks.items():
            found.append(
                (
                    f"{name}, {length}x{batch}x{width}",
                    lambda kind=kind, width=width: kind(width),  # type: ignore[misc]
                    lambda sizes=(length, batch, width): _sequence(*sizes),  # type: ignore[misc]
                )
            )
    for length, batch, width in ((30, 4, 64), (30, 32, 128)):
        found.append(
            (
                f"decoder with attention, {length}x{batch}x{width}",
                lambda width=width: Decoder(width),  # type: ignore[misc]
                lambda sizes=(length, batch, width): _translated(*sizes),  # type: ignore[misc]
            )
        )
    return found


MODELS: Final = _models()
"""What each is called, what makes it, and what makes its arguments."""
