"""From a function and its arguments to the result.

A call runs a plan: the graph, optimised, as Python. What no plan can run, the interpreter runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final

from rekindle.errors import UNKNOWN_RANGE
from rekindle.frontend.depth import room_to_recurse
from rekindle.ir import execution
from rekindle.ir.graph import Graph
from rekindle.ir.records import FunctionRecord
from rekindle.runtime.code import Code
from rekindle.runtime.executable import Executable, code_of, executable_of
from rekindle.runtime.futures import Future
from rekindle.runtime.interpreter import InterpreterState, places_of
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import OPTIMIZATION
from rekindle.runtime.plan import ExecutionPlan, running_plan
from rekindle.runtime.python_code import NotCompilable
from rekindle.runtime.tasks import launch
from rekindle.runtime.tracebacks import foreign_frames, traceback_through

_optimize: Final = ContextVar("rekindle.optimize", default=True)

_last: Final[list[Code | None]] = [None]
"""What the last call ran."""


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Within, calls run graphs as they were compiled, in the interpreter, if ``should_optimize`` is False. It concerns
    the thread, or the asynchronous task, that is in it."""
    token = _optimize.set(should_optimize)
    try:
        yield
    finally:
        _optimize.reset(token)


def execute(record: FunctionRecord, arguments: Sequence[object]) -> Any:
    """What ``record`` returns for ``arguments``, which fit its schema: :func:`rekindle.runtime.arguments.bind` makes
    such.

    Raises:
        CompileError: the function cannot be compiled, where that has not been tried before.
        Whatever the program raises, with the lines of its source in the traceback.
    """
    if not _optimize.get():
        code = _last[0] = code_of(record)
        return InterpreterState(code).run(arguments)
    executable = record.executable
    if not isinstance(executable, Executable) or executable.optimized is None:
        executable = optimized(record)
    _last[0] = executable.optimized
    plan = executable.plan
    if plan is None:
        assert executable.optimized is not None
        return InterpreterState(executable.optimized).run(arguments)
    try:
        return plan.function(*arguments)
    except BaseException as caught:
        error = caught.with_traceback(_traceback(caught.__traceback__))
    try:
        raise error
    finally:
        del error  # its traceback holds this frame, which must not hold it in turn


def _traceback(traceback: TracebackType | None) -> TracebackType | None:
    """The places in the program that an error from a plan has come through, then what Python called beyond."""
    tail = foreign_frames(traceback)
    found = running_plan(traceback)
    if found is None:
        return tail
    plan, index = found
    return traceback_through(places_of(plan.code, index), tail)


def callable_of(graph: Graph, name: str) -> Callable[..., Any]:
    """See :func:`rekindle.ir.execution.callable_of`."""
    code = Code(graph, name)
    try:
        return ExecutionPlan(code).function
    except NotCompilable:
        return lambda *arguments: InterpreterState(code).run(arguments)


execution.runner = callable_of


def start(record: FunctionRecord, arguments: Sequence[object]) -> Future[Any]:
    """Have another thread execute ``record``; returns the future of what :func:`execute` would return.

    Raises:
        CompileError: the function cannot be compiled, where that has not been tried before.
    """
    state = InterpreterState(code_of(record))
    state.start(arguments)
    return launch(state)


def optimized(record: FunctionRecord) -> Executable:
    """The executable of a function, with its graph optimised, and a plan where there can be one.

    Raises:
        CompileError: the function cannot be compiled, where that has not been tried before.
    """
    executable = executable_of(record)
    if executable.optimized is None:
        with room_to_recurse(UNKNOWN_RANGE):
            graph = record.graph.copy()
            optimize(graph, OPTIMIZATION)
            code = Code(graph, record.name)
            with suppress(NotCompilable):
                executable.plan = ExecutionPlan(code)
            executable.optimized = code
    return executable


def optimized_graph(record: FunctionRecord) -> Graph:
    """The graph that calls run.

    Raises:
        CompileError: the function cannot be compiled, where that has not been tried before.
    """
    if not _optimize.get():
        return record.graph
    code = optimized(record).optimized
    assert code is not None
    return code.graph


def last_executed_graph() -> Graph | None:
    """The graph that the last call from Python has run, or is still running, in whichever thread; None before the
    first call."""
    code = _last[0]
    return None if code is None else code.graph
