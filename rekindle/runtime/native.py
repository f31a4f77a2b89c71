"""The strategy ``native``: versions as in ``simple``, with operators gathered into groups that run as machine code.

Calls that record gradients run other versions than those that do not: there, what has derivatives is gathered into
graphs with a backward graph of their own, and forward and backward are made native each for itself. Every group looks
at what it is called with and is right for any arguments, so that the choice among versions is one of speed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch

from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.codegen import groups as groups  # registers what runs fused groups
from rekindle.codegen.fusion import FuseGraph
from rekindle.codegen.native import FormNativeRegions
from rekindle.errors import UNKNOWN_RANGE
from rekindle.frontend.depth import room_to_recurse
from rekindle.ir.graph import Graph
from rekindle.ir.records import COMPILING, FunctionRecord
from rekindle.passes import DeadCodeElimination, Pass
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import DERIVATIVE_PRESERVING
from rekindle.runtime.specializing import SpecializingStrategy
from rekindle.runtime.version import Version

DERIVATIVES: Final[tuple[Pass, ...]] = (CreateDifferentiableGraphs(),)
"""What runs behind all others where gradients are recorded."""

FUSION: Final[tuple[Pass, ...]] = (FuseGraph(), FormNativeRegions(), DeadCodeElimination())
"""What runs last of all."""


class NativeStrategy:
    """See :class:`rekindle.runtime.version.Strategy`. There is a strategy for calls that record gradients, and one for
    those that do not."""

    def __init__(self, record: FunctionRecord) -> None:
        self._recording = _NativeVersions(record, (*DERIVATIVES, *FUSION))
        self._plain = _NativeVersions(record, FUSION)

    def select(self, arguments: Sequence[object]) -> Version:
        """What runs a call with these arguments."""
        return (self._recording if torch.is_grad_enabled() else self._plain).select(arguments)

    def prepare(self, arguments: Sequence[object]) -> Version:
        """The same, made before it returns."""
        return (self._recording if torch.is_grad_enabled() else self._plain).prepare(arguments)

    @property
    def versions(self) -> Sequence[Version]:
        """What there is so far."""
        return [*self._recording.versions, *self._plain.versions]


class _NativeVersions(SpecializingStrategy):
    def __init__(self, record: FunctionRecord, last: tuple[Pass, ...]) -> None:
        super().__init__(record)
        self._last = last

    def _version_of(self, graph: Graph) -> Version:
        own = graph.copy()  # the general graph goes on to be specialised
        optimize(own, self._last)
        return super()._version_of(own)


def native_version(graph: Graph, name: str) -> Version:
    """The fastest way to run ``graph`` as a part of another, which has been optimised as a whole.

    Raises:
        SchemaError: nothing is registered that runs one of the nodes.
    """
    with COMPILING, room_to_recurse(UNKNOWN_RANGE):
        own = graph.copy()
        optimize(own, (*DERIVATIVE_PRESERVING, *FUSION))
        return Version.of(own, name)
