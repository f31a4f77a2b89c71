"""Passes, and the execution of lists of passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from rekindle.errors import VerificationError
from rekindle.errors.debug_settings import settings
from rekindle.errors.log import GRAPH_DUMP
from rekindle.ir.graph import Graph
from rekindle.ir.profiling import recorded
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from rekindle.rewriting.changes import ChangeCounter, logger_of, nested


class Pass(Protocol):
    """A transformation of graphs. Its options are its fields; it reads no global flags.

    Example:
        >>> class CountNodes:
        ...     name = "count_nodes"
        ...     def run(self, graph):
        ...         print(sum(1 for _ in graph.all_nodes()))
        ...         return False
        >>> from rekindle.passes import run_passes
        >>> run_passes(rekindle.script(lambda x: x.neg()).graph, [CountNodes()])
        1
        False
    """

    @property
    def name(self) -> str:
        """The name of the pass in messages, logs and limits: the name of its file."""

    def run(self, graph: Graph) -> bool:
        """Change ``graph`` in place. Return whether anything changed.

        Before each single change the pass calls ``rekindle.rewriting.changes.may_change``, and omits the change if the
        result is False.
        """


Verifier = Callable[[Graph], None]
Observer = Callable[[Pass, Graph, bool], None]
"""Called after each pass, with whether it changed anything."""


def chosen_verifier() -> Verifier | None:
    """Return the verifier of graphs if ``REKINDLE_VERIFY`` is set, else None."""
    return verify if settings().verify else None


@dataclass(slots=True)
class PassManager:
    """Runs passes, counts and limits their changes, verifies the graph, and calls ``observe`` after each.

    ``verify`` is called after each pass that reports a change, and at the end; never if it is None.

    Example:
        >>> from rekindle.passes import DeadCodeElimination, PassManager
        >>> manager = PassManager(observe=lambda each, graph, changed: print(each.name, changed))
        >>> manager.run(rekindle.script(lambda x: x.neg()).graph, [DeadCodeElimination()])
        dead_code_elimination False
        False
    """

    verify: Verifier | None = field(default_factory=chosen_verifier)
    observe: Observer | None = None
    changes: ChangeCounter = field(default_factory=ChangeCounter)

    def run(self, graph: Graph, passes: Iterable[Pass]) -> bool:
        """Run ``passes`` in order, and return whether the graph has changed.

        Raises:
            VerificationError: a pass broke the graph; the message says which one.
        """
        settings()  # which may ask for a log of what follows
        changed = False
        unverified: Pass | None = None
        for each in passes:
            with recorded(f"pass {each.name}"), self.changes.attributed_to(each.name):
                did = each.run(graph)
            changed |= did
            logger = logger_of(each.name)
            if logger.isEnabledFor(GRAPH_DUMP):
                text = print_graph(graph, verbosity=settings().verbosity)
                logger.log(GRAPH_DUMP, "after %s:\n%s", each.name, text)
            unverified = None if did else each
            if did:
                self._verify(graph, each)
            if self.observe is not None:
                self.observe(each, graph, did)
        if unverified is not None:
            self._verify(graph, unverified)
        return changed

    def _verify(self, graph: Graph, after: Pass) -> None:
        if self.verify is None:
            return
        try:
            self.verify(graph)
        except VerificationError as error:
            raise VerificationError(f"after the pass '{after.name}': {error}") from error


def run_passes(graph: Graph, passes: Iterable[Pass], verify: Verifier | None = None) -> bool:
    """Run ``passes`` in order. Return whether one changed the graph.

    Args:
        graph: the graph, which is modified.
        passes: the passes.
        verify: called with the graph after each pass that changed it, and at the end. By default it is the verifier if
            ``REKINDLE_VERIFY`` is set, else nothing is verified.

    Raises:
        VerificationError: a pass left an invalid graph. The message names it.

    Example:
        >>> from rekindle.passes import CommonSubexpressionElimination, run_passes
        >>> graph = rekindle.script(lambda x: x.exp() + x.exp()).graph
        >>> run_passes(graph, [CommonSubexpressionElimination()])
        True
    """
    return PassManager(verify or chosen_verifier()).run(graph, passes)


def run_nested(each: Pass, graph: Graph) -> bool:
    """Run the pass ``each`` within another one, and return whether the graph changed. Its changes are logged and
    limited under its own name."""
    with nested(each.name):
        return each.run(graph)
