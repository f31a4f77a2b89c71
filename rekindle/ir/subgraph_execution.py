"""Execution of subgraphs, for modules that may not import the runtime.

The operation of a node with a subgraph runs it with :func:`callable_of`; the runtime registers the implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from rekindle.errors.layer_hooks import LayerHook
from rekindle.ir.graph import Graph

runner: Final = LayerHook[Callable[[Graph, str, bool, bool], Callable[..., Any]]]("rekindle.runtime.executor")
"""Hook: the implementation of :func:`callable_of` and :func:`consuming_callable_of`, by the last argument."""


interpreter: Final = LayerHook[Callable[[Graph, str], Callable[..., Any]]]("rekindle.runtime.executor")
"""Hook: the implementation of :func:`interpreted`."""

replayer: Final = LayerHook[Callable[[Callable[..., Any], bool], Callable[..., Any]]]("rekindle.runtime.executor")
"""Hook: the implementation of :func:`replayed`."""


def callable_of(graph: Graph, name: str, *, optimized: bool = False) -> Callable[..., Any]:
    """Return a function that runs ``graph``: called with its inputs, it returns its output, or a tuple of several.
    ``name`` is what tracebacks call it. The graph must not change afterwards.

    The graph runs unchanged, or, if ``optimized``, as an optimized copy.

    Raises:
        SchemaError: nothing is registered that runs one of the nodes.
    """
    return runner.get()(graph, name, optimized, False)


def consuming_callable_of(graph: Graph, name: str, *, optimized: bool = False) -> Callable[[list[Any]], Any]:
    """Return a function as :func:`callable_of` does that takes a list of the inputs. The list is emptied at the start,
    so that tensors that only it holds are freed at their last use, not after the call. Without ``optimized``, the graph
    runs as it is."""
    return runner.get()(graph, name, optimized, True)


def interpreted(graph: Graph, name: str) -> Callable[..., Any]:
    """Return a function that runs ``graph`` as :func:`callable_of` does, and takes less time to make: for one call.

    Raises:
        SchemaError: nothing is registered that runs one of the nodes.
    """
    return interpreter.get()(graph, name)


def replayed(function: Callable[..., Any], *, from_list: bool = False) -> Callable[..., Any]:
    """Return a function that calls ``function``; while CUDA graphs are enabled, it replays recorded calls on the GPU
    instead. ``function`` is a result of :func:`callable_of`, or, with ``from_list``, of :func:`consuming_callable_of`.
    The returned function records nothing for autograd."""
    return replayer.get()(function, from_list)


_at_once: Final = ContextVar("rekindle.settled_at_once", default=False)


@contextmanager
def compile_immediately() -> Iterator[None]:
    """Compile operations on their first call within the ``with`` block, instead of after some calls
    (:class:`PatchableOperation`)."""
    token = _at_once.set(True)
    try:
        yield
    finally:
        _at_once.reset(token)


def is_settled_at_once() -> bool:
    """Return whether operations compile at once, as within :func:`compile_immediately`."""
    return _at_once.get()


DEFER_FIRST_CALLS = True
"""Whether work that pays only if calls repeat is left out of first calls. Tests of that work set it to False."""


def defers_first_calls() -> bool:
    """Return whether work that pays only if calls repeat is left out of first calls."""
    return DEFER_FIRST_CALLS and not _at_once.get() and not _is_repeated.get()


_is_repeated: Final = ContextVar("rekindle.is_repeated", default=False)


@contextmanager
def compile_for_repeated_calls(is_repeated: bool = True) -> Iterator[None]:
    """Compile within the ``with`` block, if ``is_repeated``, for a function that was called before: its calls repeat,
    and no work is left for later ones."""
    token = _is_repeated.set(is_repeated)
    try:
        yield
    finally:
        _is_repeated.reset(token)


def is_repeated() -> bool:
    """Return whether code is compiled for a function that was called before (:func:`compile_for_repeated_calls`)."""
    return _is_repeated.get()


class PatchableOperation:
    """An operation of a node that can be replaced by a faster one at all its call sites."""

    def __init__(self) -> None:
        self._call_sites: list[Callable[[Callable[..., Any]], object]] = []
        self._settled: Callable[..., Any] | None = None

    def __call__(self, *inputs: Any) -> Any:
        """Run the node."""
        raise NotImplementedError

    def add_call_site(self, replace: Callable[[Callable[..., Any]], object]) -> None:
        """Register a call site; ``replace`` patches the function called there."""
        if self._settled is not None:
            replace(self._settled)
        else:
            self._call_sites.append(replace)

    def patch_call_sites(self, function: Callable[..., Any]) -> None:
        """Replace the operation by ``function`` at all call sites, including those that are registered later."""
        self._settled = function
        for replace in self._call_sites:
            replace(function)
        self._call_sites.clear()
