"""The sweep of ``rekindle.vmap`` over PyTorch's operator database.

    python -m tests.sweeps.vmap --full --jobs 2      everything; writes results/vmap.md and .json
    python -m tests.sweeps.vmap --only add,mul       some entries, and what goes wrong with them

Up to three samples of every entry, as function or method, become functions of their tensors. A batch is made of three
examples: the sample, and two more with other numbers. It is passed with the examples in front for all tensors, in
front for the first tensor only, and last for the second only; the results must be those of a loop. An entry counts
where ``torch.func.vmap`` computes the same as the loop in all these ways; it goes by rules where nothing of it is
computed in a loop.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import rekindle
from rekindle.errors import CompileError
from rekindle.transforms.vmap import vmap
from tests.sweeps import report
from tests.sweeps.cases import Case, cases_of as all_cases_of, load, seed
from tests.sweeps.gradients import LIMIT, TooLong, tensors_of, too_long
from tests.sweeps.shards import run_entries, serve

STEM = "vmap"
EXAMPLES = 3
SAMPLES = 3


@dataclass(slots=True)
class Result:
    """What comes of an entry: in how many ways PyTorch's own vmap was right, and ours was not; what was looped."""

    ways: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    looped: list[str] = field(default_factory=list)
    peer_fails: str = ""
    """Why ``torch.func.vmap`` does not count here, if it does not."""

    @property
    def counts(self) -> bool:
        return self.ways > 0 and not self.peer_fails

    @property
    def passed(self) -> bool:
        return self.counts and not self.failures

    @property
    def by_rules(self) -> bool:
        return self.passed and not self.looped


@cache
def database() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db}


def cases_of(op: Any) -> Iterator[Case]:
    """The calls of an entry, in its first dtype, each in the first way in which it can be written."""
    taken: set[str] = set()
    first = None
    for case in all_cases_of(op):
        dtype, sample, variant = case.key.split("/")
        first = dtype if first is None else first
        if dtype != first or int(sample) >= SAMPLES:
            return
        if variant == "inplace" or sample in taken or not case.arguments:
            continue
        taken.add(sample)
        yield case


def batched(tensor: Tensor) -> Tensor:
    """Three examples: the sample, and others of the same kind."""
    if tensor.is_floating_point() or tensor.is_complex():
        return torch.stack([tensor * (1 + 0.25 * index) for index in range(EXAMPLES)])
    if tensor.dtype == torch.bool:
        return torch.stack([tensor.flatten().roll(index).reshape(tensor.shape) for index in range(EXAMPLES)])
    return torch.stack([tensor] * EXAMPLES)


def ways_of(count: int) -> Iterator[tuple[int | None, ...]]:
    """``in_dims`` for so many tensors."""
    yield (0,) * count
    if count > 1:
        yield (0,) + (None,) * (count - 1)
        yield (None, -1) + (None,) * (count - 2)


def _arguments(case: Case, dims: Sequence[int | None]) -> list[Tensor]:
    return [
        tensor.clone() if dim is None else batched(tensor).movedim(0, dim).contiguous()
        for tensor, dim in zip(case.arguments, dims, strict=True)
    ]


def looped(function: Callable[..., Any], arguments: Sequence[Tensor], dims: Sequence[int | None]) -> list[Tensor]:
    """What a loop over the examples gives."""
    each = []
    for index in range(EXAMPLES):
        seed()
        one = [a if dim is None else a.select(dim, index).clone() for a, dim in zip(arguments, dims, strict=True)]
        each.append(tensors_of(function(*one)))
    return [torch.stack([values[index] for values in each]) for index in range(len(each[0]))]


def difference(mine: Sequence[Tensor], expected: Sequence[Tensor]) -> str | None:
    if len(mine) != len(expected):
        return f"{len(mine)} results instead of {len(expected)}"
    for index, (found, other) in enumerate(zip(mine, expected, strict=True)):
        if found.shape != other.shape or found.dtype != other.dtype:
            return f"result {index}: {found.dtype} of {tuple(found.shape)}, not {other.dtype} of {tuple(other.shape)}"
        if not torch.allclose(found, other, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"result {index}: values differ"
    return None


def _peer(function: Callable[..., Any], arguments: Sequence[Tensor], dims: Sequence[int | None]) -> list[Tensor]:
    seed()
    return tensors_of(torch.func.vmap(function, dims, randomness="error")(*[a.clone() for a in arguments]))


def sweep_entry(name: str) -> Result:
    result = Result()
    cases = list(cases_of(database()[name]))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = load(cases, Path(folder), name)
        for case in cases:
            for dims in ways_of(len(case.arguments)):
                _check(getattr(module, case.name), case, dims, result)
    result.looped = sorted(set(result.looped))
    return result


def _check(function: Callable[..., Any], case: Case, dims: tuple[int | None, ...], result: Result) -> None:
    try:
        arguments = _arguments(case, dims)
        expected = looped(function, arguments, dims)
    except Exception:
        return  # other examples of this sample are not legal, or the results differ in size
    try:
        problem = difference(_peer(function, arguments, dims), expected)
    except Exception as error:
        problem = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"[:200]
    if problem is not None:
        result.peer_fails = result.peer_fails or problem
        return
    try:
        compiled = rekindle.script(function)
    except CompileError:
        return
    result.ways += 1
    try:
        made = vmap(compiled, dims)
        seed()
        problem = difference(tensors_of(made(*arguments)), expected)
    except TooLong:
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"[:600]
    else:
        loops = made.report.looped if made.report.whole_loop is None else [made.report.whole_loop]
        result.looped += [f"{loop.kind}: {loop.reason}" for loop in loops]
    if problem is not None:
        result.failures[f"{case.key} {dims}"] = problem


def _limited(name: str) -> Result:
    signal.setitimer(signal.ITIMER_PROF, LIMIT)  # the processor's time: other processes do not count
    try:
        return sweep_entry(name)
    except TooLong as error:
        return Result(1, {"time": str(error)})
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


# ---------------------------------------------------------------------------------------------------------- reporting


def summary(results: dict[str, Result]) -> dict[str, Any]:
    counted = [result for result in results.values() if result.counts]
    passed = sum(result.passed for result in counted)
    by_rules = sum(result.by_rules for result in counted)
    return {
        "torch": torch.__version__.partition("+")[0],
        "entries": len(results),
        "denominator": len(counted),
        "passed": passed,
        "percent": round(100 * passed / max(1, len(counted)), 2),
        "by_rules": by_rules,
        "percent_by_rules": round(100 * by_rules / max(1, len(counted)), 2),
        "ways": sum(result.ways for result in counted),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.vmap")
    parser.add_argument("--full", action="store_true", help="every entry; write the results")
    parser.add_argument("--only", help="entries, with commas between them")
    parser.add_argument("--part", help="I/N: the I-th of N parts of all entries")
    parser.add_argument("--again", action="store_true", help="what did not go by rules alone when results were written")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        torch.set_num_threads(1)
        signal.signal(signal.SIGPROF, too_long)
        serve(options.worker, lambda name: asdict(_limited(name)))
        return 0
    names = options.only.split(",") if options.only else list(database())
    if options.again:
        names = [name for name in names if name in committed() and not committed()[name].by_rules]
    if options.part:
        index, count = map(int, options.part.split("/"))
        names = names[index - 1 :: count]
    found = run_entries("tests.sweeps.vmap", names, [], options.jobs)
    results = {name: Result(1, {"process": "died"}) if found[name] is None else Result(**found[name]) for name in names}
    if options.full and (options.again or options.only or options.part):
        results = committed() | results
    head = summary(results)
    for name, result in results.items():
        if result.failures or (result.counts and result.looped):
            print(name, str(result.failures)[:500], result.looped, "" if result.counts else "(does not count)")
    print(json.dumps(head, indent=1))
    if options.full:
        _write(results, head)
    return 0


def committed() -> dict[str, Result]:
    """The results that were written last."""
    data = json.loads((report.RESULTS / f"{STEM}.json").read_text(encoding="utf-8"))
    counted = {name: Result(**entry) for name, entry in data["entries"].items()}
    return counted | {name: Result(peer_fails=why) for name, why in data["outside"].items()}


def _write(results: dict[str, Result], head: dict[str, Any]) -> None:
    counted = {name: result for name, result in sorted(results.items()) if result.counts}
    outside = {name: result.peer_fails for name, result in sorted(results.items()) if not result.counts}
    data = {"summary": head, "entries": {n: asdict(r) for n, r in counted.items()}, "outside": outside}
    (report.RESULTS / f"{STEM}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (report.RESULTS / f"{STEM}.md").write_text(_markdown(counted, outside, head), encoding="utf-8")


def _markdown(counted: dict[str, Result], outside: dict[str, str], head: dict[str, Any]) -> str:
    failing = {name: result for name, result in counted.items() if not result.passed}
    others = {name: result for name, result in counted.items() if result.passed and result.looped}
    whole = (
        f"torch {head['torch']}. Of {head['entries']} entries **{head['denominator']}** count: PyTorch's own vmap "
        f"gives what a loop gives. **{head['passed']}** of them ({head['percent']} %) do so here, in all of "
        f"{head['ways']} ways, **{head['by_rules']}** ({head['percent_by_rules']} %) by rules alone."
    )
    known = report.known_failures(report.known_failures_path(STEM))
    lines = [
        "# vmap of the operator database",
        "",
        whole,
        "",
        "| entry that fails | first failure | reason |",
        "| --- | --- | --- |",
        *(
            f"| {name} | {' '.join(next(iter(r.failures.values())).split())[:200]} | {known.get(name, '')} |"
            for name, r in failing.items()
        ),
        "",
        "In a loop over the examples:",
        "",
        *(f"- {name}: {', '.join(result.looped)}" for name, result in others.items()),
        "",
        f"Do not count: {', '.join(outside)}.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
