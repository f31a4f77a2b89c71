"""Twelve small models of the common kinds, with what they are called with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Residual(nn.Module):
    """A network of convolutions whose batch norms keep statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm(self.first(x)))
        y = F.max_pool2d(y + self.second(y), 2)
        return self.head(y.mean((2, 3)))


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(4, 2, 2, stride=2)
        self.out = nn.Conv2d(4, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = F.silu(self.down(x))
        return self.out(torch.cat([self.up(y), x], 1)).sigmoid()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (part.view(b, t, 2, c // 2).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.block = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        return self.block(self.embedding(ids)).mean(1)


class LanguageModel(nn.Module):
    """One whose last layer has the weights of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.attention = Attention()
        self.norm = nn.RMSNorm(16)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        x = x + self.attention(self.norm(x))
        return F.linear(x, self.embedding.weight)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(4, 8, batch_first=True)
        self.out = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.rnn(x)[0][:, -1])


class Cell(nn.Module):
    """A loop in Python over the steps of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(4, 8)

    def forward(self, x: Tensor) -> Tensor:
        h = c = x.new_zeros(x.shape[0], 8)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return h


class Autoencoder(nn.Module):
    """A variational one: it draws random numbers, and gives two results in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(8, 4)
        self.decoder = nn.Linear(2, 8)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        mean, variance = self.encoder(x).chunk(2, -1)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * variance)
        return {"x": self.decoder(z), "loss": -0.5 * (1 + variance - mean**2 - variance.exp()).mean()}


class Mixture(nn.Module):
    """Experts, of which the input chooses."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(8, 3)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        every = torch.stack([expert(x) for expert in self.experts], 1)
        taken = every.gather(1, chosen.unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        return (taken * weights.unsqueeze(-1)).sum(1)


class GraphNetwork(nn.Module):
    """Messages along edges, added up at the nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(8, 4)
        self.update = nn.Linear(8, 4)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        source, target = edges[0], edges[1]
        messages = F.leaky_relu(self.message(torch.cat([x[source], x[target]], -1)))
        gathered = torch.zeros_like(x).index_add(0, target, messages)
        return self.update(torch.cat([x, gathered], -1))


class Spectral(nn.Module):
    """A layer in the space of frequencies, in complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 2) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.fft.rfft(x) * torch.view_as_complex(self.weight)
        return torch.fft.irfft(y, n=x.shape[-1]) + x


@dataclass(frozen=True, slots=True)
class Subject:
    """A model and its inputs: ``inputs(n)`` gives a batch of ``n``."""

    make: Callable[[], nn.Module]
    inputs: Callable[[int], tuple[Tensor, ...]]


def _ids(n: int) -> tuple[Tensor, ...]:
    return (torch.randint(0, 20, (n, 6)),)


MODELS: dict[str, Subject] = {
    "perceptron": Subject(Perceptron, lambda n: (torch.randn(n, 8),)),
    "residual": Subject(Residual, lambda n: (torch.randn(n, 3, 8, 8),)),
    "unet": Subject(UNet, lambda n: (torch.randn(n, 2, 8, 8),)),
    "attention": Subject(Attention, lambda n: (torch.randn(n, 5, 16),)),
    "encoder": Subject(Encoder, _ids),
    "language model": Subject(LanguageModel, _ids),
    "recurrent": Subject(Recurrent, lambda n: (torch.randn(n, 5, 4),)),
    "cell": Subject(Cell, lambda n: (torch.randn(n, 3, 4),)),
    "autoencoder": Subject(Autoencoder, lambda n: (torch.randn(n, 8),)),
    "mixture": Subject(Mixture, lambda n: (torch.randn(n, 8),)),
    "graph network": Subject(GraphNetwork, lambda n: (torch.randn(n, 4), torch.randint(0, n, (2, 7)))),
    "spectral": Subject(Spectral, lambda n: (torch.randn(n, 8),)),
}
