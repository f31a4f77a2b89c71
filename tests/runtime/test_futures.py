"""Futures and the pool of threads, by themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
import torch

from rekindle import RekindleError
from rekindle.runtime.interpreter.futures import Future, TaskPool, block_until_done, set_task_pool, task_pool

LIMIT = 60.0
"""Seconds after which a test that hangs is taken to have failed."""


@pytest.fixture
def pool() -> Iterator[TaskPool]:
    """A pool of two threads."""
    made = TaskPool(2)
    yield made
    made.close()
    assert made.started == 0


def test_a_future_gets_a_value() -> None:
    future: Future[int] = Future()
    assert not future.done()
    assert repr(future) == "<Future: pending>"
    future.set_result(3)
    assert future.done()
    assert future.wait() == future.value() == 3
    assert repr(future) == "<Future: done>"


def test_a_future_gets_an_error() -> None:
    future: Future[int] = Future()
    future.set_exception(KeyError("key"))
    assert future.done()
    assert repr(future) == "<Future: failed>"
    for _ in range(2):
        with pytest.raises(KeyError, match="key"):
            future.wait()


class Coded(Exception):
    """It cannot be made of its args."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")


class Needy(Exception):
    """It cannot be made of its args at all."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)


def _raised(future: Future[int]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011
        future.value()
    return caught.value


def test_everyone_gets_an_error_of_its_own() -> None:
    """The traceback is that of the waiting caller."""
    cause = KeyError("cause")
    error = ValueError("wrong")
    error.__cause__ = cause
    future: Future[int] = Future()
    future.set_exception(error)
    first, second = _raised(future), _raised(future)
    assert first is error
    assert second is not error
    assert (type(second), second.args, second.__cause__) == (ValueError, ("wrong",), cause)


@pytest.mark.parametrize("error", [Coded(3), Needy(3, "text")], ids=["another text", "other arguments"])
def test_errors_that_cannot_be_copied_are_shared(error: Exception) -> None:
    future: Future[int] = Future()
    future.set_exception(error)
    assert _raised(future) is _raised(future) is error


def test_a_future_is_finished_once() -> None:
    future: Future[int] = Future()
    with pytest.raises(RekindleError, match=r"^the future is not done yet; wait for it instead$"):
        future.value()
    future.set_result(3)
    with pytest.raises(RekindleError, match=r"^the future is finished already$"):
        future.set_result(4)
    with pytest.raises(RekindleError, match=r"^the future is finished already$"):
        future.set_exception(ValueError())
    assert future.value() == 3


def test_callbacks_are_called_once() -> None:
    future: Future[int] = Future()
    seen: list[Future[int]] = []
    future.add_done_callback(seen.append)
    assert seen == []
    future.set_result(3)
    future.add_done_callback(seen.append)
    assert seen == [future, future]


def test_then() -> None:
    future: Future[int] = Future()
    doubled = future.then(lambda done: done.value() * 2)
    broken = future.then(lambda done: done.value() // 0)
    assert not doubled.done()
    future.set_result(3)
    assert doubled.value() == 6
    with pytest.raises(ZeroDivisionError):
        broken.value()


def test_errors_pass_through_then() -> None:
    future: Future[int] = Future()
    after = future.then(lambda done: done.value())
    future.set_exception(KeyError("key"))
    with pytest.raises(KeyError, match="key"):
        after.wait()


def test_threads_start_when_needed(pool: TaskPool) -> None:
    assert pool.started == 0
    _call(pool, lambda: None)
    assert pool.started == 1


def test_tasks_run_side_by_side(pool: TaskPool) -> None:
    """Each task needs the other to continue."""
    barrier = threading.Barrier(2, timeout=LIMIT)
    futures = [_submit(pool, barrier.wait) for _ in range(2)]
    assert sorted(future.wait() for future in futures) == [0, 1]


def test_no_more_threads_than_allowed(pool: TaskPool) -> None:
    futures = [_submit(pool, threading.get_ident) for _ in range(200)]
    assert len({future.wait() for future in futures}) <= 2
    assert pool.started <= 2


def test_tasks_may_block(pool: TaskPool) -> None:
    """Blocked threads run other tasks: nested tasks need no more threads than the pool has."""

    def nested(depth: int) -> int:
        return 0 if depth == 0 else _submit(pool, lambda: nested(depth - 1)).wait() + 1

    assert _submit(pool, lambda: nested(20)).wait() == 20


def test_a_closed_pool_takes_no_tasks() -> None:
    pool = TaskPool(1)
    _call(pool, lambda: None)
    pool.close()
    pool.submit(lambda: pytest.fail("it runs"))
    assert pool.started == 0


def test_a_pool_has_threads() -> None:
    with pytest.raises(ValueError, match=r"^a pool needs at least one thread, not 0$"):
        TaskPool(0)


def test_the_pool_of_tasks_can_be_changed(pool: TaskPool) -> None:
    before = set_task_pool(pool)
    try:
        assert task_pool() is pool
    finally:
        assert set_task_pool(before) is pool
    assert task_pool().threads >= 2


def test_futures_of_pytorch_are_waited_for(pool: TaskPool) -> None:
    future: torch.futures.Future[int] = torch.futures.Future()
    pool.submit(lambda: future.set_result(3))
    block_until_done(future)
    assert future.value() == 3


def _submit(pool: TaskPool, function: Callable[[], int]) -> Future[int]:
    future: Future[int] = Future()

    def task() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    pool.submit(task)
    return future


def _call(pool: TaskPool, function: Callable[[], object]) -> None:
    def zero() -> int:
        function()
        return 0

    _submit(pool, zero).wait()
