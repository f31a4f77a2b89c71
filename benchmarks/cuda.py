"""Programs on a GPU: eager, ``torch.jit``, Inductor and rekindle, in turn in each round.

    python -m benchmarks.cuda                   everything; writes benchmarks/results/cuda.json
    python -m benchmarks.cuda --only rows       one part: bandwidth, rows, launches, models or training
    python -m benchmarks.cuda --quick           few rounds, no Inductor, nothing written

Device time is measured between two events around several calls; the median over the rounds is reported. Bandwidth is
the bytes that a program must read and write, divided by its time; a copy of the same size is measured too. Host time
is the time until the last of several calls returns; the device does not limit it.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from benchmarks.learning import Block
from rekindle.runtime.settings import SETTINGS

RESULTS: Final = Path(__file__).parent / "results" / "cuda.json"
PEERS: Final = ("eager", "torch.jit", "inductor", "rekindle")
WITH_GRAPHS: Final = ("inductor, CUDA graphs", "rekindle, CUDA graphs")
"""The same with CUDA graphs: ``mode="reduce-overhead"`` of Inductor."""
ROUNDS: Final = 15
CALLS: Final = 5
"""How many calls lie between two events."""

# ------------------------------------------------------------------------------------------------------------ programs


def chain(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return torch.tanh(a * b + c)


def gelu_bias(x: Tensor, bias: Tensor) -> Tensor:
    return F.gelu(x + bias)


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x * 2.0, -1)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    return F.layer_norm(x + residual, [4096], weight, bias)


def row_sum(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1)


def column_sum(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(0)


def mean_square(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).square().mean()


def one_group(x: Tensor, y: Tensor) -> Tensor:
    return torch.sigmoid(x * y) + x


def ten_groups(x: Tensor, y: Tensor) -> Tensor:
    for _ in range(10):
        x = torch.sigmoid(x * y) + x
        x = torch.sort(x)[0]
    return x


class LstmLoop(nn.Module):
    """An LSTM cell in a loop, which collects the states."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.of_input = nn.Linear(width, 4 * width)
        self.of_state = nn.Linear(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), self.width, dtype=x.dtype, device=x.device)
        c = torch.zeros_like(h)
        states: list[Tensor] = []
        for t in range(x.size(0)):
            i, f, g, o = (self.of_input(x[t]) + self.of_state(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return torch.stack(states)


@dataclass(frozen=True, slots=True)
class Program:
    """A function, its arguments, and the bytes that it must read and write."""

    title: str
    function: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    moved: int


def _normal(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*sizes, device="cuda", dtype=dtype)


def bandwidth_programs() -> list[Program]:
    """Return elementwise programs, which memory bandwidth limits."""
    n, half = 1 << 26, torch.bfloat16
    return [
        Program("tanh(a*b+c), 2^26 floats", chain, lambda: tuple(_normal(n) for _ in range(3)), 16 * n),
        Program("tanh(a*b+c), 2^26 bf16", chain, lambda: tuple(_normal(n, dtype=half) for _ in range(3)), 8 * n),
        Program("gelu(x+bias), 16384x4096 floats", gelu_bias, lambda: (_normal(16384, 4096), _normal(4096)), 8 * n),
        Program(
            "gelu(x+bias), 16384x4096 bf16",
            gelu_bias,
            lambda: (_normal(16384, 4096, dtype=half), _normal(4096, dtype=half)),
            4 * n,
        ),
    ]


def row_programs() -> list[Program]:
    """Return programs with reductions of rows, of columns and of all elements."""
    n, half = 1 << 26, torch.bfloat16
    found = [
        Program("softmax(2x), 16384x4096 bf16", softmax, lambda: (_normal(16384, 4096, dtype=half),), 4 * n),
        Program("softmax(2x), 16384x4096 floats", softmax, lambda: (_normal(16384, 4096),), 8 * n),
        Program("softmax(2x), 2^19x128 floats", softmax, lambda: (_normal(1 << 19, 128),), 8 * n),
        Program("softmax(2x), 1024x65536 floats", softmax, lambda: (_normal(1024, 65536),), 8 * n),
        Program(
            "layer_norm(x+r), 16384x4096 bf16",
            layer_norm,
            lambda: tuple(_normal(*s, dtype=half) for s in ((16384, 4096), (4096,), (4096,), (16384, 4096))),
            6 * n,
        ),
        Program(
            "layer_norm(x+r), 16384x4096 floats",
            layer_norm,
            lambda: tuple(_normal(*s) for s in ((16384, 4096), (4096,), (4096,), (16384, 4096))),
            12 * n,
        ),
        Program(
            "(x*y).sum(-1), 16384x4096 floats", row_sum, lambda: (_normal(16384, 4096), _normal(16384, 4096)), 8 * n
        ),
        Program(
            "(x*y).sum(0), 16384x4096 floats", column_sum, lambda: (_normal(16384, 4096), _normal(16384, 4096)), 8 * n
        ),
        Program(
            "(x*y).sum(0), 2^20x64 floats", column_sum, lambda: (_normal(1 << 20, 64), _normal(1 << 20, 64)), 8 * n
        ),
        Program("(x-y)^2 mean, 2^26 floats", mean_square, lambda: (_normal(n), _normal(n)), 8 * n),
    ]
    return found


def launch_programs() -> list[Program]:
    """Return programs on small tensors, which the host limits."""
    return [
        Program("one group, 16 floats", one_group, lambda: (_normal(16), _normal(16)), 0),
        Program("ten groups and ten sorts, 16 floats", ten_groups, lambda: (_normal(16), _normal(16)), 0),
    ]


def model_programs() -> list[Program]:
    """Return modules of ``torch.nn``, and models written as loops and by hand."""
    cell = nn.LSTMCell(512, 512).cuda().eval()
    encoder = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, norm_first=True).cuda().eval()
    block = Block(512, 8).cuda().eval()
    loop = LstmLoop(128).cuda().eval()
    return [
        Program(
            "nn.LSTMCell(512), batch 64", cell, lambda: (_normal(64, 512), (_normal(64, 512), _normal(64, 512))), 0
        ),
        Program("nn.TransformerEncoderLayer(512), 8x128", encoder, lambda: (_normal(8, 128, 512),), 0),
        Program("transformer block by hand, 8x128x512", block, lambda: (_normal(8, 128, 512),), 0),
        Program("LSTM loop, 50 steps of 32x128", loop, lambda: (_normal(50, 32, 128),), 0),
    ]


# ----------------------------------------------------------------------------------------------------------- measuring


def prepared(program: Program, peer: str) -> Callable[..., Any]:
    """Return the program compiled by ``peer``."""
    function = copy.deepcopy(program.function)
    if peer == "torch.jit":
        return torch.jit.script(function)
    if peer.startswith("inductor"):
        torch._dynamo.reset()
        return torch.compile(function, mode="reduce-overhead" if peer in WITH_GRAPHS else None)
    if peer == "rekindle":
        return rekindle.script(function)
    return rekindle.script(function) if peer in WITH_GRAPHS else function


def _bound(peer: str, function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """Return a call of ``function``, captured if the peer is to be, beside others that are not captured."""

    def call() -> Any:
        SETTINGS.cuda_graphs = peer == "rekindle, CUDA graphs"
        try:
            return function(*arguments)
        finally:
            SETTINGS.cuda_graphs = False

    return call


def device_times(candidates: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the microseconds of device time of a call, by candidate."""
    found: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, call in candidates.items():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            call()
            begin.record()
            for _ in range(CALLS):
                call()
            end.record()
            end.synchronize()
            found[name].append(begin.elapsed_time(end) * 1000 / CALLS)
    return {name: statistics.median(times) for name, times in found.items()}


def host_times(candidates: dict[str, Callable[[], Any]], rounds: int, most: int = 200) -> dict[str, float]:
    """Return the microseconds until a call returns, by candidate: the mean of as many calls as take 50 ms, at most
    ``most``, so that they do not wait for the device."""
    found: dict[str, list[float]] = {name: [] for name in candidates}
    calls: dict[str, int] = {}
    for name, call in candidates.items():
        torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        calls[name] = min(most, 1 + int(0.05 / (time.perf_counter() - began)))
    for _ in range(rounds):
        for name, call in candidates.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(calls[name]):
                call()
            found[name].append((time.perf_counter() - began) * 1e6 / calls[name])
            torch.cuda.synchronize()
    return {name: statistics.median(times) for name, times in found.items()}


def measure(program: Program, peers: Sequence[str], rounds: int, *, of_host: bool) -> dict[str, Any]:
    """Measure a program with all peers; return its row."""
    arguments = program.arguments()
    candidates: dict[str, Callable[[], Any]] = {}
    errors: dict[str, str] = {}
    first: dict[str, float] = {}
    expected = _leaves(program.function(*arguments))
    for peer in peers:
        try:
            began = time.perf_counter()
            call = _bound(peer, prepared(program, peer), *arguments)
            found = _leaves(call())
            torch.cuda.synchronize()
            first[peer] = time.perf_counter() - began
            for _ in range(4):
                found = _leaves(call())
            for mine, theirs in zip(found, expected, strict=True):
                torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-2)
        except Exception as error:
            errors[peer] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
            continue
        candidates[peer] = call
    row: dict[str, Any] = {"title": program.title, "first_call_s": first, "errors": errors}
    row["device_us"] = device_times(candidates, rounds)
    if of_host:
        row["host_us"] = host_times(candidates, rounds)
    if program.moved:
        copied = torch.empty(program.moved // 2, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(copied)
        row["copy_us"] = device_times({"copy": lambda: target.copy_(copied)}, rounds)["copy"]
        row["bandwidth_tb_s"] = {name: program.moved / us / 1e6 for name, us in row["device_us"].items()}
        row["of_copy"] = {name: row["copy_us"] / us for name, us in row["device_us"].items()}
    return row


def _leaves(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [leaf for each in value for leaf in _leaves(each)]


def measure_training(program: Program, peers: Sequence[str], rounds: int) -> dict[str, Any]:
    """Measure the forward and backward pass with the gradients of all parameters; return the row."""

    def step(function: Callable[..., Any], parameters: list[Tensor], arguments: tuple[Any, ...]) -> Callable[[], Any]:
        def call() -> Any:
            loss = sum(leaf.float().square().mean() for leaf in _leaves(function(*arguments)))
            return torch.autograd.grad(loss, parameters)

        return call

    arguments = program.arguments()
    candidates: dict[str, Callable[[], Any]] = {}
    errors: dict[str, str] = {}
    expected: list[Tensor] | None = None
    for peer in peers:
        try:
            function: Any = prepared(program, peer)
            parameters = list(function.parameters())
            call = _bound(peer, step(function, parameters, arguments))
            for _ in range(8):
                found = list(call())
            expected = expected or found
            for mine, theirs in zip(found, expected, strict=True):
                torch.testing.assert_close(mine, theirs, rtol=2e-2, atol=2e-3)
        except Exception as error:
            errors[peer] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
            continue
        candidates[peer] = call
    row: dict[str, Any] = {"title": program.title + ", training", "errors": errors}
    row["device_us"] = device_times(candidates, rounds)
    row["host_us"] = host_times(candidates, max(rounds // 3, 1), 20)
    return row


PROGRAMS: Final[dict[str, Callable[[], list[Program]]]] = {
    "bandwidth": bandwidth_programs,
    "rows": row_programs,
    "launches": launch_programs,
    "models": model_programs,
}
PARTS: Final = (*PROGRAMS, "training")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.cuda")
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; may be given several times")
    parser.add_argument("--quick", action="store_true", help="few rounds, without Inductor; nothing is written")
    parser.add_argument("--output", type=Path, default=RESULTS, help="where the results are written")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("There is no GPU here that PyTorch can use.", file=sys.stderr)
        return 1
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    chosen = options.only or PARTS
    peers = [peer for peer in PEERS if not options.quick or peer != "inductor"]
    with_graphs = [*peers, *(peer for peer in WITH_GRAPHS if not options.quick or not peer.startswith("inductor"))]
    rounds = 5 if options.quick else ROUNDS
    about: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": []}

    def add(row: dict[str, Any]) -> None:
        print(_line(row), flush=True)
        about["rows"].append(row)
        if not options.quick:
            options.output.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    of_host = {"bandwidth": False, "rows": False, "launches": True, "models": True}
    with torch.no_grad():
        for part, programs in PROGRAMS.items():
            for program in programs() if part in chosen else ():
                of = with_graphs if of_host[part] else peers
                add(measure(program, of, rounds, of_host=of_host[part]))
    for program in model_programs() if "training" in chosen else ():
        assert isinstance(program.function, nn.Module)
        program.function.train()
        add(measure_training(program, with_graphs, rounds))
    return 0


def _line(row: dict[str, Any]) -> str:
    parts = [f"{row['title']:42}"]
    for key in ("device_us", "host_us", "of_copy"):
        if key in row:
            parts.append(f"{key} " + " ".join(f"{name} {value:.2f}" for name, value in row[key].items()))
    parts += [f"{peer}: {text}" for peer, text in row["errors"].items()]
    return " | ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
