"""The sweep of ``torch.compile(f, backend="rekindle")`` over PyTorch's operator database.

    python -m tests.sweeps.compiled --full --jobs 2      everything; writes results/compiled.md and .json
    python -m tests.sweeps.compiled --only add,mul       some entries, and what goes wrong with them
    python -m tests.sweeps.compiled --ahead-of-time …    the same with options={"ahead_of_time": True}

Two samples of every entry, of different shapes where there are such, are compiled and called; where the operator has
gradients, in double precision and with those of all inputs. The results, and the gradients of their sum, must be those
of eager. An entry counts where Dynamo captures it and PyTorch's own backend ``aot_eager``, which compiles nothing,
gives what eager gives.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from rekindle.importing.backend import backend
from tests.sweeps import report
from tests.sweeps.cases import seed
from tests.sweeps.gradients import LIMIT, TooLong, too_long
from tests.sweeps.shards import run_entries, serve

STEM = "compiled"
SAMPLES = 2
UNINITIALIZED = ("empty", "new_empty", "resize_", "empty_like", "new_empty_strided", "empty_strided", "empty_permuted")


@dataclass(slots=True)
class Result:
    """What comes of an entry: how many samples were compared, how many of them with gradients, and what failed."""

    samples: int = 0
    backwards: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    outside: str = ""
    """Why the entry does not count, if it does not."""

    @property
    def counts(self) -> bool:
        return not self.outside

    @property
    def passed(self) -> bool:
        return self.counts and not self.failures


@cache
def database() -> dict[str, Any]:
    """The entries by their full names."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db}


def samples_of(op: Any) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any], bool]]:
    """Input, arguments, keyword arguments, and whether gradients are wanted: two samples, of other shapes."""
    supported = op.supported_dtypes("cpu")
    with_gradients = torch.float64 in supported and op.supports_autograd
    dtype = next((d for d in (torch.float64, torch.float32, torch.int64, torch.bool) if d in supported), None)
    if dtype is None:
        dtype = next(iter(supported), None)
    if dtype is None:
        return  # it is not for CPUs
    shapes: set[Any] = set()
    found = []
    seed()
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        shape = getattr(sample.input, "shape", None)
        if shape not in shapes:
            found.append(sample)
            shapes.add(shape)
        if len(found) == SAMPLES or number == 40:
            break
    for sample in found:
        yield sample.input, sample.args, sample.kwargs, with_gradients


def outcome(function: Callable[..., Any], given: Any, args: Any, kwargs: Any, with_gradients: bool) -> list[Any]:
    """The results of a call, and the gradients of all that can have some."""
    leaves: list[Tensor] = []

    def own(tensor: Tensor) -> Tensor:
        copy = tensor.detach().clone()
        if with_gradients and (copy.is_floating_point() or copy.is_complex()):
            leaves.append(copy.requires_grad_())
        return copy

    given, args, kwargs = tree_map_only(Tensor, own, (given, args, kwargs))
    seed()
    with torch.set_grad_enabled(with_gradients):
        results = tree_leaves(function(given, *args, **kwargs))
        tensors = [each for each in results if isinstance(each, Tensor) and each.requires_grad]
        gradients: Sequence[Tensor | None] = ()
        if tensors:
            total = sum((each.abs() if each.is_complex() else each).sum() for each in tensors)
            assert isinstance(total, Tensor)
            gradients = torch.autograd.grad(total, leaves, allow_unused=True)
    return [each.detach() if isinstance(each, Tensor) else each for each in results] + list(gradients)


def difference(name: str, wanted: list[Any], found: list[Any]) -> str:
    """How the answers differ; empty where they do not."""
    if len(wanted) != len(found):
        return f"{len(found)} results, not {len(wanted)}"
    for one, other in zip(wanted, found, strict=True):
        if isinstance(one, Tensor) and isinstance(other, Tensor) and name.split(".")[-1] in UNINITIALIZED:
            if (one.shape, one.dtype) != (other.shape, other.dtype):
                return f"{other.dtype} {tuple(other.shape)}, not {one.dtype} {tuple(one.shape)}"
            continue
        try:
            torch.testing.assert_close(other, one, rtol=1e-6, atol=1e-7, equal_nan=True)
        except (AssertionError, TypeError) as error:
            return " ".join(str(error).split())[:300]
    return ""


def sweep_entry(name: str, ahead_of_time: bool = False) -> Result:
    """What comes of an entry."""
    op = database()[name]
    result = Result()

    def call(given: Any, *args: Any, **kwargs: Any) -> Any:
        return op.op(given, *args, **kwargs)

    for number, (given, args, kwargs, with_gradients) in enumerate(samples_of(op)):
        try:
            wanted = outcome(op.op, given, args, kwargs, with_gradients)
        except Exception as error:
            result.outside = f"eager: {type(error).__name__}"
            return result
        if with_gradients and not any(isinstance(each, Tensor) for each in wanted):
            with_gradients = False
        ran: list[str] = []

        def noting(module: Any, inputs: Any, ran: list[str] = ran) -> Any:
            ran.append("")
            return backend(module, inputs, options={"ahead_of_time": ahead_of_time})

        found = _answer(call, noting, given, args, kwargs, with_gradients)
        told = found if isinstance(found, str) else difference(name, wanted, found)
        if told or not ran:
            peer = _answer(call, "aot_eager", given, args, kwargs, with_gradients)
            why = peer if isinstance(peer, str) else difference(name, wanted, peer)
            if why:
                result.outside = f"aot_eager: {why}"
                return result
            if not ran and not told:
                result.outside = "Dynamo captures nothing of it"
                return result
        result.samples += 1
        result.backwards += with_gradients
        if told:
            result.failures[str(number)] = told
    if not result.samples:
        result.outside = "it has no samples"
    return result


def _answer(call: Any, compiler: Any, given: Any, args: Any, kwargs: Any, with_gradients: bool) -> list[Any] | str:
    """What a compiled call gives; the error where it raises."""
    torch._dynamo.reset()
    try:
        return outcome(torch.compile(call, backend=compiler), given, args, kwargs, with_gradients)
    except TooLong:
        raise
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), "")
        return f"{type(error).__name__}: {first}"[:300]
    finally:
        torch._dynamo.reset()


def _limited(name: str, ahead_of_time: bool) -> Result:
    """An entry that takes too long fails."""
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return sweep_entry(name, ahead_of_time)
    except TooLong:
        return Result(1, failures={"time": f"more than {LIMIT} s"})
    finally:
        signal.alarm(0)


def summary(results: dict[str, Result]) -> dict[str, Any]:
    """The numbers that count."""
    counted = [result for result in results.values() if result.counts]
    passed = [result for result in counted if result.passed]
    return {
        "torch": torch.__version__.partition("+")[0],
        "entries": len(results),
        "denominator": len(counted),
        "passed": len(passed),
        "percent": round(100 * len(passed) / max(1, len(counted)), 2),
        "samples": sum(result.samples for result in counted),
        "with_gradients": sum(result.backwards for result in counted),
    }


def committed(stem: str = STEM) -> dict[str, Result]:
    """The results that were written last."""
    data = json.loads((report.RESULTS / f"{stem}.json").read_text(encoding="utf-8"))
    counted = {name: Result(**entry) for name, entry in data["entries"].items()}
    return counted | {name: Result(outside=why) for name, why in data["outside"].items()}


def _write(stem: str, results: dict[str, Result]) -> None:
    head = summary(results)
    counted = {name: result for name, result in sorted(results.items()) if result.counts}
    outside = {name: result.outside for name, result in sorted(results.items()) if not result.counts}
    entries = {name: {k: v for k, v in asdict(result).items() if v} for name, result in counted.items()}
    data = {"summary": head, "entries": entries, "outside": outside}
    (report.RESULTS / f"{stem}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    text = (
        f"torch {head['torch']}. Of {head['entries']} entries **{head['denominator']}** count: Dynamo captures them, "
        "and `aot_eager`, which compiles nothing, agrees with eager. "
        f'**{head["passed"]}** of them ({head["percent"]} %) agree with eager with `backend="rekindle"`, in all '
        f"of {head['samples']} samples, {head['with_gradients']} of them with gradients."
    )
    way = ", ahead of time" if stem != STEM else ""
    lines = [
        f"# The operator database through torch.compile{way}",
        "",
        text,
        "",
        "| entry that fails | first failure |",
        "| --- | --- |",
        *(
            f"| {name} | {next(iter(each.failures.values()))[:200].replace('|', ' ')} |"
            for name, each in counted.items()
            if not each.passed
        ),
        "",
        "Do not count:",
        "",
        *(f"- {name}: {why}" for name, why in outside.items()),
    ]
    (report.RESULTS / f"{stem}.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.compiled")
    parser.add_argument("--full", action="store_true", help="every entry; write the results")
    parser.add_argument("--only", help="entries, with commas between them")
    parser.add_argument("--ahead-of-time", action="store_true", help="have AOTAutograd write the graphs")
    parser.add_argument("--again", action="store_true", help="those that failed in the committed result")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        torch.set_num_threads(1)
        serve(options.worker, lambda name: asdict(_limited(name, options.ahead_of_time)))
        return 0
    stem = f"{STEM}_ahead_of_time" if options.ahead_of_time else STEM
    names = options.only.split(",") if options.only else list(database())
    if options.again:
        names = [name for name, result in committed(stem).items() if result.failures]
    passed_on = ["--ahead-of-time"] * options.ahead_of_time
    found = run_entries("tests.sweeps.compiled", names, passed_on, options.jobs)
    results = {
        name: Result(1, failures={"": "died"}) if found[name] is None else Result(**found[name]) for name in names
    }
    if options.full and (options.only or options.again):
        results = committed(stem) | results
    for name, result in results.items():
        if result.failures:
            print(name, str(result.failures)[:600])
    print(json.dumps(summary(results)))
    if options.full:
        _write(stem, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
