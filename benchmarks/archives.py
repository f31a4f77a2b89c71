"""Time to load and save archives, compared with ``torch.jit``: 100 MB of tensors, a module with 300 parts of a few
classes, and one whose 300 parts have over a hundred classes.

Each round runs rekindle and ``torch.jit`` in turn; medians over the rounds are reported. The archives were written by
``torch.jit`` and are in the page cache of the system when they are loaded.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import rekindle

BLOCKS = 100


class Block(nn.Module):
    """A linear map, a normalization and an activation."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.norm = nn.BatchNorm1d(8)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.linear(x))
        if x.numel() > 1_000:
            return self.norm(x) * self.factor
        return self.norm(x) + x


def heavy() -> nn.Module:
    """Return a module with 100 MB of weights."""
    return nn.Sequential(*(nn.Linear(1_250, 2_000), nn.Linear(2_000, 2_500), nn.Linear(2_500, 7_000)))


def equal_parts() -> nn.Module:
    return nn.Sequential(*(Block() for _ in range(BLOCKS)))


def different_parts() -> nn.Module:
    """Return a sequence of blocks, each of a class of its own, since each has another constant."""

    def block(index: int) -> nn.Module:
        name = f"Block{index}"
        return type(name, (Block,), {"__module__": __name__, "__constants__": ["factor"]})(float(index))

    return nn.Sequential(*(block(index) for index in range(BLOCKS)))


PROGRAMS: dict[str, Callable[[], nn.Module]] = {
    "100 MB of weights": heavy,
    "300 parts of 4 classes": equal_parts,
    "300 parts of 103 classes": different_parts,
}


@dataclass(slots=True)
class Row:
    """Milliseconds of loading or saving an archive, in rekindle and in ``torch.jit``."""

    what: str
    rekindle: float
    torch_jit: float

    @property
    def ratio(self) -> float:
        """The time of rekindle divided by that of ``torch.jit``."""
        return self.rekindle / self.torch_jit


def run(rounds: int = 10) -> list[Row]:
    """Measure all programs for ``rounds`` rounds, which takes about half a minute."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in PROGRAMS.items():
            rows += _program(name, make(), Path(folder), rounds)
    return rows


def _program(name: str, module: nn.Module, folder: Path, rounds: int) -> list[Row]:
    theirs, ours = torch.jit.script(module), rekindle.script(module)
    path = str(folder / "model.pt")
    theirs.save(path)
    _check(path, module)
    here, there = str(folder / "here.pt"), str(folder / "there.pt")
    tasks: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        f"load {name}": (lambda: rekindle.load(path), lambda: torch.jit.load(path)),
        f"save {name}": (lambda: ours.save(here), lambda: theirs.save(there)),
    }
    return [Row(what, *_medians(candidates, rounds)) for what, candidates in tasks.items()]


def _check(path: str, module: nn.Module) -> None:
    """Assert that both compilers load modules that return what the module returns."""
    x = torch.randn(4, next(module.parameters()).shape[1])
    expected = module.eval()(x)
    for load in (rekindle.load, torch.jit.load):
        torch.testing.assert_close(load(path).eval()(x), expected)


def _medians(candidates: tuple[Callable[[], object], ...], rounds: int) -> list[float]:
    """Return the median milliseconds of each candidate."""
    times: list[list[float]] = [[] for _ in candidates]
    for round in range(rounds + 1):
        for candidate, found in zip(candidates, times, strict=True):
            start = time.perf_counter()
            made = candidate()
            if round >= 1:  # the first round warms up
                found.append(time.perf_counter() - start)
            del made
    return [statistics.median(found) * 1e3 for found in times]


def table(rows: list[Row]) -> list[list[str]]:
    """Return the rows as text, after a row of column names."""
    head = ["archive", "rekindle, ms", "torch.jit, ms", "ratio"]
    return [head, *([row.what, f"{row.rekindle:.1f}", f"{row.torch_jit:.1f}", f"{row.ratio:.2f}"] for row in rows)]


if __name__ == "__main__":
    for line in table(run()):
        print(f"{line[0]:<40}" + "".join(f"{cell:>15}" for cell in line[1:]))
