"""What is shown of compilations that take long."""

from __future__ import annotations

import io
import sys
import time

import pytest

from rekindle.errors import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def wait_for(self, text: str) -> bool:
        """Return once ``text`` was written; False if it never is."""
        for _ in range(1000):
            if text in self.getvalue():
                return True
            time.sleep(0.01)
        return False


def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Let standard error be a terminal, on which compilations are shown at once."""
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(progress, "DELAY", 0.0)
    return found


def test_the_innermost_compilation_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with progress.compilation_of("Net.forward"):
        assert terminal.wait_for("compiling Net.forward")
        with progress.compilation_of("scaled"):
            assert terminal.wait_for("compiling scaled")
    written = terminal.getvalue()
    with progress.no_display(), progress.compilation_of("other"):
        pass
    assert "other" not in terminal.getvalue()
    assert terminal.getvalue() == written


def test_what_is_over_soon_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 1000.0)
    with progress.compilation_of("Net.forward"):
        pass
    assert not terminal.getvalue()


def test_nothing_is_shown_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY", 0.0)
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.compilation_of("Net.forward"):
            pass
        assert stream is None or not stream.getvalue()


def test_errors_end_the_display(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    with pytest.raises(ZeroDivisionError), progress.compilation_of("Net.forward"):
        raise ZeroDivisionError
    written = terminal.getvalue()
    with progress.compilation_of("Net.backward"):
        assert terminal.wait_for("compiling Net.backward")
    assert terminal.getvalue().startswith(written)
