"""A report as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rekindle.api.reports.report_text import report_text
from rekindle.errors.html_output import details, listing, paragraph, table

if TYPE_CHECKING:  # the report's own _repr_html_ is written here
    from rekindle.api.reports.report_data import GraphReport, KernelReport, OperatorReport, Report


def report_html(report: Report) -> str:
    """Return HTML: a table of kernels and one of unfused operators for each version, and the whole report as text."""
    head, *_ = report_text(report).splitlines()
    versions = [details(version.title, "".join(_version(version)), is_open=True) for version in report.versions]
    return "".join([paragraph(head), *versions, details("as text", listing(report_text(report)))])


def _version(version: GraphReport) -> Iterator[str]:
    yield paragraph(f"for {', '.join(version.arguments) or 'no arguments'}")
    parts = list(version.walk())
    kernels = [kernel for part in parts for group in part.groups for kernel in group.kernels]
    if kernels:
        headers = ("kernel", "operators", "inputs", "outputs", "origin", "ms")
        yield table(headers, [_kernel(number, kernel) for number, kernel in enumerate(kernels, 1)])
        yield from (details(f"kernel {number}", listing(kernel.text)) for number, kernel in enumerate(kernels, 1))
    unfused = [each for part in parts for each in part.unfused]
    if unfused:
        yield table(
            ("outside of kernels", "line", "reason"),
            [(each.operator.kind, _line(each.operator), each.reason) for each in unfused],
        )


def _kernel(number: int, kernel: KernelReport) -> tuple[str, ...]:
    kinds = ", ".join(operator.kind for operator in kernel.operators)
    layouts = (", ".join(kernel.inputs), ", ".join(kernel.outputs))
    return (str(number), kinds, *layouts, kernel.machine.origin, f"{kernel.machine.seconds * 1e3:.1f}")


def _line(operator: OperatorReport) -> str:
    return f"{Path(operator.file).name}:{operator.line}: {operator.source}" if operator.file else operator.source
