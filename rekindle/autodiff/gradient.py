"""The derivative of a graph: a forward graph that saves the residuals of a backward graph."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from rekindle.autodiff.residuals.loop_checkpointing import CheckpointSegment
from rekindle.autodiff.residuals.selection import (
    CLEANUP,
    ForwardHoister,
    SavePolicy,
    drop_unread,
    fixed_policy,
    min_cut_policy,
    minimize_residuals,
)
from rekindle.autodiff.residuals.stashing import stash_residuals
from rekindle.autodiff.reverse_mode.collected_lists import select_elements
from rekindle.autodiff.reverse_mode.gradient_regions import constant
from rekindle.autodiff.reverse_mode.reverse import LinkedBackward, build_backward
from rekindle.autodiff.reverse_mode.tape import TapeEntry, active_values, build_tape
from rekindle.errors import InternalError
from rekindle.errors.layer_hooks import LayerHook
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import NONE, OptionalType
from rekindle.passes import ConstantPooling, DeadCodeElimination, run_passes

_MAX_CLEANUPS: Final = 8
"""Maximum number of cleanup rounds of a backward graph: one for each gradient that depends on another in an
iteration."""


@dataclass(slots=True, frozen=True)
class BackwardGraph:
    """A backward graph. ``graph`` takes the gradients of the roots that have one, in the order of the roots, then the
    residuals with the indices ``captures``. It returns the gradients of the inputs that require one; None for an input
    without a gradient."""

    graph: Graph
    captures: tuple[int, ...]


@dataclass(slots=True, eq=False)
class Gradient:
    """The derivative of a graph with respect to the inputs marked in ``requires_grad``.

    ``forward`` returns the ``results`` outputs of the graph, followed by the other residuals. ``captures`` has for each
    residual the input (``~index``, a negative number) or the output of ``forward`` that it is. ``roots`` are the
    outputs that may have a gradient: results, and after them captures, for gradients of gradients. ``is_straight_line``
    is False if there are loops or branches; captures are not roots then, since they may be lists. ``stored`` has the
    backward graphs that earlier processes built, if any.

    Example:
        >>> from rekindle.autodiff import differentiate
        >>> gradient = differentiate(rekindle.script(lambda x: x.exp()).graph, [True])
        >>> gradient.results, gradient.is_straight_line
        (1, True)
    """

    forward: Graph
    requires_grad: tuple[bool, ...]
    results: int
    captures: tuple[int, ...]
    roots: tuple[int, ...]
    is_straight_line: bool
    _analysis: Analysis = field(repr=False)
    stored: StoredGradient | None = field(default=None, repr=False)
    _backward: dict[tuple[bool, ...], BackwardGraph] = field(default_factory=dict, repr=False)

    @property
    def backward(self) -> Graph:
        """The backward graph for the case that every result that may have a gradient has one, and no residual has."""
        return self.backward_for([root < self.results for root in self.roots]).graph

    def backward_for(self, defined: Sequence[bool]) -> BackwardGraph:
        """Return the backward graph for the case that the gradients of the ``roots`` marked in ``defined`` exist. It is
        built at the first call with these, and cached."""
        key = tuple(defined)
        found = self._backward.get(key)
        if found is None:
            with self._analysis.lock:
                stored = self.stored
                found = self._build(key) if stored is None else stored.backward(key, lambda: self._build(key))
                self._backward[key] = found
        return found

    def _build(self, defined: tuple[bool, ...]) -> BackwardGraph:
        return self._analysis.backward([root for root, there in zip(self.roots, defined, strict=True) if there])


class Analysis(Protocol):
    """The analysis of a forward graph that backward graphs are built from. ``backward`` returns the backward graph for
    the outputs ``roots``; the caller holds ``lock``."""

    lock: threading.Lock

    def backward(self, roots: Sequence[int]) -> BackwardGraph: ...


class StoredGradient(Protocol):
    """Interface of a gradient on disk. Each method returns what an earlier process stored, or else the result of
    ``build``, which is then stored."""

    def gradient(self, build: Callable[[], Gradient]) -> Gradient:
        """Return the gradient; its backward graphs are read or built when they are needed."""

    def backward(self, defined: tuple[bool, ...], build: Callable[[], BackwardGraph]) -> BackwardGraph:
        """Return the backward graph for the case that the gradients of the roots marked in ``defined`` exist."""


def _not_stored(graph: Graph, requires_grad: tuple[bool, ...]) -> None:
    return None


stored_gradients: Final = LayerHook[Callable[[Graph, "tuple[bool, ...]"], "StoredGradient | None"]](
    "rekindle.runtime.strategies.gradient_cache", _not_stored
)
"""Hook: the gradient of a graph on disk; None if gradients are not stored, or that of this graph is not."""


def stored_gradient(graph: Graph, requires_grad: tuple[bool, ...]) -> Gradient:
    """Return the result of :func:`differentiate`, from disk if an earlier process stored it.

    Raises:
        DifferentiationError: no gradient can be computed through a node.
    """
    stored = stored_gradients.get()(graph, requires_grad)
    if stored is None:
        return differentiate(graph, requires_grad)
    return stored.gradient(lambda: differentiate(graph, requires_grad))


@dataclass(slots=True, eq=False)
class LazyAnalysis:
    """The analysis of ``gradient``, which was read from disk: ``graph`` is differentiated again when a backward graph
    is needed that is not on disk."""

    graph: Graph
    requires_grad: tuple[bool, ...]
    captures: tuple[int, ...]
    roots: tuple[int, ...]
    lock: threading.Lock = field(default_factory=threading.Lock)
    _analysis: Analysis | None = None

    def backward(self, roots: Sequence[int]) -> BackwardGraph:
        """Return the backward graph for the outputs ``roots`` of the forward graph.

        Raises:
            InternalError: the graph has another gradient than the one that was read from disk.
        """
        if self._analysis is None:
            again = differentiate(self.graph, self.requires_grad)
            if (again.captures, again.roots) != (self.captures, self.roots):
                raise InternalError("the gradient of a graph differs from the one on disk")
            self._analysis = again._analysis
        return self._analysis.backward(roots)


@dataclass(slots=True, eq=False)
class _StraightLine:
    """A forward graph without branches and loops: a backward graph is built for each set of roots."""

    graph: Graph
    steps: list[TapeEntry]
    wanted: list[Value]
    needed: set[Value]
    hoister: ForwardHoister
    captures: dict[Value, int] = field(default_factory=dict)
    of_roots: tuple[list[Value], LinkedBackward] | None = None
    """The values whose gradients a backward graph takes, and that graph, from the selection of the residuals; None once
    it has been used."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def backward(self, roots: Sequence[int]) -> BackwardGraph:
        values = [self.graph.outputs[root] for root in roots]
        if self.of_roots is not None and self.of_roots[0] == values:
            found = self.of_roots[1]
            self.of_roots = None
            return BackwardGraph(found.graph, tuple(self.captures[value] for value in found.read))
        found = build_backward(self.graph, self.steps, self.needed, values, self.wanted)
        minimize_residuals(found, self.hoister, fixed_policy(self.captures))
        missing = [value for value in found.read if value not in self.captures]
        if missing:
            raise InternalError(f"the backward reads {missing}, which the forward does not save")
        return BackwardGraph(found.graph, tuple(self.captures[value] for value in found.read))


@dataclass(slots=True, eq=False)
class _WithControlFlow:
    """A backward graph for all roots, each of which may be None."""

    graph: Graph
    roots: tuple[int, ...]
    lock: threading.Lock = field(default_factory=threading.Lock)

    def backward(self, roots: Sequence[int]) -> BackwardGraph:
        graph = self.graph.copy()
        for place, root in reversed(list(enumerate(self.roots))):
            value = graph.inputs[place]
            if root not in roots:
                value.replace_all_uses_with(constant(graph, None, NONE))
                graph.block.erase_input(place)
            else:
                assert isinstance(value.type, OptionalType)
                value.type = value.type.element
        for _ in range(_MAX_CLEANUPS):  # a branch that is known to be taken leaves more to be known
            if not run_passes(graph, CLEANUP):
                break
        select_elements(graph)
        return BackwardGraph(graph, tuple(range(len(graph.inputs) - len(roots))))


def differentiate(graph: Graph, requires_grad: Sequence[bool]) -> Gradient:
    """Differentiate ``graph`` with respect to the inputs marked in ``requires_grad``. ``graph`` is not modified.

    Args:
        graph: a graph without writes to values that gradients flow through.
        requires_grad: a bool for each input.

    Returns:
        The forward graph, which also returns those residuals that are neither inputs nor results; and the backward
        graphs, which are built when they are needed.

    Raises:
        DifferentiationError: no gradient can be computed through a node.

    Example:
        >>> from rekindle.autodiff import differentiate
        >>> gradient = differentiate(rekindle.script(lambda x: x.exp()).graph, [True])
        >>> gradient.forward.find_node("aten::exp") is not None
        True
    """
    forward = graph.copy()
    steps = build_tape(forward.block)
    wanted = [value for value, wants in zip(forward.inputs, requires_grad, strict=True) if wants]
    needed = active_values(steps, wanted)
    results = len(forward.outputs)
    roots = [index for index, value in enumerate(forward.outputs) if value in needed]
    analysis: Analysis
    if any(step.blocks for step in steps):
        read, made = reverse_mode(forward, steps, needed, roots, wanted, may_be_missing=True, policy=min_cut_policy)
        analysis = _WithControlFlow(made, tuple(roots))
    else:
        analysis = _StraightLine(forward, steps, wanted, needed, ForwardHoister(forward))
        read = _required_residuals(analysis, roots)
        analysis.captures = {value: index for index, value in enumerate(read)}
    sources = [_source(forward, value) for value in read]
    saved = range(results, len(forward.outputs)) if isinstance(analysis, _StraightLine) else ()
    also = [index for index in saved if forward.outputs[index] in needed]
    final = forward.copy()
    run_passes(final, (ConstantPooling(), DeadCodeElimination()))
    captures, is_straight_line = tuple(sources), isinstance(analysis, _StraightLine)
    return Gradient(final, tuple(requires_grad), results, captures, (*roots, *also), is_straight_line, analysis)


def reverse_mode(
    forward: Graph,
    steps: Sequence[TapeEntry],
    needed: set[Value],
    roots: Sequence[int],
    wanted: Sequence[Value],
    *,
    may_be_missing: bool = False,
    segments: Mapping[Node, CheckpointSegment] | None = None,
    policy: SavePolicy | None = None,
    one_dtype: bool = True,
) -> tuple[list[Value], Graph]:
    """Differentiate ``forward``, which may have branches and loops, in reverse mode. It is changed so that all
    residuals are values of its top-level block. Return the residuals, and a graph that takes the gradients of the
    outputs ``roots``, then the residuals.

    ``segments`` are the loops of which not all iterations need be saved: the result of
    :func:`~rekindle.autodiff.residuals.loop_checkpointing.checkpoint_loops`; ``policy`` is as in
    :func:`~rekindle.autodiff.residuals.selection.minimize_residuals`, ``one_dtype`` as in
    :func:`~rekindle.autodiff.reverse_mode.reverse.build_backward`.
    """
    outputs = [forward.outputs[root] for root in roots]
    found = build_backward(forward, steps, needed, outputs, wanted, may_be_missing=may_be_missing, one_dtype=one_dtype)
    minimize_residuals(found, ForwardHoister(forward), policy)
    stash_residuals(found, segments)
    run_passes(found.graph, CLEANUP)
    drop_unread(found)
    return found.read, found.graph


def _required_residuals(analysis: _StraightLine, roots: Sequence[int]) -> list[Value]:
    """Return the forward values that the backward graph reads. Residuals may have gradients themselves; what their
    backward reads is included. The backward graph is stored in ``analysis.of_roots``."""
    values = [analysis.graph.outputs[root] for root in roots]
    while True:
        found = build_backward(analysis.graph, analysis.steps, analysis.needed, values, analysis.wanted)
        minimize_residuals(found, analysis.hoister, min_cut_policy)
        beyond = [value for value in found.read if value in analysis.needed and value not in found.reached]
        if not beyond:
            analysis.of_roots = values, found
            return found.read
        values += beyond


def _source(forward: Graph, value: Value) -> int:
    """Return the index of the output of ``forward`` that is ``value``; an output is added if there is none. For an
    input of ``forward``, return the complement of its index."""
    if value in forward.inputs:
        return ~list(forward.inputs).index(value)
    if value in forward.outputs:
        return list(forward.outputs).index(value)
    return forward.add_output(value)
