"""Compile times of small modules of ``torch.nn``: ``script`` and the first calls, compared with ``torch.jit``.

Both compilers compile a small program, then a process is forked for each measurement, so that loading the compilers is
not included. The caches on disk are empty, for the small program too: otherwise the compiler would not load all of its
parts, and the forked processes would. A forked process first writes to all pages of memory that hold Python objects;
otherwise the first write of the compiler to a page would copy it. A further process uses the cache that rekindle has
written. Times are processor times; medians over the rounds are reported, in which the compilers alternate.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import statistics
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

import rekindle
from benchmarks.modules import torch_nn
from benchmarks.modules.case import ModuleCase
from benchmarks.modules.process import Subject

ROUNDS: Final = 3
LOADING_CALLS: Final = 5
CASES: Final = (
    *("GELU", "Hardtanh", "LeakyReLU", "PReLU", "ReLU", "Softmax", "Softplus", "Threshold", "Conv2d"),
    *("ConvTranspose2d", "AvgPool2d", "MaxPool2d", "AdaptiveAvgPool2d", "BatchNorm2d", "InstanceNorm2d", "GroupNorm"),
    *("LayerNorm", "Upsample, bilinear", "Linear", "Bilinear", "Embedding", "EmbeddingBag", "CosineSimilarity"),
    *("GRUCell", "LSTMCell", "LSTM", "MultiheadAttention", "TransformerEncoderLayer", "MSELoss", "CrossEntropyLoss"),
    *("EmbeddingBag and Bilinear", "ConvTranspose, InstanceNorm, Upsample, Conv", "Sequential"),
)
COMPILERS: Final[dict[str, tuple[Callable[[Any], Any], int]]] = {
    "rekindle": (rekindle.script, 1),
    "torch.jit": (torch.jit.script, 2),
    "second process": (rekindle.script, 1),
}
"""What is measured: the compiler, and in how many calls it compiles."""


@dataclass(slots=True)
class FirstUse:
    """Milliseconds of ``script`` and of the first calls by compiler, and the medians of two ratios over the rounds:
    ours to ``torch.jit``'s, and ours in a second process to that in the first."""

    what: str
    script: dict[str, float]
    calls: dict[str, float]
    ratio: float
    second_ratio: float


def run(rounds: int = ROUNDS, mode: str = "training", only: str = "") -> Iterator[FirstUse]:
    """Yield a row for each module."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["REKINDLE_CACHE_DIR"] = folder
        _load()
    cases = {case.name: case for case in torch_nn.CASES}
    for name in CASES:
        if only in name:
            yield _measure(cases[name], mode, rounds)


def _measure(case: ModuleCase, mode: str, rounds: int) -> FirstUse:
    found: dict[str, list[tuple[float, float]]] = {compiler: [] for compiler in COMPILERS}
    for _ in range(rounds):
        folder = tempfile.mkdtemp()
        for compiler, times in found.items():
            times.append(_forked(case, mode, compiler, folder))
        shutil.rmtree(folder)
    totals = {compiler: [sum(each) for each in times] for compiler, times in found.items()}

    def ratio(one: str, other: str) -> float:
        return statistics.median(a / b for a, b in zip(totals[one], totals[other], strict=True))

    script, calls = (
        {compiler: statistics.median(each[index] for each in times) for compiler, times in found.items()}
        for index in range(2)
    )
    return FirstUse(case.name, script, calls, ratio("rekindle", "torch.jit"), ratio("second process", "rekindle"))


def table(rows: Sequence[FirstUse]) -> list[list[Any]]:
    """Return milliseconds by compiler and the ratios, a line for each module. The last line has the medians of the
    ratios."""
    head = ["module", *(f"{name}, {part}" for name in COMPILERS for part in ("script", "calls"))]
    head += ["over torch.jit", "second process over first"]
    body = [
        [
            row.what,
            *(f"{part[name]:.1f}" for name in COMPILERS for part in (row.script, row.calls)),
            f"{row.ratio:.2f}",
            f"{row.second_ratio:.2f}",
        ]
        for row in rows
    ]
    medians = [statistics.median(ratios) for ratios in zip(*((row.ratio, row.second_ratio) for row in rows))]
    return [head, *body, ["median", *[""] * (2 * len(COMPILERS)), *(f"{ratio:.2f}" for ratio in medians)]]


# ------------------------------------------------------------------------------------------------- the forked processes


class _Inference(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * x + self.weight


class _Training(_Inference):
    """Another class, since ``torch.jit`` specializes the graph that modules of one class share in its first calls."""


def _load() -> None:
    for script, _ in COMPILERS.values():
        inference, training = script(_Inference()), script(_Training())
        for _ in range(LOADING_CALLS):
            with torch.no_grad():
                inference(torch.ones(3))
            training(torch.ones(3)).sum().backward()
    gc.collect()
    gc.freeze()


def _forked(case: ModuleCase, mode: str, compiler: str, folder: str) -> tuple[float, float]:
    """Return milliseconds of ``script`` and of the first calls.

    Raises:
        RuntimeError: the process failed; its traceback is on stderr.
    """
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.environ["REKINDLE_CACHE_DIR"] = folder
        try:
            os.write(writer, json.dumps(_times(case, mode, compiler)).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(process, 0)
    if not text:
        raise RuntimeError(f"{compiler} fails on {case.name}")
    script, calls = json.loads(text)
    return script, calls


def _times(case: ModuleCase, mode: str, compiler: str) -> tuple[float, float]:
    script, count = COMPILERS[compiler]
    subject = Subject(case, mode)
    with torch.set_grad_enabled(mode == "training"):
        subject.call(subject.module)()
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        start = time.process_time()
        compiled = script(subject.module)
        scripted = time.process_time()
        call = subject.call(compiled)
        for _ in range(count):
            call()
        return (scripted - start) * 1e3, (time.process_time() - scripted) * 1e3
