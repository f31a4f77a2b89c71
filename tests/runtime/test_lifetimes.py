"""A tensor dies right after its last use."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.analysis.liveness import liveness
from rekindle.ir.graph import Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import TENSOR, FunctionType
from rekindle.runtime.executor import execute
from rekindle.runtime.interpreter import basic_blocks
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from tests.support import graphs
from tests.support.graphs import WATCH, Evaluator, Thing

graphs.register()

SEEN: list[weakref.ref[torch.Tensor]] = []
ALIVE: list[list[int]] = []


def _make(number: int) -> torch.Tensor:
    made = torch.full((2,), float(number))
    SEEN.append(weakref.ref(made))
    return made


def _look(*inputs: Any) -> torch.Tensor:
    """What of the tensors that were made is alive now, by the order of making; makes another one."""
    ALIVE.append([index for index, reference in enumerate(SEEN) if reference() is not None])
    return _make(len(SEEN))


def _fail(*inputs: Any) -> torch.Tensor:
    raise ValueError("no more")


for _name, _operation in (("make", _make), ("look", _look), ("fail", _fail)):
    REGISTRY.register(
        Operator(
            FunctionSchema(f"test::{_name}", returns=(Argument("", TENSOR),), is_vararg=True), operation=_operation
        )
    )


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    SEEN.clear()
    ALIVE.clear()
    gc.disable()  # nothing may need the collector to die
    yield
    gc.enable()


def run(text: str, *arguments: object) -> Any:
    return InterpreterState(Code(parse_graph(text), "f")).run(arguments)


def test_a_straight_line() -> None:
    result = run("""
graph():
  %a : Tensor = test::look()
  %b : Tensor = test::look(%a)
  %c : Tensor = test::look(%a, %b)
  %d : Tensor = test::look(%c)
  return (%d)
""")
    assert ALIVE == [[], [0], [0, 1], [2]]
    assert result is SEEN[3]()


def test_a_result_that_nobody_uses() -> None:
    run("""
graph():
  %a : Tensor = test::look()
  %b : Tensor = test::look()
  return (%b)
""")
    assert ALIVE == [[], []]


BRANCH = """
graph(%c : bool):
  %a : Tensor = test::look()
  %b : Tensor = test::look()
  %y : Tensor = prim::If(%c)
    block0():
      %n : Tensor = test::look(%a)
      %m : Tensor = test::look(%n)
      -> (%m)
    block1():
      %k : Tensor = test::look()
      -> (%b)
  %z : Tensor = test::look(%y)
  return (%z)
"""


def test_what_one_branch_uses_is_dropped_in_the_other() -> None:
    run(BRANCH, True)
    # %b dies at the start of the first block; %a with its use in it.
    assert ALIVE == [[], [0], [0], [2], [3]]


def test_and_the_other_way_round() -> None:
    run(BRANCH, False)
    # %a dies at the start of the second block, which returns %b.
    assert ALIVE == [[], [0], [1], [1]]


LOOP = """
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %w : Tensor = test::look()
  %x : Tensor = test::look()
  %u : Tensor = test::look()
  %y : Tensor, %v : Tensor = prim::Loop(%n, %t, %x, %u)
    block0(%i : int, %a : Tensor, %unused : Tensor):
      %b : Tensor = test::look(%a, %w)
      %c : Tensor = test::look(%b)
      -> (%t, %c, %b)
  %z : Tensor = test::look(%y)
  %q : Tensor = test::look(%v, %z)
  return (%q)
"""


def test_what_a_loop_carries_and_reads() -> None:
    run(LOOP, 2)
    w, x, b0, c0, b1, c1, z = 0, 1, 3, 4, 5, 6, 7
    assert ALIVE == [
        [],
        [w],
        [w, x],
        [w, x],  # %unused is dropped at once
        [w, b0],  # %x died with its use
        [w, c0],  # what was carried and is not read: %b of the first iteration
        [w, b1],
        [b1, c1],  # after the loop %w is dropped
        [b1, z],
    ]


def test_a_loop_that_does_not_run() -> None:
    run(LOOP, 0)
    assert ALIVE == [[], [0], [0, 1], [1, 2], [2, 3]]


def test_a_loop_whose_results_nobody_uses() -> None:
    run(
        """
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %x : Tensor = test::look()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = test::look(%a)
      -> (%t, %b)
  %z : Tensor = test::look()
  return (%z)
""",
        2,
    )
    assert ALIVE == [[], [0], [1], []]


EARLY_RETURN = """
graph(%stop : bool, %n : int):
  %none : Tensor = prim::Uninitialized()
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %x : Tensor = test::look()
  %w : Tensor = test::look()
  %returned : bool, %r : Tensor, %y : Tensor = prim::Loop(%n, %t, %f, %none, %x)
    block0(%i : int, %was : bool, %r.1 : Tensor, %a : Tensor):
      %b : Tensor = test::look(%a)
      %done : bool, %value : Tensor, %on : bool, %next : Tensor = prim::If(%stop)
        block0():
          -> (%t, %b, %f, %none)
        block1():
          %c : Tensor = test::look(%b, %w)
          -> (%f, %none, %t, %c)
      -> (%on, %done, %value, %next)
  %result : Tensor = prim::If(%returned)
    block0():
      %l : Tensor = test::look()
      -> (%r)
    block1():
      %m : Tensor = test::look(%y)
      -> (%m)
  return (%result)
"""


def test_an_early_return_from_a_loop() -> None:
    result = run(EARLY_RETURN, True, 3)
    x, w, b = 0, 1, 2
    assert ALIVE == [[], [x], [x, w], [b]]
    assert result is SEEN[b]()


def test_the_same_loop_run_to_its_end() -> None:
    run(EARLY_RETURN, False, 2)
    x, w, b0, c0, b1, c1 = range(6)
    assert ALIVE == [[], [x], [x, w], [w, b0], [w, c0], [w, b1], [c1]]


def test_arguments_remain_their_callers() -> None:
    x, y = _make(0), _make(1)
    run(
        """
graph(%x : Tensor, %unused : Tensor):
  %a : Tensor = test::look(%x)
  %b : Tensor = test::look(%a)
  return (%b)
""",
        x,
        y,
    )
    assert ALIVE == [[0, 1], [0, 1, 2]]
    del x, y
    assert [reference() is None for reference in SEEN] == [True] * 4


def test_arguments_that_nobody_else_holds() -> None:
    code = Code(
        parse_graph("""
graph(%x : Tensor, %unused : Tensor):
  %a : Tensor = test::look(%x)
  %b : Tensor = test::look(%a)
  return (%b)
"""),
        "f",
    )
    state = InterpreterState(code)
    state.start([_make(0), _make(1)])
    state.resume()
    assert ALIVE == [[0], [2]]


def call_of(callee: str, caller: str) -> Code:
    """``caller`` with ``%f`` replaced by the function of the graph ``callee``."""
    schema = FunctionSchema("g", arguments=(Argument("x", TENSOR),), returns=(Argument("", TENSOR),))
    function = GraphFunction("__torch__.g", parse_graph(callee), schema)
    graph = parse_graph(caller)
    for node in graph.find_nodes("prim::CallFunction"):
        constant = graph.create("prim::Constant", types=[FunctionType(function)], attributes={"name": "g"})
        graph.block.prepend(constant)
        node.insert_input(0, constant.output)
    return Code(graph, "f")


CALLEE = """
graph(%x : Tensor):
  %a : Tensor = test::look(%x)
  %b : Tensor = test::look(%a)
  return (%b)
"""


def test_an_argument_of_a_call_dies_in_the_callee() -> None:
    code = call_of(
        CALLEE,
        """
graph():
  %x : Tensor = test::look()
  %y : Tensor = prim::CallFunction(%x)
  %z : Tensor = test::look(%y)
  return (%z)
""",
    )
    InterpreterState(code).run([])
    assert ALIVE == [[], [0], [1], [2]]


def test_unless_the_caller_needs_it_still() -> None:
    code = call_of(
        CALLEE,
        """
graph():
  %x : Tensor = test::look()
  %y : Tensor = prim::CallFunction(%x)
  %z : Tensor = test::look(%y, %x)
  return (%z)
""",
    )
    InterpreterState(code).run([])
    assert ALIVE == [[], [0], [0, 1], [0, 2]]


def test_a_loop_that_calls_with_what_it_carries() -> None:
    code = call_of(
        CALLEE,
        """
graph(%n : int):
  %t : bool = prim::Constant[value=1]()
  %x : Tensor = test::look()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = prim::CallFunction(%a)
      -> (%t, %b)
  return (%y)
""",
    )
    InterpreterState(code).run([2])
    assert ALIVE == [[], [0], [1], [2], [3]]


@pytest.mark.parametrize("way", ["state", "executor"])
def test_an_error_keeps_nothing_alive(way: str) -> None:
    graph = parse_graph("""
graph():
  %a : Tensor = test::look()
  %b : Tensor = test::look(%a)
  %c : Tensor = test::fail()
  %d : Tensor = test::look(%a, %b, %c)
  return (%d)
""")

    def from_state() -> None:
        InterpreterState(Code(graph, "f")).run([])

    def from_executor() -> None:
        execute(GraphFunction("f", graph), [])

    with pytest.raises(ValueError, match="no more") as caught:
        (from_state if way == "state" else from_executor)()
    error = caught.value
    assert error.__traceback__ is not None
    assert [reference() for reference in SEEN] == [None, None]


def test_an_error_needs_no_garbage_collector_to_die() -> None:
    record = GraphFunction("f", parse_graph("graph():\n  %c : Tensor = test::fail()\n  return (%c)\n"))

    class Marked(ValueError):
        pass

    def fail(*inputs: Any) -> None:
        raise Marked

    operator = REGISTRY.find("test::fail")
    assert operator is not None
    operator.operation, before = fail, operator.operation
    try:
        reference = _weakly_caught(lambda: execute(record, []), Marked)
    finally:
        operator.operation = before
    assert reference() is None


def _weakly_caught(function: Callable[[], object], kind: type[Exception]) -> weakref.ref[Exception]:
    try:
        function()
    except kind as error:
        return weakref.ref(error)
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("hot", [1, basic_blocks.HOT], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed: int, hot: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is the plain evaluator's, and at each call just that is alive which the program may still read."""
    monkeypatch.setattr(basic_blocks, "HOT", hot)
    graph = graphs.random_graph(seed, size=10 + seed % 60)
    live = liveness(graph)
    expected: list[set[str]] = []
    evaluator = Evaluator()

    def expect(node: Node) -> None:
        values = [evaluator.values[v] for v in [*live.live_after(node), *node.inputs] if v.node is not node]
        expected.append({f"{value.text}" for value in values if isinstance(value, Thing)})

    WATCH.answers.seed(seed)
    WATCH.on_call = expect
    answer = evaluator.run(graph, [WATCH.thing(f"argument {index}") for index in range(len(graph.inputs))])
    texts = [thing.text for thing in (answer if isinstance(answer, tuple) else (answer,))]
    evaluator.values.clear()
    del answer

    found: list[set[str]] = []
    WATCH.on_call = lambda node: found.append({thing.text for thing in WATCH.alive})
    WATCH.answers.seed(seed)
    WATCH.alive.clear()
    state = InterpreterState(Code(graph, "f"))
    state.start([WATCH.thing(f"argument {index}") for index in range(len(graph.inputs))])
    result = state.resume()
    assert [thing.text for thing in (result if isinstance(result, tuple) else (result,))] == texts
    assert found == expected
