"""The chain of functions under compilation, for error messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rekindle.errors.progress import compilation_of
from rekindle.errors.source import SourceRange


@dataclass(slots=True)
class CompilationFrame:
    """A function or module under compilation, and why it is compiled: the location of a call, or a reason in words."""

    name: str
    called_from: SourceRange | None = None
    reason: str = ""


class _Frames(threading.local):
    def __init__(self) -> None:
        self.stack: list[CompilationFrame] = []
        self.failures: dict[object, Exception] = {}


_frames = _Frames()


def current_frames() -> tuple[CompilationFrame, ...]:
    """Return the functions being compiled on this thread, the outermost first."""
    return tuple(_frames.stack)


@contextmanager
def compiling(name: str, called_from: SourceRange | None = None, reason: str = "") -> Iterator[None]:
    """Push a compilation frame for ``name`` within the ``with`` block, and show its progress. At the end of the
    outermost compilation, forget the remembered failures."""
    _frames.stack.append(CompilationFrame(name, called_from, reason))
    try:
        with compilation_of(name):
            yield
    finally:
        _frames.stack.pop()
        if not _frames.stack:
            _frames.failures.clear()


def remember_failure(what: object, error: Exception) -> None:
    """Remember that the compilation of ``what`` failed with ``error``, until the outermost compilation ends. Another
    use then need not try it again. Outside of a compilation, nothing is remembered."""
    if _frames.stack:
        _frames.failures[what] = error


def forget_failures() -> None:
    """Forget all failures of this compilation, since a fact has changed on which they may depend."""
    _frames.failures.clear()


def known_failure(what: object) -> Exception | None:
    """Return the error with which the compilation of ``what`` failed earlier in this compilation; None if it did
    not."""
    return _frames.failures.get(what)
