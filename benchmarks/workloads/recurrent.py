"""Recurrent networks."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.workloads.case import Case, Workload

_F = torch._C._VariableFunctions
_split = Tensor.chunk


def lstm_cell(
    x: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the LSTM cell of the TorchScript overview."""
    gates = x.mm(w_ih.t()) + hx.mm(w_hh.t()) + b_ih + b_hh
    i, f, g, o = gates.chunk(4, 1)
    cy = torch.sigmoid(f) * cx + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cy), cy


def lstm_cell_by_hand(
    x: Tensor, hx: Tensor, cx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> tuple[Tensor, Tensor]:
    gates = _F.add(_F.add(_F.add(_F.mm(x, _F.t(w_ih)), _F.mm(hx, _F.t(w_hh))), b_ih), b_hh)
    i, f, g, o = _F.chunk(gates, 4, 1)
    cy = _F.add(_F.mul(_F.sigmoid(f), cx), _F.mul(_F.sigmoid(i), _F.tanh(g)))
    return _F.mul(_F.sigmoid(o), _F.tanh(cy)), cy


def lstm_loop(
    x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> tuple[Tensor, Tensor]:
    """Run an LSTM over x [time, batch, features]; return the outputs [time, batch, hidden] and the last c."""
    outputs: list[Tensor] = []
    for t in range(x.size(0)):
        gates = x[t].mm(w_ih.t()) + h.mm(w_hh.t()) + b_ih + b_hh
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), c


def lstm_loop_by_hand(
    x: Tensor, h: Tensor, c: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor, b_hh: Tensor
) -> tuple[Tensor, Tensor]:
    add, mul, mm, sigmoid, tanh, select = _F.add, _F.mul, _F.mm, _F.sigmoid, _F.tanh, _F.select
    chunk, transposed = _F.chunk, _F.t
    outputs = []
    for t in range(x.size(0)):
        gates = add(add(add(mm(select(x, 0, t), transposed(w_ih)), mm(h, transposed(w_hh))), b_ih), b_hh)
        i, f, g, o = chunk(gates, 4, 1)
        c = add(mul(sigmoid(f), c), mul(sigmoid(i), tanh(g)))
        h = mul(sigmoid(o), tanh(c))
        outputs.append(h)
    return _F.stack(outputs), c


class Sequence(nn.Module):
    """``nn.LSTM`` in a module, since ``torch.jit`` cannot call a bare ``nn.LSTM`` from Python."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(64, 64, num_layers=2)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = self.lstm(x)
        return outputs


class Decoder(nn.Module):
    """A greedy decoder, which emits tokens until the last one."""

    def __init__(self, words: int = 50, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.step = nn.Linear(2 * width, width)
        self.gate = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, words)
        self.end = 0
        self.longest = 60

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor]:
        token = torch.ones([state.size(0)], dtype=torch.long)
        written: list[Tensor] = []
        going = True
        while going and len(written) < self.longest:
            both = torch.cat([self.embedding(token), state], 1)
            gate = torch.sigmoid(self.gate(both))
            state = gate * state + (1.0 - gate) * torch.tanh(self.step(both))
            token = self.out(state).argmax(1)
            written.append(token)
            going = bool((token != self.end).any())
        return torch.stack(written), state


def _cell_arguments(batch: int, width: int) -> tuple[Tensor, ...]:
    shapes = [(batch, width)] * 3 + [(4 * width, width)] * 2 + [(4 * width,)] * 2
    return tuple(torch.randn(*shape) / width**0.5 for shape in shapes)


def _cell(batch: int, width: int) -> Case:
    return Case(lstm_cell, _cell_arguments(batch, width), by_hand=lstm_cell_by_hand)


def _loop(steps: int, width: int) -> Case:
    _, *rest = _cell_arguments(1, width)
    return Case(lstm_loop, (torch.randn(steps, 1, width), *rest), by_hand=lstm_loop_by_hand)


def _decoder() -> Case:
    return Case(Decoder().eval(), (torch.randn(2, 32),))


def _library_lstm() -> Case:
    return Case(Sequence().eval(), (torch.randn(50, 1, 64),))


RECURRENT: tuple[Workload, ...] = (
    *(
        Workload(f"LSTM cell, {batch}×{width}", partial(_cell, batch, width))
        for batch, width in ((1, 16), (4, 64), (64, 128), (64, 512))
    ),
    Workload("LSTM, 100 steps, 1×64", partial(_loop, 100, 64)),
    Workload("nn.LSTM, 2 layers, 50×1×64", _library_lstm),
    Workload("decoder until a word, 2×32", _decoder),
)
