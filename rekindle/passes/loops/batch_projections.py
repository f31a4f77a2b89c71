"""Multiply what a loop selects from a tensor by a matrix for all iterations at once, before the loop.

.. code-block:: text

    %h : Tensor = prim::Loop(%n, %true, %h.1)             %1 : bool = aten::gt(%n, %zero)
      block0(%t : int, %h.2 : Tensor):                    %p : Tensor = prim::If(%1)
        %x : Tensor = aten::select(%xs, %zero, %t)          block0():
        %y : Tensor = aten::linear(%x, %w, %b)                %2 : Tensor = aten::narrow(%xs, %zero, %zero, %n)
        …                                          becomes    %3 : Tensor = aten::linear(%2, %w, %b)
                                                              -> (%3)
                                                            block1():
                                                              -> (%xs)
                                                          %h : Tensor = prim::Loop(%n, %true, %h.1)
                                                            block0(%t : int, %h.2 : Tensor):
                                                              %y : Tensor = aten::select(%p, %zero, %t)
                                                              …

One product of large matrices is faster than many of small ones. If the loop selects along another dimension than the
first, that dimension is moved to the front before the product: its parts are then contiguous, as separate products are.
What moves may raise, and does so before the rest of the first iteration: the pass is for graphs that have completed for
inputs of the same sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.constants import constant_bool, constant_int
from rekindle.analysis.effects import writes_modes
from rekindle.analysis.type_propagation import propagate_types
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import TENSOR, TensorType, Type
from rekindle.rewriting.changes import may_change

_PRODUCTS: Final = {"aten::linear": "aten::linear", "aten::mm": "aten::matmul"}
"""Kinds of products, and of those that take many first factors at once."""
_MIN_MATRIX: Final = 1 << 16
"""Minimum number of elements of a matrix for batching to pay off: loading it takes longer than computing with it."""
_MAX_ROWS: Final = 16
"""Number of rows of a first factor from which computing takes longer than loading the matrix."""


@dataclass(slots=True)
class BatchProjections:
    '''Multiply the slices that a loop selects from a tensor by a matrix, for all iterations at once. The docstring of
    the module shows the IR before and after.

    The products of all iterations take memory. With ``sizes``, which has the sizes of each graph input or None, they
    are only batched if one product takes no longer than loading the matrix.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import BatchProjections, run_passes
        >>> graph = parse_graph("""
        ... graph(%n : int, %xs : Float(*, *, *), %w : Float(*, *), %h : Float(*, *)):
        ...   %zero : int = prim::Constant[value=0]()
        ...   %one : int = prim::Constant[value=1]()
        ...   %true : bool = prim::Constant[value=1]()
        ...   %none : NoneType = prim::Constant()
        ...   %result : Tensor = prim::Loop(%n, %true, %h)
        ...     block0(%t : int, %a : Tensor):
        ...       %x : Tensor = aten::select(%xs, %zero, %t)
        ...       %y : Tensor = aten::linear(%x, %w, %none)
        ...       %b : Tensor = aten::add(%a, %y, %one)
        ...       -> (%true, %b)
        ...   return (%result)
        ... """)
        >>> run_passes(graph, [BatchProjections()])
        True
        >>> "aten::linear" in [node.kind for node in graph.find_node("prim::Loop").blocks[0].nodes]
        False
    '''

    name: ClassVar[str] = "batch_projections"
    sizes: Sequence[Sequence[int] | None] | None = None

    def run(self, graph: Graph) -> bool:
        found = [
            projection
            for loop in graph.find_nodes("prim::Loop")
            if not any(map(writes_modes, loop.inner_nodes()))  # gradients, or autocast, may be on in it alone
            for node in loop.blocks[0].nodes
            if (projection := _projection(loop, node)) is not None
        ]
        if not found:
            return False
        types = propagate_types(graph, self._input_types(graph), any_modes=True)
        aliases = AliasDb(graph)
        changed = False
        for each in found:
            pays = self.sizes is None or each.pays(types)
            if pays and each.is_safe(types, aliases) and may_change("move before the loop", each.product):
                each.move()
                changed = True
        return changed

    def _input_types(self, graph: Graph) -> list[Type]:
        if self.sizes is None:
            return [value.type for value in graph.inputs]
        return [
            value.type if sizes is None or not isinstance(value.type, TensorType) else replace(value.type, sizes=sizes)
            for value, sizes in zip(graph.inputs, map(_as_sizes, self.sizes), strict=True)
        ]


def _as_sizes(sizes: Sequence[int] | None) -> tuple[int | None, ...] | None:
    return None if sizes is None else tuple(sizes)


@dataclass(slots=True, frozen=True)
class _Projection:
    """A ``product`` in a loop, whose first factor is a slice selected by the iteration number."""

    loop: Node
    product: Node
    select: Node
    is_in_order: bool
    """Whether iterations select one part after the other, from the first."""

    def pays(self, types: dict[Value, Type]) -> bool:
        """Return whether loading the matrix dominates the product of one iteration, so that batching pays off."""
        part, matrix = types.get(self.select.output), types.get(_matrix(self.loop, self.product.inputs[1]))
        if not isinstance(part, TensorType) or not isinstance(matrix, TensorType):
            return False
        if part.sizes is None or matrix.sizes is None or None in part.sizes or None in matrix.sizes:
            return False
        rows = math.prod(size or 0 for size in part.sizes[:-1])
        return rows < _MAX_ROWS and math.prod(size or 0 for size in matrix.sizes) >= _MIN_MATRIX

    def is_safe(self, types: dict[Value, Type], aliases: AliasDb) -> bool:
        """Return whether the selected dimension is not the last one, so that the slices consist of rows; those that
        ``mm`` multiplies are matrices; and nothing writes to the operands or the result."""
        whole, dim, _ = self.select.inputs
        type, axis = types.get(whole), constant_int(dim)
        rank = type.rank if isinstance(type, TensorType) else None
        if rank is None or axis is None or not 0 <= axis < rank - 1:
            return False
        if self.product.kind == "aten::mm" and rank != 3:
            return False
        values = [*self.select.inputs, *self.product.inputs, self.product.output]
        return not any(isinstance(value.type, TensorType) and aliases.has_writers(value) for value in values)

    def move(self) -> None:
        """Compute the product for all iterations before the loop, if the trip count is not 0; in the loop, select the
        part of the iteration."""
        graph, loop, product = self.loop.graph, self.loop, self.product
        whole, dim, index = self.select.inputs
        count = LoopView(loop).trip_count
        factors = [_before(loop, value) for value in product.inputs[1:]]
        with graph.inserting_before(loop, like=product):
            zero = graph.insert_constant(0)
            choice = graph.insert_node(
                graph.create("prim::If", [graph.insert("aten::gt", [count, zero])], types=[TENSOR])
            )
        then, otherwise = choice.add_block(), choice.add_block()
        with graph.inserting_at_end(then, like=product):
            rows = graph.insert("aten::narrow", [whole, dim, zero, count]) if self.is_in_order else whole
            if constant_int(dim) != 0:
                rows = graph.insert("aten::movedim", [rows, dim, zero])
            then.add_output(graph.insert(_PRODUCTS[product.kind], [rows, *factors]))
        otherwise.add_output(whole)
        with graph.inserting_before(product):
            part = graph.insert("aten::select", [choice.output, zero, index])
        part.set_type(product.output.type)
        product.replace_with(part)


def _projection(loop: Node, node: Node) -> _Projection | None:
    if node.kind not in _PRODUCTS:
        return None
    select = node.inputs[0].node
    view = LoopView(loop)
    if select.kind != "aten::select" or not loop.contains(select):
        return None
    if not constant_bool(view.condition) or not constant_bool(view.next_condition):
        return None  # how many iterations there are is found out on the way
    whole, dim, index = select.inputs
    is_in_order = index is view.iteration
    invariant = [whole, dim, *(_matrix(loop, value) for value in node.inputs[1:])]
    if any(loop.contains(value.node) for value in invariant) or not (is_in_order or _goes_back(loop, index)):
        return None
    return _Projection(loop, node, select, is_in_order)


def _goes_back(loop: Node, index: Value) -> bool:
    """Return whether ``index`` is a value from outside the loop minus the number of the iteration, so that later
    iterations select smaller indices."""
    node = index.node
    if node.kind != "aten::sub" or len(node.inputs) != 2:
        return False
    first, second = node.inputs
    return second is LoopView(loop).iteration and not loop.contains(first.node)


def _matrix(loop: Node, value: Value) -> Value:
    """Return the matrix whose transpose is ``value``, if it is transposed in the loop; else ``value``."""
    return value.node.inputs[0] if value.node.kind == "aten::t" and loop.contains(value.node) else value


def _before(loop: Node, value: Value) -> Value:
    """Return the loop-invariant ``value`` before the loop: a value from the loop is computed by a clone of its node,
    which is inserted there."""
    if not loop.contains(value.node):
        return value
    return loop.graph.create_clone(value.node, lambda operand: operand).insert_before(loop).output
