"""The strategy ``native``: versions as in ``simple``, with operators gathered into groups that run as machine code.

Calls that may record gradients run other versions than those that do not: there, what has derivatives is gathered into
graphs with a backward graph of their own, and forward and backward are made native each for itself. Every group looks
at what it is called with and is right for any arguments, so that the choice among versions is one of speed alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import NoneType
from typing import Final

import torch

from rekindle.codegen import fusion_executor as fusion_executor  # registers what runs fused groups
from rekindle.errors import UNKNOWN_RANGE
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import COMPILING, GraphFunction
from rekindle.passes import Pass
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import DERIVATIVE_PRESERVING, DIFFERENTIATION, FUSION
from rekindle.runtime.settings import SETTINGS
from rekindle.runtime.strategies.argument_spec import ArgumentSpec, ArgumentSpecCreator
from rekindle.runtime.strategies.simple_strategy import SpecializingStrategy, pipeline_for
from rekindle.runtime.version import Version


class NativeStrategy:
    """See :class:`rekindle.runtime.version.Strategy`. Calls that may record gradients have versions of their own, and
    so have those that do not."""

    def __init__(self, record: GraphFunction) -> None:
        graphs = _Graphs(record)
        self._plain = _NativeVersions(record, graphs)
        self._recording = self._plain.recording = _RecordingVersions(record, graphs, self._plain)

    def select(self, arguments: Sequence[object]) -> Version:
        """What runs a call with these arguments."""
        return (self._recording if _may_record(arguments) else self._plain).select(arguments)

    def prepare(self, arguments: Sequence[object]) -> Version:
        """The same, made before it returns."""
        return (self._recording if _may_record(arguments) else self._plain).prepare(arguments)

    @property
    def versions(self) -> Sequence[Version]:
        """What there is so far."""
        return list(dict.fromkeys([*self._recording.versions, *self._plain.versions]))


_WITHOUT_GRADIENT: Final = frozenset({int, float, bool, str, complex, NoneType, torch.dtype, torch.device})


def _may_record(arguments: Sequence[object]) -> bool:
    """Whether there may be a gradient to record. It chooses what is faster: each version is right for any call."""
    if not torch.is_grad_enabled():
        return False
    for each in arguments:
        if isinstance(each, torch.Tensor):
            if each.requires_grad:
                return True
        elif type(each) not in _WITHOUT_GRADIENT:
            return True  # lists and modules hold what they hold
    return False


class _Graphs(SpecializingStrategy):
    """The graphs of a function before anything is gathered in them: the versions of a strategy share these."""

    def __init__(self, record: GraphFunction) -> None:
        super().__init__(record)
        self._graphs: dict[ArgumentSpec, Graph] = {}
        self.made = 0
        """How many versions there are that know something of their arguments."""

    def creator(self) -> ArgumentSpecCreator:
        """What tells calls apart."""
        return self._creator_of_specs()

    def graph_for(self, arguments: Sequence[object] | None) -> Graph:
        """The graph for calls like that with these arguments; for any, if there are none."""
        key = self.creator().key
        if arguments is None or key is None:
            return self._graph_for(arguments)
        spec = key(*arguments)
        found = self._graphs.get(spec)
        if found is None:
            found = self._graphs[spec] = self._graph_for(arguments)
        return found


class _NativeVersions(SpecializingStrategy):
    """Versions for calls that record no gradients."""

    recording: _RecordingVersions
    """Those for calls that do, which have one for any call if there are as many as there may be."""

    def __init__(self, record: GraphFunction, graphs: _Graphs) -> None:
        super().__init__(record)
        self._graphs = graphs

    def _creator_of_specs(self) -> ArgumentSpecCreator:
        if self._creator is None:
            self._creator = self._graphs.creator()
        return self._creator

    def _is_full(self) -> bool:
        return self._graphs.made >= SETTINGS.most_versions

    def _made(self, arguments: Sequence[object] | None) -> Version:
        return self.recording.general() if arguments is None and self._is_full() else self._new(arguments)

    def _new(self, arguments: Sequence[object] | None, graph: Graph | None = None) -> Version:
        started = time.perf_counter()
        if graph is None:
            graph = self._graphs.graph_for(arguments).copy()
        optimize(graph, FUSION)
        self._graphs.made += arguments is not None
        version = self._version_of(graph)
        version.seconds = time.perf_counter() - started
        return version


class _RecordingVersions(_NativeVersions):
    """Versions for calls that may record gradients: those of ``plain``, where there is nothing to differentiate."""

    def __init__(self, record: GraphFunction, graphs: _Graphs, plain: _NativeVersions) -> None:
        super().__init__(record, graphs)
        self._plain = plain

    def _made(self, arguments: Sequence[object] | None) -> Version:
        graph = self._graphs.graph_for(arguments).copy()
        if optimize(graph, DIFFERENTIATION) or (arguments is None and self._is_full()):
            return self._new(arguments, graph)
        return self._plain.general() if arguments is None else self._plain.prepare(arguments)


def native_pipeline(arguments: Sequence[object]) -> tuple[Pass, ...]:
    """All passes that make the version for these arguments."""
    derivatives = DIFFERENTIATION if _may_record(arguments) else ()
    return (*pipeline_for(arguments), *derivatives, *FUSION)


def native_version(graph: Graph, name: str) -> Version:
    """The fastest way to run ``graph`` as a part of another, which has been optimised as a whole.

    Raises:
        SchemaError: nothing is registered that runs one of the nodes.
    """
    with COMPILING, room_to_recurse(UNKNOWN_RANGE):
        own = graph.copy()
        optimize(own, (*DERIVATIVE_PRESERVING, *FUSION))
        return Version.of(own, name)
