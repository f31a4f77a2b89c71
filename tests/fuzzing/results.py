"""The committed account of all runs: seeds, shares, the histogram of constructs, findings.

python -m tests.fuzzing.results FILE...      adds batches that ``--batch FILE`` wrote, and writes results/programs.*
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import torch

from tests.fuzzing.batch import Report

FOLDER: Final = Path(__file__).parent / "results"
PROGRAMS: Final = FOLDER / "programs.json"

MOST_REJECTED: Final = 0.40
"""The share of programs that the compiler may refuse."""
LEAST_NATIVE: Final = 0.35
"""The share of the others in which machine code must run."""
JUDGED_BY_SHARES: Final = 500
"""Batches of fewer programs are too small for it."""

Summary = dict[str, Any]


def commit() -> str:
    """The commit that is checked out."""
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def summary(report: Report) -> Summary:
    """The numbers of a batch."""
    return {
        "seed": report.seed,
        "programs": report.count,
        "commit": commit(),
        "torch": torch.__version__.partition("+")[0],
        "seconds": round(report.seconds, 1),
        "statuses": dict(sorted(report.statuses.items())),
        "rejected": round(report.statuses["rejected"] / max(report.count, 1), 4),
        "native": round(report.native / max(report.compiled, 1), 4),
        "calls": report.calls,
        "calls_with_a_value": round(report.values / max(report.calls, 1), 4),
        "failures": [
            {"failure": f, "kind": k, "way": w, "programs": n, "first": report.first[f, k, w]}
            for (f, k, w), n in report.failures.most_common()
        ],
        "constructs": dict(report.constructs.most_common()),
        "rejections": dict(report.rejections.most_common(60)),
    }


def check_shares(found: Summary) -> None:
    """Assert that enough of a batch compiles and runs as machine code; both bounds may become tighter, never looser."""
    if found["programs"] < JUDGED_BY_SHARES:
        return
    seed = found["seed"]
    assert found["rejected"] <= MOST_REJECTED, f"seed {seed}: {found['rejected']:.1%} of the programs are rejected"
    assert found["native"] >= LEAST_NATIVE, f"seed {seed}: machine code runs in {found['native']:.1%} of the others"


def text_of(report: Report) -> str:
    """A batch as Markdown."""
    return "\n".join(_batch_lines(summary(report))) + "\n"


def _batch_lines(found: Summary) -> list[str]:
    lines = [
        "# Random programs",
        "",
        f"Seed {found['seed']}, {found['programs']} programs at commit {found['commit']}, PyTorch {found['torch']}.",
        f"Rejected by the compiler: {found['rejected']:.1%}. With machine code: {found['native']:.1%} of the others.",
        f"Calls that return a value in eager Python: {found['calls_with_a_value']:.1%} of {found['calls']}.",
        "",
        *_table("outcome", found["statuses"]),
    ]
    if found["failures"]:
        lines += ["", "| failure | kind | way | programs | first |", "| --- | --- | --- | ---: | ---: |"]
        for row in found["failures"]:
            lines.append(
                f"| {row['failure']} | {_cell(row['kind'])} | {row['way']} | {row['programs']} | {row['first']} |"
            )
    return lines


def _cell(text: str) -> str:
    return " ".join(text.split())[:160].replace("|", "\\|")


def _table(head: str, counts: dict[str, int]) -> list[str]:
    return [f"| {head} | programs |", "| --- | ---: |", *(f"| {_cell(name)} | {n} |" for name, n in counts.items())]


def add(batches: Iterable[Summary]) -> None:
    """Add batches to ``results/programs.json``, and write ``programs.md``.

    Raises:
        AssertionError: a batch is there already, or its shares are beyond the bounds.
    """
    FOLDER.mkdir(exist_ok=True)
    found: Summary = {"batches": [], "constructs": {}, "rejections": {}}
    if PROGRAMS.exists():
        found = json.loads(PROGRAMS.read_text(encoding="utf-8"))
    constructs, rejections = Counter(found["constructs"]), Counter(found["rejections"])
    seeds = {each["seed"] for each in found["batches"]}
    for batch in batches:
        check_shares(batch)
        assert batch["seed"] not in seeds, f"the batch of seed {batch['seed']} is recorded"
        seeds.add(batch["seed"])
        constructs.update(batch.pop("constructs"))
        rejections.update(batch.pop("rejections"))
        found["batches"].append(batch)
    found["constructs"], found["rejections"] = dict(constructs.most_common()), dict(rejections.most_common(100))
    PROGRAMS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    PROGRAMS.with_suffix(".md").write_text("\n".join(_all_lines(found)) + "\n", encoding="utf-8")


def _all_lines(found: Summary) -> list[str]:
    batches = found["batches"]
    count = sum(each["programs"] for each in batches)
    statuses = Counter[str]()
    failures = Counter[str]()
    for each in batches:
        statuses.update(each["statuses"])
        failures.update(
            {f"{row['failure']}: {row['kind']} ({row['way']})": row["programs"] for row in each["failures"]}
        )
    rejected = statuses["rejected"] / max(count, 1)
    return [
        "# Random programs beside eager Python",
        "",
        f"{count} programs in {len(batches)} batches, of which the compiler rejected {rejected:.1%}.",
        "A batch is of one seed and one commit; findings were mended between batches: the first ones show more.",
        "",
        *_table("outcome", dict(sorted(statuses.items()))),
        "",
        "| seed | commit | programs | rejected | native | findings | known | seconds |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        *(_batch_row(each) for each in batches),
        "",
        *_table("finding, of all batches", dict(failures.most_common(80))),
        "",
        *_table("construct", found["constructs"]),
        "",
        *_table("why rejected", dict(list(found["rejections"].items())[:60])),
    ]


def _batch_row(batch: Summary) -> str:
    statuses = batch["statuses"]
    numbers = (
        f"{batch['rejected']:.1%}",
        f"{batch['native']:.1%}",
        statuses.get("finding", 0),
        statuses.get("known", 0),
    )
    cells = (batch["seed"], batch["commit"], batch["programs"], *numbers, round(batch["seconds"]))
    return f"| {' | '.join(str(each) for each in cells)} |"


if __name__ == "__main__":
    add(json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:])
