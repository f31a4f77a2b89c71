"""The archives that mutants are made of: the golden ones of all releases, and some that are written here."""

import io
from dataclasses import dataclass
from functools import cache
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

import rekindle
from tests.archive.golden_archives import golden_archives


@dataclass(frozen=True)
class Seed:
    """An archive that loads."""

    name: str
    data: bytes


class Pair:
    def __init__(self, left: int, right: int):
        self.left = left
        self.right = right

    def swapped(self) -> "Pair":
        return Pair(self.right, self.left)


class Values(nn.Module):
    """Attributes of all kinds, and methods with all statements."""

    table: Dict[str, List[int]]
    maybe: Optional[Tuple[int, float]]

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 3)
        self.register_buffer("steps", torch.arange(6).view(2, 3).t())
        self.register_buffer("brief", torch.ones(3, dtype=torch.bfloat16))
        self.table = {"a": [1, 2], "b": []}
        self.maybe = (1, 2.5)
        self.pair = Pair(1, 2)
        self.words = ["täxt", ""]
        self.mixed = (1, 2.5, True, 3j, -(2**40), "x", torch.device("cpu"))

    def forward(self, x: Tensor, times: int = 3, scale: float = 0.5) -> Tuple[Tensor, int]:
        total = 0
        for i in range(times):
            if i == 2:
                continue
            total += i
            x = self.linear(x)[:, :2] * scale
        while total > 10:
            total -= 1
        assert total < 100, "too many"
        found = [n * 2 for n in self.table["a"]]
        return x + torch.tensor(self.pair.swapped().left), total + len(found)

    @torch.jit.export
    def lookup(self, name: str) -> int:
        values = self.table.get(name)
        if values is None:
            raise ValueError(f"no {name}")
        return values[0]


class Kept(nn.Module):
    """It makes its objects with ``__setstate__``."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.total = 0

    @torch.jit.export
    def __getstate__(self) -> Tuple[Tensor, List[int], Dict[str, Tensor], bool]:
        return self.weight, [1, 2, 3], {"a": self.weight}, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[Tensor, List[int], Dict[str, Tensor], bool]):
        self.weight = torch.zeros_like(state[0]) + state[2]["a"]
        total = 0
        for n in state[1]:
            total += n * 2
        self.total = total
        self.training = state[3]

    def forward(self):
        return self.weight + self.total


def _written_by_torch(module: nn.Module) -> bytes:
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(module), buffer)
    return buffer.getvalue()


def _frozen() -> bytes:
    """Weights that are constants of the program."""
    buffer = io.BytesIO()
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()
    torch.jit.save(torch.jit.freeze(torch.jit.script(model)), buffer)
    return buffer.getvalue()


@cache
def seeds() -> list[Seed]:
    """All of them, always in the same order."""
    torch.manual_seed(0)
    fresh = [
        Seed("fresh/values_by_torch", _written_by_torch(Values())),
        Seed("fresh/values_by_rekindle", rekindle.script(Values()).save_to_buffer()),
        Seed("fresh/kept_by_torch", _written_by_torch(Kept())),
        Seed("fresh/kept_by_rekindle", rekindle.script(Kept()).save_to_buffer()),
        Seed("fresh/frozen_by_torch", _frozen()),
        Seed("fresh/recurrent_by_rekindle", rekindle.script(nn.LSTM(2, 2)).save_to_buffer()),
    ]
    return fresh + [Seed(golden.name, golden.path.read_bytes()) for golden in golden_archives()]
