"""Forked processes: locks and global state of the compiler that other threads hold at the fork."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch

import rekindle
from rekindle.codegen.llvm.library import LOCK
from rekindle.errors import UNKNOWN_RANGE, fork_locks
from rekindle.errors.gc_pause import gc_paused
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph_function import COMPILING
from rekindle.scripting.modules.script_modules import SCRIPTING

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")


def forked(child: Callable[[], int]) -> int:
    """Return the result of ``child`` in a forked process, or the negative number of the signal that ended it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a process with several threads is forked
        process = os.fork()
    if process == 0:
        signal.alarm(100)  # a deadlock ends
        try:
            os._exit(child())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


class ForkNotice:
    """A lock that no thread can acquire. ``requested`` is set when a fork tries to."""

    def __init__(self) -> None:
        self.requested = threading.Event()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        self.requested.set()
        return False

    def release(self) -> None:
        raise AssertionError


@pytest.fixture
def notice(monkeypatch: pytest.MonkeyPatch) -> ForkNotice:
    found = ForkNotice()
    monkeypatch.setattr(fork_locks, "_LOCKS", [(-1, found), *fork_locks._LOCKS])
    return found


@pytest.mark.parametrize("lock", [SCRIPTING, COMPILING, LOCK])
def test_the_child_compiles_while_a_thread_of_its_parent_does(
    lock: AbstractContextManager[object], notice: ForkNotice
) -> None:
    is_held = threading.Event()

    def hold() -> None:
        with lock:
            is_held.set()
            notice.requested.wait()

    def compile() -> int:
        double = rekindle.script(lambda x: x.exp() * 2)
        for _ in range(4):
            double(torch.ones(2))
        return 7

    compile()
    thread = threading.Thread(target=hold)
    thread.start()
    is_held.wait()
    assert forked(compile) == 7
    thread.join()
    with lock:
        pass


def test_the_child_has_no_limits_of_threads_of_its_parent() -> None:
    limit = sys.getrecursionlimit()
    is_entered, is_done = threading.Event(), threading.Event()

    def hold() -> None:
        with gc_paused(), room_to_recurse(UNKNOWN_RANGE):
            is_entered.set()
            is_done.wait()

    def state() -> int:
        with gc_paused():
            pass
        return int(gc.isenabled()) + 2 * (sys.getrecursionlimit() == limit)

    assert gc.isenabled()
    thread = threading.Thread(target=hold)
    thread.start()
    is_entered.wait()
    try:
        assert not gc.isenabled()
        assert forked(state) == 3
    finally:
        is_done.set()
        thread.join()
    assert gc.isenabled()
    assert sys.getrecursionlimit() == limit
