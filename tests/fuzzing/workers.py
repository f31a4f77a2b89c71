"""Forked processes with limits: a crash or a hang ends one of them, and is known to belong to one program."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import selectors
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Send = Callable[[dict[str, Any]], None]
Work = Callable[[Send], None]

PROCESSOR_SECONDS: Final = 25.0
"""What one program may take of a processor, compilation and all calls included."""
WALL_SECONDS: Final = 180.0
"""After so long a program waits for something that does not come."""
MEMORY: Final = 2 << 30
"""Bytes that a process may take beyond what it starts with."""


def limit(processor: float = PROCESSOR_SECONDS, wall: float = WALL_SECONDS) -> None:
    """Give this process so much time from now on; then the kernel ends it, whatever it does."""
    signal.setitimer(signal.ITIMER_PROF, processor)
    signal.setitimer(signal.ITIMER_REAL, wall)


@dataclass(slots=True)
class Ended:
    """How a process came to its end: ``reason`` is empty, "hang" or "crash (…)"; ``trace`` is Python's, of a crash."""

    task: Any
    reason: str = ""
    trace: str = ""


@dataclass(slots=True)
class _Child:
    task: Any
    pid: int
    trace: Any
    pending: bytes = b""


@dataclass(slots=True)
class Pool:
    """Runs tasks in forks of this process, ``jobs`` at a time."""

    jobs: int
    tasks: deque[tuple[Any, Work]] = field(default_factory=deque)

    def add(self, task: Any, work: Work, *, first: bool = False) -> None:
        """Queue ``work``, which is run in a process of its own; ``task`` is its name in what :meth:`run` yields."""
        (self.tasks.appendleft if first else self.tasks.append)((task, work))

    def run(self) -> Iterator[tuple[Any, dict[str, Any] | Ended]]:
        """Run all tasks, and those that are added while they run; yield what they send, and how they ended."""
        with selectors.DefaultSelector() as selector:
            while self.tasks or selector.get_map():
                while self.tasks and len(selector.get_map()) < self.jobs:
                    task, work = self.tasks.popleft()
                    descriptor, child = _start(task, work)
                    selector.register(descriptor, selectors.EVENT_READ, child)
                for key, _ in selector.select():
                    child = key.data
                    data = os.read(key.fd, 1 << 16)
                    *lines, child.pending = (child.pending + data).split(b"\n")
                    for line in lines:
                        yield child.task, json.loads(line)
                    if not data:
                        selector.unregister(key.fd)
                        os.close(key.fd)
                        yield child.task, _end(child)


def _start(task: Any, work: Work) -> tuple[int, _Child]:
    reading, writing = os.pipe()
    trace = tempfile.TemporaryFile(mode="w+")
    pid = os.fork()
    if pid:
        os.close(writing)
        return reading, _Child(task, pid, trace)
    status = 1
    try:
        os.close(reading)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.enable(trace)
        gc.freeze()
        _limit_memory()

        def send(message: dict[str, Any]) -> None:
            os.write(writing, json.dumps(message).encode() + b"\n")

        limit()
        work(send)
        status = 0
    except BaseException as error:  # the child must not return into the parent's code
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(status)


def _limit_memory() -> None:
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _end(child: _Child) -> Ended:
    _, status = os.waitpid(child.pid, 0)
    child.trace.seek(0)
    trace = child.trace.read()
    child.trace.close()
    number = os.waitstatus_to_exitcode(status)
    if number == 0:
        return Ended(child.task)
    if number in (-signal.SIGPROF, -signal.SIGALRM):
        return Ended(child.task, "hang", trace)
    name = signal.Signals(-number).name if number < 0 else f"exit {number}"
    return Ended(child.task, f"crash ({name})", trace)
