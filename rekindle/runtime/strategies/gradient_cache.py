"""Gradients on disk, so that a new process need not differentiate the graphs that another one has.

A file holds the forward graph of a gradient and its backward graphs, each under the outputs whose gradients it takes.
Its key covers all that differentiation reads: the graph with all that it refers to
(:mod:`rekindle.ir.bitcode.digest`), the inputs that require gradients, and the files of this package, with the formulas
of gradients.
"""

from __future__ import annotations

import logging
import marshal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rekindle.autodiff.gradient import BackwardGraph, Gradient, LazyAnalysis, StoredGradient, stored_gradients
from rekindle.codegen.llvm.engine import disk_cache
from rekindle.ir.bitcode.digest import describe
from rekindle.ir.bitcode.references import NotEncodable, marshalled
from rekindle.ir.graph import Graph
from rekindle.runtime.strategies import graph_cache
from rekindle.runtime.strategies.graph_cache import GraphCache, process_description
from rekindle.runtime.strategies.stored_programs import ProgramFile

_LOG: Final = logging.getLogger(__name__)
_FORWARD: Final = b"forward"


def find_stored(graph: Graph, requires_grad: tuple[bool, ...]) -> StoredGradient | None:
    """Return the place on disk of the gradient of ``graph`` with respect to the inputs marked in ``requires_grad``,
    whether or not it is there yet; None if gradients of this graph are not stored on disk."""
    disk = disk_cache()
    if disk is None or graph_cache.are_passes_watched():
        return None
    try:
        program = describe(graph)
    except NotEncodable as reason:
        _LOG.debug("a gradient is not kept on disk: the graph depends on %s", reason)
        return None
    file = ProgramFile(disk, marshalled(("gradient", program.digest, requires_grad, process_description())))
    return _GradientFile(graph, requires_grad, GraphCache(file, program, (), file))


@dataclass(slots=True)
class _GradientFile:
    """The gradient of ``graph`` in a file of its own. See :class:`rekindle.autodiff.gradient.StoredGradient`."""

    graph: Graph
    requires_grad: tuple[bool, ...]
    cache: GraphCache = field(repr=False)

    def gradient(self, build: Callable[[], Gradient]) -> Gradient:
        """Return the gradient, from disk or from ``build``. The first backward graph is written with it: a gradient
        that no process uses is not stored."""
        payload = self.cache.disk.load(_FORWARD)
        if payload is not None:
            encoded, results, captures, roots, is_straight_line = marshal.loads(payload)
            forward = self.cache.decoded(encoded)
            if forward is not None:
                analysis = LazyAnalysis(self.graph, self.requires_grad, captures, roots)
                return Gradient(
                    forward, self.requires_grad, results, captures, roots, is_straight_line, analysis, stored=self
                )
        found = build()
        encoded = self.cache.encoded(found.forward)
        if encoded is not None:
            parts = encoded, found.results, found.captures, found.roots, found.is_straight_line
            self.cache.disk.store(_FORWARD, marshalled(parts))
            found.stored = self
        return found

    def backward(self, defined: tuple[bool, ...], build: Callable[[], BackwardGraph]) -> BackwardGraph:
        """Return the backward graph for the case that the gradients of the roots marked in ``defined`` exist, from disk
        or from ``build``. The file is written if anything is new, and no longer held in memory."""
        key = marshalled(defined)
        payload = self.cache.disk.load(key)
        found = None
        if payload is not None:
            encoded, captures = marshal.loads(payload)
            graph = self.cache.decoded(encoded)
            found = None if graph is None else BackwardGraph(graph, captures)
        if found is None:
            found = build()
            encoded = self.cache.encoded(found.graph)
            if encoded is not None:
                self.cache.disk.store(key, marshalled((encoded, found.captures)))
        self.cache.write()
        return found


stored_gradients.provide(find_stored)
