"""Models whose compile time is measured. They are narrow, since the sizes of weights do not matter for it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Bottleneck(nn.Module):
    """Three convolutions with a residual connection."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int = 1) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResidualNet(nn.Module):
    """Fifty layers with weights: one convolution, sixteen bottlenecks in four groups, one linear layer."""

    def __init__(self, width: int = 4, classes: int = 10) -> None:
        super().__init__()
        self.inputs = width
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._group(width, 3, 1)
        self.layer2 = self._group(width * 2, 4, 2)
        self.layer3 = self._group(width * 4, 6, 2)
        self.layer4 = self._group(width * 8, 3, 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width * 8 * Bottleneck.expansion, classes)

    def _group(self, width: int, blocks: int, stride: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for index in range(blocks):
            layers.append(Bottleneck(self.inputs, width, stride if index == 0 else 1))
            self.inputs = width * Bottleneck.expansion
        return nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


def residual_net() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return the net of fifty layers and an input for it."""
    return ResidualNet().eval(), (torch.randn(1, 3, 32, 32),)


def transformer_encoder() -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Return a TransformerEncoder of six layers and an input for it."""
    layer = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True)
    return nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval(), (torch.randn(2, 5, 16),)


MODELS = {
    "residual net, 50 layers": residual_net,
    "nn.TransformerEncoder, 6 layers": transformer_encoder,
}
