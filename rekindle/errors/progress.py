"""Show the progress of long compilations on a terminal."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

DELAY: Final = 2.0
"""Seconds that a compilation takes before it is shown."""
_INTERVAL: Final = 0.1
"""Seconds between updates of the display."""


class _Display:
    """Display of ``what`` on the terminal, by a thread of its own. It appears after :data:`DELAY`, and shows the time
    since it was created."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._start = time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rekindle progress", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        if self._done.wait(DELAY):
            return
        # Rich takes a tenth of a second to import, which only those pay who wait anyway.
        rich: Any = importlib.import_module("rich.progress")
        columns = (rich.SpinnerColumn(), rich.TextColumn("{task.description}", markup=False), rich.TimeElapsedColumn())
        console = importlib.import_module("rich.console").Console(stderr=True)
        # The streams of the process stay as they are: the program that compiles may write to them.
        streams = {"redirect_stdout": False, "redirect_stderr": False}
        with rich.Progress(*columns, console=console, transient=True, **streams) as bar:
            task = bar.add_task(self.what, total=None)
            bar.tasks[0].start_time = self._start  # the clock of rich is time.monotonic
            while not self._done.wait(_INTERVAL):
                bar.update(task, description=self.what)

    def close(self) -> None:
        self._done.set()
        self._thread.join()


class _State(threading.local):
    display: _Display | None = None
    is_silent = False


_state: Final = _State()


@contextmanager
def compilation_of(what: str) -> Iterator[None]:
    """Show progress while ``what`` is compiled. If the outermost compilation takes longer than :data:`DELAY`, the
    terminal shows the current one. Nothing is shown if standard error is not a terminal, or within
    :func:`no_display`."""
    display = _state.display
    if _state.is_silent or (display is None and not _is_terminal()):
        yield
    elif display is not None:
        outer, display.what = display.what, f"compiling {what}"
        try:
            yield
        finally:
            display.what = outer
    else:
        _state.display = opened = _Display(f"compiling {what}")
        try:
            yield
        finally:
            _state.display = None
            opened.close()


@contextmanager
def no_display() -> Iterator[None]:
    """Do not show compilations that this thread starts within the ``with`` block: another display shows progress."""
    before, _state.is_silent = _state.is_silent, True
    try:
        yield
    finally:
        _state.is_silent = before


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()
