"""Executor: run a function on its arguments, through the version that its strategy selects.

The strategy of a function picks the version that runs a call: a graph, optimized, and its plan. What no plan can run,
the interpreter runs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Final

from rekindle.errors import UNKNOWN_RANGE
from rekindle.errors.gc_pause import gc_paused
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir import subgraph_execution
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ops.python import exceptions
from rekindle.passes import Pass
from rekindle.runtime.calls.subscript_errors import word_as_python_does
from rekindle.runtime.cuda_graphs.captured_function import captured_function, replayed_function
from rekindle.runtime.executable import Executable, code_of, executable_of, forget_strategies
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.futures import Future
from rekindle.runtime.interpreter.long_loops import long_loops_compiled
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.interpreter.tasks import launch
from rekindle.runtime.plans.first_run import InterpretedRun, runs_once
from rekindle.runtime.plans.running_plan import running_plan
from rekindle.runtime.program_order import first_error, origin_of
from rekindle.runtime.settings import SETTINGS
from rekindle.runtime.strategies.native_strategy import NativeStrategy, native_pipeline, native_version
from rekindle.runtime.strategies.profiling_strategy import ProfilingStrategy
from rekindle.runtime.strategies.simple_strategy import SpecializingStrategy, pipeline_for
from rekindle.runtime.version import Strategy, Version

_optimize: Final = ContextVar("rekindle.optimize", default=True)

STRATEGIES: Final[dict[str, Callable[[GraphFunction], Strategy]]] = {
    "simple": SpecializingStrategy,
    "profiling": ProfilingStrategy,
    "native": NativeStrategy,
}
"""Ways to run functions, by the names that :func:`set_execution_strategy` takes."""

_last: Final[list[Callable[[], Code | None]]] = [lambda: None]
"""A weak reference to the code that the last call ran."""


def pipeline_of_calls(record: GraphFunction, arguments: Sequence[object]) -> tuple[Pass, ...]:
    """Return all passes that the strategies ``native`` and ``simple`` run before a call with these arguments; those of
    ``simple`` for ``profiling``, whose versions depend on earlier calls."""
    make = native_pipeline if SETTINGS.strategy == "native" else pipeline_for
    return make(record, arguments)


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Run graphs as they were compiled, in the interpreter, within a ``with`` block, if ``should_optimize`` is False.

    It applies to the thread or the asynchronous task that is in the block.

    Args:
        should_optimize: False to disable optimization.

    Example:
        >>> double = rekindle.script(lambda x: x * 2)
        >>> with rekindle.optimized_execution(False):
        ...     double(torch.ones(2))
        tensor([2., 2.])
    """
    token = _optimize.set(should_optimize)
    try:
        with nullcontext() if should_optimize else long_loops_compiled(None):
            yield
    finally:
        _optimize.reset(token)


def is_optimizing() -> bool:
    """Return whether calls that are made here run optimized graphs."""
    return _optimize.get()


def execute(record: GraphFunction, arguments: Sequence[object]) -> Any:
    """Run ``record`` on ``arguments``, which were converted for its schema
    (:func:`rekindle.runtime.calls.arguments.bind`); return the result.

    Raises:
        CompileError: the function has not been compiled yet, and cannot be; each call raises it again.
        Exception: whatever the program raises, with the lines of its source in the traceback.
    """
    if not _optimize.get():
        code = code_of(record)
        _last[0] = weakref.ref(code)
        return InterpreterState(code).run(arguments)
    executable = record.executable
    if not isinstance(executable, Executable) or executable.strategy is None:
        executable = with_strategy(record)
    version: Version = executable.strategy.select(arguments)
    _last[0] = version.reference
    function = captured_function(version) if SETTINGS.cuda_graphs else version.function
    try:
        return function(*arguments)
    except BaseException as caught:
        traceback, failed = origin_of(caught)
        error = caught.with_traceback(traceback)
    if failed is not None:
        error = first_error(record, version.graph, failed, error, arguments)
    try:
        raise error
    finally:
        del error, traceback  # the traceback holds this frame, which must not hold it in turn


@gc_paused()
@room_to_recurse(UNKNOWN_RANGE)
def callable_of(graph: Graph, name: str, optimized: bool, from_list: bool = False) -> Callable[..., Any]:
    """Return a function that runs ``graph``; see :func:`rekindle.ir.subgraph_execution.callable_of`, and with
    ``from_list`` :func:`rekindle.ir.subgraph_execution.consuming_callable_of`."""
    return (native_version if optimized else Version.of)(graph, name, from_list=from_list).function


@gc_paused()
@room_to_recurse(UNKNOWN_RANGE)
def _interpreted(graph: Graph, name: str) -> Callable[..., Any]:
    """See :func:`rekindle.ir.subgraph_execution.interpreted`."""
    code = Code(graph, name)
    return InterpretedRun(code) if runs_once(code) else Version.interpreted(code).function


subgraph_execution.runner.provide(callable_of)
subgraph_execution.interpreter.provide(_interpreted)
subgraph_execution.replayer.provide(replayed_function)


def _word(error: BaseException) -> None:
    found = running_plan(error.__traceback__)
    if found is not None:
        word_as_python_does(error, found[0].instructions[found[1]].node)


exceptions.word_error.provide(_word)


def start(record: GraphFunction, arguments: Sequence[object]) -> Future[Any]:
    """Start the unoptimized code of ``record`` in the interpreter, on a thread of the task pool
    (:func:`~rekindle.runtime.interpreter.tasks.launch`). Return the future of its result.

    Raises:
        CompileError: the function has not been compiled yet, and cannot be; each call raises it again.
    """
    state = InterpreterState(code_of(record))
    state.start(arguments)
    return launch(state)


def with_strategy(record: GraphFunction) -> Executable:
    """Return the executable of a function, with the current strategy if it had none."""
    executable = executable_of(record)
    if executable.strategy is None:
        executable.begin(record, with_callees=True)
        executable.strategy = STRATEGIES[SETTINGS.strategy](record)
    return executable


def prepare(record: GraphFunction, arguments: Sequence[object]) -> Version:
    """Compile and return the version for such arguments.

    Raises:
        CompileError: the function has not been compiled yet, and cannot be; each call raises it again.
    """
    strategy: Strategy = with_strategy(record).strategy
    return strategy.prepare(arguments)


def graph_for(record: GraphFunction, arguments: Sequence[object]) -> Graph:
    """Return the graph that calls with such arguments run.

    Raises:
        CompileError: the function has not been compiled yet, and cannot be; each call raises it again.
    """
    return prepare(record, arguments).graph if _optimize.get() else record.graph


def set_execution_strategy(name: str) -> str:
    """Select how functions are optimized and run, and return the strategy that was selected before.

    ``"native"`` generates kernels, and machine code for loops over numbers. ``"simple"`` calls operators one by one,
    as ``"profiling"`` does, which records types in the first calls and guards them. Plans are native under all of
    them, if this machine has native plans. All functions are optimized again.

    Args:
        name: the name of the strategy.

    Raises:
        ValueError: there is no such strategy.

    Example:
        >>> before = rekindle.set_execution_strategy("simple")
        >>> before, rekindle.set_execution_strategy(before)
        ('native', 'simple')
    """
    if name not in STRATEGIES:
        known = ", ".join(map(repr, STRATEGIES))
        raise ValueError(f"there is no strategy {name!r}; there are: {known}")
    before, SETTINGS.strategy = SETTINGS.strategy, name
    forget_strategies()
    return before


def last_executed_graph() -> Graph | None:
    """Return the graph that the last call from Python ran, or still runs, on any thread.

    It is None before the first call, and once the code of the call has been discarded: with the function, after an
    edit, or because settings have changed.

    Example:
        >>> double = rekindle.script(lambda x: x * 2)
        >>> _ = double(torch.ones(2))
        >>> isinstance(rekindle.last_executed_graph(), rekindle.Graph)
        True
    """
    code = _last[0]()
    return None if code is None else code.graph
