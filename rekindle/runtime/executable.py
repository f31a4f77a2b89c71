"""Compiled objects of a function, valid until its graph, or one that it calls, is edited."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

from rekindle.errors import UNKNOWN_RANGE, GraphError
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph, subgraphs_of
from rekindle.ir.graph_function import GraphFunction, called_function, stored_program
from rekindle.ir.verifier import verify
from rekindle.runtime.interpreter.code import Code


class Executable:
    """The compiled forms of a function. ``code`` is the unoptimized code for the interpreter; ``strategy``
    (:class:`~rekindle.runtime.version.Strategy`) runs calls that are optimized. Each is None until :meth:`code_of` or
    :meth:`with_strategy` creates it, and again after an edit."""

    __slots__ = ("__weakref__", "code", "is_exposed", "is_watching", "is_watching_callees", "strategy", "was_edited")

    def __init__(self) -> None:
        self.code: Code | None = None
        self.strategy: Any = None
        self.is_watching = False
        """Whether it receives notifications of edits of the function's graph."""
        self.is_watching_callees = False
        """Whether it receives notifications of edits of the compiled functions that the function calls."""
        self.is_exposed = False
        """Whether :meth:`expose` observes the function's graph."""
        self.was_edited = False
        """Whether a graph has been edited since :meth:`begin` verified the function's graph."""

    def begin(self, record: GraphFunction, *, with_callees: bool) -> None:
        """Observe edits of the function's graph, and ``with_callees`` those of the compiled functions that it calls,
        on which ``strategy`` depends: an edit discards ``code`` and ``strategy``. After an edit, verify the function's
        graph first.

        Raises:
            CompileError: the function has not been compiled yet, and cannot be.
            VerificationError: the edited graph is invalid.
            GraphError: the edited graph has another number of inputs or outputs than the function's schema.
        """
        if self.was_edited:
            verify(record.graph)
            _check_signature(record)
            self.was_edited = False
        if self.is_watching_callees or (self.is_watching and not with_callees):
            return
        self.is_watching, self.is_watching_callees = True, with_callees
        record.ensure_defined()
        functions = stored_program(record) if with_callees else None
        if functions is None:
            self._watch(graphs_of(record, with_callees=with_callees))
            return
        watch_loaded = _Weakly(weakref.WeakMethod(self._watch_loaded))
        for function in functions:
            if function.is_loaded:
                self._watch_loaded(function)
            else:
                function.when_loaded(watch_loaded)

    def expose(self, graph: Graph) -> Graph:
        """Return the function's graph for a user, who may edit it before the first call: the call verifies it then."""
        if not (self.is_watching or self.is_exposed or self.was_edited):
            self.is_exposed = True
            graph.watch(weakref.WeakMethod(self._note_edit))
        return graph

    def _note_edit(self) -> None:
        self.is_exposed = False
        self.was_edited = True

    def _watch(self, graphs: Iterable[Graph]) -> None:
        for graph in graphs:
            graph.watch(weakref.WeakMethod(self.forget))

    def _watch_loaded(self, record: GraphFunction) -> None:
        self._watch(graphs_of(record, only_loaded=True))

    def forget(self) -> None:
        """Discard ``code`` and ``strategy``, and observe no more: a graph was edited."""
        self.code = self.strategy = None
        self.is_watching = self.is_watching_callees = False
        self.was_edited = True


_ALL: Final[weakref.WeakSet[Executable]] = weakref.WeakSet()


def executable_of(record: GraphFunction) -> Executable:
    """Return the executable of a function, created if it has none."""
    found = record.executable
    if not isinstance(found, Executable):
        found = record.executable = Executable()
        _ALL.add(found)
    return found


def forget_strategies() -> None:
    """Discard the strategy of every function, because settings or the passes of users have changed."""
    for executable in list(_ALL):
        executable.strategy = None


def code_of(record: GraphFunction) -> Code:
    """Return the unoptimized code of a function, generated on first use.

    Raises:
        CompileError: the function has not been compiled yet, and cannot be; each call raises it again.
    """
    executable = executable_of(record)
    code = executable.code
    if code is None:
        executable.begin(record, with_callees=False)
        with room_to_recurse(UNKNOWN_RANGE):
            code = executable.code = Code(record.graph, record.name)
    return code


class _Weakly:
    """A function that calls a method of an object as long as the object is alive."""

    __slots__ = ("method",)

    def __init__(self, method: weakref.WeakMethod[Callable[[GraphFunction], None]]) -> None:
        self.method = method

    def __call__(self, record: GraphFunction) -> None:
        method = self.method()
        if method is not None:
            method(record)


def graphs_of(record: GraphFunction, *, only_loaded: bool = False, with_callees: bool = True) -> list[Graph]:
    """Return the graph of a function, the graphs within it, and ``with_callees`` those of the functions that it calls,
    as far as these are compiled; with ``only_loaded``, as far as they are in memory."""
    pending, seen = [record.graph], dict[Graph, None]()
    while pending:
        graph = pending.pop()
        if graph in seen:
            continue
        seen[graph] = None
        for node in graph.all_nodes():
            callee = called_function(node) if with_callees else None
            if callee is not None and (callee.is_loaded if only_loaded else callee.is_defined):
                pending.append(callee.graph)
            pending.extend(subgraphs_of(node))
    return list(seen)


def _check_signature(record: GraphFunction) -> None:
    graph, schema = record.graph, record.schema
    for what, ours, declared in (
        ("take", graph.inputs, schema.arguments),
        ("return", graph.outputs, schema.returns),
    ):
        if len(ours) != len(declared):
            raise GraphError(
                f"the graph of '{record.basename}' was edited to {what} {len(ours)} values, but the function {what}s "
                f"{len(declared)}; make a function of the graph: rekindle.create_function(graph, name)"
            )
