"""Feed-forward networks: perceptrons, attention, transformers, convolutions."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks import bert
from benchmarks.models import ResidualNet
from benchmarks.workloads.case import Case, Workload

_F = torch._C._VariableFunctions
_linear: Any = torch._C._nn.linear
_gelu: Any = torch._C._nn.gelu


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute attention, written out, of q, k, v [batch, heads, length, width]."""
    scores = torch.matmul(q, k.transpose(-2, -1)) / (q.size(-1) ** 0.5)
    return torch.matmul(torch.softmax(scores, dim=-1), v)


def attention_by_hand(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = _F.div(_F.matmul(q, _F.transpose(k, -2, -1)), q.size(-1) ** 0.5)
    return _F.matmul(_F.softmax(scores, -1), v)


class GeluMLP(nn.Module):
    """A wider linear layer, GELU, and a linear layer back to the width of the input."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """A transformer block: attention over a sequence, then two linear layers, each with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.second_norm = nn.LayerNorm(width)
        self.mlp = GeluMLP(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.size(0), x.size(1), x.size(2)
        q, k, v = self.qkv(self.first_norm(x)).chunk(3, dim=-1)
        shape = [batch, length, self.heads, width // self.heads]
        q, k, v = q.view(shape).transpose(1, 2), k.view(shape).transpose(1, 2), v.view(shape).transpose(1, 2)
        mixed = attention(q, k, v).transpose(1, 2).reshape([batch, length, width])
        x = x + self.out(mixed)
        return x + self.mlp(self.second_norm(x))


def _mlp_by_hand(model: nn.Sequential) -> Any:
    (w1, b1), (w2, b2), (w3, b3) = [(layer.weight, layer.bias) for layer in (model[0], model[2], model[4])]
    relu = _F.relu

    def run(x: Tensor) -> Tensor:
        return _linear(relu(_linear(relu(_linear(x, w1, b1)), w2, b2)), w3, b3)

    return run


def _gelu_mlp_by_hand(model: Any) -> Any:
    w1, b1, w2, b2 = model.up.weight, model.up.bias, model.down.weight, model.down.bias

    def run(x: Tensor) -> Tensor:
        return _linear(_gelu(_linear(x, w1, b1)), w2, b2)

    return run


def _block_by_hand(model: Any) -> Any:
    heads = model.heads
    first = [model.first_norm.weight, model.first_norm.bias]
    second = [model.second_norm.weight, model.second_norm.bias]
    qkv_w, qkv_b, out_w, out_b = model.qkv.weight, model.qkv.bias, model.out.weight, model.out.bias
    up_w, up_b, down_w, down_b = model.mlp.up.weight, model.mlp.up.bias, model.mlp.down.weight, model.mlp.down.bias
    norm, chunk, view, transpose, reshape = _F.layer_norm, _F.chunk, Tensor.view, _F.transpose, _F.reshape
    matmul, softmax, div, add, size = _F.matmul, _F.softmax, _F.div, _F.add, Tensor.size

    def run(x: Tensor) -> Tensor:
        batch, length, width = size(x, 0), size(x, 1), size(x, 2)
        q, k, v = chunk(_linear(norm(x, (width,), *first), qkv_w, qkv_b), 3, -1)
        shape = (batch, length, heads, width // heads)
        q = transpose(view(q, shape), 1, 2)
        k = transpose(view(k, shape), 1, 2)
        v = transpose(view(v, shape), 1, 2)
        scores = div(matmul(q, transpose(k, -2, -1)), size(q, -1) ** 0.5)
        mixed = reshape(transpose(matmul(softmax(scores, -1), v), 1, 2), (batch, length, width))
        x = add(x, _linear(mixed, out_w, out_b))
        return add(x, _linear(_gelu(_linear(norm(x, (width,), *second), up_w, up_b)), down_w, down_b))

    return run


def _attention() -> Case:
    return Case(attention, tuple(torch.randn(2, 4, 32, 16) for _ in range(3)), by_hand=attention_by_hand)


def _mlp() -> Case:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)).eval()
    return Case(model, (torch.randn(1, 64),), by_hand=_mlp_by_hand(model))


def _gelu_mlp() -> Case:
    model = GeluMLP(256, 1024).eval()
    return Case(model, (torch.randn(32, 256),), by_hand=_gelu_mlp_by_hand(model))


def _block(batch: int, length: int, width: int, heads: int) -> Case:
    model = Block(width, heads).eval()
    return Case(model, (torch.randn(batch, length, width),), by_hand=_block_by_hand(model))


def _residual_net() -> Case:
    return Case(ResidualNet(width=8).eval(), (torch.randn(1, 3, 64, 64),))


def _bert_layer() -> Case:
    return Case(bert.Layer().eval(), (torch.randn(1, 32, bert.WIDTH), torch.zeros(1, 1, 1, 32)), is_traced=True)


NETWORKS: tuple[Workload, ...] = (
    Workload("attention, written out, 2×4×32×16", _attention),
    Workload("MLP, batch of 1", _mlp),
    Workload("GELU MLP, 32×256", _gelu_mlp),
    Workload("transformer block, 16×64", partial(_block, 1, 16, 64, 4)),
    Workload("transformer block, 4×128×256", partial(_block, 4, 128, 256, 8)),
    Workload("residual net, 50 layers", _residual_net),
    Workload("BERT layer, traced, 32 words", _bert_layer),
)
