"""Every operator of PyTorch's database through script, grad, jvp and vmap, in processes of their own.

    python -m tests.fuzzing.operators --jobs 2 --write      everything; writes results/operators.json and .md
    python -m tests.fuzzing.operators --only add,nn.functional.layer_norm

The samples are those of tests/sweeps. Scripts are compared with eager Python in the ways of the program fuzzer, ``jvp``
with PyTorch's forward mode, ``grad`` with its autograd, ``vmap`` with a loop. A crash or a hang is a finding.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import torch

import rekindle
from rekindle.errors import CompileError
from tests.fuzzing.batch import warm
from tests.fuzzing.comparison import difference, snapshot
from tests.fuzzing.results import FOLDER, commit
from tests.fuzzing.transformed import TRANSFORMED, UNSTABLE, Prepared
from tests.fuzzing.workers import Ended, Pool, Send, Work, limit
from tests.sweeps import gradients, vmap
from tests.sweeps.cases import Case, load, seed

WAYS: Final = ("script", "grad", "jvp", "vmap")
Row = tuple[str, str, str]
"""The key of a sample, "passed", "refused", "no reference" or "failed", and what failed."""


_UNINITIALIZED: Final = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
)
"""Operators whose results hold whatever memory held."""


def _script(function: Callable[..., Any], case: Case) -> Row:
    try:
        seed()
        expected = function(*snapshot(case.arguments))
    except Exception:
        return case.key, "no reference", ""
    for optimized in (False, True):
        with rekindle.optimized_execution(optimized):
            try:
                compiled = rekindle.script(function)
            except CompileError:
                return case.key, "refused", ""
            for _ in range(3 if optimized else 1):
                seed()
                try:
                    found = difference(compiled(*snapshot(case.arguments)), expected, exact=False)
                except Exception as error:
                    return case.key, "failed", f"{type(error).__name__}: {error}"[:300]
                if found is not None:
                    return case.key, "failed", found.text[:300]
    return case.key, "passed", ""


def _transformed(way: str, function: Callable[..., Any], case: Case) -> Row:
    prepared = Prepared(function, [lambda: snapshot(case.arguments)])
    found = TRANSFORMED["vjp" if way == "grad" else way](prepared)
    if found is not None and found[0] == UNSTABLE:
        return case.key, "no reference", ""
    if found is not None:
        return case.key, "failed", f"{found[0]}: {found[1].text}"[:300]
    return case.key, prepared.outcome, ""


def cases_of(name: str, way: str) -> list[Case]:
    """Samples in float64 for derivatives, in the first dtype of an entry for the rest."""
    entry = gradients.database() if way in ("grad", "jvp") else vmap.database()
    if name not in entry:
        return []
    return list((gradients.cases_of if way in ("grad", "jvp") else vmap.cases_of)(entry[name]))


def _judging(name: str) -> Work:
    def work(send: Send) -> None:
        warnings.simplefilter("ignore")
        for way in WAYS:
            for case in cases_of(name, way) if name not in _UNINITIALIZED else ():
                limit(60)
                send({"way": way, "case": case.key})
                with tempfile.TemporaryDirectory() as folder:
                    function = getattr(load([case], Path(folder), case.name), case.name)
                    row = _script(function, case) if way == "script" else _transformed(way, function, case)
                send({"way": way, "row": row})

    return work


def run(names: list[str], jobs: int, seconds: float = 1e9) -> dict[str, dict[str, list[Row]]]:
    """The rows of each operator and way; no operator is begun after so many seconds, and those have none."""
    warm()
    begun = time.monotonic()
    pool = Pool(jobs)
    for name in names:
        pool.add(name, _judging(name))
    found: dict[str, dict[str, list[Row]]] = {name: {way: [] for way in WAYS} for name in names}
    at: dict[str, tuple[str, str]] = {}
    done = 0
    for name, message in pool.run():
        if time.monotonic() - begun > seconds:
            pool.tasks.clear()
        if isinstance(message, Ended):
            done += 1
            if message.reason:
                way, case = at.get(name, (WAYS[0], "start"))
                found[name][way].append((case, "failed", f"{message.reason}: {message.trace[-600:]}"))
            print(f"\r{done}/{len(names)}", end="", file=sys.stderr, flush=True)
        elif "row" in message:
            found[name][message["way"]].append(tuple(message["row"]))
        else:
            at[name] = (message["way"], message["case"])
    return {name: ways for name, ways in found.items() if any(ways.values())}


def failures(found: dict[str, dict[str, list[Row]]]) -> Iterator[tuple[str, str, Row]]:
    """Operator, way and row of each failure."""
    for name, ways in found.items():
        for way, rows in ways.items():
            yield from ((name, way, row) for row in rows if row[1] == "failed")


def text_of(found: dict[str, dict[str, list[Row]]]) -> str:
    """The run as Markdown."""
    version = torch.__version__.partition("+")[0]
    lines = [
        "# Operators through script, grad, jvp and vmap",
        "",
        f"{len(vmap.database())} entries of the database at commit {commit()}, PyTorch {version}.",
        f"{len(found)} of them have samples that are compared; results of uninitialized memory are not.",
        "",
        "| way | passed | refused | no reference | failed |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for way in WAYS:
        counts = Counter(row[1] for ways in found.values() for row in ways[way])
        lines.append(f"| {way} | " + " | ".join(str(counts[each]) for each in _OUTCOMES) + " |")
    lines.append("")
    for name, way, (case, _, what) in failures(found):
        lines.append(f"- {name}, {way}, {case}: {' '.join(what.split())[:300]}")
    return "\n".join(lines) + "\n"


_OUTCOMES: Final = ("passed", "refused", "no reference", "failed")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.fuzzing.operators")
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--shard", default="0/1", help="a part: 1/4 is the second quarter")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no further operators after this time")
    parser.add_argument("--write", action="store_true", help="write results/operators.json and .md")
    options = parser.parse_args(arguments)
    shard, _, shards = options.shard.partition("/")
    names = options.only.split(",") if options.only else sorted(vmap.database())[int(shard) :: int(shards)]
    found = run(names, options.jobs, options.minutes * 60)
    print(text_of(found))
    if options.write:
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / "operators.md").write_text(text_of(found), encoding="utf-8")
        rows = {name: {way: dict(Counter(row[1] for row in ways[way])) for way in WAYS} for name, ways in found.items()}
        (FOLDER / "operators.json").write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
    return any(True for _ in failures(found))


if __name__ == "__main__":
    sys.exit(main())
