"""``rekindle doctor``: what code needs in order to leave torch.jit."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path

import click
import torch

from rekindle.cli.console import json_option, write_json, write_line
from rekindle.cli.exit_codes import NO, OK, Trouble
from rekindle.cli.inputs import FORMS, read_input
from rekindle.cli.progress import working
from rekindle.doctor.changes import StaleEdit
from rekindle.doctor.examination import Examination, Options, examine, fix, package_folder
from rekindle.doctor.report_data import report_data
from rekindle.doctor.report_html import report_page
from rekindle.doctor.report_text import report_lines
from rekindle.doctor.stock import beside_stock, kept_answers
from rekindle.doctor.verdicts import Verdict


@click.command(epilog=f"An input is {FORMS}.")
@click.argument("path")
@click.option("--run", "command", default=None, metavar="COMMAND", help="Run a command and record what it compiles.")
@click.option("--fix", "is_fixing", is_flag=True, help="Write the changes into the files.")
@click.option("--html", default=None, metavar="FILE", help="Write the report as a page for browsers too.")
@click.option("--no-import", is_flag=True, help="Only read the code: import nothing of it.")
@click.option("--trust", is_flag=True, help="Call archives outside the sandbox too: measure and export them.")
@click.option("--input", "inputs", multiple=True, metavar="INPUT", help="An argument for forward of the archives.")
@click.option(
    "--stock",
    default=None,
    metavar="FOLDER",
    help="Compare with results of PyTorch's own torch.jit: the first run writes a script for it into FOLDER.",
)
@click.option(
    "--time-limit", default=120.0, show_default=True, metavar="SECONDS", help="The limit for each module and archive."
)
@json_option
def doctor(
    path: str,
    command: str | None,
    is_fixing: bool,
    html: str | None,
    no_import: bool,
    trust: bool,
    inputs: tuple[str, ...],
    stock: str | None,
    time_limit: float,
    as_json: bool,
) -> int:
    """Find uses of torch.jit in PATH, and try each with rekindle.

    PATH is an archive, a folder of code, a file, or the name of an installed package. The report lists the uses that
    work, that work with a change, and that do not work. Code that compiles something when it is imported is imported,
    in a process of its own.
    """
    root = Path(path) if Path(path).exists() else package_folder(path)
    if root is None:
        raise click.UsageError(f"there is no file, folder or installed package '{path}'")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = None
        if inputs:
            given = folder / "given.pt"
            torch.save([read_input(text) for text in inputs], given)
        options = Options(shlex.split(command or ""), not no_import, time_limit, 3600.0, given, trust)
        with working(f"Examining {path}"):
            examination = examine(root, options, folder)
        beside = None if stock is None else beside_stock(Path(stock), kept_answers(folder))
    data = report_data(examination, path, beside)
    if html is not None:
        Path(html).write_text(report_page(data), encoding="utf-8")
    if as_json:
        write_json(data)
    else:
        for line, style in report_lines(data):
            write_line(line, style)
    if is_fixing:
        _fix(examination, as_json)
    return NO if data["counts"][Verdict.FAILS.value] else OK


def _fix(examination: Examination, as_json: bool) -> None:
    try:
        changed = fix(examination)
    except StaleEdit as error:
        raise Trouble(f"nothing was changed: {error}") from None
    if not as_json:
        write_line(f"\nchanged: {', '.join(changed) or 'nothing'}")
