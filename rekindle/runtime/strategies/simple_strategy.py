"""The strategy ``simple``: one version of a function for each kind of call.

Calls are distinguished twice. First, by facts that can be tested before optimization: which inputs are None, and the
values of module attributes (:class:`~rekindle.runtime.strategies.call_facts.CallFacts`). The graph is partially
evaluated for calls with the same facts, and optimized. If the result queries properties of its arguments, their
:class:`~rekindle.runtime.strategies.argument_spec.ArgumentSpec` selects among versions that are specialized to these.
Calls beyond the maximum number of versions run a version for any arguments.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final

from rekindle.analysis.work_estimate import WorkEstimate, most_iterations
from rekindle.autodiff.differentiable_graph import are_saved_tensors_hooked
from rekindle.errors import UNKNOWN_RANGE
from rekindle.errors.gc_pause import gc_paused
from rekindle.errors.progress import compilation_of
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import COMPILING, GraphFunction, stored_program
from rekindle.ir.profiling import recorded
from rekindle.ir.subgraph_execution import compile_for_repeated_calls, defers_first_calls
from rekindle.ir.types import TensorType
from rekindle.passes import PartialEvaluation, Pass
from rekindle.rewriting.changes import may_change
from rekindle.runtime.background import in_background
from rekindle.runtime.executable import code_of, graphs_of
from rekindle.runtime.interpreter.long_loops import LONG
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import OPTIMIZATION, SPECIALIZATION
from rekindle.runtime.program_order import first_error, origin_of
from rekindle.runtime.settings import SETTINGS
from rekindle.runtime.strategies.argument_spec import (
    ArgumentPath,
    ArgumentProperty,
    ArgumentSpec,
    ArgumentSpecCreator,
    specialize,
)
from rekindle.runtime.strategies.call_facts import AssumedAttributes, CallFacts, CallFactsFinder
from rekindle.runtime.strategies.graph_cache import Decisions, DerivedGraphs, Evaluated, GraphCache
from rekindle.runtime.version import Version

_LOG: Final = logging.getLogger(__name__)

_TASKS: Final = frozenset({"prim::fork", "prim::awaitable"})
"""Kinds of nodes that run a function as a task of its own."""


@dataclass(frozen=True, slots=True)
class SpecializeArguments:
    """A pass that writes the known facts about its arguments into a graph.

    .. code-block:: text

        graph(%x : Tensor, %m : Tensor?):            graph(%x : Tensor(*, *), %m : Tensor?):
          %2 : int = aten::dim(%x)                     %2 : int = aten::dim(%x)
          %3 : NoneType = prim::Constant()             %3 : NoneType = prim::Constant()
          %4 : bool = aten::__is__(%m, %3)     ->      %5 : NoneType = prim::Constant()
          return (%2, %4)                              %4 : bool = aten::__is__(%5, %3)
                                                       return (%2, %4)

    ``arguments`` are the arguments of a call. Only properties that the graph queries are written into it, and of these
    only the ones in ``queried``, if it is given: those by which versions are selected.
    """

    name: ClassVar[str] = "specialization"

    arguments: Sequence[object]
    queried: Collection[tuple[ArgumentPath, ArgumentProperty]] | None = None

    def run(self, graph: Graph) -> bool:
        creator = ArgumentSpecCreator.of(graph, self.queried)
        if creator.key is None or not may_change("specialize", graph):
            return False
        return specialize(graph, creator, creator.key(*self.arguments))


def pipeline_for(record: GraphFunction, arguments: Sequence[object]) -> tuple[Pass, ...]:
    """Return all passes that make the version of ``record`` for these arguments."""
    finder = CallFactsFinder(record)
    versions = GraphVersions(record, VersionBudget(), finder.evaluation(arguments))
    return (*versions.passes_for(arguments), versions.specialization_for(arguments), *SPECIALIZATION)


@dataclass(slots=True, eq=False)
class VersionTable:
    """The compiled versions of a graph, by the spec of the arguments."""

    by_spec: dict[ArgumentSpec, Version] = field(default_factory=dict)
    general: Version | None = None
    """The version for any arguments."""
    fallback: Version | None = None
    """The version for calls that fit no entry, once no more versions are compiled; None before."""

    def forget(self, version: Version) -> None:
        """Remove ``version`` from the table."""
        self.by_spec = {spec: each for spec, each in self.by_spec.items() if each is not version}
        self.general = None if self.general is version else self.general
        self.fallback = None if self.fallback is version else self.fallback

    @property
    def versions(self) -> list[Version]:
        """The versions by spec, and the version for any arguments."""
        return [*self.by_spec.values(), *([] if self.general is None else [self.general])]


@dataclass(slots=True)
class VersionBudget:
    """A count of the versions of a function that assume something about calls, up to the limit of the settings."""

    made: int = 0

    @property
    def is_spent(self) -> bool:
        return self.made >= SETTINGS.most_versions


class GraphVersions:
    """The versions of a function for calls that satisfy the assumptions of ``evaluation``.

    If the evaluation propagated types, the function is re-evaluated for each argument spec; otherwise its optimized
    graph is specialized."""

    def __init__(
        self,
        record: GraphFunction,
        budget: VersionBudget,
        evaluation: PartialEvaluation,
        general: Callable[[], Version] | None = None,
        stored: GraphCache | None = None,
    ) -> None:
        """Prepare the versions of a function. None is compiled yet.

        ``general`` returns the version for any arguments, which runs when the budget is exhausted; without assumptions,
        the version is one of these. ``stored`` has graphs from earlier processes.
        """
        self._record = record
        self._budget = budget
        self._table = VersionTable()
        self._with_types = evaluation.with_types
        self._evaluated: Evaluated
        """The graph for any arguments of which the facts hold, optimized where that is needed."""
        self._stored: DerivedGraphs | None = None
        """Cached data of that graph on disk."""
        if stored is None:
            self._evaluated = Evaluated.of(self._evaluated_by(evaluation))
        else:
            self._evaluated, self._stored = stored.evaluated(evaluation, lambda: self._evaluated_by(evaluation))
        self._is_optimized = not evaluation.with_types
        self._creator = self._evaluated.creator
        self.facts = CallFacts(evaluation.known, evaluation.assumptions)
        self._general = None if self.facts.hold is None else general

    def passes_for(self, arguments: Sequence[object]) -> tuple[Pass, ...]:
        """Return the passes that make the graph for these arguments before :class:`SpecializeArguments`."""
        key, facts = self._creator.key, self.facts
        types = self._creator.types_for(key(*arguments)) if key is not None and self._with_types else {}
        assumed = AssumedAttributes(facts.attributes)
        return (PartialEvaluation(facts.inputs, types, assumed, self._with_types), *OPTIMIZATION)

    def specialization_for(self, arguments: Sequence[object]) -> SpecializeArguments:
        """Return the pass that runs after :meth:`passes_for`. Optimized graphs may assume more about arguments than the
        key that selects versions."""
        return SpecializeArguments(arguments, self._creator.queried_properties)

    def find(self, arguments: Sequence[object]) -> Version | None:
        """Return the version for a call with these arguments; None if it has not been compiled."""
        table, key = self._table_for(arguments), self._creator.key
        if key is None:
            return table.fallback
        return table.by_spec.get(key(*arguments)) or table.fallback

    def prepare(self, arguments: Sequence[object]) -> Version:
        """Return the version for a call with these arguments, compiled if it does not exist."""
        return self._prepared(arguments, self._table_for(arguments))

    def general(self) -> Version:
        """Return the version for any arguments."""
        return self._general_of(self._table)

    @property
    def versions(self) -> Sequence[Version]:
        """The versions so far."""
        return self._table.versions

    # --------------------------------------------------------------------------------------------------------- making

    def _evaluated_by(self, evaluation: PartialEvaluation) -> Graph:
        """Return the graph of the function after ``evaluation``, optimized unless it was an evaluation with types."""
        graph = self._record.graph.copy()
        optimize(graph, (evaluation,) if evaluation.with_types else (evaluation, *OPTIMIZATION))
        return graph

    def _table_for(self, arguments: Sequence[object]) -> VersionTable:
        """Return the table of versions for calls of the same kind as one with these arguments."""
        return self._table

    def _prepared(self, arguments: Sequence[object], table: VersionTable) -> Version:
        """Return the version in ``table`` for calls of the same spec as ``arguments``, compiled if it does not exist;
        if the budget is spent, one for any arguments."""
        key = self._creator.key
        if self._budget.is_spent and self._general is not None and table.general is None:
            table.fallback = self._general()
            return table.fallback
        if key is None or self._budget.is_spent:
            table.fallback = self._general_of(table)
            return table.fallback
        spec = key(*arguments)
        found = table.by_spec.get(spec)
        if found is None:
            found = table.by_spec[spec] = self._make(arguments, table)
        return found

    def _general_of(self, table: VersionTable) -> Version:
        """Return the version in ``table`` for any arguments."""
        if table.general is None:
            table.general = self._make(None, table)
        return table.general

    def _make(self, arguments: Sequence[object] | None, table: VersionTable) -> Version:
        """Compile and return the version for calls of the same spec as ``arguments``; if these are None, the version
        for any arguments."""
        started = time.perf_counter()
        self._count(arguments)
        graph = self._optimized(arguments, lambda: "simple", lambda: self._graph_for(arguments))
        assert graph is not None
        return self._version_of(graph, started)

    def _optimized(
        self,
        arguments: Sequence[object] | None,
        kind: Callable[[], str],
        build: Callable[[], Graph | None],
        decisions: Decisions | None = None,
    ) -> Graph | None:
        """Return the graph of a kind for these arguments: from disk if an earlier process stored it, otherwise the
        result of ``build``, which may be None. ``decisions`` are those by which it is built, if they may be
        provisional."""
        if self._stored is None:
            return build()
        key = self._creator.key
        spec = None if arguments is None or key is None else key(*arguments)
        return self._stored.find((kind(), spec), build, decisions)

    def _count(self, arguments: Sequence[object] | None) -> None:
        """Count a new version against the budget, unless it assumes nothing about calls."""
        self._budget.made += arguments is not None or self._general is not None

    def _graph_for(self, arguments: Sequence[object] | None) -> Graph:
        """Return the graph of the version for these arguments, which must not be changed."""
        if arguments is None or not self._with_types:
            if not self._is_optimized:
                optimize(self._evaluated.graph, OPTIMIZATION)
                self._is_optimized = True
            graph = self._evaluated.graph if arguments is None else self._evaluated.graph.copy()
        else:
            graph = self._record.graph.copy()
            optimize(graph, self.passes_for(arguments))
        if arguments is not None and optimize(graph, (self.specialization_for(arguments),)):
            optimize(graph, SPECIALIZATION)
        return graph

    def _version_of(self, graph: Graph, started: float) -> Version:
        """Return the version that runs ``graph``, compiled since ``started``."""
        version = Version.of(graph, self._record.name, defers=True)
        self.facts.use_machine_code()
        version.seconds = time.perf_counter() - started
        return version


class SpecializingStrategy:
    """An execution strategy that compiles a version of a function for each combination of argument properties that
    matters to it."""

    versions_of: ClassVar[type[GraphVersions]] = GraphVersions

    def __init__(self, record: GraphFunction) -> None:
        self._record = record
        self._finder = CallFactsFinder(record)
        self._budget = VersionBudget()
        self._graphs: list[GraphVersions] = []
        """Graphs for calls with assumptions, the latest first; the last may be that for any calls."""
        self._general: GraphVersions | None = None
        """The graph for any calls."""
        self._pending: Version | None = None
        """The function as it was compiled, while a version is being made in the background."""
        self._was_interpreted = False
        """Whether the first call was interpreted, without optimization."""
        self._was_called = False
        """Whether the function was called or prepared for calls."""

    @cached_property
    def _stored(self) -> GraphCache | None:
        """Cached data of the function on disk; None if nothing is kept of it."""
        return GraphCache.of_function(self._record, OPTIMIZATION)

    def select(self, arguments: Sequence[object]) -> Version:
        """Return the version for a call with these arguments."""
        for each in self._graphs:
            hold = each.facts.hold
            if hold is None or hold(*arguments):
                return each.find(arguments) or self._missing_version(arguments)
        return self._missing_version(arguments)

    def prepare(self, arguments: Sequence[object]) -> Version:
        """Return the version for these arguments, compiled now even if calls are compiled in the background."""
        self._was_called = True  # a function is prepared for several calls
        name = _short_name(self._record)
        with (
            COMPILING,
            gc_paused(),
            room_to_recurse(UNKNOWN_RANGE),
            compilation_of(name),
            recorded(f"optimize {name}"),
            compile_for_repeated_calls(self._was_interpreted),
        ):
            found = self._graph_for(arguments).prepare(arguments)
            if self._stored is not None:
                self._stored.write()
            return found

    def general(self) -> Version:
        """Return the version for any arguments."""
        with COMPILING, gc_paused(), room_to_recurse(UNKNOWN_RANGE):
            return self._general_graph().general()

    @property
    def versions(self) -> Sequence[Version]:
        """The versions so far."""
        graphs = dict.fromkeys([*self._graphs, *([] if self._general is None else [self._general])])
        return [version for each in graphs for version in each.versions]

    def _graph_for(self, arguments: Sequence[object]) -> GraphVersions:
        """Return the graph versions for calls like one with these arguments, created if missing."""
        for each in self._graphs:
            if each.facts.hold is None or each.facts.hold(*arguments):
                return each
        for each in self._graphs:
            self._finder.forget(each.facts.changed(arguments), arguments)
        if self._budget.is_spent:
            found = self._general_graph()
            self._graphs.append(found)
            return found
        if not self._graphs and self._stored is not None:
            self._finder.stored_facts = self._stored.facts
        evaluation = self._finder.evaluation(arguments)
        found = self.versions_of(self._record, self._budget, evaluation, self.general, self._stored)
        if found.facts.hold is None:  # it fits all calls
            self._general = found
            self._graphs.append(found)
        else:
            self._graphs.insert(0, found)
        return found

    def _general_graph(self) -> GraphVersions:
        if self._general is None:
            self._general = self.versions_of(
                self._record, self._budget, PartialEvaluation(with_types=self._finder.keeps_types)
            )
        return self._general

    def _missing_version(self, arguments: Sequence[object]) -> Version:
        """Return the version that runs a call for which none is compiled yet."""
        if not self._was_called:
            self._was_called = True
            if self._interprets_first_call(arguments):
                self._was_interpreted = True
                return Version.interpreted(code_of(self._record), self._compiled_loop)
        if not SETTINGS.in_background:
            return self.prepare(arguments)
        pending = self._pending  # the other thread resets it
        if pending is None:
            pending = self._pending = Version.interpreted(code_of(self._record))
            in_background(lambda: self._finish(arguments))
        return pending

    def _interprets_first_call(self, arguments: Sequence[object]) -> bool:
        """Return whether the first call runs the function as it was compiled: optimization does not pay if no other
        call follows. It does for long loops, and takes little if an earlier process has stored the result. A checkpoint
        runs a function twice, and both runs must save the same tensors."""
        if not defers_first_calls() or are_saved_tensors_hooked():
            return False
        with COMPILING, room_to_recurse(UNKNOWN_RANGE):
            if stored_program(self._record) is not None and self._stored is not None and self._stored.is_filled:
                return False
            nodes = [node for graph in graphs_of(self._record) for node in graph.all_nodes()]
            loops = [LoopView(node) for node in nodes if node.kind == "prim::Loop"]
            if not loops:
                return True
            # A `while` loop over numbers counts as long, and loops of tasks run on other threads. Where calls are
            # compiled in the background, no call waits for the compilation of a loop.
            if (
                SETTINGS.in_background
                or any(map(_is_while_over_numbers, loops))
                or any(node.kind in _TASKS for node in nodes)
            ):
                return False
            graph = self._record.graph
            return WorkEstimate.of_call(graph, arguments, assumed_trips=1).nodes(graph.nodes) < LONG

    def _compiled_loop(self, graph: Graph, name: str) -> Callable[..., Any]:
        """Return a function that runs ``graph``, a loop of the first call, optimized for its arguments."""
        record = GraphFunction.of(graph, name)
        strategy = type(self)(record)
        strategy._was_called = strategy._was_interpreted = True

        def run(*arguments: Any) -> Any:
            version = strategy.select(arguments)
            try:
                return version.function(*arguments)
            except BaseException as caught:
                traceback, failed = origin_of(caught)
                error = caught.with_traceback(traceback)
            if failed is not None:
                error = first_error(record, version.graph, failed, error, arguments)
            try:
                raise error
            finally:
                del error, traceback  # the traceback holds this frame, which must not hold it in turn

        return run

    def _finish(self, arguments: Sequence[object]) -> None:
        try:
            self.prepare(arguments)
        except Exception:
            _LOG.exception("%s: could not be optimized, and runs as it was compiled", self._record.name)
        else:
            self._pending = None


def _is_while_over_numbers(loop: LoopView) -> bool:
    """Return whether a loop is a ``while`` loop without Tensors."""
    if most_iterations(loop) is not None:
        return False
    nodes = [node for block in loop.node.blocks for node in block.all_nodes()]
    return not any(isinstance(output.type, TensorType) for node in nodes for output in node.outputs)


def _short_name(record: GraphFunction) -> str:
    """Return the name of a function with its class or module, if it has one: ``Linear.forward``."""
    parts = [part for part in record.name.split(".") if not part.startswith(("__torch__", "___torch_mangle_"))]
    return ".".join(parts[-2:])
