"""The sweep over PyTorch's module database.

    python -m tests.sweeps.module_db --full --jobs 2      everything; writes results/module_db.md and .json
    python -m tests.sweeps.module_db --only nn_Linear     some entries, and what goes wrong with them
    python -m tests.sweeps.module_db --record             asks torch.jit.script anew which cases it takes

Every module in float32, in training and in evaluation mode, with up to twelve of the database's samples, spread
evenly over them. Outputs of two calls and what the calls leave in buffers are compared with eager's. An entry counts
where torch.jit.script compiles and runs one of its cases; what passes beyond that is told beside it.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tests.support.oracle import script_with_torch
from tests.sweeps import report
from tests.sweeps.cases import seed
from tests.sweeps.op_db import our_compiler
from tests.sweeps.outcomes import Compiler, Outcome, check
from tests.sweeps.report import EntryResult
from tests.sweeps.shards import run_entries, serve

RECORD = report.DATA / "module_db_torchscript.json"
KNOWN_FAILURES = report.HERE / "module_db_known_failures.txt"
SAMPLES = 12


@dataclass(slots=True)
class ModuleCase:
    """A module to be made, and what to call it with; ``key`` is ``train/sample`` or ``eval/sample``."""

    key: str
    make: Callable[[], torch.nn.Module]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    text: str


@cache
def database() -> dict[str, Any]:
    """The entries by their names."""
    from torch.testing._internal.common_modules import module_db

    return {entry.formatted_name: entry for entry in module_db}


def cases_of(entry: Any) -> list[ModuleCase]:
    cases: list[ModuleCase] = []
    for training in (True, False):
        mode = "train" if training else "eval"
        seed()
        inputs = entry.module_inputs_func(
            entry, device="cpu", dtype=torch.float32, requires_grad=False, training=training
        )
        inputs = [(index, item) for index, item in enumerate(inputs) if item.forward_input is not None]
        step = max(1, len(inputs) / SAMPLES)
        for index, item in (inputs[int(i * step)] for i in range(min(SAMPLES, len(inputs)))):
            arguments, keywords = item.constructor_input.args, item.constructor_input.kwargs
            cases.append(
                ModuleCase(
                    f"{mode}/{index}",
                    _maker(entry.module_cls, arguments, keywords, training),
                    tuple(item.forward_input.args),
                    dict(item.forward_input.kwargs),
                    f"{entry.formatted_name}(*{_brief(arguments)}, **{_brief(keywords)}), {mode}\n",
                )
            )
    return cases


def _maker(module: Any, arguments: Any, keywords: Any, training: bool) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        seed()
        return module(*arguments, **keywords).train(training)

    return make


def _brief(value: Any) -> str:
    return repr(value)[:200]


def evaluate(cases: list[ModuleCase], compiler: Compiler) -> dict[str, Outcome]:
    return {case.key: check(case.make, case.arguments, case.keywords, compiler, calls=2) for case in cases}


def taken_by_torch(cases: list[ModuleCase], recorded: list[str] | None) -> set[str]:
    """The cases that torch.jit.script compiles and runs: as recorded for this release of PyTorch, or asked now."""
    if recorded is not None:
        return set(recorded)
    outcomes = evaluate(cases, script_with_torch)
    return {key for key, outcome in outcomes.items() if outcome.stage in ("passed", "compare")}


def sweep_entry(name: str, compiler: Compiler, record: dict[str, list[str]]) -> EntryResult:
    cases = cases_of(database()[name])
    taken = taken_by_torch(cases, record.get(name))
    outcomes = evaluate([case for case in cases if case.key in taken or not taken], compiler)
    if not taken:
        beyond = [outcome for outcome in outcomes.values() if outcome.stage != "eager"]
        return EntryResult(name, beyond=bool(beyond) and all(outcome.passed for outcome in beyond))
    failures = {key: outcome for key, outcome in outcomes.items() if not outcome.passed}
    return EntryResult(name, len(taken), failures, {case.key: case.text for case in cases if case.key in failures})


def load_record() -> dict[str, list[str]]:
    """What was recorded; nothing where it was recorded with another release of PyTorch."""
    if not RECORD.exists():
        return {}
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    return record["entries"] if record["torch"] == _version() else {}


def _version() -> str:
    return torch.__version__.partition("+")[0]


def _record_entry(name: str) -> list[str]:
    return sorted(taken_by_torch(cases_of(database()[name]), None))


def _record(names: list[str], jobs: int) -> None:
    found = run_entries("tests.sweeps.module_db", names, ["--record"], jobs)
    entries = load_record() | {name: result or [] for name, result in found.items()}
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(entries[name])}" for name in sorted(entries))
    RECORD.write_text(f'{{"torch": "{_version()}", "entries": {{\n{lines}\n}}}}\n', encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.module_db")
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
    found = run_entries("tests.sweeps.module_db", names, ["--with-torch"] if options.with_torch else [], options.jobs)
    results = {name: EntryResult.from_json(name, found[name]) for name in names}
    if options.causes or options.only:
        print(report.causes(results))
    known = report.known_failures(KNOWN_FAILURES)
    if options.full:
        print(report.write("module_db", "The module database", results, known))
    print(json.dumps(report.summary(results)))
    problems = report.check_against_known(results, known)
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
