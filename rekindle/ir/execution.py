"""Running a graph from where the runtime is not known: a node that holds a graph of its own runs it this way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rekindle.errors import InternalError
from rekindle.ir.graph import Graph


def _nobody(graph: Graph, name: str, optimized: bool) -> Callable[..., Any]:
    raise InternalError("rekindle.runtime was not imported")


runner: Callable[[Graph, str, bool], Callable[..., Any]] = _nobody
"""A slot: what :func:`callable_of` does. :mod:`rekindle.runtime.executor` fills it."""


def callable_of(graph: Graph, name: str, *, optimized: bool = False) -> Callable[..., Any]:
    """A function that runs ``graph``: called with its inputs, it returns its output, or a tuple of several. ``name`` is
    what tracebacks call it. The graph must not change afterwards.

    It runs as it stands, or, if it is to be ``optimized``, a copy does that has been made faster.

    Raises:
        SchemaError: nothing is registered that runs one of the nodes.
    """
    return runner(graph, name, optimized)
