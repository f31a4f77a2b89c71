"""Lists that a loop fills, one tensor in each iteration, and that are stacked after it. Concatenation along a dimension
that a tensor gets before it is appended is the same.

.. code-block:: text

    %l : Tensor[] = prim::ListConstruct()
    %h : Tensor = prim::Loop(%n, %true, %x)
      block0(%t : int, %a : Tensor):
        %b : Tensor = aten::tanh(%a)
        %1 : Tensor[] = aten::append(%l, %b)
        -> (%true, %b)
    %y : Tensor = aten::stack(%l, %dim)

Nothing else sees such a list. So these nodes are differentiated together, though one of them writes: the gradient of
the list is that of ``%y``, unbound, and the gradient of the tensor of iteration ``%t`` is element ``%t`` of it, which
:func:`select_elements` takes from the tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rekindle.analysis.constants import constant_int, is_constant
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import TENSOR, ListType


@dataclass(frozen=True, slots=True)
class CollectedList:
    """A list that a loop fills: the node that creates it, the one in the loop that appends to it, and those that read
    it afterwards."""

    construct: Node
    append: Node
    readers: tuple[Node, ...]

    @property
    def value(self) -> Value:
        return self.construct.output


def collected_lists(loop: Node) -> list[CollectedList]:
    """Return the lists that ``loop`` fills with one tensor in each iteration, and that are only stacked or concatenated
    after it."""
    return [found for node in loop.blocks[0].nodes if (found := _filled_by(node, loop)) is not None]


def _filled_by(append: Node, loop: Node) -> CollectedList | None:
    if append.kind != "aten::append" or append.output.type != ListType(TENSOR) or append.output.uses:
        return None
    construct = append.inputs[0].node
    if construct.kind != "prim::ListConstruct" or construct.inputs or construct.owning_block is not loop.owning_block:
        return None
    readers = [use.user for use in construct.output.uses if use.user is not append]
    if not readers or not all(_joins_after(reader, append, loop) for reader in readers):
        return None
    return CollectedList(construct, append, tuple(readers))


def _joins_after(reader: Node, append: Node, loop: Node) -> bool:
    if reader.owning_block is not loop.owning_block or reader.is_before(loop):
        return False
    if reader.kind == "aten::cat":
        return _joins_rows(reader, append)
    return reader.kind == "aten::stack" and all(map(is_constant, reader.inputs[1:]))


def _joins_rows(cat: Node, append: Node) -> bool:
    """Return whether the appended tensor is unsqueezed first, and ``cat`` concatenates along the new dimension."""
    row = append.inputs[1].node
    dim = constant_int(cat.inputs[1])
    return row.kind == "aten::unsqueeze" and dim is not None and constant_int(row.inputs[1]) == dim


def joins_collected_rows(node: Node) -> bool:
    """Return whether ``node`` concatenates tensors that a loop collects, along a dimension of one element each."""
    if node.kind != "aten::cat":
        return False
    appending = [use.user for use in node.inputs[0].uses if use.user.kind == "aten::append"]
    return len(appending) == 1 and is_collecting(appending[0])


def gather_unit(loop: Node, lists: list[CollectedList]) -> list[Node]:
    """Move the nodes that create ``lists`` directly before ``loop``, and their readers directly after it. That is
    always legal, since they have no other operands than constants. Return these nodes and the loop, in order."""
    for each in lists:
        each.construct.move_before(loop)
    last = loop
    for reader in _readers(lists):
        for value in reader.inputs[1:]:
            if value.node.owning_block is loop.owning_block and loop.is_before(value.node):
                value.node.move_before(loop)
        reader.move_after(last)
        last = reader
    return [*(each.construct for each in lists), loop, *_readers(lists)]


def _readers(lists: list[CollectedList]) -> Iterator[Node]:
    yield from dict.fromkeys(reader for each in lists for reader in each.readers)


def is_collecting(node: Node) -> bool:
    """Return whether ``node`` appends to a list that the loop around it fills."""
    block = node.owning_block
    loop = None if block is None else block.owning_node
    return loop is not None and loop.kind == "prim::Loop" and _filled_by(node, loop) is not None


def select_elements(graph: Graph) -> None:
    """Replace an element of the list of a tensor's parts by a selection from the tensor, if the list has no other
    use."""
    for parts in [*graph.find_nodes("aten::unbind"), *graph.find_nodes("aten::split")]:
        readers = [use.user for use in parts.output.uses]
        if not readers or any(reader.kind != "aten::__getitem__" for reader in readers):
            continue
        tensor, *_, dim = parts.inputs
        if parts.kind == "aten::split" and constant_int(parts.inputs[1]) != 1:
            continue
        for reader in readers:
            with graph.inserting_before(reader):
                if parts.kind == "aten::split":
                    part = graph.insert("aten::narrow", [tensor, dim, reader.inputs[1], 1])
                else:
                    part = graph.insert("aten::select", [tensor, dim, reader.inputs[1]])
            reader.replace_with(part)
        parts.destroy()
