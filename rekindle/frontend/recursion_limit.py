"""Room on Python's stack for programs that nest deeply.

The compiler is recursive: a level of nesting takes up to 13 of Python's frames, of which a caller may have used up
most. Within :func:`room_to_recurse` there are enough for whatever the parser lets through, for a thousand branches of
an ``elif`` and for a thousand early returns, each of which puts what follows into a branch. What needs more is refused.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rekindle.errors import SourceRange, UnsupportedError

_ROOM: Final = 6_000
"""The number of frames that must be free at the start; the deepest nesting that the parser accepts needed 2,700."""
_MAX_LIMIT: Final = 10_000
"""As far as the limit is raised: before Python 3.11 each frame takes half a kilobyte of the machine's stack."""


class _Limit:
    """Python's recursion limit, which all threads share: it is raised by the first user and restored by the last."""

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
            self.users -= 1
            if self.users == 0:
                sys.setrecursionlimit(self.saved)


_LIMIT = _Limit()


def _depth() -> int:
    """Return the depth of Python's stack on this thread, in frames."""
    count, frame = 0, sys._getframe()
    while frame.f_back is not None:
        count, frame = count + 1, frame.f_back
    return count


@contextmanager
def room_to_recurse(range: SourceRange) -> Iterator[None]:
    """Ensure within the ``with`` block that Python's stack has room for the program at ``range``.

    Raises:
        UnsupportedError: the program nests too deeply.
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
