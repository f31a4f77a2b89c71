"""``torch.compile`` with rekindle's backend, compared with Inductor: the first call with empty caches, and later calls.

Each peer compiles each model in a process of its own with empty caches on disk, after a small model has loaded the
compiler. The first call is timed by the wall clock, since Inductor compiles in other processes: first a call without
gradients, then a forward and a backward. Later calls alternate with eager ones, on one thread, timed by its clock.

The peer ``dynamo`` is a backend that compiles nothing. Its time is that of capturing the program and of checking the
guards of the capture, which every backend needs.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

import rekindle
from benchmarks.execution import interleaved
from benchmarks.training import SUBJECTS, Subject

ROOT: Final = Path(__file__).parent.parent
MAX_SECONDS: Final = 600
"""Seconds that a process may take."""
ROUNDS: Final = 15
MODELS: Final = (
    *("LSTM cell 1x32", "LSTM cell 32x256", "loop LSTM, T=100, 1x32"),
    *("transformer block 1x16x64", "transformer block 4x64x128", "residual network 16x1x8x8"),
    *("nn.TransformerEncoderLayer 8x64x256", "nn.TransformerDecoder, 4 layers, 4x12x64", "GPT, two blocks, 8x64x128"),
    *("MobileNetV3, 4x3x64x64", "VAE, 128x784", "DLRM, 8 tables, 128x16", "PPO's loss, 256x16"),
)
"""The models that are measured, by their names among the training programs. Dynamo unrolls loops, and Inductor then
compiles for minutes: one model with a loop shows it."""
PEERS: Final = ("dynamo", "rekindle", "rekindle, ahead of time", "inductor")


@dataclass(slots=True)
class Row:
    """``first`` has the seconds of the first call, ``times`` the median ratios of later calls to eager, by peer. Peers
    that take longer than :data:`MAX_SECONDS` for the model are omitted."""

    what: str
    first: dict[str, float] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Rekindle's time divided by Inductor's; by eager's if Inductor was not measured."""
        return self.times.get("rekindle", math.nan) / self.times.get("inductor", 1.0)


def run(rounds: int = ROUNDS, named: str = "", peers: Sequence[str] = PEERS) -> Iterator[Row]:
    """Yield two rows for each model: inference, and forward with backward."""
    for number, subject in enumerate(SUBJECTS):
        if subject.name not in MODELS or named not in subject.name:
            continue
        rows = [Row(f"{subject.name}, {what}") for what in ("inference", "training")]
        for peer in peers:
            told = _process(number, peer, rounds)
            for row, (first, part) in zip(rows, told, strict=False):
                row.first[peer], row.times[peer] = first, part
        yield from rows


def _process(number: int, peer: str, rounds: int) -> list[list[float]]:
    """Return the seconds of the first call and the ratio of later ones, for both rows of a model. Return an empty list
    if the process takes longer than :data:`MAX_SECONDS`."""
    with tempfile.TemporaryDirectory() as caches:
        environment = {**os.environ, "REKINDLE_CACHE_DIR": caches, "TORCHINDUCTOR_CACHE_DIR": caches}
        command = [sys.executable, "-m", "benchmarks.compiled", str(number), peer, str(rounds)]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, timeout=MAX_SECONDS, check=False, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            return []
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
    found: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line of text for each row, after a row of column names."""
    names = list(dict.fromkeys(name for row in rows for name in row.times))
    lines = [["model", *(f"{name}, first call, s" for name in names), *(f"{name} / eager" for name in names)]]
    for row in rows:
        lines.append(
            [
                row.what,
                *(f"{found[name]:.2f}" if name in found else "–" for found in (row.first, row.times) for name in names),
            ]
        )
    means = [statistics.geometric_mean(row.first[name] for row in rows if name in row.first) for name in names]
    parts = [statistics.geometric_mean(row.times[name] for row in rows if name in row.times) for name in names]
    return [*lines, ["geometric mean", *(f"{each:.2f}" for each in (*means, *parts))]]


# ------------------------------------------------------------------------------------------------------ in the process


_BACKENDS: Final = {"dynamo": "eager", "inductor": "inductor"}


def _compiled(model: nn.Module, peer: str) -> Callable[..., Any]:
    if peer in _BACKENDS:
        return torch.compile(model, backend=_BACKENDS[peer])  # type: ignore[no-any-return]
    options = {"ahead_of_time": True} if peer != "rekindle" else None
    return torch.compile(model, backend=rekindle.backend, options=options)  # type: ignore[no-any-return]


def _calls(model: Callable[..., Any], subject: Subject) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return two functions: a call without gradients, and one with the backward pass."""
    arguments = subject.arguments()
    parameters = list(model.parameters())  # type: ignore[attr-defined]

    def infer() -> None:
        with torch.no_grad():
            model(*arguments)

    def step() -> None:
        for parameter in parameters:
            parameter.grad = None
        model(*arguments).backward()

    return infer, step


class _Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.linear(x)).sum()


def _main(number: int, peer: str, rounds: int) -> int:
    torch.set_num_threads(1)
    torch.manual_seed(3)
    small = Subject("", _Small, lambda: (torch.randn(2, 3),))
    for call in _calls(_compiled(_Small(), peer), small):
        for _ in range(4):
            call()
    subject = SUBJECTS[number]
    model = subject.model()
    told = []
    for ours, eager in zip(_calls(_compiled(model, peer), subject), _calls(model, subject), strict=True):
        start = time.perf_counter()
        ours()
        first = time.perf_counter() - start
        for _ in range(6):  # compiles, and looks again
            ours()
            eager()
        times = interleaved([eager, ours], rounds, 0.02, time.thread_time)
        told.append([first, statistics.median([b / a for a, b in zip(*times, strict=True)])])
    print(json.dumps(told))
    return 0


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
