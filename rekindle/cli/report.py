"""``rekindle report``: which machine code runs when a method of the module in an archive is called."""

from __future__ import annotations

from typing import Final

import click
import torch

from rekindle.api.reports.report import report as report_of
from rekindle.api.reports.report_data import Report
from rekindle.archive.limits import ArchiveLimits
from rekindle.cli.archive_options import limit_option
from rekindle.cli.archives import find_method, open_archive
from rekindle.cli.console import json_option, write_heading, write_json, write_line
from rekindle.cli.inputs import FORMS, read_inputs
from rekindle.cli.program_calls import program_errors
from rekindle.cli.progress import working
from rekindle.runtime.executor import STRATEGIES, set_execution_strategy

_TEXTS: Final = ("kernels", "llvm", "assembly")


@click.command(
    epilog=f"An input is {FORMS}. Write NAME=INPUT for one that is given by name.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("archive")
@click.argument("inputs", nargs=-1, type=click.UNPROCESSED)
@click.option("--method", default="forward", show_default=True, metavar="NAME", help="The method to call.")
@click.option(
    "--strategy",
    type=click.Choice(list(STRATEGIES)),
    default="native",
    show_default=True,
    help="The execution strategy.",
)
@click.option(
    "--calls",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="The number of calls; most kernels are compiled in the third.",
)
@click.option("--seed", default=0, show_default=True, help="The seed of random inputs and operators.")
@click.option("--show", type=click.Choice(_TEXTS), default=None, help="Print the text of each kernel too.")
@limit_option
@json_option
def report(
    archive: str,
    inputs: tuple[str, ...],
    method: str,
    strategy: str,
    calls: int,
    seed: int,
    show: str | None,
    limits: ArchiveLimits,
    as_json: bool,
) -> None:
    """Call the module in ARCHIVE, and list the kernels that ran.

    Lists each kernel with its operators, their source lines and the time to compile it, and the operators that run
    without a kernel with the reason.
    """
    torch.manual_seed(seed)
    in_order, by_name = read_inputs(inputs)
    callee = find_method(open_archive(archive, limits), method)
    before = set_execution_strategy(strategy)
    try:
        calling = program_errors(callee.schema.bound, print_to_stderr=as_json)
        with working(f"Running {method}"), calling, torch.no_grad():
            for _ in range(calls):
                callee(*in_order, **by_name)
        found = report_of(callee)
    finally:
        set_execution_strategy(before)
    if as_json:
        write_json(found.to_dict())
        return
    write_line(str(found))
    if show is not None:
        _write_texts(found, show)


def _write_texts(found: Report, show: str) -> None:
    seen: set[str] = set()
    for kernel in found.kernels:
        if kernel.text not in seen:
            seen.add(kernel.text)
            write_heading(f"\n# kernel {len(seen)}")
            write_line({"kernels": kernel.text, "llvm": kernel.llvm, "assembly": kernel.assembly}[show].rstrip())
