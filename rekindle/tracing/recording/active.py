"""The recorder that is active on this thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rekindle.program.calling import interceptors
from rekindle.runtime.calls.arguments import Runner

if TYPE_CHECKING:
    from rekindle.tracing.recording.recorder import Recorder


class _Active(threading.local):
    recorder: Recorder | None = None


_active = _Active()


def active_recorder() -> Recorder | None:
    """Return the recorder of this thread; None if no trace is being recorded."""
    return _active.recorder


@contextmanager
def recording(recorder: Recorder | None) -> Iterator[None]:
    """Make ``recorder`` the recorder of this thread within the ``with`` block, and intercept calls of compiled
    functions with it. None suspends recording."""
    saved, _active.recorder = _active.recorder, recorder
    before = interceptors.get(threading.get_ident())
    _intercept(None if recorder is None else recorder.call_compiled)
    try:
        yield
    finally:
        _active.recorder = saved
        _intercept(before)


def _intercept(runner: Runner | None) -> None:
    """Set the runner that intercepts the calls of compiled functions on this thread; None removes it."""
    if runner is None:
        interceptors.pop(threading.get_ident(), None)
    else:
        interceptors[threading.get_ident()] = runner
