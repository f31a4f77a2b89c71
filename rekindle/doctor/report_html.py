"""The report as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, Final

from rekindle.doctor.report_text import location, problem_text, report_lines
from rekindle.doctor.verdicts import Verdict

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; vertical-align: top; padding: .3em .7em }
tr { border-top: 1px solid #ddd } code, pre { font: 13px/1.4 ui-monospace, monospace } pre { margin: .3em 0 }
.works { color: #176b32 } .change { color: #8a5a00 } .fails { color: #a11 } .skipped { color: #666 }
.added { color: #176b32 } .removed { color: #a11 } summary { cursor: pointer }
@media (prefers-color-scheme: dark) { body { background: #1b1b1b; color: #ddd } tr { border-color: #444 }
.works, .added { color: #6fcf8b } .change { color: #e0b04a } .fails, .removed { color: #f38 } .skipped { color: #999 } }
"""
_CLASSES: Final = {
    Verdict.WORKS.value: "works",
    Verdict.CHANGE.value: "change",
    Verdict.FAILS.value: "fails",
    Verdict.NOT_TRIED.value: "skipped",
}
_ORDER: Final = [Verdict.FAILS.value, Verdict.CHANGE.value, Verdict.NOT_TRIED.value, Verdict.WORKS.value]


def report_page(data: Mapping[str, Any]) -> str:
    """Return an HTML page that shows a report, the result of :func:`~rekindle.doctor.report_data.report_data`."""
    return "\n".join(_page(data))


def _page(data: Mapping[str, Any]) -> Iterator[str]:
    title = escape(f"rekindle doctor: {data['path']}")
    yield f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield f"<style>{_STYLE}</style></head><body><h1>{title}</h1>"
    yield f"<p>rekindle {escape(data['rekindle'])}, PyTorch {escape(data['torch'])}</p><table>"
    for name in _ORDER:
        yield f'<tr><td class="{_CLASSES[name]}">{name}</td><td>{data["counts"][name]}</td></tr>'
    yield "</table>"
    items = [*data["archives"], *data["uses"]]
    for name in _ORDER:
        group = [each for each in items if each["verdict"] == name]
        if group:
            opened = "" if name == Verdict.WORKS.value else " open"
            yield f'<details{opened}><summary><h2 class="{_CLASSES[name]}" style="display:inline">'
            yield f"{name} ({len(group)})</h2></summary><table>"
            for each in group:
                yield from _row(each)
            yield "</table></details>"
    yield "<details><summary>as text</summary><pre>"
    yield escape("\n".join(line for line, _ in report_lines(data)))
    yield "</pre></details></body></html>"


def _row(each: Mapping[str, Any]) -> Iterator[str]:
    yield f"<tr><td><code>{escape(location(each))}</code></td><td><code>{escape(each.get('text', ''))}</code></td><td>"
    yield escape(each["reason"])
    for problem in each["problems"]:
        hint = f"\nhint: {problem['hint']}" if "hint" in problem else ""
        yield f"<pre>{escape(problem_text(problem) + hint)}</pre>"
    if each.get("diff"):
        yield "<pre>" + "\n".join(map(_diff_line, each["diff"].splitlines())) + "</pre>"
    yield "</td></tr>"


def _diff_line(line: str) -> str:
    kind = {"+": "added", "-": "removed"}.get(line[:1])
    return escape(line) if kind is None else f'<span class="{kind}">{escape(line)}</span>'
