"""Calls of compiled functions from Python, and checks of the values that Python passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import get_ident
from typing import Any, Final
from weakref import WeakSet

import torch

from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import Type
from rekindle.passes.canonicalization.inlining import inline
from rekindle.runtime import executor
from rekindle.runtime.calls.arguments import Runner, binder_of, describe
from rekindle.runtime.calls.conversion import NoMatch, converter_for
from rekindle.runtime.executor import execute, start
from rekindle.runtime.interpreter.futures import Future

interceptors: Final[dict[int, Runner]] = {}
"""Functions that intercept calls from Python, by thread ident. :mod:`rekindle.tracing` registers those that record
calls."""


late_hooks: Final[WeakSet[torch.nn.Module]] = WeakSet()
"""Compiled modules to which Python has added hooks. :mod:`rekindle.program.modules.module` adds them. It is not a set
of ``weakref.ref``: where code that Dynamo traces calls such a reference, Dynamo calls the module."""


def has_late_hooks(module: torch.nn.Module) -> bool:
    """Return whether a module still has one of the hooks that were registered after its compilation."""
    own = vars(module)
    return any(number in own[table] for table, number in own.get("_rekindle_late_hooks", ()))


def check_parts(owner: object) -> None:
    """Raise if a submodule of ``owner`` has a hook that the compiled code does not run. Other objects than modules have
    none. Modules whose late hooks were all removed leave :data:`late_hooks`.

    Raises:
        RuntimeError: a submodule has such a hook.
    """
    for module in list(late_hooks):
        if not has_late_hooks(module):
            late_hooks.discard(module)
    if not late_hooks or not isinstance(owner, torch.nn.Module):
        return
    for path, part in owner.named_modules():
        if part is not owner and has_late_hooks(part):
            raise RuntimeError(
                f"the part '{path}' of the compiled module has a hook that was registered after compiling, which "
                f"compiled code does not run\nHint: {_instead(part)}"
            )


def _instead(part: torch.nn.Module) -> str:
    """Return a hint: what to do instead of registering a hook on a submodule of a compiled module."""
    if any(cls.__name__ == "FSDPModule" for cls in type(part).__mro__):
        return "fully_shard the compiled module as a whole, or compile its parts one by one and shard each"
    return "register it before the module is compiled, or remove it: handle.remove()"


def call(record: GraphFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call ``record`` from Python: bind the arguments to its schema, run it, and return its result. If this thread has
    an entry in :data:`interceptors`, return the result of that function instead.

    Raises:
        ArgumentError: the arguments do not fit the schema.
        RuntimeError: the first argument is a module with a submodule whose hooks compiled code does not run.
    """
    if interceptors:
        intercept = interceptors.get(get_ident())
        if intercept is not None:
            return intercept(record, args, kwargs)
    if late_hooks and args:
        check_parts(args[0])
    return (record.runner or runner_of(record))(record, args, kwargs)


def runner_of(record: GraphFunction) -> Runner:
    """Return the function that calls ``record`` from Python in any thread; the first call creates it and stores it in
    the record."""
    found = record.runner
    if found is None:
        found = record.runner = binder_of(record).runner(execute)
    return found


def launch(record: GraphFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Future[Any]:
    """Start a call of ``record`` on another thread, and return the future of its result.

    Raises:
        ArgumentError: the arguments do not fit the schema.
        RuntimeError: the first argument is a module with a submodule whose hooks compiled code does not run.
    """
    if late_hooks and args:
        check_parts(args[0])
    binder = binder_of(record)
    task = start(record, binder.bind(args, kwargs))
    return task.then(lambda done: binder.result(done.value()))


def graph_for(record: GraphFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Graph:
    """Return the graph that a call with these arguments runs. Nothing runs.

    Raises:
        ArgumentError: the arguments do not fit the schema.
    """
    return executor.graph_for(record, binder_of(record).bind(args, kwargs))


def compile(record: GraphFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Optimize ``record`` for calls with such arguments, without a call.

    Raises:
        ArgumentError: the arguments do not fit the schema.
    """
    arguments = binder_of(record).bind(args, kwargs)
    executor.prepare(record, arguments)  # as for a first call, which measures nothing
    executor.prepare(record, arguments).complete()


def inlined(record: GraphFunction) -> Graph:
    """Return a copy of the function's graph with calls inlined, except those of interface methods and recursive
    functions."""
    graph = record.graph.copy()
    inline(graph)
    return graph


def fit_value(value: Any, type: Type, where: str) -> Any:
    """Return ``value`` in the representation that this type has in programs: an int becomes a float, a set a dict. A
    value that needs no conversion is returned as it is.

    Raises:
        TypeError: ``value`` does not fit the type. The message begins with ``where``.
    """
    try:
        return converter_for(type)(value)
    except NoMatch as why:
        problem = f"{where} takes {type.annotation}, but got {describe(value)}"
        if why.path:
            problem += f", in which {why.path} is {describe(why.value)} instead of {why.type.annotation}"
        if why.hint is not None:
            problem += f"\nHint: {why.hint}"
        raise TypeError(problem) from None
