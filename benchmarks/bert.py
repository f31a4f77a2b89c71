"""BERT-base: 12 layers, 768 features, 12 heads, 110 million random weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, VOCABULARY, LENGTH = 768, 12, 12, 30522, 512


class Embeddings(nn.Module):
    """Sum of the embeddings of tokens, positions and segments."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        self.places = nn.Embedding(LENGTH, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("indices", torch.arange(LENGTH)[None], persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        length = tokens.size(1)
        places = self.places(self.indices[:, :length])
        return self.dropout(self.norm(self.words(tokens) + places + self.segments(torch.zeros_like(tokens))))


class Attention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def heads(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, HEADS, width // HEADS).transpose(1, 2)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        query, key, value = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).reshape(x.size(0), x.size(1), WIDTH))


class Layer(nn.Module):
    """Attention and two linear maps, each with a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = Attention()
        self.first_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.second_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.first_norm(x + self.dropout(self.attention(x, mask)))
        return self.second_norm(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Bert(nn.Module):
    """The model. Takes tokens and a mask, both [batch, length]; returns the features, and those of the first token
    after a linear map and tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embeddings(tokens)
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pooler(x[:, 0]))


def bert(batch: int = 8, length: int = 128) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return the model and an input for it."""
    tokens = torch.randint(1, VOCABULARY, (batch, length))
    mask = (torch.arange(length) < torch.randint(length // 2, length + 1, (batch, 1))).long()
    return Bert().eval(), (tokens, mask)
