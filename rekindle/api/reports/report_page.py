"""A report as one HTML file: the text, the environment, and the texts of graphs and kernels. It needs nothing else, and
names files without their folders."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Final

from rekindle.api.environment import collect_env
from rekindle.ir.text.printer import print_graph

if TYPE_CHECKING:  # the report's own save() is written here
    from rekindle.api.reports.report_data import Report

_STYLE: Final = (
    "body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }"
    "pre { font: 13px/1.4 ui-monospace, monospace; overflow-x: auto } summary { cursor: pointer }"
)


def report_page(report: Report) -> str:
    """Return the page of a report."""
    return "\n".join(_page(report))


def _page(report: Report) -> Iterator[str]:
    title = escape(f"rekindle report: {report.name}")
    yield f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
    yield f"<style>{_STYLE}</style></head><body><h1>{title}</h1><pre>{escape(str(report))}</pre>"
    for part in report.parts:
        yield _folded(f"graph of {part.title}", print_graph(part.graph, ranges=False))
    for text in dict.fromkeys(kernel.text for kernel in report.kernels):
        yield _folded(f"kernel {text.partition('(')[0].split()[-1]}", text)
    yield _folded("environment", str(collect_env()))
    yield "</body></html>"


def _folded(title: str, text: str) -> str:
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"
