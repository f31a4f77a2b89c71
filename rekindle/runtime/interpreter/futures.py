"""Futures, and the thread pool that runs their tasks.

A task that waits for an unfinished future releases its thread: it registers its continuation with the future. So a few
threads serve any number of tasks that wait for each other. Only a thread without a task, such as that of a Python
caller, blocks while it waits.
"""

from __future__ import annotations

import atexit
import copy
import os
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

import torch

from rekindle.errors import RekindleError
from rekindle.ir.types import FutureType
from rekindle.ops.python import asynchrony
from rekindle.ops.python.values import LATER
from rekindle.runtime.calls.tracebacks import foreign_frames

T = TypeVar("T")


class Future(Generic[T]):
    """The result of a call on another thread: a value or an error, once it is done.

    Example:
        >>> future = rekindle.fork(torch.ones, 2)
        >>> future.wait()
        tensor([1., 1.])
        >>> future.done()
        True
    """

    __slots__ = ("__weakref__", "_callbacks", "_done", "_error", "_is_raised", "_lock", "_traceback", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._is_raised = False
        self._traceback: TracebackType | None = None
        self._callbacks: list[Callable[[Future[T]], object]] = []

    def done(self) -> bool:
        """Return whether the future has a value or an error."""
        return self._done

    def value(self) -> T:
        """Return the value of a future that is done.

        Raises:
            RekindleError: the future is not done.
            Exception: whatever the task raised, with the places in it in the traceback.
        """
        if not self._done:
            raise RekindleError("the future is not done yet; wait for it instead")
        if self._error is not None:
            raise self._error_to_raise()
        result: T = self._value
        return result

    def _error_to_raise(self) -> BaseException:
        """Return the error with the frames of the task. Its traceback grows in each waiter, so all but the first get
        a copy."""
        assert self._error is not None
        with self._lock:
            is_first, self._is_raised = not self._is_raised, True
        error = self._error if is_first else copy_of_error(self._error)
        return error.with_traceback(self._traceback)

    def wait(self) -> T:
        """Return the value, once it exists. The thread blocks until then.

        Raises:
            Exception: whatever the task raised.
        """
        block_until_done(self)
        return self.value()

    def set_result(self, value: T) -> None:
        """Finish with a value.

        Raises:
            RekindleError: the future is finished already.
        """
        self._finish(value, None)

    def set_exception(self, error: BaseException) -> None:
        """Finish with an error, which every waiting thread and task receives.

        Raises:
            RekindleError: the future is finished already.
        """
        self._finish(None, error)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._lock:
            if self._done:
                raise RekindleError("the future is finished already")
            self._value, self._error = value, error
            self._traceback = None if error is None else foreign_frames(error.__traceback__)
            self._done = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], object]) -> None:
        """Call ``callback`` with the future when it is done, on the thread that finishes it; at once if it is done."""
        with self._lock:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, function: Callable[[Future[T]], Any]) -> Future[Any]:
        """Return the future of the result of ``function``, called with this future when it is done."""
        result: Future[Any] = Future()

        def go_on(done: Future[T]) -> None:
            try:
                value = function(done)
            except BaseException as error:
                result.set_exception(error)
            else:
                result.set_result(value)

        self.add_done_callback(go_on)
        return result

    def __repr__(self) -> str:
        state = "pending" if not self._done else "done" if self._error is None else "failed"
        return f"<Future: {state}>"


def copy_of_error(error: BaseException) -> BaseException:
    """Return a copy of an exception; the exception itself, if its class cannot be reconstructed from its arguments."""
    try:
        made = copy.copy(error)
        if type(made) is not type(error) or made.args != error.args or str(made) != str(error):
            return error
    except Exception:  # classes of users may do anything here
        return error
    made.__cause__, made.__context__ = error.__cause__, error.__context__
    made.__suppress_context__ = error.__suppress_context__
    return made


def block_until_done(future: Any) -> None:
    """Block this thread until ``future`` is done.

    A blocked thread of a pool is replaced by another one: the task that it waits for may be waiting for a thread.
    """
    if future.done():
        return
    arrived = threading.Lock()
    arrived.acquire()
    future.add_done_callback(lambda _: arrived.release())
    pool: TaskPool | None = getattr(_this_thread, "pool", None)
    if pool is None:
        arrived.acquire()
        return
    with pool.blocked():
        arrived.acquire()


asynchrony.block_until_done.provide(block_until_done)
LATER[FutureType.kind].append(Future)


class _ThisThread(threading.local):
    """Thread-local state: the pool that the thread works for."""

    pool: TaskPool | None = None


_this_thread: Final = _ThisThread()


class TaskPool:
    """Up to ``threads`` threads that run tasks in order of submission, started on demand.

    Raises:
        ValueError: ``threads`` is less than 1.
    """

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"a pool needs at least one thread, not {threads}")
        self.threads = threads
        self._tasks: deque[Callable[[], object]] = deque()
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._workers: set[threading.Thread] = set()
        self._idle = 0
        """Workers that sleep and have not been woken yet."""
        self._blocked = 0
        self._closed = False

    def submit(self, task: Callable[[], object]) -> None:
        """Run ``task`` when a thread is free. ``task`` must not raise. After :meth:`close` it never runs."""
        with self._lock:
            self._tasks.append(task)
            self._call_worker()

    def _call_worker(self) -> None:
        """Wake an idle thread for a new task, or start a thread if fewer than the maximum are running."""
        if self._closed or not self._tasks:
            return
        if self._idle:
            self._idle -= 1
            self._wake.notify()
        elif len(self._workers) - self._blocked < self.threads:
            worker = threading.Thread(target=self._work, name="rekindle-task", daemon=True)
            self._workers.add(worker)
            worker.start()

    def _work(self) -> None:
        _this_thread.pool = self
        while True:
            task = self._next()
            if task is None:
                return
            task()
            del task  # nothing of it may live on while this thread waits for the next one

    def _next(self) -> Callable[[], object] | None:
        """Wait for the next task and return it; None if this thread has to end."""
        with self._lock:
            while not (self._closed or len(self._workers) - self._blocked > self.threads):
                if self._tasks:
                    return self._tasks.popleft()
                self._idle += 1
                self._wake.wait()
            self._workers.discard(threading.current_thread())
            return None

    def blocked(self) -> _Blocked:
        """Mark the thread of the pool as blocked within the ``with`` block: it does not count as a worker."""
        return _Blocked(self)

    @property
    def started(self) -> int:
        """Current number of threads."""
        return len(self._workers)

    def close(self) -> None:
        """Let the threads exit after their current tasks, and wait until they have. Tasks that have not begun never
        run."""
        with self._lock:
            self._closed = True
            self._tasks.clear()
            workers = list(self._workers)
            self._wake.notify_all()
        for worker in workers:
            if worker is not threading.current_thread():
                worker.join()


class _Blocked:
    """Context manager of :meth:`TaskPool.blocked`."""

    __slots__ = ("_pool",)

    def __init__(self, pool: TaskPool) -> None:
        self._pool = pool

    def __enter__(self) -> None:
        with self._pool._lock:
            self._pool._blocked += 1
            self._pool._call_worker()

    def __exit__(self, *_: object) -> None:
        with self._pool._lock:
            self._pool._blocked -= 1


# ----------------------------------------------------------------------------------------------------------- the pool


class _Current:
    """The pool of forked tasks, created by the first fork."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: TaskPool | None = None


_current: Final = _Current()


def task_pool() -> TaskPool:
    """Return the pool that forked tasks run on. It has as many threads as PyTorch uses between operators, and at least
    2."""
    pool = _current.pool
    if pool is None:
        with _current.lock:
            pool = _current.pool = _current.pool or TaskPool(max(2, torch.get_num_interop_threads()))
    return pool


def set_task_pool(pool: TaskPool | None) -> TaskPool | None:
    """Set the pool that forked tasks run on; None selects a new pool of the default size. Return the previous pool, or
    None if there was none."""
    with _current.lock:
        before, _current.pool = _current.pool, pool
    return before


def _close_at_exit() -> None:
    """Stop the pool at exit: a thread inside of PyTorch would crash when Python ends."""
    pool = set_task_pool(None)
    if pool is not None:
        pool.close()


def _forget_in_child() -> None:
    """Reset the pool after a fork of the process: the child has none of its parent's threads, and maybe a lock that
    is never released."""
    _current.lock, _current.pool = threading.Lock(), None


atexit.register(_close_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
