"""Work on another thread, for which no call waits."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache


def in_background(job: Callable[[], None]) -> None:
    """Queue ``job`` on the background thread, which runs jobs in order. The process waits for them at exit."""
    _worker().submit(job)


@cache
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="rekindle-compiler")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_worker.cache_clear)  # its thread is the parent's
