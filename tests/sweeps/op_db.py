"""The sweep over PyTorch's operator database.

    python -m tests.sweeps.op_db --full --jobs 2      everything; writes results/op_db.md and .json
    python -m tests.sweeps.op_db --only add,mul       some entries, and what goes wrong with them
    python -m tests.sweeps.op_db --record --jobs 2    asks torch.jit.script anew which cases it takes (takes --only too)

For every entry up to six samples in float32, an integer dtype and complex64, each called as function, method and
in-place method. An entry counts where torch.jit.script compiles and runs one of its cases; it passes where every case
that torch.jit.script takes compiles here and gives eager's answer.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch

from tests.support.oracle import script_with_torch
from tests.sweeps import report
from tests.sweeps.cases import Case, cases_of, digest, load
from tests.sweeps.outcomes import Compiler, Outcome, check
from tests.sweeps.report import EntryResult
from tests.sweeps.shards import run_entries, serve

RECORD = report.DATA / "op_db_torchscript.json"
KNOWN_FAILURES = report.HERE / "op_db_known_failures.txt"

UNINITIALIZED = ("empty", "new_empty", "resize_", "_empty")
"""Operators whose results hold whatever was in the memory: their shapes and dtypes are compared, not their values."""


@cache
def database() -> dict[str, Any]:
    """The entries by their full names."""
    from torch.testing._internal.common_methods_invocations import op_db

    return {op.full_name: op for op in op_db}


def evaluate(name: str, cases: list[Case], compiler: Compiler) -> dict[str, Outcome]:
    """What comes of each case of an entry."""
    values = not name.startswith(UNINITIALIZED)
    with tempfile.TemporaryDirectory() as folder:
        module = load(cases, Path(folder), name)
        return {
            case.key: check(partial(getattr, module, case.name), case.arguments, {}, compiler, values=values)
            for case in cases
        }


def taken_by_torch(name: str, cases: list[Case], record: dict[str, Any] | None = None) -> set[str]:
    """The cases that torch.jit.script compiles and runs: as recorded, or asked now where the texts are others."""
    recorded = (record or {}).get(name)
    if recorded is not None and recorded["texts"] == digest(cases):
        return set(recorded["taken"])
    outcomes = evaluate(name, cases, script_with_torch)
    # What torch.jit.script answers differently than eager is taken too: the answer that counts is eager's.
    return {key for key, outcome in outcomes.items() if outcome.stage in ("passed", "compare")}


def sweep_entry(name: str, compiler: Compiler, record: dict[str, Any] | None = None) -> EntryResult:
    cases = list(cases_of(database()[name]))
    taken = taken_by_torch(name, cases, record)
    wanted = [case for case in cases if case.key in taken]
    outcomes = evaluate(name, wanted, compiler)
    failures = {key: outcome for key, outcome in outcomes.items() if not outcome.passed}
    texts = {case.key: case.text for case in wanted if case.key in failures}
    return EntryResult(name, len(wanted), failures, texts)


def load_record() -> dict[str, Any]:
    return json.loads(RECORD.read_text(encoding="utf-8"))["entries"] if RECORD.exists() else {}


def our_compiler() -> Compiler:
    import rekindle

    return rekindle.script


def _record_entry(name: str) -> dict[str, Any]:
    cases = list(cases_of(database()[name]))
    return {"texts": digest(cases), "taken": sorted(taken_by_torch(name, cases))}


def _record(names: list[str], jobs: int) -> None:
    found = run_entries("tests.sweeps.op_db", names, ["--record"], jobs)
    entries = load_record() | {name: result or {"texts": "crashed", "taken": []} for name, result in found.items()}
    entries = {name: entries[name] for name in sorted(entries)}
    version = torch.__version__.partition("+")[0]
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items())
    RECORD.write_text(f'{{"torch": "{version}", "entries": {{\n{lines}\n}}}}\n', encoding="utf-8")


def _sweep(names: list[str], jobs: int, with_torch: bool) -> dict[str, EntryResult]:
    options = ["--with-torch"] if with_torch else []
    found = run_entries("tests.sweeps.op_db", names, options, jobs)
    return {name: EntryResult.from_json(name, found[name]) for name in names}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.op_db")
    parser.add_argument("--full", action="store_true", help="every entry; write the results")
    parser.add_argument("--only", help="entries, with commas between them")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--record", action="store_true", help="ask torch.jit.script which cases it takes")
    parser.add_argument("--causes", action="store_true", help="tell the most frequent causes of failure")
    parser.add_argument("--with-torch", action="store_true", help="compile with torch.jit.script, to try out the sweep")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        torch.set_num_threads(1)
        if options.record:
            serve(options.worker, _record_entry)
        else:
            record, compiler = load_record(), script_with_torch if options.with_torch else our_compiler()
            serve(options.worker, lambda name: sweep_entry(name, compiler, record).to_json())
        return 0
    names = options.only.split(",") if options.only else list(database())
    if options.record:
        _record(names, options.jobs)
        return 0
    results = _sweep(names, options.jobs, options.with_torch)
    if options.causes or options.only:
        print(report.causes(results))
    known = report.known_failures(KNOWN_FAILURES)
    if options.full:
        print(report.write("op_db", "The operator database", results, known))
    print(json.dumps(report.summary(results)))
    problems = report.check_against_known(results, known)
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
