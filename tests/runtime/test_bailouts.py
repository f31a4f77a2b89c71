"""Guards that fail: the code that they resume, in plans and in the interpreter, and later specializations."""

from __future__ import annotations

import copy
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.passes import EliminateGuards
from rekindle.runtime import version
from rekindle.runtime.background import in_background
from rekindle.runtime.plans.plan import ExecutionPlan
from rekindle.runtime.plans.python_code import NotCompilable
from rekindle.runtime.strategies.bailouts import failing_guards
from tests.language.running import assert_same_outcome, outcome
from tests.support.profiled import Profiled

# ------------------------------------------------------------------------------------------------- wherever guards fail


def writes(x: Tensor, log: List[Tensor]) -> Tensor:
    x.add_(1)
    print("added")  # noqa: T201
    first = x[0]
    first.mul_(x.size(0))
    log.append(first)
    y = torch.cat([x, x])
    print("joined", y.dim())  # noqa: T201
    log.append(y)
    x.sub_(y[: x.size(0)] * 2)
    return y.sum() + x.numel()


def loops(x: Tensor, log: List[Tensor]) -> Tensor:
    total = torch.zeros(())
    for i in range(4):
        if i == 2:
            continue
        for j in range(x.size(1)):
            part = x[:, j].nonzero()
            total = total + part.size(0) * (i + 1) + j
            if part.size(0) == 1:
                log.append(part)
                print(i, j)  # noqa: T201
                break
        x = torch.cat([x, x[:1] * i])
    while total.item() < 1000:
        total = total * 2 + x.size(0)
        if total.dim() > 0:
            break
    return total


def returns_early(x: Tensor, log: List[Tensor]) -> Tensor:
    for i in range(5):
        y = x.exp()
        if y.size(0) * i > 4:
            for k in range(3):
                z = y + k
                if k + i == z.size(0) + 1:
                    print("returns", i, k)  # noqa: T201
                    return z
        x = x + y.mean()
        log.append(y)
    return x


def draws(x: Tensor, log: List[Tensor]) -> Tensor:
    a = torch.rand(x.size(0))
    b = torch.dropout(x, 0.5, True)
    if b.numel() > 3:
        b = b + torch.randn_like(b)
    c = torch.rand(a.size(0))
    log.append(a)
    return b.sum() + (a * c).sum()


def holds(x: Tensor, log: List[Tensor]) -> Dict[str, List[Tensor]]:
    found: Dict[str, List[Tensor]] = {"x": [x], "none": []}
    alias: Optional[Tensor] = None
    for i, item in enumerate(x):
        if alias is None or item.sum().item() > 0:
            alias = item
        found["none"].append(alias)
        found[str(item.dim()) + str(i)] = [item.view(-1), alias]
    if alias is not None:
        alias.zero_()
    log.extend(found["none"])
    return found


def scoped(x: Tensor, log: List[Tensor]) -> Tensor:
    y = x * 2
    with torch.no_grad():
        z = y + y.size(0)
        for _ in range(z.dim()):
            z = z.unsqueeze(0)
    log.append(z)
    return z * y


def forked(x: Tensor, log: List[Tensor]) -> Tensor:
    y = x.relu()
    task = torch.jit.fork(torch.neg, y)
    for _ in range(y.dim()):
        y = y + y.size(0)
    z = torch.jit.wait(task)
    log.append(z)
    return y + z.size(1)


def fails(x: Tensor, log: List[Tensor]) -> Tensor:
    log.append(x)
    x.mul_(x.size(0))
    for i in range(3):
        if i + len(log) == 3:
            raise ValueError("no more " + str(x.size(1)))
        x.add_(i)
    return x


PROGRAMS = (writes, loops, returns_early, draws, holds, scoped, forked, fails)


def inputs() -> tuple[Any, ...]:
    return torch.tensor([[1.0, 0.0, 2.0], [-3.0, 0.0, 0.0]]), [torch.ones(1)]


@pytest.fixture(params=["plan", "interpreter"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "interpreter":

        def refuse(code: object, *, from_list: bool = False) -> ExecutionPlan:
            raise NotCompilable

        monkeypatch.setattr(version, "ExecutionPlan", refuse)
    return str(request.param)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("guarding", [(), (EliminateGuards(),), (EliminateGuards(keep_only_queried=True),)])
def test_every_guard_may_fail(program: Callable[..., object], guarding: tuple[Any, ...], way: str) -> None:
    """The answer, what is printed, what is written to, what is drawn: as eager, whichever guard fails."""
    compiled = rekindle.script(program)
    expected = outcome(program, inputs())
    profiled = Profiled(guarding=guarding, patience=1 << 30)
    with failing_guards() as faults, profiled.calls():
        if program is fails:  # a call that raises shows too little
            compiled(inputs()[0], [torch.ones(1)] * 4)
        assert_same_outcome(outcome(compiled, inputs()), expected, "the first call")
        faults.begin()
        assert_same_outcome(outcome(compiled, inputs()), expected, "guarded")
        count = faults.queries
        assert count > 0
        for guard in range(count):
            faults.begin(guard)
            assert_same_outcome(outcome(compiled, inputs()), expected, f"guard {guard} fails")
    assert profiled.taken >= count


# ----------------------------------------------------------------------------------------------------------- tracebacks


def inner(x: Tensor) -> Tensor:
    y = x.nonzero()
    if y.size(0) > 2:
        raise ValueError("too many")  # here
    return y


def outer(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.cat([x, x])
        inner(x)  # from here
    return x


def test_places_after_a_bailout(way: str) -> None:
    """The iterations before the bailout, the iteration that it leaves, and those after it: the lines are the
    program's."""
    compiled = rekindle.script(outer)
    profiled = Profiled(guarding=())
    with profiled.calls():
        compiled(torch.tensor([1.0]), 1)
        for x, n in ((torch.tensor([1.0]), 3), (torch.tensor([1.0, 2.0, 3.0]), 1)):
            with pytest.raises(ValueError, match=r"^too many$") as caught:
                compiled(x, n)
            lines = [entry.line for entry in traceback.extract_tb(caught.value.__traceback__)]
            assert lines[-2:] == ["inner(x)  # from here", 'raise ValueError("too many")  # here']
            assert [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)][-2:] == ["outer", "inner"]


# -------------------------------------------------------------------------------------------------------- the strategy


def shaped(x: Tensor, w: Tensor) -> Tensor:
    y = x @ w
    return y.view(y.size(0), -1) + y.dim() * y.size(1)


def plan_of(profiled: Profiled) -> str:
    newest = profiled.strategy.newest
    assert newest is not None
    return ExecutionPlan(newest.version.code).source


def test_a_plan_with_guards() -> None:
    profiled = Profiled()
    with profiled.calls():
        compiled = rekindle.script(shaped)
        compiled(torch.ones(2, 3), torch.ones(3, 4))
    assert (
        plan_of(profiled)
        == """\
def plan(r0, r1):
 if not (r0.__class__ in t0_0 and r0.layout is t0_1 and r0.dtype is t0_2 and r0.shape == t0_3 and \
r0.is_cpu): return b0()(r0, r1)
 r6 = r0
 if not (r1.__class__ in t1_0 and r1.layout is t1_1 and r1.dtype is t1_2 and r1.shape == t1_3 and \
r1.is_cpu): return b1()(r1, r0, r6)
 r7 = r1
 r1 = r0 = None
 r8 = f2(r6, r7)
 r6 = r7 = None
 r10 = f4(r8, 2, (-1))
 r8 = None
 r11 = f5(r10, 8)
 r10 = None
 return r11"""
    )


def calls(compiled: Any, sizes: Iterator[int] | range, width: int = 3) -> None:
    for size in sizes:
        x, w = torch.randn(size, width), torch.randn(width, 4)
        assert torch.equal(compiled(x, w), shaped(x, w))


def test_as_many_specializations_as_the_strategy_allows() -> None:
    profiled = Profiled(fusion=(("STATIC", 2), ("DYNAMIC", 1)))
    with profiled.calls():
        compiled = rekindle.script(shaped)
        calls(compiled, range(1, 1001))
        counters = profiled.strategy.counters
        assert (counters.profiled_calls, counters.versions, counters.bailouts) == (3, 3, 0)
        assert counters.entry_failures == 2 + 1  # those that led to another one
        for x, w in ((torch.ones(2, 3, dtype=torch.float64), torch.ones(3, 4, dtype=torch.float64)),):
            assert torch.equal(compiled(x, w), shaped(x, w))
        assert counters.versions == 3, "the general plan runs"
        assert counters.entry_failures == 6


def test_where_nothing_is_asked_there_are_no_guards() -> None:
    def plain(x: Tensor, w: Tensor) -> Tensor:
        return torch.relu(x @ w)

    profiled = Profiled()
    with profiled.calls():
        compiled = rekindle.script(plain)
        for size in range(1, 20):
            compiled(torch.ones(size, 3), torch.ones(3, 4))
    counters = profiled.strategy.counters
    assert (counters.profiled_calls, counters.versions, counters.guards) == (1, 0, 0)
    assert profiled.strategy.newest is None


def counted(x: Tensor) -> int:
    return x.nonzero().size(0)


def test_what_keeps_failing_in_the_middle_is_given_up() -> None:
    """Later specializations hold for all values that came: the number is no longer a constant."""
    profiled = Profiled(fusion=(("STATIC", 2),), patience=3)
    with profiled.calls():
        compiled = rekindle.script(counted)
        for number in (2, 3, 4, 5, 6, 7, 8, 9, 2, 3):
            assert compiled(torch.ones(number).add_(torch.zeros(1))[:number]) == number
    counters = profiled.strategy.counters
    assert counters.versions <= 2
    assert counters.entry_failures + counters.bailouts < 10


def bends(x: Tensor) -> Tensor:
    y = x
    if x.size(1) == 3:
        y = x.sum(0)
    return y * y.dim()


def test_a_branch_that_is_known_gives_another_shape() -> None:
    profiled = Profiled()
    with profiled.calls():
        compiled = rekindle.script(bends)
        for width in (3, 3, 4, 4, 3):
            x = torch.rand(2, width)
            assert torch.equal(compiled(x), bends(x))
    assert profiled.strategy.counters.versions == 2


def test_several_runs_are_watched() -> None:
    profiled = Profiled(runs=3, fusion=(("STATIC", 1),))
    with profiled.calls():
        compiled = rekindle.script(shaped)
        calls(compiled, range(2, 5))
        assert "Float(*, 4, device=cpu)" in str(profiled.strategy.newest.version.code.graph)  # type: ignore[union-attr]
        calls(compiled, range(5, 50))
    counters = profiled.strategy.counters
    assert (counters.profiled_calls, counters.versions, counters.entry_failures) == (3, 1, 0)


def test_made_ahead_from_the_types_of_arguments() -> None:
    profiled = Profiled()
    with profiled.calls():
        compiled = rekindle.script(shaped)
        x, w = torch.ones(2, 3), torch.ones(3, 4)
        compiled.compile(x, w)
        counters = profiled.strategy.counters
        assert (counters.profiled_calls, counters.versions) == (0, 1)
        assert torch.equal(compiled(x, w), shaped(x, w))
        compiled.compile(x, w)
        assert (counters.profiled_calls, counters.versions, counters.entry_failures) == (0, 1, 0)
        graph = compiled.graph_for(x, w)
        assert str(graph.find_nodes("aten::matmul")[0].output.type) == "Float(2, 4, device=cpu)"
        assert not graph.find_nodes("aten::size")


def test_made_in_the_background() -> None:
    profiled = Profiled()
    x, w = torch.ones(2, 3), torch.ones(3, 4)
    before = rekindle.set_background_compilation(True)
    try:
        with profiled.calls():
            compiled = rekindle.script(shaped)
            for _ in range(4):
                assert torch.equal(compiled(x, w), shaped(x, w))
                in_background_done()
    finally:
        rekindle.set_background_compilation(before)
    counters = profiled.strategy.counters
    assert (counters.profiled_calls, counters.versions, counters.entry_failures) == (1, 1, 0)


def in_background_done() -> None:
    """Wait for what is made in the background."""
    done = threading.Event()
    in_background(done.set)
    assert done.wait(60)


def test_gradients_ask_for_no_version_of_their_own() -> None:
    profiled = Profiled()
    with profiled.calls():
        compiled = rekindle.script(shaped)
        for requires_grad in (False, True, False):
            compiled(torch.ones(2, 3), torch.ones(3, 4, requires_grad=requires_grad))
    assert profiled.strategy.counters.entry_failures == 0


def test_modes_that_change_what_operators_give() -> None:
    """Under autocast and another default dtype nothing that was learned holds."""

    def made(x: Tensor) -> Tensor:
        y = torch.zeros(x.size(0)) + x
        z = x.unsqueeze(0) @ x.unsqueeze(1)
        return z.to(torch.float32) + y.to(torch.float32).sum() + (1 if y.dtype == torch.float64 else 0)

    profiled = Profiled()
    with profiled.calls():
        compiled = rekindle.script(made)
        x = torch.rand(4)
        for _ in range(3):
            assert torch.equal(compiled(x), made(x))
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(compiled(x), made(x))
        torch.set_default_dtype(torch.float64)
        try:
            assert torch.equal(compiled(x), made(x))
        finally:
            torch.set_default_dtype(torch.float32)


def test_subclasses_of_tensors_fit_no_guard() -> None:
    class Loud(Tensor):
        pass

    profiled = Profiled(fusion=(("STATIC", 1),))
    with profiled.calls():
        compiled = rekindle.script(shaped)
        calls(compiled, range(2, 3))
        x, w = torch.ones(2, 3).as_subclass(Loud), torch.ones(3, 4)
        assert torch.equal(compiled(x, w), shaped(x, w))
        assert torch.equal(compiled(torch.nn.Parameter(torch.ones(2, 3)), w), shaped(torch.ones(2, 3), w))
    assert profiled.strategy.counters.entry_failures == 1, "a Parameter is like any tensor"


def test_gradients() -> None:
    profiled = Profiled(guarding=())
    with profiled.calls():
        compiled = rekindle.script(shaped)
        for requires_grad in (False, True, True, False, True):
            x, w = torch.rand(2, 3), torch.rand(3, 4, requires_grad=requires_grad)
            v = w.detach().clone().requires_grad_(requires_grad)
            found, expected = compiled(x, w), shaped(x, v)
            assert torch.equal(found, expected)
            assert found.requires_grad is requires_grad
            if requires_grad:
                found.sum().backward()
                expected.sum().backward()
                assert torch.equal(w.grad, v.grad)  # type: ignore[arg-type]


def test_many_threads_at_once() -> None:
    profiled = Profiled()
    compiled = rekindle.script(writes)

    def call(number: int) -> None:
        x = torch.full((number % 5 + 1, 3), float(number))
        mine, theirs = copy.deepcopy(x), copy.deepcopy(x)
        assert torch.equal(compiled(mine, []), writes(theirs, []))
        assert torch.equal(mine, theirs)

    with profiled.calls(), ThreadPoolExecutor(8) as pool:
        list(pool.map(call, range(200)))
    assert profiled.strategy.counters.versions <= 2 + 5
