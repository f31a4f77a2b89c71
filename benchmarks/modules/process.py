"""One case in one mode, in a process of its own: ``python -m benchmarks.modules.process TITLE MODE WHAT``.

``cold`` compiles with rekindle alone, for a process that finds nothing on disk. ``steady`` compiles with each peer and
then times calls, in turns. Eager calls come first and warm PyTorch up. What is found is printed as soon as it is known,
a JSON object a line, so that a crash or the end of the time leaves what was found before it.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn

import rekindle
from benchmarks.execution import interleaved
from benchmarks.modules.case import ModuleCase
from benchmarks.modules.catalog import case_named

SEED: Final = 1
LOADING_CALLS: Final = 5
PROFILED_CALLS: Final = 5
PROFILED_SECONDS: Final = 0.5
"""No further call is profiled after so many."""
WARM_CALLS: Final = 8
"""After so many calls, everything has been compiled."""
WARM_SECONDS: Final = 1.0
"""No further call is made to warm up after so many: three calls have been compared before."""
RELATIVE: Final = 1e-4
"""By how much of its largest number a tensor may be off."""
AMPLIFIED: Final = 20.0
"""How many times as far off as eager itself, when its inputs change in their last bits."""
PRODUCTS: Final = re.compile(
    r"^aten::(mm|addmm|bmm|baddbmm|addbmm|mv|addmv|_addmm_activation|mkl_linear|mkldnn_linear|mkldnn_rnn_layer\w*)$"
    r"|conv(olution|\d|_depthwise|_transpose|_dilated|_tbc)|quantized::linear"
)
"""The operators that are PyTorch's own matrix products and convolutions."""

Call = Callable[[], Any]


def _report(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def _leaves(value: Any) -> Iterator[Tensor]:
    """Return the tensors of a result in order, whatever its containers: those of Python and of TorchScript differ."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (bool, int, float)):
        yield torch.tensor(value)
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from _leaves(value[key])
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _leaves(each)


class Subject:
    """A module in a mode with its inputs: what is called, timed and compared."""

    def __init__(self, case: ModuleCase, mode: str) -> None:
        if case.prepare is not None:
            case.prepare()
        torch.manual_seed(0)
        self.case, self.mode = case, mode
        self.module: nn.Module = case.make().train(mode == "training")
        self.inputs = case.inputs_of(mode)
        self.buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
        parameters = [each for each in self.module.parameters() if each.requires_grad]
        self.sources = [*parameters, *(self.inputs[position] for position in case.differentiated)]
        self.cotangents: dict[Any, Tensor] = {}

    def call(self, program: Callable[..., Any]) -> Call:
        """Return a call of the program; in training, with the gradients of everything that has some."""
        inputs = self.inputs
        if self.mode == "inference":
            return lambda: program(*inputs)
        result, sources = self.case.result, self.sources

        def step() -> Any:
            found = result(program(*inputs))
            outputs = [found] if isinstance(found, Tensor) else [each for each in _leaves(found) if each.requires_grad]
            gradients = torch.autograd.grad(outputs, sources, self._cotangents(outputs), allow_unused=True)
            return found, [each for each in gradients if each is not None]

        return step

    def _cotangents(self, outputs: Sequence[Tensor]) -> list[Tensor]:
        known = self.cotangents
        for output in outputs:
            if output.shape not in known:
                known[output.shape] = torch.randn_like(output)
        return [known[output.shape] for output in outputs]

    def answer(self, call: Call) -> tuple[list[Tensor], float]:
        """Call with the same state, random numbers and buffers each time; return the result and the milliseconds."""
        self._restore()
        start = time.perf_counter()
        found = call()
        taken = (time.perf_counter() - start) * 1e3
        found = self.case.result(found) if self.mode == "inference" else found
        return [each.detach().clone() for each in _leaves(found)], taken

    def _restore(self) -> None:
        torch.manual_seed(SEED)
        with torch.no_grad():
            for name, buffer in self.module.named_buffers():
                buffer.copy_(self.buffers[name])

    def noise(self, call: Call, expected: Sequence[Tensor]) -> list[float]:
        """Return how far eager's results change when the last bits of the inputs change."""
        floats = [each for each in _leaves(self.inputs) if each.is_floating_point()]
        with torch.no_grad():
            kept = [each.clone() for each in floats]
            for each in dict.fromkeys(floats):
                each.mul_(1 + 1e-6)
        moved, _ = self.answer(call)
        with torch.no_grad():
            for each, value in zip(floats, kept, strict=True):
                each.copy_(value)
        if [each.shape for each in moved] != [each.shape for each in expected]:
            return [0.0] * len(expected)
        return [_distance(one, other) for one, other in zip(moved, expected, strict=True)]


def _distance(one: Tensor, other: Tensor) -> float:
    if one.numel() == 0 or one.dtype == torch.bool:
        return 0.0
    wide = torch.complex128 if one.is_complex() else torch.float64
    gaps = (one.to(wide) - other.to(wide)).abs()
    return float(torch.nan_to_num(gaps, 0.0, 0.0, 0.0).max())


def difference(found: Sequence[Tensor], expected: Sequence[Tensor], noise: Sequence[float]) -> str:
    """Describe how a result differs from the expected one; return an empty string if it does not."""
    if len(found) != len(expected):
        return f"{len(found)} tensors instead of {len(expected)}"
    for position, (one, other, tolerated) in enumerate(zip(found, expected, noise, strict=True)):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            kinds = [f"{each.dtype} of {tuple(each.shape)}" for each in (one, other)]
            return f"tensor {position}: {kinds[0]} instead of {kinds[1]}"
        one, other = one.dequantize() if one.is_quantized else one, other.dequantize() if other.is_quantized else other
        if not torch.equal(one.isfinite(), other.isfinite()):
            return f"tensor {position}: infinite or NaN elsewhere"
        finite = other[other.isfinite()] if not other.is_complex() else other
        scale = float(finite.abs().max()) if finite.numel() and finite.dtype != torch.bool else 1.0
        gap = _distance(one, other) if one.dtype != torch.bool else float((one != other).any())
        if gap > RELATIVE * max(scale, 1e-3) + AMPLIFIED * tolerated:
            return f"tensor {position}: off by {gap:.2e} where the largest is {scale:.2e}"
    return ""


def _brief(error: BaseException) -> str:
    """Return the class and the first lines of an error. If it counts problems, the first problem is included."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])[:300]}"


def products_share(call: Call) -> float:
    """Return the share of PyTorch's matrix products and convolutions in the time of operators.

    An operator counts with the median of its times, as often as it runs: other work on the machine makes single ones
    long, and so does the first profile of a process.
    """
    times: dict[str, list[float]] = {}
    for _ in range(2):
        with torch.autograd.profiler.profile() as profile:
            _repeat(call, PROFILED_CALLS, PROFILED_SECONDS)
        times = _own_times(profile)
    spent = {name: statistics.median(found) * len(found) for name, found in times.items()}
    total = sum(spent.values())
    return sum(time for name, time in spent.items() if PRODUCTS.search(name)) / total if total else 0.0


def _own_times(profile: Any) -> dict[str, list[float]]:
    """Return the nanoseconds of each event without those of nested events, by name. Profilers' own tables take seconds
    to build."""
    events = profile.kineto_results.events()
    spans = sorted((each.start_thread_id(), each.start_ns(), -each.duration_ns(), each.name()) for each in events)
    found: dict[str, list[float]] = {}
    open_spans: list[tuple[int, int, list[float], int]] = []
    for thread, start, negative, name in spans:
        while open_spans and (open_spans[-1][0] != thread or open_spans[-1][1] <= start):
            open_spans.pop()
        if open_spans:
            _, _, outer, position = open_spans[-1]
            outer[position] += negative
        own = found.setdefault(name, [])
        own.append(-negative)
        open_spans.append((thread, start - negative, own, len(own) - 1))
    return found


def _scripted(peer: str, program: Callable[..., Any]) -> Callable[..., Any]:
    compile: Any = rekindle.script if peer == "rekindle" else torch.jit.script
    return compile(program)  # type: ignore[no-any-return]


def _bent(x: Tensor) -> Tensor:
    return torch.tanh(x) * x


def _load(peer: str, mode: str) -> None:
    """Compile and call a small program, so that loading the compiler is not part of the first call of a case."""
    start = time.perf_counter()
    program: Any = _scripted(peer, _bent)
    for _ in range(LOADING_CALLS):
        result = program(torch.ones(3, requires_grad=mode == "training"))
        if mode == "training":
            result.sum().backward()
    _report(**{peer: {"load": (time.perf_counter() - start) * 1e3}})


def _compiled(peer: str, subject: Subject, expected: list[Tensor], noise: list[float], state: str) -> Call | None:
    """Compile a case; report the milliseconds of that and of the first three calls, and how results differ from
    eager's."""
    _report(stage=peer)
    _load(peer, subject.mode)
    times: list[float] = []
    wrong = ""
    try:
        start = time.perf_counter()
        call = subject.call(_scripted(peer, subject.module))
        times.append((time.perf_counter() - start) * 1e3)
        for _ in range(3):
            found, taken = subject.answer(call)
            times.append(taken)
            wrong = wrong or difference(found, expected, noise)
    except Exception as error:
        _report(**{peer: {"error": _brief(error), state: times}})
        return None
    _report(**{peer: {state: times, "differs": wrong}})
    return call


def _repeat(call: Call, count: int, seconds: float) -> None:
    """Call ``count`` times, but not again after ``seconds``."""
    start = time.perf_counter()
    for _ in range(count):
        call()
        if time.perf_counter() - start > seconds:
            break


def _eager(subject: Subject) -> tuple[Call, list[Tensor], list[float]]:
    """Return the eager call, its result, and the noise of the result (:meth:`Subject.noise`)."""
    _report(stage="eager")
    call = subject.call(subject.module)
    before = [each.clone() for each in _leaves(subject.inputs)]
    expected, _ = subject.answer(call)
    again, _ = subject.answer(call)
    if not all(map(torch.equal, before, _leaves(subject.inputs))):
        raise ValueError("the module writes to its inputs")
    noise = subject.noise(call, expected)
    if difference(again, expected, [0.0] * len(expected)):
        _report(eager={"differs": "from itself"})
        noise = [float("inf")] * len(expected)
    return call, expected, noise


def _steady(subject: Subject, peers: Sequence[str], rounds: int, slice: float) -> None:
    call, expected, noise = _eager(subject)
    _report(share=products_share(call))
    calls = {"eager": call}
    for peer in peers:
        compiled = _compiled(peer, subject, expected, noise, "warm")
        if compiled is not None:
            calls[peer] = compiled
    for peer, each in calls.items():
        _report(stage=peer)
        _repeat(each, WARM_CALLS, WARM_SECONDS)
    _report(stage="timing")
    times = dict(zip(calls, interleaved(list(calls.values()), rounds, slice, time.thread_time), strict=True))
    for peer, found in times.items():
        over = {
            f"of_{other}": statistics.median(mine / its for mine, its in zip(found, theirs, strict=True))
            for other, theirs in times.items()
            if other != peer
        }
        _report(**{peer: {"call": statistics.median(found) * 1e6, "fastest": min(found) * 1e6, **over}})


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.modules.process")
    parser.add_argument("title")
    parser.add_argument("mode", choices=("inference", "training"))
    parser.add_argument("what", choices=("cold", "steady"))
    parser.add_argument("--peers", nargs="*", default=["rekindle", "torch.jit"])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--slice", type=float, default=0.002)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with torch.set_grad_enabled(options.mode == "training"):
        try:
            subject = Subject(case_named(options.title), options.mode)
            if options.what == "cold":
                _, expected, noise = _eager(subject)
                _compiled("rekindle", subject, expected, noise, "cold")
            else:
                _steady(subject, options.peers, options.rounds, options.slice)
        except Exception as error:
            _report(failure=_brief(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
