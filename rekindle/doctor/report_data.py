"""The report as plain data, which is what ``--json`` writes and the other forms show."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import rekindle
from rekindle.doctor.changes import diff_of
from rekindle.doctor.examination import Examination
from rekindle.doctor.processes import Event
from rekindle.doctor.verdicts import Evidence, Finding, Verdict


def report_data(examination: Examination, name: str, stock: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the report of an examination as dicts and lists. ``name`` is the path as the user wrote it, ``stock`` the
    comparisons with stock PyTorch by program, if there are any."""
    found = examination.found
    counts = Counter(finding.verdict for finding in examination.findings)
    counts.update(verdict for verdict, _ in map(_archive_verdict, examination.archives))
    files = {finding.use.path for finding in examination.findings}
    return {
        "rekindle": rekindle.__version__,
        "torch": torch.__version__,
        "path": name,
        "files": found.files,
        "files_with_uses": len(files),
        "counts": {verdict.value: counts[verdict] for verdict in Verdict},
        "uses": [_use(examination, finding) for finding in examination.findings],
        "diff": diff_of(examination.base, examination.edits),
        "archives": [_archive(examination, event) for event in examination.archives],
        "outside": _outside(examination.outside),
        "mentions": [
            {"path": each.path, "line": each.line, "kind": each.kind, "text": each.text} for each in found.mentions
        ],
        "unread": [{"path": each.path, "reason": each.reason} for each in found.unread],
        "command": examination.command,
        "stock": dict(stock) if stock is not None else None,
    }


def _use(examination: Examination, finding: Finding) -> dict[str, Any]:
    use = finding.use
    return {
        "path": use.path,
        "line": use.line,
        "column": use.column,
        "end_line": use.end_line,
        "name": use.name,
        "form": use.form,
        "scope": use.scope,
        "text": use.text,
        "verdict": finding.verdict.value,
        "reason": finding.reason,
        "problems": [problem for each in finding.evidence for problem in _problems(examination, each.problems)],
        "diff": finding.diff,
        "programs": [_program(each) for each in finding.evidence if each.ok],
    }


def _problems(examination: Examination, problems: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for problem in problems:
        shown = {key: problem[key] for key in ("message", "hint", "cause") if problem.get(key)}
        if problem.get("file"):
            shown["file"], shown["line"] = _relative(examination.base, problem["file"]), problem["line"]
        found.append(shown)
    return found


def _relative(base: Path, file: str) -> str:
    """Return a path relative to the examined folder; for other files, a path without the user's folders."""
    path = Path(file)
    if path.is_relative_to(base):
        return path.relative_to(base).as_posix()
    parts = path.parts
    for name in ("site-packages", "dist-packages"):
        if name in parts:
            return "/".join(parts[parts.index(name) + 1 :])
    return os.path.basename(file)


def _program(evidence: Evidence) -> dict[str, Any]:
    calls = evidence.calls or {}
    kept = ("calls", "inputs", "difference", "not_compared", "seconds", "eager_seconds", "pt2", "native", "onnx")
    return {"subject": evidence.subject, **{key: calls[key] for key in kept if calls.get(key) is not None}}


def _archive_verdict(event: Event) -> tuple[Verdict, str]:
    missing = event.get("missing") or []
    if not event["ok"]:
        return Verdict.FAILS, f"no installed package has {', '.join(missing)}" if missing else "it cannot be loaded"
    if event.get("difference"):
        return Verdict.FAILS, f"compiled code differs: {event['difference']}"
    if event.get("not_called"):
        return Verdict.NOT_TRIED, f"it loads; forward was not called: {event['not_called']}"
    on = f"{event['called']} inputs: {event['shapes']}"
    return Verdict.WORKS, f"it loads, and forward answers in the sandbox on {on}"


def _archive(examination: Examination, event: Event) -> dict[str, Any]:
    kept = ("methods", "format", "missing", "called", "shapes", "difference", "seconds", "pt2", "native", "onnx")
    verdict, reason = _archive_verdict(event)
    return {
        "path": _relative(examination.base, event["path"]),
        "verdict": verdict.value,
        "reason": reason,
        "problems": _problems(examination, event["problems"]),
        **{key: event[key] for key in kept if event.get(key) is not None},
    }


def _outside(events: Sequence[Event]) -> dict[str, Any]:
    """Return the number of programs that were compiled at places without a use, and those that failed, with the
    message."""
    failed = [event for event in events if not event["ok"]]
    return {
        "programs": len(events),
        "failed": [
            {"subject": event["subject"], "message": event["problems"][0]["message"].partition("\n")[0]}
            for event in failed
        ],
    }
