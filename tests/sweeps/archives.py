"""The sweep of programs through files: both corpora, models, traces, PyTorch's modules and operators.

    python -m tests.sweeps.archives --full --jobs 2      everything; writes results/archives.json and .md
    python -m tests.sweeps.archives --only op.add        some, and what goes wrong with them

Each is saved here and loaded by torch.jit, saved here and loaded here, and saved by torch.jit and loaded here; then it
is called as before, and all that comes of it must be the same.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch

from rekindle.errors import RekindleError, SaveError
from tests.oracle.archive_round_trips import WAYS, NotApplicable, compile_here
from tests.oracle.known_archive_differences import (
    FROM_TORCH,
    IN_TORCH,
    IN_TORCH_AT_FIRST,
    OF_THE_SWEEP,
    REFUSED,
    SAVED_AGAIN,
)
from tests.oracle.subjects import Subject, subjects, traced_models
from tests.sweeps import cases as op_cases, module_db, op_db, report
from tests.sweeps.shards import run_entries, serve
from tests.sweeps.ways import SCRIPT

KNOWN = {"ours_to_torch": IN_TORCH | IN_TORCH_AT_FIRST, "ours_to_ours": SAVED_AGAIN, "torch_to_ours": FROM_TORCH}


@cache
def _programs() -> dict[str, Subject]:
    return {subject.name: subject for subject in [*subjects(), *traced_models()]}


def names() -> list[str]:
    modules = [f"{kind}.{name}" for kind in ("module", "traced_module") for name in sorted(module_db.database())]
    operators = [f"op.{name}" for name, entry in sorted(op_db.load_record(SCRIPT).items()) if entry["taken"]]
    return [*_programs(), *modules, *operators]


def subjects_of(name: str) -> Iterator[Subject]:
    """What a name stands for: a program, two cases of a module, one of an operator."""
    kind, _, entry = name.partition(".")
    if kind in ("module", "traced_module"):
        cases = [case for case in module_db.cases_of(module_db.database()[entry]) if not case.keywords]
        for case in [case for case in cases if case.key.startswith("eval/")][:2]:
            yield Subject(f"{name} {case.key}", case.make, (case.arguments,), kind == "traced_module")
    elif kind == "op":
        taken = op_db.load_record(SCRIPT)[entry]["taken"]
        cases = [case for case in op_cases.cases_of(op_db.database()[entry]) if case.key in taken][:1]
        with tempfile.TemporaryDirectory() as folder:
            module = op_cases.load(cases, Path(folder), entry)
            for case in cases:
                function = getattr(module, case.name)
                yield Subject(f"{name} {case.key}", lambda found=function: found, (tuple(case.arguments),))
    else:
        yield _programs()[name]


def evaluate(name: str) -> list[list[str]]:
    """``[subject, way, what came of it]``: nothing, ``not compiled``, ``no archive of torch.jit``, ``refused: …``, or
    what is wrong."""
    found: list[list[str]] = []
    for subject in subjects_of(name):
        try:
            compile_here(subject)
        except (RekindleError, RuntimeError, ValueError, TypeError):
            found += [[subject.name, way.__name__, "not compiled"] for way in WAYS]
            continue
        found += [[subject.name, way.__name__, _outcome(way, subject)] for way in WAYS]
    return found


def _outcome(way: Any, subject: Subject) -> str:
    values = not subject.name.startswith(tuple(f"op.{name}" for name in op_db.UNINITIALIZED))
    try:
        problems = list(way(subject))
    except NotApplicable:
        return "no archive of torch.jit"
    except SaveError as error:
        return f"refused: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:600]
    return "" if not values else "; ".join(problems)[:600]


def problems_in(results: dict[str, Any]) -> list[str]:
    """What the lists do not say, and what they say and is not so."""
    problems: list[str] = []
    for name, found in results.items():
        if found is None:
            problems.append(f"{name}: the process died")
        for subject, way, outcome in found or ():
            is_refused = outcome.startswith("refused: ") and REFUSED.get(subject, "\0") in outcome
            is_known = is_refused or subject in KNOWN[way] or subject in OF_THE_SWEEP
            if outcome in ("", "not compiled", "no archive of torch.jit"):
                if is_known and outcome == "" and subject not in IN_TORCH_AT_FIRST | OF_THE_SWEEP:
                    problems.append(f"{subject}: {way}: comes through now: take it off the list")
            elif not is_known:
                problems.append(f"{subject}: {way}: {outcome}")
    return problems


def write(results: dict[str, Any]) -> dict[str, Any]:
    """``results/archives.json`` and ``.md``; the summary."""
    flat = [row for found in results.values() for row in found or ()]
    counts = {
        way.__name__: Counter(_class_of(outcome) for _, way_, outcome in flat if way_ == way.__name__) for way in WAYS
    }
    summary = {
        "torch": torch.__version__.partition("+")[0],
        "programs": len({row[0] for row in flat}),
        "passed": {way: counter["passed"] for way, counter in counts.items()},
        "problems": problems_in(results),
    }
    data = {"summary": summary, "counts": {way: dict(sorted(counter.items())) for way, counter in counts.items()}}
    (report.RESULTS / "archives.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    titles = {
        "ours_to_torch": "saved here, loaded by torch.jit",
        "ours_to_ours": "saved here, loaded here, saved again",
        "torch_to_ours": "saved by torch.jit, loaded here",
    }
    classes = ["passed", "differs as listed", "refused by name", "no archive of torch.jit", "not compiled"]
    lines = ["# Programs through files", "", f"torch {summary['torch']}, {summary['programs']} programs.", ""]
    lines += [f"| way | {' | '.join(classes)} |", "| --- " * (len(classes) + 1) + "|"]
    for way, title in titles.items():
        lines.append(f"| {title} | {' | '.join(str(counts[way][name]) for name in classes)} |")
    lines += ["", "What differs as listed, and why: tests/oracle/known_archive_differences.py.", ""]
    (report.RESULTS / "archives.md").write_text("\n".join(lines), encoding="utf-8")
    return summary


def _class_of(outcome: str) -> str:
    if outcome in ("not compiled", "no archive of torch.jit"):
        return outcome
    return "passed" if not outcome else "refused by name" if outcome.startswith("refused: ") else "differs as listed"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.sweeps.archives")
    parser.add_argument("--full", action="store_true", help="everything; write the results")
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.worker:
        torch.set_num_threads(1)
        serve(options.worker, evaluate)
        return 0
    chosen = options.only.split(",") if options.only else names()
    results = run_entries("tests.sweeps.archives", chosen, [], options.jobs)
    problems = write(results)["problems"] if options.full else problems_in(results)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
