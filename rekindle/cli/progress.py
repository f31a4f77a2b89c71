"""Progress of a command: shown on stderr, if that is a terminal, once the work takes long."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

from rekindle.errors.progress import no_display

PATIENCE: Final = 1.0
"""Seconds after which a command shows its progress."""


class _Steps(ProgressColumn):
    """Progress as steps of a total; empty if the total is unknown."""

    def render(self, task: Task) -> Text:
        return Text("" if task.total is None else f"{task.completed:.0f}/{task.total:.0f}")


class Working:
    """One piece of work. Its bar oscillates until :meth:`of` sets the number of steps."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=None)

    @property
    def is_shown(self) -> bool:
        return self._progress.live.is_started

    def of(self, total: int) -> None:
        """Set the number of steps to ``total``."""
        self._progress.update(self._task, total=total, completed=0)

    def step(self) -> None:
        self._progress.advance(self._task)


@contextlib.contextmanager
def working(what: str, patience: float = PATIENCE) -> Iterator[Working]:
    """Show a progress bar within the ``with`` block if it takes longer than ``patience`` seconds and stderr is a
    terminal. The bar is removed at the end."""
    console = Console(stderr=True)
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        _Steps(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    done = threading.Event()

    def show() -> None:
        if not done.wait(patience):
            progress.start()

    shower = threading.Thread(target=show, daemon=True)
    if console.is_terminal:
        shower.start()
    try:
        with no_display():
            yield Working(progress, what)
    finally:
        done.set()
        if console.is_terminal:
            shower.join()
        if progress.live.is_started:  # else it would write an empty line
            progress.stop()
