"""Pausing Python's cyclic garbage collector while compiling, loading and saving.

Reading or compiling a program makes some hundred thousand objects, all of which stay. The collector looks at them, and
at whatever else the process holds, again and again, which takes more time than all the rest.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pause:
    """Counts the users of the pause. The garbage collector, which all threads share, stops at the first request and
    resumes after the last."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.was_enabled = False

    def enter(self) -> None:
        with self.lock:
            if self.users == 0:
                self.was_enabled = gc.isenabled()
                gc.disable()
            self.users += 1

    def leave(self, *, everything_stays: bool) -> None:
        with self.lock:
            if self.users == 0:  # the process was forked within the block
                return
            self.users -= 1
            if self.users == 0 and self.was_enabled:
                if everything_stays and gc.get_freeze_count() == 0:
                    # Both are constant-time: all objects move to the oldest generation, and none is looked at.
                    gc.freeze()
                    gc.unfreeze()
                gc.enable()

    def forget_in_child(self) -> None:
        """Resume the collector in a forked process, which has none of the threads that paused it."""
        self.lock = threading.Lock()
        if self.users and self.was_enabled:
            gc.enable()
        self.users = 0


_PAUSE = _Pause()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PAUSE.forget_in_child)


@contextmanager
def gc_paused(*, everything_stays: bool = False) -> Iterator[None]:
    """Pause the cyclic garbage collector within the ``with`` block, unless code calls it explicitly.

    With ``everything_stays``, which is for imports, all objects of the process then count as long-lived, unless the
    pause is nested in another: the collector does not examine them right afterwards. Cyclic garbage then remains until
    a full collection.
    """
    _PAUSE.enter()
    try:
        yield
    finally:
        _PAUSE.leave(everything_stays=everything_stays)
