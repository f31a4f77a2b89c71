"""Modules of torch.nn, and models made of them."""

from __future__ import annotations

from typing import List, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.exporting.probes.registry import BATCH, LONG, module, ramp

module(
    "nn.Linear",
    lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
    (ramp(3, 4),),
    ((ramp(9, 4),),),
    BATCH,
)
module(
    "nn.Conv",
    lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    ),
    (ramp(2, 1, 8, 8),),
    ((ramp(5, 1, 8, 8),),),
    BATCH,
)
module(
    "nn.LSTM",
    lambda: nn.LSTM(4, 8, num_layers=2, batch_first=True, bidirectional=True),
    (ramp(3, 5, 4),),
    ((ramp(3, 5, 4) * 2,),),
)
module("nn.GRU", lambda: nn.GRU(4, 8, num_layers=2), (ramp(5, 3, 4),), ((ramp(5, 3, 4) * 2,),))
module("nn.RNN", lambda: nn.RNN(4, 8), (ramp(5, 3, 4),), ((ramp(5, 3, 4) * 2,),))
module("nn.LSTMCell", lambda: nn.LSTMCell(4, 8), (ramp(3, 4),), ((ramp(3, 4) * 2,),))
module(
    "nn.MultiheadAttention",
    lambda: nn.MultiheadAttention(8, 2, batch_first=True),
    (ramp(2, 5, 8), ramp(2, 5, 8) * 2, ramp(2, 5, 8)),
    ((ramp(2, 5, 8) * 3, ramp(2, 5, 8), ramp(2, 5, 8)),),
)
module(
    "nn.TransformerEncoder",
    lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
    ),
    (ramp(2, 5, 8),),
    ((ramp(2, 5, 8) * 2,),),
)
module(
    "nn.Embedding",
    lambda: nn.Sequential(nn.Embedding(10, 4), nn.LayerNorm(4)),
    (torch.tensor([[1, 2], [3, 4]]),),
    ((torch.tensor([[9, 0], [3, 3]]),),),
)


class Beam(nn.Module):
    """A greedy decoder: a loop that stops at a token that the model chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(6, 8)
        self.cell = nn.GRUCell(8, 8)
        self.out = nn.Linear(8, 6)

    def forward(self, start: Tensor, most: int = 12) -> Tensor:
        tokens = torch.zeros(1, most, dtype=torch.int64)
        h = torch.zeros(1, 8)
        token = start
        i = 0
        while i < most:
            h = self.cell(self.embed(token), h)
            token = self.out(h).argmax(1)
            tokens[:, i] = token
            i += 1
            if bool(token == 0):
                break
        return tokens


module("model.greedy_decoder", Beam, (torch.tensor([1]),), ((torch.tensor([2]),), (torch.tensor([5]),)))


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ih = nn.Linear(4, 8)
        self.hh = nn.Linear(8, 8)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        return torch.tanh(self.ih(x) + self.hh(h))


class Rnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell()

    def forward(self, x: Tensor, h: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
        if h is None:
            h = torch.zeros(x.size(1), 8)
        out: List[Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            out.append(h)
        return torch.stack(out), h


module("model.rnn_static", Rnn, (ramp(5, 3, 4),), ((ramp(5, 3, 4) * 2,),))
module("model.rnn_dynamic", Rnn, (ramp(5, 3, 4),), ((ramp(9, 3, 4),), (ramp(2, 3, 4),)), {"x": {0: LONG}})
