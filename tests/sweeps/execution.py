"""The sweep over ways of executing: programs, modules and operators, on all kinds of arguments, call after call.

    python -m tests.sweeps.execution --full --jobs 2            everything; writes results/execution.json and .md
    python -m tests.sweeps.execution --only op.add,module.nn_GRU      some, and what goes wrong with them
    python -m tests.sweeps.execution --group programs --shard 1/4     a quarter of one of the groups

Each is called in every way of tests/differential/ways.py, through one sequence of calls, and all that comes of each
call is held against the interpreter's on the graph as it was compiled.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from rekindle.errors import RekindleError
from tests.differential import subjects
from tests.differential.checks import check, expect, sequence
from tests.differential.known_differences import DIFFERENT_ON_SOME_PROCESSORS, KNOWN_DIFFERENCES
from tests.differential.ways import WAYS
from tests.sweeps import report
from tests.sweeps.shards import run_entries, serve

STEM = "execution"
KINDS = 24
"""Kinds of arguments for each sample, drawn with the name of the program as seed."""

CHUNK = 120
"""Names that one process takes on: it starts in seven seconds, and spends half a second on a name."""


def evaluate(name: str) -> list[list[Any]]:
    """``[subject, way, calls, what is wrong]`` for each way; ``not compiled`` is not a failure."""
    found: list[list[Any]] = []
    for subject in subjects.of(name):
        try:
            subject.compiled()
        except (RekindleError, RuntimeError, ValueError, TypeError):
            found += [[subject.name, way.name, 0, "not compiled"] for way in WAYS]
            continue
        expected = expect(subject, sequence(subject, KINDS, subject.name))
        for way in WAYS:
            try:
                found.append([subject.name, way.name, check(subject, way, expected), ""])
            except Exception as error:
                found.append([subject.name, way.name, 0, f"{type(error).__name__}: {error}"[:800]])
    return found


def problems_in(results: dict[str, Any]) -> list[str]:
    """What the list does not say, and what it says and is not so."""
    problems: list[str] = []
    for name, found in results.items():
        if found is None:
            problems.append(f"{name}: the process died")
        failing = {subject for subject, _, _, outcome in found or () if outcome not in ("", "not compiled")}
        problems += [
            f"{subject}, {way}: {outcome}"
            for subject, way, _, outcome in found or ()
            if subject in failing and outcome and subject not in KNOWN_DIFFERENCES | DIFFERENT_ON_SOME_PROCESSORS
        ]
        subjects_here = {row[0] for row in found or ()}
        problems += [
            f"{subject}: answers the same now: take it off the list"
            for subject in sorted(subjects_here & set(KNOWN_DIFFERENCES) - failing)
        ]
    return problems


def write(results: dict[str, Any]) -> dict[str, Any]:
    """``results/execution.json`` and ``.md``; the summary."""
    rows = [row for found in results.values() for row in found or ()]
    counts: dict[str, dict[str, Counter[str]]] = {}
    calls: Counter[str] = Counter()
    for subject, way, compared, outcome in rows:
        group = subject.partition(".")[0]
        what = outcome if outcome == "not compiled" else "differs" if outcome else "passed"
        counts.setdefault(group, {}).setdefault(way, Counter())[what] += 1
        calls[way] += compared
    summary = {
        "torch": torch.__version__.partition("+")[0],
        "subjects": len({row[0] for row in rows}),
        "kinds_of_arguments": KINDS,
        "calls": dict(calls),
        "passed": {way.name: sum(c[way.name]["passed"] for c in counts.values()) for way in WAYS},
        "compiled": {
            way.name: sum(c[way.name]["passed"] + c[way.name]["differs"] for c in counts.values()) for way in WAYS
        },
        "problems": problems_in(results),
    }
    told = {group: {way: dict(sorted(c.items())) for way, c in found.items()} for group, found in counts.items()}
    (report.RESULTS / f"{STEM}.json").write_text(
        json.dumps({"summary": summary, "counts": told}, indent=1) + "\n", encoding="utf-8"
    )
    lines = [
        "# Every way of executing, compared with the interpreter",
        "",
        f"torch {summary['torch']}, {summary['subjects']} programs, modules and calls of operators.",
        f"Each is called with up to {KINDS} kinds of arguments for each of its samples: dtypes, sizes, strides,",
        "memory, gradients, modes; three times and more with each.",
        "",
        "| group | way | the same | differs | not compiled |",
        "| --- | --- | --- | --- | --- |",
    ]
    for group, ways in counts.items():
        for way, found in ways.items():
            lines.append(f"| {group} | {way} | {found['passed']} | {found['differs']} | {found['not compiled']} |")
    compared = ", ".join(f"{calls[way.name]} ({way.name})" for way in WAYS)
    lines += ["", f"Calls compared: {compared}.", ""]
    lines += ["What differs, and why: tests/differential/known_differences.py.", ""]
    (report.RESULTS / f"{STEM}.md").write_text("\n".join(lines), encoding="utf-8")
    return summary


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.execution")
    parser.add_argument("--full", action="store_true", help="everything; write the results")
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--group", choices=subjects.GROUPS, help="one group of subjects")
    parser.add_argument("--shard", default="0/1", help="a part of it: 1/4 is the second quarter")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.worker:
        torch.set_num_threads(1)
        serve(options.worker, evaluate)
        return 0
    shard, _, shards = options.shard.partition("/")
    chosen = options.only.split(",") if options.only else subjects.names(options.group)[int(shard) :: int(shards)]
    os.environ["REKINDLE_VERIFY"] = "1"
    results = run_entries("tests.sweeps.execution", chosen, [], options.jobs, chunk=CHUNK)
    problems = write(results)["problems"] if options.full else problems_in(results)
    print("\n".join(problems))
    print(
        f"{sum(row[2] for found in results.values() for row in found or ())} calls compared, {len(problems)} problems"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
