"""The values that code outside of a graph may differentiate with respect to.

.. code-block:: text

    %h : Tensor = aten::tanh(%x)
    %y : Tensor = aten::exp(%h)
    %r : (Tensor, Tensor) = prim::TupleConstruct(%h, %y)
    return (%r)

A caller may ask for the gradient of ``%y`` with respect to ``%h``, or register a hook on ``%h``. PyTorch's autograd has
to know that ``%y`` is computed from ``%h``: not both can be results of one node of autograd.

.. code-block:: text

    %a : Tensor = aten::exp(%x)
    %b : Tensor = aten::sin(%x)
    %r : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
    return (%r)

A caller may go back from ``%a`` and later from ``%b``, two losses of one step: each node of autograd runs once, then
it releases what it saved. :func:`observed_dependents` returns which observed values are computed from a value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from functools import reduce
from operator import or_
from typing import Final

from rekindle.analysis.aliasing.alias_db import MemoryLocations
from rekindle.analysis.effects import CASTS, CONSTRUCTS, UNPACKS, has_side_effects, may_write
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import TensorType

_OF_AUTOGRAD: Final = frozenset({"aten::grad", "aten::backward"})


def observed_values(graph: Graph) -> set[Value]:
    """Return the values of ``graph`` that are returned, stored, passed to unknown code or to operators of autograd, by
    themselves or in a container."""
    pending = [*graph.outputs]
    for node in graph.all_nodes():
        if node.kind in _OF_AUTOGRAD or has_side_effects(node) or _stores(node):
            pending += node.inputs
    found: set[Value] = set()
    while pending:
        value = pending.pop()
        if value in found or not may_contain_tensor(value.type):
            continue
        found.add(value)
        pending += _sources(value)
    return found


def _stores(node: Node) -> bool:
    """Return whether ``node`` may store a value in a container or an object."""
    schema = node.schema
    if schema is None:
        return False
    return any(each.alias is not None and each.alias.is_write and each.type.contained for each in schema.arguments)


def _sources(value: Value) -> list[Value]:
    """Return the values that ``value`` may be, unchanged, or may hold."""
    node = value.node
    if node.kind in CONSTRUCTS:
        return list(node.inputs)
    if node.kind in CASTS or node.kind in UNPACKS or node.kind == "aten::__getitem__":
        return [node.inputs[0]]
    if node.kind == "prim::If":
        return [block.outputs[value.offset] for block in node.blocks]
    if node.kind == "prim::Loop":
        carried = LoopView(node).carried[value.offset]
        return [carried.initial, carried.following]
    return []


def observed_dependents(
    graph: Graph, requires_grad: Set[Value], memory: Callable[[Value], MemoryLocations]
) -> Mapping[Value, int]:
    """Return, for the values of ``graph`` that may require a gradient (``requires_grad``), the observed tensors whose
    gradient may go back through them: a set of bits, one for each of these tensors. Nothing is returned if there are
    less than two. ``memory`` returns the memory that a value may share with others."""
    tensors = [value for value in observed_values(graph) & requires_grad if isinstance(value.type, TensorType)]
    found: defaultdict[Value, int] = defaultdict(int)
    if len(tensors) > 1:
        found.update((value, 1 << position) for position, value in enumerate(tensors))
        _DependentsOf(found, (1 << len(tensors)) - 1, requires_grad, memory).block(graph.block)
    return found


class _DependentsOf:
    """Goes through blocks from the last node to the first, and adds to the bits of values those of their results."""

    def __init__(
        self,
        found: dict[Value, int],
        everything: int,
        requires_grad: Set[Value],
        memory: Callable[[Value], MemoryLocations],
    ) -> None:
        self.found = found
        self.everything = everything
        self.requires_grad = requires_grad
        self.memory = memory

    def block(self, block: Block) -> None:
        for node in reversed(list(block.nodes)):
            if node.kind == "prim::Loop":
                self._loop(LoopView(node))
            elif node.blocks:
                self._branches(node)
            else:
                self._add(self._of_results(node), *node.inputs)

    def _of_results(self, node: Node) -> int:
        schema = node.schema
        if not may_write(node):
            return self._of(node.outputs)
        if schema is None:
            return self.everything
        written = 0
        for value, argument in zip(node.inputs, schema.arguments, strict=False):
            if argument.alias is not None and argument.alias.is_write:
                written |= self.memory(value)
        affected = [value for value in self.found if self.memory(value) & written]
        return self._of([*affected, *node.outputs]) if written else self.everything

    def _loop(self, view: LoopView) -> None:
        before: list[int] | None = None
        while before != (now := [self.found[value] for value in view.parameters]):
            before = now
            for each in view.carried:
                self._add(self._of([each.result, each.parameter]), each.following)
            self.block(view.body)
        for each in view.carried:
            self._add(self._of([each.result, each.parameter]), each.initial)

    def _branches(self, node: Node) -> None:
        for block in node.blocks:
            for returned, output in zip(block.outputs, node.outputs, strict=False):
                self._add(self._of([output]), returned)
            self.block(block)

    def _of(self, values: Sequence[Value]) -> int:
        return reduce(or_, (self.found[value] for value in values), 0)

    def _add(self, bits: int, *values: Value) -> None:
        for value in values:
            if bits and value in self.requires_grad:
                self.found[value] |= bits
