"""What type propagation knows of the tensors in the programs of both corpora, and what it costs to compile them.

    python -m tests.sweeps.inferred_types_of_programs                        shares, and processor time
    python -m tests.sweeps.inferred_types_of_programs --against OTHER        beside another checkout, interleaved

Shares are of the values of type Tensor in graphs that know their arguments: completely, or but for sizes. The time is
that of making the version for the first arguments of every program, by the strategies ``simple`` and ``profiling``.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import copy
import gc
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

import rekindle
from rekindle.analysis.type_propagation import propagate_types
from rekindle.ir.types import TensorType, Type
from rekindle.passes import inline
from rekindle.runtime.executor import with_strategy
from tests.language.corpus import corpus as language_corpus
from tests.oracle.corpus import corpus as oracle_corpus

ROUNDS = 3


def programs() -> list[tuple[Any, tuple[Any, ...]]]:
    """Every program that compiles, and its first arguments."""
    found = []
    for program in (*language_corpus(), *oracle_corpus()):
        samples = getattr(program, "inputs", None) or getattr(program, "samples", ())
        if getattr(program, "refusal", None) is None:
            found.append((program.subject(), copy.deepcopy(samples[0]) if samples else ()))
    return found


def measure() -> dict[str, float]:
    """Counts of tensors, and of those of known dtype and rank; seconds for each strategy."""
    torch.set_num_threads(1)
    found = dict.fromkeys(
        ("tensors", "dtypes", "ranks", "dtypes by ranks", "ranks by ranks", "propagating", "simple", "profiling"), 0.0
    )
    for subject, arguments in programs():
        try:
            compiled = rekindle.script(subject)
        except Exception:
            continue
        is_module = isinstance(subject, torch.nn.Module)
        record: Any = compiled.forward._record if is_module else compiled._record
        given = [compiled, *arguments] if is_module else list(arguments)
        _count(record, given, found)
        if len(given) == len(record.graph.inputs):  # those with defaults are added at calls
            for strategy in ("simple", "profiling"):
                _prepare(record, given, strategy, found)
    return found


def _count(record: Any, given: list[Any], found: dict[str, float]) -> None:
    graph = record.graph.copy()
    inline(graph)
    types: list[Type | None] = [TensorType.of(each) if isinstance(each, torch.Tensor) else None for each in given]
    types = [*types, *[None] * len(graph.inputs)][: len(graph.inputs)]
    coarse = [type.with_rank_only() if isinstance(type, TensorType) else None for type in types]
    started = time.process_time()
    told, told_by_ranks = propagate_types(graph, types), propagate_types(graph, coarse)
    found["propagating"] += time.process_time() - started
    for value, type in told.items():
        if isinstance(value.type, TensorType) and value not in graph.inputs:
            other = told_by_ranks[value]
            found["tensors"] += 1
            found["dtypes"] += isinstance(type, TensorType) and type.dtype is not None
            found["ranks"] += isinstance(type, TensorType) and type.rank is not None
            found["dtypes by ranks"] += isinstance(other, TensorType) and other.dtype is not None
            found["ranks by ranks"] += isinstance(other, TensorType) and other.rank is not None


def _prepare(record: Any, given: list[Any], strategy: str, found: dict[str, float]) -> None:
    before = rekindle.set_execution_strategy(strategy)
    try:
        executable = with_strategy(record)
        assert executable.strategy is not None
        started = time.process_time()
        executable.strategy.prepare(given)
        found[strategy] += time.process_time() - started
    finally:
        rekindle.set_execution_strategy(before)


def _in(root: Path) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, str(Path(__file__).resolve()), "--json"]
    output = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(output.splitlines()[-1])
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.inferred_types_of_programs")
    parser.add_argument("--against", type=Path, help="another checkout of this repository")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.against is None:
        gc.disable()
        found = measure()
        print(json.dumps(found) if options.json else "\n".join(f"{name}: {value:.3f}" for name, value in found.items()))
        return 0
    here = Path(__file__).resolve().parents[2]
    pairs = [(_in(options.against), _in(here)) for _ in range(ROUNDS)]
    for name in pairs[0][0]:
        before, after = ([pair[index][name] for pair in pairs] for index in (0, 1))
        ratio = statistics.median(b / a for a, b in zip(before, after, strict=True))
        print(
            f"{name}: {statistics.median(before):.3f} before, {statistics.median(after):.3f} after, ratio {ratio:.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
