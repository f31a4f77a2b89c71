"""Networks for the comparison of inference runtimes. Weights are random: nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks import bert
from benchmarks.workloads.networks import Block
from benchmarks.workloads.recurrent import lstm_loop


@dataclass(frozen=True, slots=True)
class Network:
    """A name, and a function that creates the module and its arguments. With ``is_traced`` the module is traced,
    otherwise scripted."""

    name: str
    make: Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]
    is_traced: bool = False


class Loop(nn.Module):
    """An LSTM as a loop over its cell, whose weights are parameters."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.w_ih = nn.Parameter(torch.randn(4 * width, width) / width**0.5)
        self.w_hh = nn.Parameter(torch.randn(4 * width, width) / width**0.5)
        self.b_ih = nn.Parameter(torch.randn(4 * width))
        self.b_hh = nn.Parameter(torch.randn(4 * width))

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        return lstm_loop(x, h, c, self.w_ih, self.w_hh, self.b_ih, self.b_hh)


class Residual(nn.Module):
    """Two convolutions and a residual connection with a convolution."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)) + self.shortcut(x))


class SmallResidualNet(nn.Module):
    """13 convolutions for images of 32×32."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.body = nn.Sequential(Residual(32, 32, 1), Residual(32, 64, 2), Residual(64, 128, 2), Residual(128, 256, 2))
        self.head = nn.Linear(256, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(self.stem(x)).mean((2, 3)))


class DecoderLayer(nn.Module):
    """A block of GPT-2 for one new position: x [1, 1, width], the past [2, 1, heads, length, width of a head]."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.second_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.first_norm(x)).split(width, dim=2)
        q = q.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        k = k.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        v = v.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        mixed = F.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.second_norm(x)), approximate="tanh")), torch.stack([k, v])


class Decoder(nn.Module):
    """GPT-2, the small one: 12 layers, 124 million parameters. One step, with what earlier steps computed.

    A token [1, 1] and its position [1], the past [layers, 2, 1, heads, length, width of a head] -> the logits of the
    next token, the past with this position.
    """

    def __init__(self, width: int = 768, heads: int = 12, layers: int = 12, words: int = 50257) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(1024, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, token: Tensor, position: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        x = self.words(token) + self.positions(position)
        present: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            x, new = layer(x, past[number])
            present.append(new)
        return self.head(self.norm(x)), torch.stack(present)


class EncoderLayer(nn.Module):
    """A layer of Whisper's encoder: normalization first, no mask, keys without a bias."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first_norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.second_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def split(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first_norm(x)
        q, k, v = self.split(self.query(y)), self.split(self.key(y)), self.split(self.value(y))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.second_norm(x))))


def _twice(inputs: int, outputs: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for first in (inputs, outputs):
        layers += [nn.Conv2d(first, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Four levels down, by pooling, and up, by transposed convolutions; each level is concatenated on the way up."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        widths = [width << level for level in range(5)]
        self.down1, self.down2 = _twice(3, widths[0]), _twice(widths[0], widths[1])
        self.down3, self.down4 = _twice(widths[1], widths[2]), _twice(widths[2], widths[3])
        self.middle = _twice(widths[3], widths[4])
        self.wider4, self.up4 = nn.ConvTranspose2d(widths[4], widths[3], 2, 2), _twice(widths[4], widths[3])
        self.wider3, self.up3 = nn.ConvTranspose2d(widths[3], widths[2], 2, 2), _twice(widths[3], widths[2])
        self.wider2, self.up2 = nn.ConvTranspose2d(widths[2], widths[1], 2, 2), _twice(widths[2], widths[1])
        self.wider1, self.up1 = nn.ConvTranspose2d(widths[1], widths[0], 2, 2), _twice(widths[1], widths[0])
        self.out = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.down1(x)
        second = self.down2(F.max_pool2d(first, 2))
        third = self.down3(F.max_pool2d(second, 2))
        fourth = self.down4(F.max_pool2d(third, 2))
        y = self.middle(F.max_pool2d(fourth, 2))
        y = self.up4(torch.cat([fourth, self.wider4(y)], 1))
        y = self.up3(torch.cat([third, self.wider3(y)], 1))
        y = self.up2(torch.cat([second, self.wider2(y)], 1))
        return self.out(self.up1(torch.cat([first, self.wider1(y)], 1)))


def _mlp() -> tuple[nn.Module, tuple[Tensor, ...]]:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, (torch.randn(1, 64),)


def _block(batch: int, length: int, width: int, heads: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Block(width, heads), (torch.randn(batch, length, width),)


def _loop() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Loop(64), (torch.randn(100, 1, 64), torch.randn(1, 64), torch.randn(1, 64))


def _small_residual_net(batch: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return SmallResidualNet(), (torch.randn(batch, 3, 32, 32),)


def _torchvision(name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    import torchvision

    model: Any = torchvision.models.get_model(name, weights=None)
    return model, (torch.randn(1, 3, 224, 224),)


def _bert_layer(length: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return bert.Layer(), (torch.randn(1, length, bert.WIDTH), torch.zeros(1, 1, 1, length))


def _decoder(past: int) -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Decoder(), (torch.tensor([[11]]), torch.tensor([past]), torch.randn(12, 2, 1, 12, past, 64))


def _unet() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return UNet(), (torch.randn(1, 3, 128, 128),)


def _encoder_layer() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return EncoderLayer(384, 6), (torch.randn(1, 1500, 384),)


NETWORKS: Final = (
    Network("MLP, batch of 1", _mlp),
    Network("transformer block, 16×64", partial(_block, 1, 16, 64, 4)),
    Network("LSTM, 100 steps, 1×64", _loop),
    Network("transformer block, 4×128×256", partial(_block, 4, 128, 256, 8)),
    Network("residual net, 1×3×32×32", partial(_small_residual_net, 1)),
    Network("residual net, 16×3×32×32", partial(_small_residual_net, 16)),
    Network("ResNet-18, 224", partial(_torchvision, "resnet18")),
    Network("ResNet-50, 224", partial(_torchvision, "resnet50")),
    Network("MobileNetV3 large, 224", partial(_torchvision, "mobilenet_v3_large")),
    Network("EfficientNet-B0, 224", partial(_torchvision, "efficientnet_b0")),
    Network("BERT-base layer, 32 tokens", partial(_bert_layer, 32), is_traced=True),
    Network("BERT-base layer, 128 tokens", partial(_bert_layer, 128), is_traced=True),
    Network("GPT-2, a step after 128 tokens", partial(_decoder, 128)),
    Network("U-Net, 1×3×128×128", _unet),
    Network("Whisper tiny encoder layer, 1500×384", _encoder_layer),
)


def prepared(network: Network) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return the network in evaluation mode and its arguments, from a seed.

    Statistics of batch normalizations are those of random batches, as in a trained network: numbers neither vanish nor
    grow from layer to layer.
    """
    torch.manual_seed(0)
    module, arguments = network.make()
    norms = [part for part in module.modules() if isinstance(part, nn.BatchNorm2d)]
    if norms:
        for norm in norms:
            norm.momentum = 1.0
        module.train()
        with torch.no_grad():
            image, *others = arguments
            module(torch.cat([image, torch.randn_like(image)]), *others)
    return module.eval(), arguments
