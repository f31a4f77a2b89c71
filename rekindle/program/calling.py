"""Calls of compiled functions from Python, and the checks of values that Python hands over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rekindle.ir.graph import Graph
from rekindle.ir.records import FunctionRecord
from rekindle.ir.schema import FunctionSchema
from rekindle.ir.types import Type
from rekindle.passes.inlining import inline
from rekindle.runtime.arguments import bind, describe, to_python
from rekindle.runtime.conversion import NoMatch, converter_for
from rekindle.runtime.executor import execute, optimized_graph, start
from rekindle.runtime.futures import Future

Interceptor = Callable[[FunctionRecord, Sequence[Any], Mapping[str, Any]], Any]

interceptor: Callable[[], Interceptor | None] = lambda: None  # noqa: E731
"""A slot: what this thread wants to do in place of calls from Python. :mod:`rekindle.tracing` fills it, to record
them."""


def call(record: FunctionRecord, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of ``record`` for these arguments.

    Raises:
        ArgumentError: they do not fit its schema.
    """
    intercept = interceptor()
    if intercept is not None:
        return intercept(record, args, kwargs)
    return run(record, args, kwargs)


def run(record: FunctionRecord, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """As :func:`call`, whatever this thread is doing."""
    schema = record.schema
    return result_of(schema, execute(record, bind(schema, args, kwargs)))


def launch(record: FunctionRecord, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Future[Any]:
    """Start a call of ``record`` on another thread; returns the future of its result.

    Raises:
        ArgumentError: the arguments do not fit its schema.
    """
    schema = record.schema
    task = start(record, bind(schema, args, kwargs))
    return task.then(lambda done: result_of(schema, done.value()))


def graph_for(record: FunctionRecord, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Graph:
    """The graph that a call with these arguments runs.

    Raises:
        ArgumentError: they do not fit the schema.
    """
    bind(record.schema, args, kwargs)
    return optimized_graph(record)


def result_of(schema: FunctionSchema, result: Any) -> Any:
    """What Python's user gets of a result: NamedTuples are of their class."""
    returns = schema.returns
    return to_python(result, returns[0].type) if len(returns) == 1 else result


def inlined(record: FunctionRecord) -> Graph:
    """A copy of the function's graph in which every call has given way to what it calls."""
    graph = record.graph.copy()
    inline(graph)
    return graph


def fit_value(value: Any, type: Type, where: str) -> Any:
    """``value`` as programs keep it in a slot of this type: itself where it fits.

    Raises:
        TypeError: it does not fit; the message begins with ``where``.
    """
    try:
        return converter_for(type)(value)
    except NoMatch as why:
        problem = f"{where} takes {type.annotation}, but got {describe(value)}"
        if why.path:
            problem += f", in which {why.path} is {describe(why.value)} instead of {why.type.annotation}"
        raise TypeError(problem) from None
