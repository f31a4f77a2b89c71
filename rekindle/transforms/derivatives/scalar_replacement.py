"""Scalar replacement of aggregates (LLVM: SROA): replace objects that do not escape with the values of their
attributes.

.. code-block:: text

    %1 : __torch__.Pair = prim::CreateObject()
     = prim::SetAttr[name="a"](%1, %x)             becomes
     = prim::SetAttr[name="a"](%1, %y)
    %2 : Tensor = prim::GetAttr[name="a"](%1)
    %3 : Tensor = aten::neg(%2)                              %3 : Tensor = aten::neg(%y)

Attributes that branches and loop bodies write become outputs of these blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import ClassType, Type
from rekindle.passes import Inlining, LowerSimpleTuples, run_passes

_ATTRIBUTE_ACCESSES = ("prim::SetAttr", "prim::GetAttr")


def scalar_replace_objects(graph: Graph) -> None:
    """Replace objects in ``graph``, in which calls are inlined, by their attributes. Once the class of an object is
    known, method calls on an interface are resolved and inlined too. Objects that escape are kept."""
    while True:
        objects = {value for value in _made(graph) if all(_is_own(use.user, use.offset) for use in value.uses)}
        if not objects:
            return
        _Attributes(graph, objects).block(graph.block, {})
        for value in objects:
            value.node.destroy()
        run_passes(graph, (Inlining(), LowerSimpleTuples()))


def _made(graph: Graph) -> Iterator[Value]:
    for node in graph.find_nodes("prim::CreateObject"):
        type = node.output.type
        if isinstance(type, ClassType) and not type.is_module:
            yield node.output


def _is_own(user: Node, offset: int) -> bool:
    """Return whether ``user`` reads or writes an attribute of the object at a position that the pass follows."""
    block = user.owning_block
    while block is not None and block.owning_node is not None:
        if block.owning_node.kind not in ("prim::If", "prim::Loop"):
            return False
        block = block.parent
    return offset == 0 and user.kind in _ATTRIBUTE_ACCESSES


Key = tuple[Value, str]


@dataclass(slots=True)
class _Attributes:
    graph: Graph
    objects: set[Value]

    def block(self, block: Block, now: dict[Key, Value]) -> dict[Key, Value]:
        """Walk ``block``, given the values of attributes before it; return their values after it."""
        for node in list(block.nodes):
            if node.kind == "prim::CreateObject" and node.output in self.objects:
                now.update(self._not_set(node))
            elif node.kind in _ATTRIBUTE_ACCESSES:
                receiver, *assigned = node.inputs
                key = receiver, node.get_string("name")
                if receiver not in self.objects:
                    continue
                if assigned:
                    (now[key],) = assigned
                else:
                    node.output.replace_all_uses_with(now[key])
                node.destroy()
            elif node.kind == "prim::If":
                self._branches(node, now)
            elif node.kind == "prim::Loop":
                self._loop(node, now)
        return now

    def _not_set(self, node: Node) -> dict[Key, Value]:
        """Insert an uninitialized value for each attribute of a new object, and return these values."""
        type = node.output.type
        assert isinstance(type, ClassType)
        with self.graph.inserting_before(node):
            return {
                (node.output, name): self.graph.insert_node(
                    self.graph.create("prim::Uninitialized", types=[own])
                ).output
                for name, own in _attributes(type)
            }

    def _branches(self, node: Node, now: dict[Key, Value]) -> None:
        ends = [self.block(inner, dict(now)) for inner in node.blocks]
        for key, before in list(now.items()):
            if any(end[key] is not before for end in ends):
                for inner, end in zip(node.blocks, ends, strict=True):
                    inner.add_output(end[key])
                now[key] = node.add_output(_type_of(key))

    def _loop(self, node: Node, now: dict[Key, Value]) -> None:
        (inner,) = node.blocks
        writes = [each for each in inner.all_nodes() if each.kind == "prim::SetAttr"]
        written = {(receiver, each.get_string("name")) for each in writes for receiver, _ in [each.inputs]}
        carried = [key for key in now if key in written]
        inside = dict(now)
        for key in carried:
            node.add_input(now[key])
            inside[key] = inner.add_input(type=_type_of(key))
        end = self.block(inner, inside)
        for key in carried:
            inner.add_output(end[key])
            now[key] = node.add_output(_type_of(key))


def _attributes(type: ClassType) -> Iterator[tuple[str, Type]]:
    for name, attribute in type.attributes.items():
        yield name, attribute.type


def _type_of(key: Key) -> Type:
    value, name = key
    type = value.type
    assert isinstance(type, ClassType)
    return dict(_attributes(type))[name]
