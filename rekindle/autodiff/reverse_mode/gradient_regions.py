"""Regions in which an optional gradient is defined, and accumulation of gradients, while a backward graph is built.

A gradient that always exists has the type of its value. One that may not exist, because a branch was not taken or a
loop ran zero times, is an ``Optional``. Nodes that compute with it are in a *region*, a part of the graph that runs
only if it exists:

.. code-block:: text

    %2 : bool = aten::__isnot__(%grad, %None)
    %4 : Tensor? = prim::If(%2)
      block0():
        %3 : Tensor = prim::unchecked_unwrap_optional(%grad)
        … nodes that use %3
        return (%5)
      block1():
        return (%None)

So no node computes with zeros in place of missing gradients. That would cost time, and yield NaN where a zero is
divided by zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import BOOL, NONE, TENSOR, DictType, ListType, OptionalType, TensorType, TupleType, Type

GradientTree = Value | list["GradientTree | None"]
"""The gradient of a tensor or of a container, or those of the elements of a list or a tuple."""


@dataclass(slots=True, eq=False)
class GradientRegion:
    """A block of a backward graph that runs only if certain gradients exist: the outermost block, or a block that
    ``node`` adds to the region ``outer``."""

    block: Block
    outer: GradientRegion | None = None
    node: Node | None = None
    given: dict[Value, Value] = field(default_factory=dict)
    """Values of the region, and the values by which it returns them to the enclosing region."""

    @property
    def chain(self) -> list[GradientRegion]:
        """The enclosing regions, the outermost first, followed by this one."""
        return [self] if self.outer is None else [*self.outer.chain, self]

    def give(self, value: Value) -> Value:
        """Return ``value`` of this region as a value of the enclosing region, where it is None if this region does not
        run."""
        found = self.given.get(value)
        if found is None:
            node = self.node
            assert node is not None
            found = self.given[value] = node.add_output(optional(value.type))
            node.blocks[0].add_output(value)
            node.blocks[1].add_output(constant(node.graph, None, found.type))
        return found


def optional(type: Type) -> Type:
    """Return the type of a gradient of ``type`` that may be missing."""
    return type if isinstance(type, OptionalType) else OptionalType(type)


def gradient_type(type: Type) -> Type:
    """Return the type of the gradient of a value of ``type``, if the gradient is a single value of the graph."""
    if isinstance(type, OptionalType):
        return gradient_type(type.element)
    if isinstance(type, ListType):
        return ListType(optional(gradient_type(type.element)))
    if isinstance(type, TupleType):
        return ListType(OptionalType(TENSOR))
    if isinstance(type, DictType):
        return DictType(type.key, gradient_type(type.value))
    return TENSOR


def joined_gradient_type(a: Type | None, b: Type | None) -> Type | None:
    """Return the join of the types of a gradient on two paths; None represents the absence of a gradient."""
    if a is None or b is None:
        known = a or b
        return None if known is None else optional(_plain(known))
    both = _joined(_inner(a), _inner(b))
    return optional(both) if isinstance(a, OptionalType) or isinstance(b, OptionalType) else both


def _inner(type: Type) -> Type:
    return type.element if isinstance(type, OptionalType) else type


def _joined(a: Type, b: Type) -> Type:
    if isinstance(a, ListType) and isinstance(b, ListType):
        element = joined_gradient_type(a.element, b.element)
        assert element is not None
        return ListType(element)
    return TENSOR if isinstance(a, TensorType) else a


def _plain(type: Type) -> Type:
    """Return ``type`` without dtypes and sizes."""
    if isinstance(type, OptionalType):
        return OptionalType(_plain(type.element))
    return TENSOR if isinstance(type, TensorType) else type


def constant(graph: Graph, value: object, type: Type | None = None) -> Value:
    """Insert a constant at the start of ``graph``, where all nodes can use it, and return its value."""
    node = graph.create_constant(value, type)
    return node.insert_before(graph.return_node.next).output


@dataclass(slots=True, eq=False)
class GradientRegions:
    """The regions of the blocks of a backward graph, and the operations on gradients in them."""

    graph: Graph
    root: GradientRegion
    regions: dict[Block, GradientRegion] = field(default_factory=dict)
    opened: dict[Value, Value] = field(default_factory=dict)

    def place_of(self, value: Value) -> GradientRegion:
        """Return the region that defines ``value``."""
        block = value.node.owning_block
        return self.root if block is None else self.regions.get(block, self.root)

    def common(self, values: Sequence[Value]) -> GradientRegion:
        """Return the innermost region in which all of ``values`` are available, possibly through outputs of inner
        regions."""
        found = self.root
        for level in zip(*(self.place_of(value).chain for value in values), strict=False):
            if len(set(map(id, level))) > 1:
                break
            found = level[0]
        return found

    def at(self, value: Value, place: GradientRegion) -> Value:
        """Return ``value`` at ``place``, which is an enclosing or an inner region of that of ``value``."""
        own = self.place_of(value)
        around = place.chain
        while own not in around:
            value = own.give(value)
            assert own.outer is not None
            own = own.outer
        return value

    def unwrap_in_region(self, value: Value) -> Value:
        """Return ``value`` unwrapped from Optional, in a region that runs only if it exists."""
        if not isinstance(value.type, OptionalType):
            return value
        found = self.opened.get(value)
        if found is None:
            place = self.place_of(value)
            with self.graph.inserting_at_end(place.block):
                region = self.region(self._exists(value), place)
            with self.graph.inserting_at_end(region.block):
                found = self.opened[value] = self.unwrapped(value)
        return found

    def region(self, condition: Value, place: GradientRegion) -> GradientRegion:
        """Insert a new region in ``place``, which runs if ``condition`` holds; return it."""
        node = self.graph.insert_node(self.graph.create("prim::If", [condition], outputs=0))
        block = node.add_block()
        node.add_block()
        found = self.regions[block] = GradientRegion(block, place, node)
        return found

    def region_where_any_defined(self, values: Sequence[Value], place: GradientRegion) -> GradientRegion:
        """Insert a region in ``place`` that runs if one of ``values`` is not None. All of them may be None."""
        with self.graph.inserting_at_end(place.block):
            condition = self._exists(values[0])
            for value in values[1:]:
                condition = self.graph.insert("aten::__or__", [condition, self._exists(value)])
            return self.region(condition, place)

    def _exists(self, value: Value) -> Value:
        none = constant(self.graph, None, NONE)
        return self.graph.insert_node(self.graph.create("aten::__isnot__", [value, none], types=[BOOL])).output

    def unwrapped(self, value: Value) -> Value:
        """Insert the unwrapping of a gradient from Optional, where it is known not to be None."""
        if not isinstance(value.type, OptionalType):
            return value
        node = self.graph.create("prim::unchecked_unwrap_optional", [value], types=[value.type.element])
        return self.graph.insert_node(node).output

    # ---------------------------------------------------------------------------------------------------------- adding

    def sum(self, a: GradientTree, b: GradientTree) -> GradientTree:
        """Insert the sum of two gradients in their innermost common region, and return it. Two lists of gradients are
        added element by element."""
        if isinstance(a, list) and isinstance(b, list):
            return [y if x is None else x if y is None else self.sum(x, y) for x, y in zip(a, b, strict=True)]
        place = self.common([*leaves(a), *leaves(b)])
        return self._sum(self.value(a, place), self.value(b, place), place)

    def _sum(self, a: Value, b: Value, place: GradientRegion) -> Value:
        type = joined_gradient_type(a.type, b.type)
        assert type is not None
        with self.graph.inserting_at_end(place.block):
            if isinstance(a.type, OptionalType):
                a, b = b, a
            if not isinstance(_inner(type), TensorType):
                return self._sum_of_containers(a, b, _inner(type))
            if not isinstance(type, OptionalType):
                return self.graph.insert("aten::add", [a, b])
            if isinstance(a.type, OptionalType):
                return self.graph.insert("autodiff::sum_of", [a, b])
            return self.graph.insert("autodiff::plus", [a, b])

    def _sum_of_containers(self, a: Value, b: Value, type: Type) -> Value:
        """Insert the sum of two containers of gradients. ``b`` may be None even if ``a`` is not."""
        both = [
            self.fitting(each, OptionalType(type) if isinstance(each.type, OptionalType) else type) for each in (a, b)
        ]
        types = [both[0].type]
        return self.graph.insert_node(self.graph.create("autodiff::added", both, types=types)).output

    def value(self, gradient: GradientTree, place: GradientRegion) -> Value:
        """Return ``gradient``, which may be a list of gradients, as one value in the region ``place``."""
        if isinstance(gradient, Value):
            return self.at(gradient, place)
        elements = [
            constant(self.graph, None, OptionalType(TENSOR)) if item is None else self.value(item, place)
            for item in gradient
        ]
        known = [item.type for item in elements if not isinstance(_inner(item.type), TensorType)]
        type = ListType(optional(known[0] if known else TENSOR))
        with self.graph.inserting_at_end(place.block):
            return self.graph.insert_node(self.graph.create("prim::ListConstruct", elements, types=[type])).output

    def fitting(self, value: Value, type: Type) -> Value:
        """Insert the conversion of ``value`` to a less specific ``type``; return the result."""
        if value.type.is_subtype_of(type):
            return value
        return self.graph.insert_node(self.graph.create("prim::unchecked_cast", [value], types=[type])).output


def leaves(gradient: GradientTree) -> Iterator[Value]:
    """Yield the values in a gradient, which may be a nested list of values."""
    if isinstance(gradient, Value):
        yield gradient
        return
    for item in gradient:
        if item is not None:
            yield from leaves(item)
