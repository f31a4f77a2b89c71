"""The models that the demo compiles: small, but of the kinds that people really script."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def lstm_cell(
    x: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM, written out."""
    gates = x.mm(w_ih.t()) + hx.mm(w_hh.t()) + b_ih + b_hh
    ingate, forgetgate, cellgate, outgate = gates.chunk(4, 1)
    ingate = torch.sigmoid(ingate)
    forgetgate = torch.sigmoid(forgetgate)
    cellgate = torch.tanh(cellgate)
    outgate = torch.sigmoid(outgate)
    cy = (forgetgate * cx) + (ingate * cellgate)
    hy = outgate * torch.tanh(cy)
    return hy, cy


class AttentionDecoder(nn.Module):
    """Writes one token after the other, looking at a memory, until it writes the end token or runs out of steps."""

    def __init__(self, vocabulary: int = 20, size: int = 32, end: int = 0) -> None:
        super().__init__()
        self.end = end
        self.embedding = nn.Embedding(vocabulary, size)
        self.cell = nn.GRUCell(2 * size, size)
        self.query = nn.Linear(size, size)
        self.output = nn.Linear(size, vocabulary)

    def attend(self, state: Tensor, memory: Tensor) -> Tensor:
        """The part of ``memory`` (time, size) that ``state`` (1, size) asks for."""
        scores = torch.matmul(memory, self.query(state).squeeze(0))
        return torch.matmul(F.softmax(scores, dim=0), memory).unsqueeze(0)

    def forward(self, memory: Tensor, start: int, max_steps: int = 16) -> list[int]:
        state = memory.mean(0, keepdim=True)
        token = start
        written: list[int] = []
        while len(written) < max_steps:
            word = self.embedding(torch.tensor([token], device=memory.device))
            state = self.cell(torch.cat([word, self.attend(state, memory)], 1), state)
            token = int(self.output(state).argmax())
            if token == self.end:
                break
            written.append(token)
        return written


class ResidualBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.body(x))


class ResidualNet(nn.Module):
    """A small residual network for images."""

    def __init__(self, blocks: int = 3, channels: int = 8, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.blocks = nn.ModuleList([ResidualBlock(channels) for _ in range(blocks)])
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=(2, 3)))


def gated_norm(x: Tensor, weight: Tensor) -> Tensor:
    """Normalize the rows of ``x``, scale them, and gate them by themselves."""
    centered = x - x.mean(-1, keepdim=True)
    scale = torch.rsqrt(centered.square().mean(-1, keepdim=True) + 1e-5)
    y = centered * scale * weight
    return y * torch.sigmoid(y)


def edit_distance(first: list[int], second: list[int]) -> int:
    """The least number of insertions, deletions and replacements that turn one list into the other."""
    row = list(range(len(second) + 1))
    for i in range(len(first)):
        last = row[0]
        row[0] = i + 1
        for j in range(len(second)):
            cost = last if first[i] == second[j] else last + 1
            last = row[j + 1]
            row[j + 1] = min(cost, min(row[j], row[j + 1]) + 1)
    return row[len(second)]
