"""The committed account of a run: seeds, shares, the histogram of constructs, findings."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

import torch

from tests.fuzzing.batch import Report

FOLDER: Final = Path(__file__).parent / "results"


def commit() -> str:
    """The commit that is checked out."""
    found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def summary(report: Report) -> dict[str, Any]:
    """The numbers of a run."""
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


def text_of(report: Report) -> str:
    """A run as Markdown."""
    found = summary(report)
    lines = [
        "# Random programs",
        "",
        f"Seed {found['seed']}, {found['programs']} programs at commit {found['commit']}, PyTorch {found['torch']}.",
        f"Rejected by the compiler: {found['rejected']:.1%}. With machine code: {found['native']:.1%} of the others.",
        f"Calls that return a value in eager Python: {found['calls_with_a_value']:.1%} of {found['calls']}.",
        "",
        "| outcome | programs |",
        "| --- | ---: |",
        *(f"| {name} | {count} |" for name, count in found["statuses"].items()),
    ]
    if found["failures"]:
        lines += ["", "| failure | kind | way | programs | first |", "| --- | --- | --- | ---: | ---: |"]
        for row in found["failures"]:
            kind = " ".join(row["kind"].split()).replace("|", "\\|")
            lines.append(f"| {row['failure']} | {kind} | {row['way']} | {row['programs']} | {row['first']} |")
    return "\n".join(lines) + "\n"


def write(report: Report) -> None:
    """``results/seed_N.json`` and ``.md``."""
    FOLDER.mkdir(exist_ok=True)
    stem = FOLDER / f"seed_{report.seed}"
    stem.with_suffix(".json").write_text(json.dumps(summary(report), indent=1) + "\n", encoding="utf-8")
    found = summary(report)
    lines = [text_of(report), "| construct | programs |", "| --- | ---: |"]
    lines += [f"| `{name.replace('|', chr(92) + '|')}` | {count} |" for name, count in found["constructs"].items()]
    lines += ["", "| why rejected | times |", "| --- | ---: |"]
    lines += [
        f"| {' '.join(k.split())[:120].replace('|', chr(92) + '|')} | {n} |" for k, n in found["rejections"].items()
    ]
    stem.with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
