"""``rekindle show``: the programs of an archive, as source or as graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rekindle.archive.limits import ArchiveLimits
from rekindle.cli.archive_options import limit_option, method_option
from rekindle.cli.console import json_option, write_heading, write_json, write_program
from rekindle.errors.deferred_imports import deferred_function

if TYPE_CHECKING:
    from rekindle.program.function import Method

# These import PyTorch, which --help does not need. Pages take time to import, and most calls make none.
open_archive = deferred_function("rekindle.cli.archives", "open_archive")
methods_of = deferred_function("rekindle.cli.archives", "methods_of")
find_method = deferred_function("rekindle.cli.archives", "find_method")
all_methods = deferred_function("rekindle.cli.archives", "all_methods")
page_of = deferred_function("rekindle.api.show", "show")


@click.command()
@click.argument("archive")
@method_option
@click.option("--all", "parts", is_flag=True, help="Show the methods of its parts too.")
@click.option("--graph", is_flag=True, help="Show graphs, not TorchScript source.")
@click.option("--inlined-graph", is_flag=True, help="Show graphs with all calls inlined.")
@click.option("--html", default=None, metavar="FILE", help="Write a page for browsers that shows a method's graph.")
@limit_option
@json_option
def show(
    archive: str,
    method: str | None,
    parts: bool,
    graph: bool,
    inlined_graph: bool,
    html: str | None,
    limits: ArchiveLimits,
    as_json: bool,
) -> None:
    """Show the programs in ARCHIVE.

    Prints the methods of its module, or one of them, as TorchScript source or as graphs. With --html, writes a page
    that shows the graph of one method after each pass that changes it: forward, unless --method names another.
    """
    module = open_archive(archive, limits)
    if html is not None:
        page_of(find_method(module, method or "forward")).save(html)
        return
    if method is not None:
        found = {method: find_method(module, method)}
    elif parts:
        found = all_methods(module)
    else:
        found = {name: find_method(module, name) for name in methods_of(module)}
    form = "inlined_graph" if inlined_graph else "graph" if graph else "code"
    if as_json:
        write_json({name: {"schema": str(each.schema), form: _text(each, form)} for name, each in found.items()})
        return
    for index, (name, each) in enumerate(found.items()):
        if method is None:
            write_heading(("\n" if index else "") + f"# {name}")
        write_program(_text(each, form))


def _text(method: Method, form: str) -> str:
    return str(getattr(method, form))
