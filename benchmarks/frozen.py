"""Networks in eager; compiled, frozen and optimized for inference by rekindle; frozen and optimized by ``torch.jit``.

Each round runs each candidate once; the median over the rounds of the ratio to eager in the same round is reported. The
clock is that of the one thread, which does not count the time of other processes.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

import rekindle

ROUNDS: Final = 30


class Residual(nn.Module):
    """The block of a ResNet-18."""

    def __init__(self, width: int, wide: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, wide, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(wide)
        self.relu = nn.ReLU(inplace=True)
        self.down: nn.Module | None = None
        if stride > 1:
            self.down = nn.Sequential(nn.Conv2d(width, wide, 1, stride, bias=False), nn.BatchNorm2d(wide))

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.down is not None:
            x = self.down(x)
        return self.relu(y + x)


def residual(width: int = 64) -> nn.Module:
    """Return a ResNet-18 whose first layer has ``width`` channels."""
    layers: list[nn.Module] = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
    layers.append(nn.MaxPool2d(3, 2, 1))
    for stage in range(4):
        before, wide = width << max(stage - 1, 0), width << stage
        layers += [Residual(before, wide, 2 if stage else 1), Residual(wide, wide, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width << 3, 1000))


def perceptron(width: int) -> nn.Module:
    """Return six linear maps, each with a normalization and a relu."""
    parts = [part for _ in range(6) for part in (nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU())]
    return nn.Sequential(*parts)


@dataclass(frozen=True, slots=True)
class Network:
    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]


NETWORKS: Final = (
    Network("ResNet-18, 1 x 224 x 224", residual, (1, 3, 224, 224)),
    Network("ResNet-18, 4 x 96 x 96", residual, (4, 3, 96, 96)),
    Network("ResNet-18 of width 8, 1 x 64 x 64", lambda: residual(8), (1, 3, 64, 64)),
    Network("perceptron of width 64, 1 row", lambda: perceptron(64), (1, 64)),
    Network("perceptron of width 512, 64 rows", lambda: perceptron(512), (64, 512)),
)


@dataclass(slots=True)
class Row:
    """Median microseconds of a network in eager, and the median ratios of the others to it."""

    network: str
    eager: float
    ratios: dict[str, float]

    @property
    def ratio(self) -> float:
        """The time of the module that is optimized for inference divided by eager's."""
        return self.ratios["rekindle.optimize_for_inference"]


def candidates(module: nn.Module) -> dict[str, Callable[[Tensor], Any]]:
    compiled = rekindle.script(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.jit.script(module)
        return {
            "eager": module,
            "rekindle": compiled,
            "rekindle.freeze": rekindle.freeze(compiled),
            "rekindle.optimize_for_inference": rekindle.optimize_for_inference(compiled),
            "torch.jit.freeze": torch.jit.freeze(theirs),
            "torch.jit.optimize_for_inference": torch.jit.optimize_for_inference(theirs),
        }


def measure(network: Network, rounds: int = ROUNDS) -> Row:
    torch.manual_seed(0)
    module = network.make().eval()
    x = torch.randn(network.shape)
    times: dict[str, list[float]] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            functions = candidates(module)
            expected = module(x)
            for function in functions.values():
                for _ in range(4):
                    found = function(x)
                torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
            for _ in range(rounds):
                for name, function in functions.items():
                    start = time.thread_time()
                    function(x)
                    times.setdefault(name, []).append(time.thread_time() - start)
    finally:
        torch.set_num_threads(threads)
    eager = times["eager"]
    ratios = {
        name: statistics.median(own / base for own, base in zip(found, eager, strict=True))
        for name, found in times.items()
        if name != "eager"
    }
    return Row(network.name, statistics.median(eager) * 1e6, ratios)


def run(rounds: int = ROUNDS) -> list[Row]:
    return [measure(network, rounds) for network in NETWORKS]


def table(rows: list[Row]) -> list[list[str]]:
    names = list(rows[0].ratios)
    lines = [["network", "eager, us", *names]]
    for row in rows:
        lines.append([row.network, f"{row.eager:.0f}", *(f"{row.ratios[name]:.2f}" for name in names)])
    return lines
