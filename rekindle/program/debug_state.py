"""Debug state of a function: its graph, and the code that the runtime has compiled for its calls so far."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.runtime.executable import Executable
from rekindle.runtime.interpreter.code import Code


@dataclass(frozen=True, slots=True)
class DebugState:
    """The graph of a function, and what runs it."""

    graph: Graph
    """The graph as it was compiled."""
    execution_plans: tuple[Code, ...]
    """The codes compiled so far, each for another kind of arguments: none before the first call or ``compile()``.
    ``str()`` of one lists its instructions; its ``graph`` is the one they were lowered from."""


def debug_state_of(record: GraphFunction) -> DebugState:
    """Return the current state of ``record``. Only its graph is compiled; nothing runs.

    Raises:
        CompileError: the function cannot be compiled.
    """
    graph = record.graph
    executable = record.executable
    if not isinstance(executable, Executable) or executable.strategy is None:
        return DebugState(graph, ())
    return DebugState(graph, tuple(version.code for version in executable.strategy.versions))
