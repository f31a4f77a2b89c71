"""The report as text for a terminal."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rekindle.doctor.verdicts import Verdict

_INDENT: Final = "  "
_WAYS_OUT: Final = (
    ("pt2", ".pt2 files of torch.export", "torch.export"),
    ("native", "native libraries", "native library"),
    ("onnx", "ONNX", "ONNX"),
)
"""Formats to which programs are converted: the key in the data, and the names in headings and in lines."""


def report_lines(data: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of a report, each with its style: None, ``bold``, a color, or both."""
    yield _head(data), "bold"
    for verdict in Verdict:
        yield f"{_INDENT}{verdict.value:<20} {data['counts'][verdict.value]:>4}", None
    command = data["command"]
    if command is not None:
        code = command["exit_code"]
        ended = "took too long and was ended" if code is None else f"ended with exit code {code}"
        yield f"{_INDENT}the command {ended}", None
    yield from _section(data, Verdict.FAILS, "red")
    yield from _section(data, Verdict.CHANGE, "yellow")
    yield from _not_tried(data)
    yield from _working(data)
    yield from _programs(data)
    yield from _rest(data)
    if data["uses"]:
        yield "", None
        yield (
            "to use rekindle: call rekindle.install() before these modules are imported, or start the program by",
            None,
        )
        yield f"{_INDENT}python -m rekindle run-script", None


def _head(data: Mapping[str, Any]) -> str:
    parts = []
    if data["files"]:
        uses, files = len(data["uses"]), data["files_with_uses"]
        parts.append(f"{_count(uses, 'use')} of TorchScript in {files} of {_count(data['files'], 'file')}")
    if data["archives"]:
        parts.append(_count(len(data["archives"]), "archive"))
    return f"{data['path']}: {', '.join(parts) or 'nothing to examine'}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _section(data: Mapping[str, Any], verdict: Verdict, style: str) -> Iterator[tuple[str, str | None]]:
    """Yield the lines on uses with one verdict: those that do not work, or work with a change."""
    items = [each for each in (*data["uses"], *data["archives"]) if each["verdict"] == verdict.value]
    if not items:
        return
    yield "", None
    yield verdict.value + (" (--fix applies the changes)" if verdict is Verdict.CHANGE else ""), f"bold {style}"
    for each in items:
        yield f"{_INDENT}{_label(each)}: {each['reason']}", None
        for problem in each["problems"] if verdict is Verdict.FAILS else ():
            yield f"{_INDENT * 3}{problem_text(problem).splitlines()[0]}", None
            if "hint" in problem:
                yield f"{_INDENT * 3}hint: {problem['hint'].splitlines()[0]}", None
    for line in data["diff"].splitlines() if verdict is Verdict.CHANGE else ():
        color = {"+": "green", "-": "red"}.get(line[:1])
        yield f"{_INDENT * 3}{line}", color


def problem_text(problem: Mapping[str, Any]) -> str:
    """Return the message of a problem, after its source location."""
    return f"{problem['file']}:{problem['line']}: {problem['message']}" if "file" in problem else problem["message"]


def location(each: Mapping[str, Any]) -> str:
    """Return the source location of a use, or the path of an archive."""
    return f"{each['path']}:{each['line']}" if "line" in each else str(each["path"])


def _label(each: Mapping[str, Any]) -> str:
    return f"{location(each)}: {each['name']}" if "line" in each else location(each)


def _not_tried(data: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    groups: dict[str, list[str]] = {}
    for each in (*data["uses"], *data["archives"]):
        if each["verdict"] == Verdict.NOT_TRIED.value:
            groups.setdefault(each["reason"], []).append(_label(each))
    if groups:
        yield "", None
        yield Verdict.NOT_TRIED.value, "bold"
    for reason, labels in groups.items():
        yield f"{_INDENT}{reason}", None
        for label in labels:
            yield f"{_INDENT * 3}{label}", None


def _working(data: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield the lines on uses that work: grouped by name without programs, one by one otherwise."""
    works = [each for each in data["uses"] if each["verdict"] == Verdict.WORKS.value]
    archives = [each for each in data["archives"] if each["verdict"] == Verdict.WORKS.value]
    if not works and not archives:
        return
    yield "", None
    yield Verdict.WORKS.value, "bold green"
    for each in (*archives, *(each for each in works if each["programs"])):
        yield f"{_INDENT}{_label(each)}: {each['reason']}", None
    names = Counter((each["name"], each["reason"]) for each in works if not each["programs"])
    for (name, reason), count in sorted(names.items()):
        yield f"{_INDENT}{name}{f' ({count} uses)' if count > 1 else ''}: {reason}", None


def _programs(data: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Yield the lines on the times of programs, and on the formats that they can be exported to."""
    timed = [
        program
        for each in data["uses"]
        if each["verdict"] != Verdict.FAILS.value
        for program in each["programs"]
        if "seconds" in program
    ]
    leaving = [program for each in data["uses"] for program in each["programs"] if "pt2" in program]
    leaving += [each for each in data["archives"] if "pt2" in each]
    for key, form, label in _WAYS_OUT:
        reasons = [each[key] for each in leaving if key in each]
        tried = [reason for reason in reasons if not reason.startswith("not tried")]
        if tried:
            yield "", None
            yield f"{tried.count('agrees')} of {_count(len(tried), 'program')} can leave as {form}", "bold"
        for reason, count in Counter(reason for reason in reasons if reason != "agrees").most_common():
            yield f"{_INDENT}{label}, {_count(count, 'program')}: {reason}", None
    if timed:
        median = statistics.median(program["seconds"] / program["eager_seconds"] for program in timed)
        yield "", None
        yield f"calls of {_count(len(timed), 'program')} take {median:.2f} of eager's time (median)", "bold"


def _rest(data: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    outside, stock = data["outside"], data["stock"]
    if outside["programs"]:
        yield "", None
        text = f"{_count(outside['programs'], 'program')} compiled at places that were not read"
        yield f"{text}, {len(outside['failed'])} of them failed", None
        for each in outside["failed"][:10]:
            yield f"{_INDENT}{each['subject']}: {each['message']}", None
    if stock is not None:
        yield "", None
        yield "beside stock PyTorch", "bold"
        for name, text in stock.items():
            yield f"{_INDENT}{name}: {text}", None
    if data["mentions"] or data["unread"]:
        yield "", None
        kinds = Counter(each["kind"] for each in data["mentions"])
        counts = [
            f"{count} in {'an' if kind == 'unread file' else 'a'} {kind}" for kind, count in sorted(kinds.items())
        ]
        yield f"lines that mention TorchScript without using it: {', '.join(counts) or 'none'}", None
    for each in data["unread"]:
        yield f"{_INDENT}{each['path']} was not read: {each['reason']}", None
