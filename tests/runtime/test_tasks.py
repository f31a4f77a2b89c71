"""Programs that fork and wait: they stop, continue on other threads, nest deeply, fail, and keep PyTorch's modes."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from typing import Any, List, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

import rekindle
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.futures import Future, TaskPool, set_task_pool
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.interpreter.tasks import ThreadMode

DEPTH = 1_000
CHAINS = 10


@pytest.fixture
def pool() -> Iterator[TaskPool]:
    """Two threads for the tasks of the test."""
    pool = TaskPool(2)
    before = set_task_pool(pool)
    yield pool
    set_task_pool(before)
    pool.close()


def twice(x: Tensor) -> Tensor:
    return x * 2


def plus_one(before: rekindle.Future[int]) -> int:
    return rekindle.wait(before) + 1


def waits(a: rekindle.Future[int], b: rekindle.Future[int]) -> int:
    return rekindle.wait(a) - rekindle.wait(b)


def chains(gate: rekindle.Future[int], count: int, depth: int) -> List[int]:
    ends: List[rekindle.Future[int]] = []
    for _ in range(count):
        future = gate
        for _ in range(depth):
            future = rekindle.fork(plus_one, future)
        ends.append(future)
    return [rekindle.wait(end) for end in ends]


def base(n: int) -> int:
    return n


def descend(n: int) -> int:
    if n <= 0:
        return 0
    future = rekindle.fork(base, n - 1)
    return rekindle.wait(future) + 1


# ------------------------------------------------------------------------------------------------------- instructions


def test_instructions() -> None:
    def program(x: Tensor) -> Tensor:
        future = rekindle.fork(twice, x)
        return rekindle.wait(future)

    assert str(Code(rekindle.script(program).graph, "program")) == (
        "0 = Load\n1 = Fork move(0)\n2 = Wait move(1)\n= Store move(2)"
    )


def writes(x: Tensor) -> Tensor:
    return x.add_(1)


def ignores_the_future(x: Tensor) -> int:
    rekindle.fork(writes, x)
    return 7


def test_unused_futures_run_all_the_same() -> None:
    pool, before = TaskPool(1), set_task_pool(None)
    set_task_pool(pool)
    try:
        x = torch.zeros(2)
        assert rekindle.script(ignores_the_future)(x) == 7
        after: Future[int] = Future()
        pool.submit(lambda: after.set_result(1))  # the only thread runs this after the forked task
        after.wait()
        assert torch.equal(x, torch.ones(2))
    finally:
        set_task_pool(before)
        pool.close()


# --------------------------------------------------------------------------------------------------- stop and continue


def test_a_state_stops_before_a_future(pool: TaskPool) -> None:
    a, b = Future[int](), Future[int]()
    state = InterpreterState(Code(rekindle.script(waits).graph, "waits"))
    state.start([a, b])
    assert state.resume() is None
    assert state.awaited is a
    assert not state.is_finished
    a.set_result(5)
    assert state.resume() is None
    assert state.awaited is b
    b.set_result(3)
    assert state.resume() == 2
    assert state.is_finished
    assert state.awaited is None


def test_a_state_can_be_stepped_over_a_wait() -> None:
    a, b = Future[int](), Future[int]()
    state = InterpreterState(Code(rekindle.script(waits).graph, "waits"))
    state.start([a, b])
    positions = []
    for _ in range(3):
        assert state.step()
        positions.append(state.position)
    assert len(set(positions)) == 1
    assert state.awaited is a
    a.set_result(5)
    b.set_result(3)
    while state.step():
        assert state.awaited is None
    assert state.result == 2


def test_a_state_stops_within_calls_and_branches() -> None:
    def inner(x: int, future: rekindle.Future[int]) -> int:
        if x > 1:
            x = x * rekindle.wait(future)
        return x + 1

    def outer(x: int, future: rekindle.Future[int]) -> int:
        return inner(x, future) * 10

    future: Future[int] = Future()
    state = InterpreterState(Code(rekindle.script(outer).graph, "outer"))
    state.start([2, future])
    assert state.resume() is None
    assert state.depth == 1
    future.set_result(3)
    assert state.resume() == 70


def test_a_state_goes_on_on_another_thread() -> None:
    a, b = Future[int](), Future[int]()
    state = InterpreterState(Code(rekindle.script(waits).graph, "waits"))
    state.start([a, b])
    state.resume()
    a.set_result(5)
    b.set_result(3)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(state.resume()))
    thread.start()
    thread.join()
    assert results == [2]


def test_futures_of_pytorch(pool: TaskPool) -> None:
    a, b = torch.futures.Future[int](), torch.futures.Future[int]()
    done = rekindle.fork(rekindle.script(waits), a, b)
    a.set_result(5)
    b.set_result(3)
    assert done.wait() == 2


def test_loops_that_wait_stay_interpreted(pool: TaskPool) -> None:
    """A loop is compiled to one function when it has run often; one that waits has to stop in its middle."""

    def program(gate: rekindle.Future[int], n: int) -> int:
        total = 0
        for i in range(n):
            if i == n - 1:
                total += rekindle.wait(gate)
            total += i
        return total

    compiled = rekindle.script(program)
    for _ in range(2):
        gate: Future[int] = Future()
        state = InterpreterState(Code(compiled.graph, "program"))
        state.start([gate, 1_000])
        assert state.resume() is None
        gate.set_result(7)
        assert state.resume() == sum(range(1_000)) + 7


# -------------------------------------------------------------------------------------------------------------- stress


def test_ten_thousand_tasks_that_wait_for_each_other(pool: TaskPool) -> None:
    """All of them stop, for the first waits for a future that is finished only when all have started."""
    gate: Future[int] = Future()
    done = rekindle.fork(rekindle.script(chains), gate, CHAINS, DEPTH)
    assert not done.done()
    pool.submit(lambda: gate.set_result(5))
    assert done.wait() == [5 + DEPTH] * CHAINS
    assert pool.started <= 2


def test_forks_within_forks(pool: TaskPool) -> None:
    """Each task forks the next one and waits for it, a thousand deep."""
    compiled = rekindle.script(descend)
    _make_recursive(compiled)
    futures = [rekindle.fork(compiled, DEPTH) for _ in range(CHAINS)]
    assert [future.wait() for future in futures] == [DEPTH] * CHAINS
    assert compiled(DEPTH) == DEPTH
    assert pool.started <= 2


def _make_recursive(compiled: Any) -> None:
    """Have ``descend`` fork itself instead of ``base``; the language has no recursion, the graph may."""
    (fork,) = (node for node in compiled.graph.all_nodes() if node.kind == "prim::fork")
    (call,) = fork.get_graph("Subgraph").find_nodes("prim::CallFunction")
    call.inputs[0].type.function.define(compiled.graph, compiled.schema)


def test_many_threads_call_one_program(pool: TaskPool) -> None:
    compiled = rekindle.script(chains)
    results: list[Any] = []

    def caller() -> None:
        gate: Future[int] = Future()
        gate.set_result(1)
        results.append(compiled(gate, 3, 50))

    threads = [threading.Thread(target=caller) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[51] * 3] * 8


# -------------------------------------------------------------------------------------------------------------- errors


def raises(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        raise KeyError("positive")
    return x


def forks_and_waits(x: Tensor) -> Tensor:
    future = rekindle.fork(raises, x)
    y = x + 1
    return y + rekindle.wait(future)


def forks_twice(x: Tensor) -> Tensor:
    future = rekindle.fork(forks_and_waits, x)
    return rekindle.wait(future)


def _lines(error: BaseException) -> list[tuple[str, str | None]]:
    """The frames of this file but for that of the test itself: functions and lines."""
    entries = traceback.extract_tb(error.__traceback__)[1:]
    return [(entry.name, entry.line) for entry in entries if entry.filename == __file__]


WITHIN = [
    ("forks_and_waits", "return y + rekindle.wait(future)"),
    ("<forked function>", "future = rekindle.fork(raises, x)"),
    ("raises", 'raise KeyError("positive")'),
]


def test_errors_tell_where_they_were_raised_and_waited_for(pool: TaskPool) -> None:
    compiled = rekindle.script(forks_and_waits)
    for _ in range(3):
        with pytest.raises(KeyError) as caught:
            compiled(torch.ones(2))
        assert _lines(caught.value) == WITHIN
    assert torch.equal(compiled(-torch.ones(2)), -torch.ones(2))


def test_errors_pass_through_several_futures(pool: TaskPool) -> None:
    with pytest.raises(KeyError) as caught:
        rekindle.script(forks_twice)(torch.ones(2))
    assert _lines(caught.value) == [
        ("forks_twice", "return rekindle.wait(future)"),
        ("<forked function>", "future = rekindle.fork(forks_and_waits, x)"),
        *WITHIN,
    ]


def test_an_error_is_raised_at_every_wait(pool: TaskPool) -> None:
    gate: Future[int] = Future()
    first = rekindle.fork(rekindle.script(plus_one), gate)
    second = rekindle.fork(rekindle.script(plus_one), gate)
    gate.set_exception(ValueError("no number"))
    for future in (first, second):
        with pytest.raises(ValueError, match=r"^no number$") as caught:
            future.wait()
        assert ("plus_one", "return rekindle.wait(before) + 1") in _lines(caught.value)


def test_an_interrupted_wait_lets_go_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rekindle.runtime.interpreter.state.block_until_done", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        rekindle.script(plus_one)(Future())
    assert _lines(caught.value) == [
        ("plus_one", "return rekindle.wait(before) + 1"),
        ("interrupt", "raise KeyboardInterrupt"),
    ]


def waits_without_gradients(before: rekindle.Future[int]) -> int:
    with torch.no_grad():
        return rekindle.wait(before)


def test_errors_leave_with_statements_that_wait() -> None:
    """Here and in a task whose thread then does other things."""
    compiled = rekindle.script(waits_without_gradients)
    pool = TaskPool(1)
    before = set_task_pool(pool)
    try:
        gate: Future[int] = Future()
        done = rekindle.fork(compiled, gate)
        gate.set_exception(ValueError("no number"))
        for action in (done.wait, lambda: compiled(gate)):
            with pytest.raises(ValueError, match=r"^no number$"):
                action()
            assert torch.is_grad_enabled()
        assert rekindle.fork(torch.is_grad_enabled).wait()
    finally:
        set_task_pool(before)
        pool.close()


def test_an_error_passes_through_a_thousand_futures(pool: TaskPool) -> None:
    gate: Future[int] = Future()
    done = rekindle.fork(rekindle.script(chains), gate, 1, DEPTH)
    gate.set_exception(ValueError("no number"))
    with pytest.raises(ValueError, match=r"^no number$") as caught:
        done.wait()
    names = [name for name, _ in _lines(caught.value)]
    assert names == ["chains", *["<forked function>", "plus_one"] * DEPTH]


# --------------------------------------------------------------------------------------------------------------- modes


def records(x: Tensor) -> bool:
    return (x * 2).requires_grad


def is_recorded(x: Tensor, gate: rekindle.Future[int]) -> List[bool]:
    future = rekindle.fork(records, x)
    rekindle.wait(gate)
    after = rekindle.fork(records, x)
    return [rekindle.wait(future), rekindle.wait(after), (x + 1).requires_grad]


def without_gradients(x: Tensor, gate: rekindle.Future[int]) -> List[bool]:
    with torch.no_grad():
        rekindle.wait(gate)
        within = (x * 2).requires_grad
        forked = rekindle.wait(rekindle.fork(records, x))
    return [within, forked, (x * 2).requires_grad]


@pytest.mark.parametrize("grad", [True, False])
def test_tasks_take_the_mode_of_gradients_along(grad: bool, pool: TaskPool) -> None:
    compiled = rekindle.script(is_recorded)
    gate: Future[int] = Future()
    with torch.set_grad_enabled(grad):
        done = rekindle.fork(compiled, torch.ones(2, requires_grad=True), gate)
    with torch.set_grad_enabled(not grad):
        gate.set_result(1)
        assert done.wait() == [grad] * 3


def test_a_task_stops_within_no_grad(pool: TaskPool) -> None:
    """Where it continues, gradients are off; its thread then does other things with gradients on."""
    compiled = rekindle.script(without_gradients)
    x = torch.ones(2, requires_grad=True)
    gates = [Future[int]() for _ in range(4)]
    done = [rekindle.fork(compiled, x, gate) for gate in gates]
    others = [rekindle.fork(rekindle.script(records), x) for _ in range(4)]
    assert [other.wait() for other in others] == [True] * 4
    for gate in gates:
        gate.set_result(1)
    assert [future.wait() for future in done] == [[False, False, True]] * 4


def test_gradients_flow_through_forks(pool: TaskPool) -> None:
    def program(x: Tensor) -> Tensor:
        a = rekindle.fork(twice, x)
        b = rekindle.fork(twice, x * x)
        return (rekindle.wait(a) + rekindle.wait(b)).sum()

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    rekindle.script(program)(x).backward()
    assert torch.equal(x.grad, torch.tensor([6.0, 10.0]))


def test_inference_mode_and_autocast_go_along(pool: TaskPool) -> None:
    def program(x: Tensor) -> Tensor:
        return rekindle.wait(rekindle.fork(torch.mm, x, x))

    compiled = rekindle.script(program)
    with torch.inference_mode():
        assert compiled(torch.ones(2, 2)).is_inference()
    with torch.autocast("cpu", torch.bfloat16):
        assert compiled(torch.ones(2, 2)).dtype is torch.bfloat16
    plain = compiled(torch.ones(2, 2))
    assert not plain.is_inference()
    assert plain.dtype is torch.float32


def test_modes_of_a_thread() -> None:
    before = ThreadMode.current()
    with torch.no_grad():
        assert ThreadMode.current().grad is False
        before.apply()
        assert torch.is_grad_enabled()
    assert ThreadMode.current() == before


# --------------------------------------------------------------------------------------------------------- from Python


class Pair(NamedTuple):
    a: int
    b: int


def test_python_forks_compiled_functions(pool: TaskPool) -> None:
    def program(n: int) -> Pair:
        return Pair(n, n + 1)

    future = rekindle.fork(rekindle.script(program), 3)
    assert isinstance(future, rekindle.Future)
    assert rekindle.wait(future) == Pair(3, 4)
    assert isinstance(future.value(), Pair)


def test_python_forks_python(pool: TaskPool) -> None:
    def task(n: int) -> tuple[int, bool, bool]:
        return n + 1, threading.current_thread() is here, torch.is_grad_enabled()

    here = threading.current_thread()
    with torch.no_grad():
        future = rekindle.fork(task, 3)
    assert rekindle.wait(future) == (4, False, False)


class Count(TorchFunctionMode):
    """Counts the functions that are called on its thread."""

    calls = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_modes_of_python_keep_tasks_on_their_thread(pool: TaskPool) -> None:
    def task(x: Tensor) -> tuple[Tensor, bool]:
        return torch.neg(x), threading.current_thread() is here

    here = threading.current_thread()
    with Count() as mode:
        future = rekindle.fork(task, torch.ones(2))
        assert future.done()
    assert mode.calls > 0
    negative, is_here = future.value()
    assert is_here
    assert torch.equal(negative, -torch.ones(2))


def test_errors_of_forked_python_come_with_the_wait() -> None:
    future = rekindle.fork(int, "word")
    with pytest.raises(ValueError, match="invalid literal"):
        rekindle.wait(future)


def test_arguments_are_checked_when_forking() -> None:
    with pytest.raises(rekindle.errors.ArgumentError):
        rekindle.fork(rekindle.script(base), "word")


def test_a_program_returns_a_future(pool: TaskPool) -> None:
    def program(x: Tensor):
        return rekindle.fork(twice, x)

    future = rekindle.script(program)(torch.ones(2))
    assert torch.equal(rekindle.wait(future), torch.full((2,), 2.0))


@rekindle.ignore
def calls_back(n: int) -> int:
    return int(rekindle.script(descend)(n))


def test_python_within_a_task_may_wait(pool: TaskPool) -> None:
    """Then a thread of the pool is blocked; another one replaces it."""

    def task(n: int) -> int:
        return calls_back(n)

    def program(n: int) -> int:
        futures = [rekindle.fork(task, n + i) for i in range(6)]
        total = 0
        for future in futures:
            total += rekindle.wait(future)
        return total

    assert rekindle.script(program)(1) == sum(range(1, 7))


def within_inference_mode(x: Tensor, gate: rekindle.Future[int]) -> List[bool]:
    with torch.inference_mode():
        before = (x * 2).is_inference()
        rekindle.wait(gate)
        within = (x * 2).is_inference()
        forked = rekindle.wait(rekindle.fork(is_of_inference, x))
    return [before, within, forked, (x * 2).is_inference(), (x * 2).requires_grad]


def is_of_inference(x: Tensor) -> bool:
    return (x * 2).is_inference()


def test_a_task_stops_within_inference_mode(pool: TaskPool) -> None:
    """Its guard belongs to the thread that it was entered on. Where the task continues, inference mode is on until it
    is left; what else runs on either thread is not touched by it."""
    compiled = rekindle.script(within_inference_mode)
    x = torch.ones(2, requires_grad=True)
    for _ in range(5):
        gates = [Future[int]() for _ in range(6)]
        done = [rekindle.fork(compiled, x, gate) for gate in gates]
        others = [rekindle.fork(rekindle.script(is_of_inference), x) for _ in range(6)]
        assert [other.wait() for other in others] == [False] * 6
        for gate in reversed(gates):
            gate.set_result(1)
        assert [future.wait() for future in done] == [[True, True, True, False, True]] * 6
        assert [rekindle.fork(torch.is_inference_mode_enabled).wait() for _ in range(6)] == [False] * 6
        with torch.inference_mode():
            assert rekindle.fork(rekindle.script(is_of_inference), x).wait()
    assert not torch.is_inference_mode_enabled()
