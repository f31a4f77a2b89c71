"""HTML for notebooks: tables, listings and diffs, readable in light and dark themes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_ADDED: Final = "background:#2da44e33"
_REMOVED: Final = "background:#cf222e33"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table. Headers and cells are plain text."""
    body = "".join(_row("td", row) for row in rows)
    return f"<table><thead>{_row('th', headers)}</thead><tbody>{body}</tbody></table>"


def _row(tag: str, cells: Iterable[str]) -> str:
    shown = "".join(f'<{tag} style="text-align:left">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{shown}</tr>"


def paragraph(text: str) -> str:
    """Return an HTML paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def listing(text: str) -> str:
    """Return plain text as HTML in a monospaced font, without whitespace at its end."""
    return f"<pre>{escape(text.rstrip())}</pre>"


def diff(text: str) -> str:
    """Return a unified diff as HTML, with added and removed lines marked by color as well as by their sign."""
    return f"<pre>{''.join(map(_diff_line, text.rstrip().splitlines()))}</pre>"


def _diff_line(line: str) -> str:
    style = _ADDED if line.startswith("+") else _REMOVED if line.startswith("-") else ""
    shown = escape(line)
    return f'<span style="{style}">{shown}</span>\n' if style else f"{shown}\n"


def details(summary: str, content: str, *, is_open: bool = False) -> str:
    """Return an HTML section that folds. ``summary`` is plain text, ``content`` is HTML. It is unfolded at first if
    ``is_open``."""
    return f"<details{' open' if is_open else ''}><summary>{escape(summary)}</summary>{content}</details>"
