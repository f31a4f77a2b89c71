"""Compile times of small modules of ``torch.nn``: ``script`` and the first calls, compared with ``torch.jit``.

Both compilers compile a small program, then a process is forked for each measurement, so that loading the compilers is
not included. The caches on disk are empty, for the small program too: otherwise the compiler would not load all of its
parts, and the forked processes would. A forked process first writes to all pages of memory that hold Python objects;
otherwise the first write of the compiler to a page would copy it. A further process uses the cache that rekindle has
written. Times are processor times; medians over the rounds are reported, in which the compilers alternate.

Work that a compiler leaves to later calls is in the columns of the following calls, up to the fourth.
"""

from __future__ import annotations

import gc
import itertools
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
CALLS: Final = 4
PARTS: Final = ("script", "calls", "following calls")


@dataclass(slots=True)
class FirstUse:
    """Milliseconds by part and compiler, and the medians of ratios over the rounds: ours to ``torch.jit``'s for
    ``script`` and the first calls, the same with all calls, and ours in a second process to that in the first."""

    what: str
    milliseconds: dict[str, dict[str, float]]
    ratio: float
    ratio_of_all: float
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
    found: dict[str, list[list[float]]] = {compiler: [] for compiler in COMPILERS}
    for _ in range(rounds):
        folder = tempfile.mkdtemp()
        for compiler, times in found.items():
            times.append(_forked(case, mode, compiler, folder))
        shutil.rmtree(folder)

    def ratio(one: str, other: str, parts: int = 2) -> float:
        pairs = zip(found[one], found[other], strict=True)
        return statistics.median(sum(a[:parts]) / sum(b[:parts]) for a, b in pairs)

    milliseconds = {
        part: {compiler: statistics.median(each[index] for each in times) for compiler, times in found.items()}
        for index, part in enumerate(PARTS)
    }
    ratios = ratio("rekindle", "torch.jit"), ratio("rekindle", "torch.jit", len(PARTS))
    return FirstUse(case.name, milliseconds, *ratios, ratio("second process", "rekindle"))


def table(rows: Sequence[FirstUse]) -> list[list[Any]]:
    """Return milliseconds by compiler and the ratios, a line for each module. The last line has the medians of the
    ratios."""
    head = ["module", *(f"{name}, {part}" for name in COMPILERS for part in PARTS)]
    head += ["over torch.jit", f"with {CALLS} calls", "second process over first"]
    ratios = [(row.ratio, row.ratio_of_all, row.second_ratio) for row in rows]
    body = [
        [
            row.what,
            *(f"{row.milliseconds[part][name]:.1f}" for name in COMPILERS for part in PARTS),
            *(f"{ratio:.2f}" for ratio in own),
        ]
        for row, own in zip(rows, ratios, strict=True)
    ]
    medians = [statistics.median(column) for column in zip(*ratios, strict=True)]
    return [head, *body, ["median", *[""] * (len(PARTS) * len(COMPILERS)), *(f"{ratio:.2f}" for ratio in medians)]]


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


def _forked(case: ModuleCase, mode: str, compiler: str, folder: str) -> list[float]:
    """Return the milliseconds of each of the parts.

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
    found: list[float] = json.loads(text)
    return found


def _times(case: ModuleCase, mode: str, compiler: str) -> list[float]:
    script, count = COMPILERS[compiler]
    subject = Subject(case, mode)
    with torch.set_grad_enabled(mode == "training"):
        subject.call(subject.module)()
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        ends = [time.process_time()]
        call = subject.call(script(subject.module))
        ends.append(time.process_time())
        for calls in (count, CALLS - count):
            for _ in range(calls):
                call()
            ends.append(time.process_time())
        return [(end - start) * 1e3 for start, end in itertools.pairwise(ends)]
