"""``rekindle diff``: compare two archives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

import click

from rekindle.archive.limits import ArchiveLimits
from rekindle.cli.archive_options import limit_option
from rekindle.cli.archives import extra_files, open_archive
from rekindle.cli.comparison import Difference, compare_programs, compare_values, one_sided, values_of
from rekindle.cli.console import json_option, write_heading, write_json, write_line
from rekindle.cli.exit_codes import NO, OK
from rekindle.cli.progress import working
from rekindle.program.modules.module import ScriptModule


@click.command()
@click.argument("first")
@click.argument("second")
@click.option("--graph", is_flag=True, help="Compare graphs too.")
@click.option(
    "--tolerance", default=0.0, show_default=True, help="The largest difference of numbers that counts as equal."
)
@limit_option
@json_option
def diff(first: str, second: str, graph: bool, tolerance: float, limits: ArchiveLimits, as_json: bool) -> int:
    """Compare two archives.

    The methods, parameters, buffers, attributes and extra files are compared. Exits with 1 if they differ, 2 if one
    cannot be read.
    """
    a, b = open_archive(first, limits), open_archive(second, limits)
    found = [
        *compare_programs(a, b, ("schema", "code", "graph") if graph else ("schema", "code")),
        *_values(a, b, tolerance),
        *_files(first, second, limits),
    ]
    if as_json:
        write_json([dataclasses.asdict(difference) for difference in found])
    else:
        for difference in found:
            _write(difference)
    return NO if found else OK


def _values(a: ScriptModule, b: ScriptModule, tolerance: float) -> Iterator[Difference]:
    ours, theirs = values_of(a), values_of(b)
    with working("Comparing values") as bar:
        bar.of(sum(map(len, ours.values())))
        for kind in ours:
            yield from compare_values(kind, ours[kind], theirs[kind], tolerance, bar.step)


def _files(first: str, second: str, limits: ArchiveLimits) -> Iterator[Difference]:
    ours, theirs = extra_files(first, limits), extra_files(second, limits)
    yield from one_sided("file", ours, theirs)
    for name, content in ours.items():
        if name in theirs and theirs[name] != content:
            yield Difference("file", name, ["its content differs"])


_STYLES: Final = {"-": "red", "+": "green", "@": "cyan"}


def _write(difference: Difference) -> None:
    lines = difference.difference
    heading = f"{difference.kind} {difference.name}"
    if len(lines) == 1:
        write_line(f"{heading}: {lines[0].removeprefix('- ').removeprefix('+ ')}", _STYLES.get(lines[0][:1]))
        return
    write_heading(heading)
    for line in lines:
        write_line(f"  {line}", _STYLES.get(line[:1]))
