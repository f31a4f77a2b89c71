"""The results of a sweep, JSON for machines and Markdown for people; and the known failures that they are compared
with."""
# ruff: noqa: T201 - the commands print what is found

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from tests.sweeps.outcomes import Outcome, cause

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DATA = HERE / "data"


@dataclass(slots=True)
class EntryResult:
    """An entry of the database: how many of its cases torch.jit takes, and which of those fail here."""

    name: str
    cases: int = 0
    failures: dict[str, Outcome] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    crashed: bool = False
    others: int = 0
    """How many further arguments, of other sizes, were compared."""
    beyond: bool = False
    """Whether torch.jit takes no case and all cases that eager runs pass here."""

    @property
    def counts(self) -> bool:
        """Whether the entry is in the denominator."""
        return self.cases > 0 or self.crashed

    @property
    def passed(self) -> bool:
        return self.counts and not self.failures and not self.crashed

    def to_json(self) -> dict[str, Any]:
        failures = {key: [outcome.stage, outcome.error] for key, outcome in self.failures.items()}
        return {
            "cases": self.cases,
            "failures": failures,
            "texts": self.texts,
            "others": self.others,
            "beyond": self.beyond,
        }

    @staticmethod
    def from_json(name: str, data: dict[str, Any] | None) -> EntryResult:
        if data is None:
            return EntryResult(name, crashed=True)
        failures = {key: Outcome(stage, error) for key, (stage, error) in data["failures"].items()}
        return EntryResult(name, data["cases"], failures, data["texts"], others=data["others"], beyond=data["beyond"])


def known_failures(path: Path) -> dict[str, str]:
    """``name: reason``, a line each; lines that begin with # and empty lines say nothing."""
    known: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, separator, reason = line.partition(": ")
            assert separator, f"{path.name}: a reason is missing: {line}"
            assert reason.strip(), f"{path.name}: a reason is missing: {line}"
            known[name.strip()] = reason.strip()
    return known


def check_against_known(results: dict[str, EntryResult], known: dict[str, str]) -> list[str]:
    """What is wrong with the list: entries that fail and are not on it, entries on it that pass."""
    problems: list[str] = []
    for name, result in results.items():
        if result.counts and not result.passed and name not in known:
            what = next(iter(result.failures.items()), ("process", Outcome("crash", "the process died")))
            problems.append(f"{name} fails and is not listed: {what[0]}: {what[1].stage}: {what[1].error}"[:400])
        if result.passed and name in known:
            problems.append(f"{name} passes now: take it off the list")
    return problems


def summary(results: dict[str, EntryResult]) -> dict[str, Any]:
    counted = [result for result in results.values() if result.counts]
    passed = [result for result in counted if result.passed]
    cases = sum(result.cases for result in counted)
    failed_cases = sum(len(result.failures) for result in counted)
    return {
        "torch": torch.__version__.partition("+")[0],
        "entries": len(results),
        "denominator": len(counted),
        "passed": len(passed),
        "passed_beyond": sum(result.beyond for result in results.values()),
        "percent": round(100 * len(passed) / max(1, len(counted)), 2),
        "cases": cases,
        "cases_passed": cases - failed_cases,
        "other_sizes_compared": sum(result.others for result in counted),
    }


def committed_summary(stem: str) -> dict[str, Any]:
    """The numbers of the sweep that was committed last."""
    return json.loads((RESULTS / f"{stem}.json").read_text(encoding="utf-8"))["summary"]


def committed_entries(stem: str) -> dict[str, Any]:
    """By name: the number of cases, and the stages of those that failed, in the sweep that was committed last."""
    entries: dict[str, Any] = json.loads((RESULTS / f"{stem}.json").read_text(encoding="utf-8"))["entries"]
    return entries


def write(stem: str, title: str, peer: str, results: dict[str, EntryResult], known: dict[str, str]) -> str:
    """Write ``results/<stem>.json`` and ``results/<stem>.md``; the Markdown text. ``peer`` says who takes a case."""
    head = summary(results)
    entries = {
        name: {"cases": result.cases, "failed": {key: outcome.stage for key, outcome in result.failures.items()}}
        for name, result in sorted(results.items())
        if result.counts
    }
    outside = sorted(name for name, result in results.items() if not result.counts)
    RESULTS.mkdir(exist_ok=True)
    data = {"summary": head, "entries": entries, "not_taken_by_torch_jit": outside}
    (RESULTS / f"{stem}.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    text = _markdown(title, peer, head, results, known, outside)
    (RESULTS / f"{stem}.md").write_text(text, encoding="utf-8")
    return text


def _markdown(
    title: str,
    peer: str,
    head: dict[str, Any],
    results: dict[str, EntryResult],
    known: dict[str, str],
    outside: list[str],
) -> str:
    failing = sorted((r for r in results.values() if r.counts and not r.passed), key=lambda r: r.name)
    lines = [f"# {title}", ""]
    lines.append(
        f"torch {head['torch']}. Of {head['entries']} entries, {peer} a case of "
        f"**{head['denominator']}**; of these **{head['passed']}** ({head['percent']} %) compile here and match "
        f"eager in every such case. Single cases: {head['cases_passed']} of {head['cases']}."
    )
    if head["other_sizes_compared"]:
        lines.append(
            f"What was compiled was also called {head['other_sizes_compared']} times on inputs of other sizes, and an "
            "entry passes only where all of these match eager."
        )
    lines.append("")
    if failing:
        lines += ["| entry | cases | failed | first failure | reason |", "| --- | --- | --- | --- | --- |"]
    for result in failing:
        first = "the process died" if result.crashed else cause(next(iter(result.failures.values())))
        first = first.replace("|", "\\|")
        reason = known.get(result.name, "not listed")
        lines.append(f"| {result.name} | {result.cases} | {len(result.failures)} | {first} | {reason} |")
    marked = [name + "*" if results[name].beyond else name for name in outside]
    told = (
        "of which torch.jit takes no case" if "torch.jit" in peer else "that no program can say, or eager does not run"
    )
    lines += ["", f"Entries {told} ({len(outside)}): {', '.join(marked)}."]
    if head["passed_beyond"]:
        lines += [f"With a star: all that eager runs passes here ({head['passed_beyond']})."]
    lines += [""]
    return "\n".join(lines)


def causes(results: dict[str, EntryResult], limit: int = 40) -> str:
    """The most frequent causes of failure with an example each, for those who work on them."""
    counter: Counter[str] = Counter()
    entries: dict[str, set[str]] = {}
    example: dict[str, str] = {}
    for result in results.values():
        for key, outcome in result.failures.items():
            what = cause(outcome)
            counter[what] += 1
            entries.setdefault(what, set()).add(result.name)
            example.setdefault(what, result.texts.get(key, "") + outcome.error[:600])
    lines: list[str] = []
    for what in sorted(counter, key=lambda w: -len(entries[w]))[:limit]:
        names = sorted(entries[what])
        lines.append(
            f"## {len(names)} entries, {counter[what]} cases: {what}\n   {', '.join(names[:12])}\n{example[what]}\n"
        )
    return "\n".join(lines)


def known_failures_path(stem: str) -> Path:
    return HERE / f"{stem}_known_failures.txt"


def conclude(
    stem: str, title: str, peer: str, results: dict[str, EntryResult], *, show_causes: bool, full: bool
) -> int:
    """Print what a sweep found, write it down where it was the full one; 1 where the known failures are others."""
    if show_causes:
        print(causes(results))
    known = known_failures(known_failures_path(stem))
    if full:
        print(write(stem, title, peer, results, known))
    print(json.dumps(summary(results)))
    problems = check_against_known(results, known)
    print("\n".join(problems), file=sys.stderr)
    return 1 if problems else 0
