"""Raise Python's recursion limit for programs that nest deeply.

The compiler is recursive: a level of nesting takes up to 13 frames of Python's stack, and the caller may have used most
of those that the limit allows. Within :func:`room_to_recurse` the limit suffices for any nesting that the parser
accepts, for a thousand branches of an ``elif`` and for a thousand early returns, each of which moves the statements
after it into a branch. A program that needs more raises an error.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from rekindle.errors import SourceRange, UnsupportedError

_ROOM: Final = 6_000
"""The number of frames that must be free at the start; the deepest nesting that the parser accepts needed 2,700."""
_MAX_LIMIT: Final = 10_000
"""The highest limit that is set: before Python 3.11 each frame takes half a kilobyte of the machine's stack."""


class _Limit:
    """Python's recursion limit, which all threads share. The first user raises it and the last restores it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.saved = 0

    def enter(self) -> None:
        depth = _depth()
        with self.lock:
            if self.users == 0:
                self.saved = sys.getrecursionlimit()
            self.users += 1
            wanted = min(depth + _ROOM, _MAX_LIMIT)
            if wanted > sys.getrecursionlimit():
                sys.setrecursionlimit(wanted)

    def leave(self) -> None:
        with self.lock:
            if self.users == 0:  # the process was forked within the block
                return
            self.users -= 1
            if self.users == 0:
                sys.setrecursionlimit(self.saved)

    def forget_in_child(self) -> None:
        """Restore the limit in a forked process, which has none of the threads that raised it."""
        self.lock = threading.Lock()
        if self.users:
            with suppress(RecursionError):  # this thread needs it, and forks within such a block
                sys.setrecursionlimit(self.saved)
        self.users = 0


_LIMIT = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LIMIT.forget_in_child)


def _depth() -> int:
    """Return the depth of Python's stack on this thread, in frames."""
    count, frame = 0, sys._getframe()
    while frame.f_back is not None:
        count, frame = count + 1, frame.f_back
    return count


@contextmanager
def room_to_recurse(range: SourceRange) -> Iterator[None]:
    """Return a context manager in whose block the recursion limit leaves room to compile or print the program at
    ``range``.

    Raises:
        UnsupportedError: the program nests too deeply. The block raised RecursionError.
    """
    _LIMIT.enter()
    try:
        yield
    except RecursionError:
        raise UnsupportedError(
            "this function nests too deeply to be compiled",
            range,
            hint="move inner blocks into functions of their own; a chain of hundreds of elif or of early returns "
            "counts as well",
        ) from None
    finally:
        _LIMIT.leave()
