"""Awaits: calls that are made when their result is first wanted, in programs and in Python."""

from __future__ import annotations

import copy
import threading
import traceback
from collections.abc import Iterator
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn
from torch._awaits import _Await
from torch.jit import _awaitable, _awaitable_nowait, _awaitable_wait

import rekindle
from rekindle.errors import UnsupportedError
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.futures import Future, TaskPool, set_task_pool
from rekindle.runtime.interpreter.state import InterpreterState
from tests.support.messages import message_of
from tests.support.oracle import compare, script_with_torch


@pytest.fixture
def pool() -> Iterator[TaskPool]:
    """Two threads for the tasks of the test."""
    pool = TaskPool(2)
    before = set_task_pool(pool)
    yield pool
    set_task_pool(before)
    pool.close()


def scaled(x: Tensor, n: int = 2) -> Tensor:
    return x * n


def in_torchs_words(x: Tensor) -> Tensor:
    a = _awaitable(scaled, x, 3)
    b = _awaitable_nowait(x)
    return _awaitable_wait(a) + _awaitable_wait(a) + _awaitable_wait(b)


def in_our_words(x: Tensor) -> Tensor:
    a = rekindle.awaitable(scaled, x, n=3)
    b = rekindle.awaitable_nowait(x)
    return rekindle.awaitable_wait(a) + rekindle.awaitable_wait(a) + rekindle.awaitable_wait(b)


def with_keywords(x: Tensor) -> Tensor:
    return _awaitable_wait(_awaitable(scaled, x, n=3))


def used_as_the_result(x: Tensor) -> Tensor:
    return _awaitable(scaled, x).sum()


def never_waited_for(x: Tensor) -> Tensor:
    _awaitable(scaled, x)
    return x + 1


def of_an_operator(x: Tensor) -> Tensor:
    return _awaitable_wait(_awaitable(torch.add, x, x))


def in_a_list(x: Tensor) -> Tensor:
    waiting: List[_Await[Tensor]] = []
    for i in range(3):
        waiting.append(_awaitable(scaled, x, i))
    total = torch.zeros_like(x)
    for each in waiting:
        total = total + _awaitable_wait(each)
    return total


def in_a_branch(x: Tensor) -> Tensor:
    a = _awaitable(scaled, x)
    return _awaitable_wait(a) if bool(x.sum() > 0) else x


PROGRAMS = [in_torchs_words, used_as_the_result, never_waited_for, of_an_operator, in_a_list, in_a_branch]


@pytest.mark.parametrize("program", [*PROGRAMS, in_our_words])
def test_results_are_those_of_calls(program: Any) -> None:
    compiled = rekindle.script(program)
    for x in (torch.ones(2), -torch.ones(3)):
        for _ in range(3):
            assert torch.equal(compiled(x), program(x))


@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs_are_those_of_torch_jit(program: Any) -> None:
    comparison = compare(program, rekindle.script)
    assert comparison.equal, comparison.differences


def test_keywords_that_pytorch_forgets_are_refused() -> None:
    """PyTorch's ``_awaitable`` forgets them when Python calls it, and does not when torch.jit compiles it."""
    x = torch.ones(2)
    assert torch.equal(script_with_torch(with_keywords)(x), x * 3)
    assert not torch.equal(with_keywords(x), x * 3)
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(with_keywords)
    assert caught.value.message == "torch.jit._awaitable forgets the keyword argument 'n' where Python calls it"
    assert caught.value.range.text == "n=3"
    assert caught.value.hint == "pass it by its position, or use rekindle.awaitable"
    assert torch.equal(rekindle.awaitable(scaled, x, n=3).wait(), x * 3)


def test_both_spellings_mean_the_same() -> None:
    graph = rekindle.script(in_our_words).graph
    assert [node.kind for node in graph.nodes if node.kind.startswith("prim::await")] == [
        "prim::awaitable",
        "prim::awaitable_nowait",
        *["prim::awaitable_wait"] * 3,
    ]
    (node,) = graph.find_nodes("prim::awaitable")
    assert node.output.type.annotation == "Await[Tensor]"
    assert "prim::awaitable_0" in str(graph)


def test_instructions() -> None:
    def program(x: Tensor) -> Tensor:
        return rekindle.awaitable_wait(rekindle.awaitable(scaled, x))

    assert str(Code(rekindle.script(program).graph, "program")) == (
        "0 = Load\n1 = Awaitable move(0)\n2 = Await move(1)\n= Store move(2)"
    )


# -------------------------------------------------------------------------------------------------- when it is computed


@rekindle.ignore
def note(calls: List[int], n: int) -> int:
    calls.append(n)
    return n + 1


def counted(calls: List[int], n: int) -> int:
    return note(calls, n)


def waits(calls: List[int], first: bool, second: bool) -> List[int]:
    a = rekindle.awaitable(counted, calls, 1)
    b = rekindle.awaitable(counted, calls, 2)
    found: List[int] = []
    if second:
        found.append(rekindle.awaitable_wait(b))
    if first:
        found.append(rekindle.awaitable_wait(a))
        found.append(rekindle.awaitable_wait(a))
    return found


@pytest.mark.parametrize("program", [waits, rekindle.script(waits)])
def test_each_is_computed_once_when_it_is_first_waited_for(program: Any) -> None:
    for first, second, called, result in (
        (True, True, [2, 1], [3, 2, 2]),
        (False, True, [2], [3]),
        (True, False, [1], [2, 2]),
        (False, False, [], []),
    ):
        calls: List[int] = []
        assert program(calls, first, second) == result
        assert calls == called


def writes_before_it_waits(x: Tensor) -> Tensor:
    a = _awaitable(scaled, x)
    x.add_(1)
    return _awaitable_wait(a) + x


def test_the_arguments_are_those_objects_and_not_copies() -> None:
    for program in (writes_before_it_waits, rekindle.script(writes_before_it_waits)):
        assert torch.equal(program(torch.ones(2)), torch.full((2,), 6.0))


# --------------------------------------------------------------------------------------------------- methods, modules


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.by = 3

    def shifted(self, x: Tensor, by: int = 1) -> Tensor:
        return self.layer(x) + by + self.by

    def forward(self, x: Tensor) -> Tensor:
        a = _awaitable(self.shifted, x, 2)
        b = _awaitable(self.layer, x)
        return _awaitable_wait(a) - _awaitable_wait(b)


def test_methods_and_modules() -> None:
    module, x = Parts(), torch.randn(4, 2)
    compiled = rekindle.script(module)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), module(x))
    comparison = compare(Parts(), rekindle.script)
    assert comparison.equal, comparison.differences
    compiled(x).sum().backward()
    assert module.layer.weight.grad is not None


def test_the_mode_is_that_of_whoever_waits() -> None:
    def program(x: Tensor) -> Tuple[bool, bool]:
        a = rekindle.awaitable(scaled, x)
        b = rekindle.awaitable(scaled, x)
        with torch.no_grad():
            c = rekindle.awaitable_wait(a)
        return c.requires_grad, rekindle.awaitable_wait(b).requires_grad

    assert rekindle.script(program)(torch.ones(1, requires_grad=True)) == (False, True)


# ----------------------------------------------------------------------------------------------------- types, positions


class Pair(NamedTuple):
    a: int
    b: Tensor


def pair(x: Tensor) -> Pair:
    return Pair(3, x)


def takes_all(a: rekindle.Await[int], b: Optional[rekindle.Await[int]], c: Dict[str, rekindle.Await[int]]) -> int:
    total = rekindle.awaitable_wait(a)
    if b is not None:
        total += rekindle.awaitable_wait(b)
    for each in c.values():
        total += rekindle.awaitable_wait(each)
    return total


def test_awaits_of_every_kind_go_in() -> None:
    compiled = rekindle.script(takes_all)
    now = rekindle.awaitable_nowait
    for _ in range(3):
        assert compiled(now(1), None, {}) == 1
        assert compiled(now(1), now(2), {"x": now(3)}) == 6
        assert compiled(rekindle.awaitable(int, "4"), None, {}) == 4
        assert compiled(_awaitable_nowait(5), _awaitable(int, "6"), {}) == 11


def gives(x: Tensor) -> rekindle.Await[Tensor]:
    return rekindle.awaitable(scaled, x)


def test_awaits_go_out() -> None:
    waiting = rekindle.script(gives)(torch.ones(2))
    assert isinstance(waiting, rekindle.Await)
    assert repr(waiting) == "<Await: not computed>"
    assert torch.equal(rekindle.awaitable_wait(waiting), torch.full((2,), 2.0))
    assert repr(waiting) == "<Await: done>"
    assert waiting.wait() is waiting.wait()
    assert waiting.shape == (2,)


def test_named_tuples_keep_their_class() -> None:
    def program(x: Tensor) -> rekindle.Await[Pair]:
        return rekindle.awaitable(pair, x)

    def within(x: Tensor) -> int:
        return rekindle.awaitable(pair, x).a + rekindle.awaitable_wait(rekindle.awaitable(pair, x)).a

    found = rekindle.script(program)(torch.ones(1)).wait()
    assert isinstance(found, Pair)
    assert found.a == 3
    assert rekindle.script(within)(torch.ones(1)) == 6


def test_awaits_of_python() -> None:
    calls: list[int] = []
    waiting = rekindle.awaitable(note, calls, 4)
    assert not waiting.is_nowait()
    assert calls == []
    assert waiting.wait() == waiting.wait() == 5
    assert calls == [4]
    assert waiting.bit_length() == 3
    assert rekindle.awaitable_nowait("word").wait() == "word"
    assert copy.copy(waiting).wait() == 5


# -------------------------------------------------------------------------------------------------------------- errors


def fails(calls: List[int]) -> int:
    if note(calls, 1) == 2:
        raise ValueError("no number")
    return 1


def waits_for_failure(calls: List[int]) -> int:
    a = rekindle.awaitable(fails, calls)
    return rekindle.awaitable_wait(a)


def lines_of(error: BaseException) -> list[tuple[str, str | None]]:
    """The frames of this file but for that of the test itself: functions and lines."""
    entries = traceback.extract_tb(error.__traceback__)[1:]
    return [(entry.name, entry.line) for entry in entries if entry.filename == __file__]


def test_errors_tell_both_places() -> None:
    compiled = rekindle.script(waits_for_failure)
    for _ in range(3):
        with pytest.raises(ValueError, match=r"^no number$") as caught:
            compiled([])
        assert lines_of(caught.value) == [
            ("waits_for_failure", "return rekindle.awaitable_wait(a)"),
            ("<awaited function>", "a = rekindle.awaitable(fails, calls)"),
            ("fails", 'raise ValueError("no number")'),
        ]


def gives_failure(calls: List[int]) -> rekindle.Await[int]:
    return rekindle.awaitable(fails, calls)


def waits_for(a: rekindle.Await[int]) -> int:
    return rekindle.awaitable_wait(a)


@pytest.mark.parametrize("make", [gives_failure, rekindle.script(gives_failure)])
def test_an_error_comes_at_every_wait_and_the_call_is_made_anew(make: Any) -> None:
    calls: list[int] = []
    waiting = make(calls)
    compiled = rekindle.script(waits_for)
    for count, wait in enumerate((waiting.wait, lambda: compiled(waiting), waiting.wait), 1):
        with pytest.raises(ValueError, match=r"^no number$"):
            wait()
        assert len(calls) == count
        assert waiting.done()
    assert not waiting.is_nowait()


def test_an_await_that_waits_for_itself() -> None:
    def own(others: List[rekindle.Await[int]]) -> int:
        return rekindle.awaitable_wait(others[0])

    def program() -> int:
        others: List[rekindle.Await[int]] = []
        others.append(rekindle.awaitable(own, others))
        return rekindle.awaitable_wait(others[0])

    with pytest.raises(rekindle.RekindleError, match=r"^an Await waits for itself: its function asks for its result$"):
        rekindle.script(program)()


def no_function(x: Tensor) -> Tensor:
    return _awaitable()  # type: ignore[no-any-return]


def test_awaitable_without_a_function() -> None:
    assert message_of(rekindle.errors.TypeMismatchError, lambda: rekindle.script(no_function)) == (
        "awaitable takes a function and its arguments\n"
        '  File "FILE", line N\n'
        "    def no_function(x: Tensor) -> Tensor:\n"
        "        return _awaitable()  # type: ignore[no-any-return]\n"
        "               ^^^^^^^^^^^^"
    )


def not_waited_for(x: Tensor) -> Tensor:
    return _awaitable(scaled, x) + x


def test_an_await_is_not_its_result() -> None:
    with pytest.raises(rekindle.errors.CompileError, match=r"Await\[Tensor\]"):
        rekindle.script(not_waited_for)
    with pytest.raises(RuntimeError, match=r"Await\[Tensor\]"):
        script_with_torch(not_waited_for)


# ------------------------------------------------------------------------------------------------ together with futures


def chain(depth: int) -> int:
    end = rekindle.awaitable_nowait(0)
    for _ in range(depth):
        end = rekindle.awaitable(one_more, end)
    return rekindle.awaitable_wait(end)


def one_more(before: rekindle.Await[int]) -> int:
    return rekindle.awaitable_wait(before) + 1


def test_a_thousand_that_wait_for_each_other() -> None:
    assert rekindle.script(chain)(5_000) == 5_000


def forwards(gate: rekindle.Future[int]) -> int:
    return rekindle.wait(gate) + 1


def waits_in_two_tasks(gate: rekindle.Future[int]) -> int:
    a = rekindle.awaitable(forwards, gate)
    first = rekindle.fork(waits_for, a)
    second = rekindle.fork(waits_for, a)
    return rekindle.wait(first) * 100 + rekindle.wait(second)


def test_one_task_computes_while_others_stand_before_it(pool: TaskPool) -> None:
    compiled = rekindle.script(waits_in_two_tasks)
    for _ in range(20):
        gate: Future[int] = Future()
        done = rekindle.fork(compiled, gate)
        gate.set_result(4)
        assert done.wait() == 505
    assert pool.started <= 2


def test_a_state_stops_within_an_await() -> None:
    def program(gate: rekindle.Future[int]) -> int:
        return rekindle.awaitable_wait(rekindle.awaitable(forwards, gate)) * 10

    gate: Future[int] = Future()
    state = InterpreterState(Code(rekindle.script(program).graph, "program"))
    state.start([gate])
    assert state.resume() is None
    assert state.awaited is gate
    assert state.depth == 2
    gate.set_result(4)
    assert state.resume() == 50


def test_a_state_stops_before_an_await_that_another_computes() -> None:
    gate: Future[int] = Future()
    waiting = rekindle.awaitable(gate.wait)
    thread = threading.Thread(target=waiting.wait)
    call = waiting.claim()
    assert call is not None
    state = InterpreterState(Code(rekindle.script(waits_for).graph, "waits_for"))
    state.start([waiting])
    assert state.resume() is None
    assert state.awaited is waiting
    thread.start()
    waiting.finish(7)
    thread.join()
    assert state.resume() == 7


def test_whoever_stood_before_it_computes_where_the_other_gave_up() -> None:
    waiting = rekindle.awaitable(int, "8")
    assert waiting.claim() is not None
    assert waiting.claim() is None
    state = InterpreterState(Code(rekindle.script(waits_for).graph, "waits_for"))
    state.start([waiting])
    assert state.resume() is None
    waiting.give_up()
    assert state.resume() == 8


def test_an_await_tells_its_call():
    def more(x: int, by: int = 1) -> int:
        return x + by

    awaited = rekindle.awaitable(more, 13, by=2)
    assert awaited.fn()(*awaited.args()) == rekindle.awaitable_wait(awaited) == 15
    assert awaited.args() == (13,)
    known = rekindle.awaitable_nowait(33)
    assert known.is_nowait()
    assert known.fn()(*known.args()) == 33


def test_private_attributes_are_those_of_the_result():
    class Held:
        def __init__(self) -> None:
            self._x = 3

    assert rekindle.awaitable(Held)._x == 3


def test_isinstance_of_what_comes_later():
    def delayed(x: int) -> int:
        return x + 1

    def asked(x: int) -> tuple[bool, bool, bool, int]:
        awaited = torch.jit._awaitable(delayed, x)
        future = torch.jit.fork(delayed, x)
        kinds = (
            isinstance(awaited, torch.jit._Await),
            isinstance(future, torch.jit.Future),
            isinstance(x, torch.jit._Await),
        )
        return *kinds, torch.jit._awaitable_wait(awaited) + torch.jit.wait(future)

    assert rekindle.script(asked)(1) == (True, True, False, 4)


def test_isinstance_of_what_may_be_anything():
    def asked(x: Any) -> tuple[bool, bool, bool]:
        return (
            isinstance(x, torch.jit.Future),
            isinstance(x, torch.jit._Await),
            isinstance(x, torch.futures.Future[int]),
        )

    ours = rekindle.script(asked)
    done, other = Future[int](), Future[str]()
    done.set_result(3)
    other.set_result("x")
    assert ours(done) == (True, False, True)
    assert ours(other) == (True, False, False)
    assert ours(rekindle.awaitable_nowait(3)) == (False, True, False)
    assert ours(3) == (False, False, False)
    for failed in (Future[int](), torch.futures.Future[int]()):
        failed.set_exception(ValueError("the call failed"))
        assert ours(failed) == (True, False, True)
        with pytest.raises(ValueError, match="the call failed"):
            failed.wait()
    with pytest.raises(TypeError, match=r"whether this is a Future\[int\] shows when it is done; wait for it first"):
        ours(Future[int]())


def waits_for_one_of_torch_jit(x: torch.jit.Future) -> int:
    return 1


def waits_for_one_of_torch(x: torch.futures.Future) -> int:  # type: ignore[type-arg]
    return 1


def waits_for_one(x: Future) -> int:  # type: ignore[type-arg]
    return 1


@pytest.mark.parametrize("function", [waits_for_one_of_torch_jit, waits_for_one_of_torch, waits_for_one])
def test_a_future_without_the_type_of_its_value_is_refused(function: Any) -> None:
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(function)
    first, *_, hint = str(caught.value).splitlines()
    assert first == "'Future' needs the type of its value here"
    assert hint == "Hint: write, for example, Future[Tensor]"
