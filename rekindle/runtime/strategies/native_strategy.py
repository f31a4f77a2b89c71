"""The strategy ``native``: versions as in ``simple``, with operators gathered into groups that run as machine code.

Calls that may record gradients run other versions than those that do not: there, what has derivatives is gathered into
graphs with a backward graph of their own, and forward and backward are made native each for itself. Every group looks
at what it is called with and is right for any arguments, so that the choice among versions is one of speed alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import NoneType
from typing import Final

import torch

from rekindle.autodiff.formula import compiled_formulas
from rekindle.codegen import (
    frozen_operators as frozen_operators,  # registers what runs packed weights and attention
    fusion_executor as fusion_executor,  # registers what runs fused groups
)
from rekindle.codegen.differentiation_profit import DifferentiationProfit
from rekindle.codegen.fusible import is_computed
from rekindle.codegen.product_estimates import ProductEstimates, has_gpu_tensors, has_one_row
from rekindle.errors import UNKNOWN_RANGE
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import COMPILING, GraphFunction
from rekindle.ir.subgraph_execution import defers_first_calls
from rekindle.ir.types import ClassType, DictType, ListType, TensorType, TupleType
from rekindle.passes import BatchProjections, PartialEvaluation, Pass
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import DERIVATIVE_PRESERVING, FUSION, RECORDED_FUSION, differentiation
from rekindle.runtime.settings import SETTINGS
from rekindle.runtime.strategies import (
    formula_cache as formula_cache,  # keeps compiled formulas
    gradient_cache as gradient_cache,  # keeps gradients
)
from rekindle.runtime.strategies.argument_spec import ArgumentSpec
from rekindle.runtime.strategies.graph_cache import GraphCache
from rekindle.runtime.strategies.simple_strategy import (
    GraphVersions,
    SpecializingStrategy,
    VersionBudget,
    VersionTable,
    pipeline_for,
)
from rekindle.runtime.version import Version


class NativeVersions(GraphVersions):
    """The versions of a function for calls that satisfy the same assumptions. Calls that may record gradients have
    tables of their own; all tables share the graphs from before gradients are considered."""

    def __init__(
        self,
        record: GraphFunction,
        budget: VersionBudget,
        evaluation: PartialEvaluation,
        general: Callable[[], Version] | None = None,
        stored: GraphCache | None = None,
    ) -> None:
        super().__init__(record, budget, evaluation, general, stored)
        self._takes_containers = any(isinstance(each, _CONTAINERS) for each in record.input_types)
        """Whether :func:`_may_record` is true of all arguments: methods of modules take the module."""
        self._recording = VersionTable()
        """The versions for calls that may record gradients."""
        self._recording_rows: VersionTable | None = None
        """Those for calls with tensors of one row, once it matters: BLAS multiplies large matrices with one row."""
        self._recording_on_gpu = VersionTable()
        """Those for calls with tensors on a GPU."""
        self._graphs: dict[ArgumentSpec, Graph] = {}
        self._profit = DifferentiationProfit()
        """Decides what is differentiated in the version that is being compiled, by the arguments of the call."""
        self._measures = not defers_first_calls()
        """Whether kernels are measured beside BLAS: that takes longer than many calls."""
        self._provisional: Version | None = None
        """The version of the first call, if something was not measured for it."""

    def prepare(self, arguments: Sequence[object]) -> Version:
        """Return the version for a call with these arguments, compiled if it does not exist."""
        self._profit = profit = _profit(arguments, self._measures)
        self._provisional = None
        try:
            found = super().prepare(arguments)
        finally:
            profit.products.forget()
            self._profit = DifferentiationProfit()
        if profit.products.is_provisional:  # the next call measures, and decides again
            self._measures = True
            self._provisional = found
            self._table_for(arguments).forget(found)
        if profit.products.depends_on_rows and self._recording_rows is None:
            self._recording_rows = VersionTable()
            if has_one_row(arguments):
                self._recording, self._recording_rows = self._recording_rows, self._recording
        return found

    @property
    def versions(self) -> Sequence[Version]:
        """The versions that were compiled so far, each once."""
        rows = [self._recording_rows] if self._recording_rows else []
        tables = [self._recording, *rows, self._recording_on_gpu, self._table]
        provisional = [] if self._provisional is None else [self._provisional]
        return list(dict.fromkeys([*(version for table in tables for version in table.versions), *provisional]))

    def _table_for(self, arguments: Sequence[object]) -> VersionTable:
        may_record = torch.is_grad_enabled() if self._takes_containers else _may_record(arguments)
        if not may_record:
            return self._table
        if has_gpu_tensors(arguments):
            return self._recording_on_gpu
        if self._recording_rows is not None and has_one_row(arguments):
            return self._recording_rows
        return self._recording

    def _make(self, arguments: Sequence[object] | None, table: VersionTable) -> Version:
        started = time.perf_counter()
        is_last = arguments is None and self._budget.is_spent
        if table is self._table and is_last:
            return self._general_of(self._recording)
        may_record = table is not self._table

        def kind() -> str:
            if not may_record:
                return "fused"
            return f"{'last differentiated' if is_last else 'differentiated'}, {self._profit.signature}"

        products = self._profit.products if may_record else None
        graph = self._optimized(arguments, kind, lambda: self._fused(arguments, may_record, is_last), products)
        if may_record:
            compiled_formulas.get().write()
        if graph is None:
            return self._general_of(self._table) if arguments is None else self._prepared(arguments, self._table)
        if products is None or not products.is_provisional:
            self._count(arguments)
        version = self._version_of(graph, started)
        if not may_record:
            version.for_completed = self._for_completed
        return version

    def _for_completed(self, arguments: Sequence[object]) -> Version | None:
        """Return a version that computes the matrix products of all iterations of a loop before the loop, where an
        error may be raised earlier than in the program; None if there are no such products."""
        graph = self._shared_graph(arguments).copy()
        for value, argument in zip(graph.inputs, arguments, strict=True):
            if isinstance(value.type, TensorType) and isinstance(argument, torch.Tensor):
                value.set_type(replace(value.type, sizes=(None,) * argument.dim()))
        if not optimize(graph, (BatchProjections(),)):
            return None
        optimize(graph, FUSION)
        return Version.of(graph, self._record.name)

    def _fused(self, arguments: Sequence[object] | None, may_record: bool, is_last: bool) -> Graph | None:
        """Return the graph of a version; None if nothing in it is differentiated or computed by a kernel of its own, so
        that the version for calls without gradients serves. With ``is_last``, it is never None."""
        graph = self._shared_graph(arguments).copy()
        if not may_record:
            optimize(graph, FUSION)
            return graph
        if (
            not optimize(graph, differentiation(self._profit))
            and not is_last
            and not any(map(is_computed, graph.all_nodes()))
        ):
            return None
        optimize(graph, RECORDED_FUSION)
        return graph

    def _shared_graph(self, arguments: Sequence[object] | None) -> Graph:
        """Return the graph for calls of the same spec as ``arguments``; if these are None, the graph for any
        arguments."""
        key = self._creator.key
        if arguments is None or key is None:
            return self._graph_for(arguments)
        spec = key(*arguments)
        found = self._graphs.get(spec)
        if found is None:
            found = self._graphs[spec] = self._graph_for(arguments)
        return found


class NativeStrategy(SpecializingStrategy):
    """The default execution strategy: versions of a function by properties of its arguments, with kernels and
    derivatives."""

    versions_of = NativeVersions


_CONTAINERS: Final = (ClassType, ListType, DictType, TupleType)
"""The types of arguments of which nothing is known but that they hold others."""

_WITHOUT_GRADIENT: Final = frozenset({int, float, bool, str, complex, NoneType, torch.dtype, torch.device})

_PLAIN_TENSORS: Final = (torch.Tensor, torch.nn.Parameter)


def _may_record(arguments: Sequence[object]) -> bool:
    """Return whether a gradient may have to be recorded. This is only a heuristic for speed: each version is correct
    for any call."""
    if not torch.is_grad_enabled():
        return False
    for each in arguments:
        if isinstance(each, torch.Tensor):
            if each.requires_grad:
                return True
        elif type(each) not in _WITHOUT_GRADIENT:
            return True  # lists and modules hold what they hold
    return False


def _elements(arguments: Sequence[object]) -> int:
    """Return the number of elements of the largest tensor among the arguments."""
    tensors = [each for each in arguments if isinstance(each, torch.Tensor) and type(each) in _PLAIN_TENSORS]
    counts: list[object] = [each.numel() for each in tensors]
    return max([count for count in counts if isinstance(count, int)], default=0)  # tensors while torch.jit traces


def _profit(arguments: Sequence[object], measures: bool = True) -> DifferentiationProfit:
    captured = SETTINGS.cuda_graphs and has_gpu_tensors(arguments)
    return DifferentiationProfit(_elements(arguments), ProductEstimates(arguments, captured, measures))


def native_pipeline(record: GraphFunction, arguments: Sequence[object]) -> tuple[Pass, ...]:
    """Return all passes that produce the version of ``record`` for these arguments."""
    last = (*differentiation(_profit(arguments)), *RECORDED_FUSION) if _may_record(arguments) else FUSION
    return (*pipeline_for(record, arguments), *last)


def native_version(graph: Graph, name: str, *, from_list: bool = False) -> Version:
    """Return the fastest executable form of ``graph``, a part of another graph that is already optimized. ``from_list``
    is as in :meth:`~rekindle.runtime.version.Version.of`.

    Raises:
        SchemaError: nothing is registered that runs one of the nodes.
    """

    passes = (*DERIVATIVE_PRESERVING, *FUSION)

    def build() -> Graph:
        own = graph.copy()
        optimize(own, passes)
        return own

    with COMPILING, room_to_recurse(UNKNOWN_RANGE):
        stored = GraphCache.of(graph, passes)
        found = build() if stored is None else stored.derived().find(("part",), build)
        assert found is not None
        return Version.of(found, name, from_list=from_list)
