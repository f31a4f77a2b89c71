"""Locks across ``os.fork``: a child process inherits no lock that another thread of its parent holds.

Such a lock is never released in the child, which has only the thread that forked: its first compilation would wait
forever, as in a worker of a ``DataLoader`` that is started while another thread compiles. So the thread that forks
acquires the locks first, as ``logging`` does with its locks, and what they protect is consistent in the child.
"""

from __future__ import annotations

import os
import threading
from typing import Final, Protocol, TypeVar

_PATIENCE_S: Final = 60.0
"""Longest time for which a fork waits for a lock."""


class _Lock(Protocol):
    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool: ...
    def release(self) -> None: ...


_L = TypeVar("_L", bound=_Lock)
_LOCKS: Final[list[tuple[int, _Lock]]] = []


class _Held(threading.local):
    """The locks that a thread holds because it forks, in the order in which it has acquired them."""

    def __init__(self) -> None:
        self.locks: list[_Lock] = []


_HELD: Final = _Held()


def held_while_forking(lock: _L, rank: int) -> _L:
    """Register ``lock``, and return it. A thread that holds several acquires those of lower ``rank`` first."""
    _LOCKS.append((rank, lock))
    _LOCKS.sort(key=lambda entry: entry[0])
    return lock


def _acquire_all() -> None:
    _HELD.locks = [lock for _, lock in _LOCKS if lock.acquire(timeout=_PATIENCE_S)]


def _release_all() -> None:
    while _HELD.locks:
        _HELD.locks.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_acquire_all, after_in_parent=_release_all, after_in_child=_release_all)
