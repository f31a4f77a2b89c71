"""Output of commands: colors for terminals, plain text for files, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

import click
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON, for programs to read.")

_WIDE: Final = 10_000
"""Columns of an output other than a terminal: nothing is truncated, since its width is arbitrary."""


def out() -> Console:
    """Return the console for results. It does not wrap lines, since other programs may read them."""
    return Console(highlight=False, soft_wrap=True, markup=False, emoji=False)


def write_json(value: Any) -> None:
    """Print ``value`` as JSON. Numbers that JSON lacks are the strings ``"nan"``, ``"inf"`` and ``"-inf"``."""
    print(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def write_program(text: str) -> None:
    """Print TorchScript source or a graph; with colors at a terminal."""
    console, text = out(), text.rstrip("\n")
    if not console.is_terminal:
        print(text)
        return
    highlighted = Syntax("", "python", theme="ansi_dark", background_color="default").highlight(text)
    highlighted.rstrip()
    console.print(highlighted)


def write_line(text: str, style: str | None = None) -> None:
    out().print(text, style=style)


def write_heading(text: str) -> None:
    write_line(text, "bold")


def write_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table without lines. Columns whose name begins with ``>`` are numbers; empty ones are omitted."""
    rows = list(rows)
    shown = [index for index in range(len(columns)) if any(row[index] for row in rows)]
    table = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for index in shown:
        name = columns[index]
        justify: Any = "right" if name.startswith(">") else "left"
        table.add_column(name.removeprefix(">"), justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(*(row[index] for index in shown))
    console = out()
    wide = Console(
        highlight=False,
        markup=False,
        emoji=False,
        width=_WIDE,
        force_terminal=console.is_terminal,
        no_color=console.no_color,
    )
    with wide.capture() as captured:
        wide.print(table)
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
