"""Bailouts: continue a program after a guard fails.

A ``prim::BailOut`` is one instruction: it returns its first input if that passes the guard. Else it leaves the code for
the rest of the program, whose code is compiled when it is first needed. That code assumes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from rekindle.ir.graph import Graph, Node
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.types import Type
from rekindle.ops.tensor.profiling import guard_test
from rekindle.passes.speculation.bailout_graphs import bailout_graph
from rekindle.passes.speculation.insert_bailouts import AT_ENTRY, template_of


class FaultInjector:
    """Fault injection for tests: makes one guard fail although it holds, the one evaluated after ``at`` others."""

    def __init__(self) -> None:
        self.at = -1
        self.queries = 0

    def begin(self, at: int = -1) -> None:
        """Reset the count of evaluated guards. If ``at`` is negative, no guard is made to fail."""
        self.at, self.queries = at, 0

    def should_fail(self) -> bool:
        """Return whether the guard being evaluated is to fail."""
        self.queries += 1
        return self.queries - 1 == self.at


_faults: Final[list[FaultInjector | None]] = [None]


@contextmanager
def failing_guards() -> Iterator[FaultInjector]:
    """Generate, for tests, code within the ``with`` block whose guards can be made to fail. Existing code is
    unchanged."""
    before, faults = _faults[0], FaultInjector()
    _faults[0] = faults
    try:
        yield faults
    finally:
        _faults[0] = before


class Bailout:
    """The run-time data of a guard, ``prim::BailOut``. ``test`` returns whether a value has the assumed ``type``."""

    __slots__ = (
        *("_graph", "_index", "_places", "_rest", "_template"),
        *("argument", "code", "faults", "notice", "restart", "taken", "test", "type"),
    )

    def __init__(self, node: Node) -> None:
        index = node["index"]
        assert isinstance(index, int)
        self.type: Type = node.output.type
        self.faults = _faults[0]
        self.test = guard_test(self.type) if self.faults is None else _with_faults(guard_test(self.type), self.faults)
        self.code: object = None
        """The code of the continuation, which the interpreter sets when it is first needed."""
        self.taken = 0
        """Number of times that this bailout was taken."""
        self.notice: Callable[[], None] | None = None
        """Called each time that the bailout is taken."""
        self.restart: Callable[..., Any] | None = None
        """Function of the program's arguments that runs the whole program in place of the continuation, if the guard is
        at the entry."""
        self._template = template_of(node)
        self._index = index
        self._graph: Graph | None = None
        self._rest: Callable[..., Any] | None = None
        guarded, _, *others = node.inputs
        captured = [guarded, *others]
        arguments = node.graph.inputs
        knows_all = AT_ENTRY in node.attributes and all(value in captured for value in arguments)
        position = {value: index for index, value in enumerate(arguments)}
        self.argument = position.get(guarded) if knows_all else None
        """The index of the graph's input that is tested, if the guard is at the entry and tests an input; else None."""
        self._places = tuple(map(captured.index, arguments)) if knows_all else None

    @property
    def is_at_entry(self) -> bool:
        """Whether the guard is at the start of the program, so that the whole program can be run again."""
        return self._places is not None

    @property
    def graph(self) -> Graph:
        """The graph of the rest of the program."""
        if self._graph is None:
            self._graph = bailout_graph(self._template, self._index)
        return self._graph

    def record_taken(self) -> None:
        """Count one execution of this path, and call :attr:`notice` if it is set."""
        self.taken += 1
        if self.notice is not None:
            self.notice()

    def continuation(self, name: str) -> Callable[..., Any]:
        """Count the bailout, and return the function that runs the rest of the program, from the value that failed the
        guard and the captured values. If :attr:`restart` is set and the guard is at the entry, the function runs the
        whole program instead. ``name`` is its name in tracebacks."""
        self.record_taken()
        if self.restart is not None and self._places is not None:
            return partial(_restart, self.restart, self._places)
        if self._rest is None:
            self._rest = callable_of(self.graph, name)
        return self._rest


def _restart(restart: Callable[..., Any], places: Sequence[int], *values: object) -> Any:
    return restart(*[values[place] for place in places])


def _with_faults(test: Callable[[object], bool], faults: FaultInjector) -> Callable[[object], bool]:
    return lambda value: not faults.should_fail() and test(value)
