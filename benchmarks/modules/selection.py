"""Which cases are measured, and the file that keeps the rows while they come."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.modules import measure
from benchmarks.modules.case import ModuleCase
from benchmarks.modules.catalog import CASES, check_complete, check_packages
from benchmarks.modules.measure import Row

Chosen = list[tuple[ModuleCase, str]]


def chosen(named: str = "", every: int = 1) -> Chosen:
    """Return the cases with ``named`` in their titles, or one of the parts that ``|`` separates in it; every so many of
    them, each in all of its modes.

    Raises:
        Incomplete: a package of theirs is missing, or a library of theirs has modules without a case.
    """
    cases = [case for case in CASES if any(part in case.title for part in named.split("|"))][::every]
    libraries = {case.library for case in cases}
    check_packages(libraries)
    check_complete(libraries)
    return [(case, mode) for case in cases for mode in case.modes]


def measured(
    cases: Chosen, rounds: int, slice: float, limit: float, output: Path, *, resume: bool, console: Console
) -> list[Row]:
    """Measure the cases, and write each row to ``output`` as soon as it is measured. Return all rows.

    With ``resume``, rows that are in ``output`` are returned as they are; without, the file starts empty.
    """
    kept = {row.title: row for row in measure.load(output)} if resume else {}
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("".join(_line(row) for row in kept.values()), encoding="utf-8")
    left = [(case, mode) for case, mode in cases if f"{case.title}, {mode}" not in kept]
    with Progress(console=console, transient=True) as progress, output.open("a", encoding="utf-8") as file:
        task = progress.add_task("modules", total=len(left))
        for case, mode in left:
            progress.update(task, description=f"{case.title}, {mode}")
            row = measure.measured(case, mode, rounds, slice, limit)
            kept[row.title] = row
            file.write(_line(row))
            file.flush()
            progress.advance(task)
    return [kept[f"{case.title}, {mode}"] for case, mode in cases]


def _line(row: Row) -> str:
    return json.dumps(measure.as_json(row)) + "\n"
