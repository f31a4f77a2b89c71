"""Lists that a loop fills, one tensor in each iteration, and that are stacked after it.

.. code-block:: text

    %l : Tensor[] = prim::ListConstruct()
    %h : Tensor = prim::Loop(%n, %true, %x)
      block0(%t : int, %a : Tensor):
        %b : Tensor = aten::tanh(%a)
        %1 : Tensor[] = aten::append(%l, %b)
        -> (%true, %b)
    %y : Tensor = aten::stack(%l, %dim)

Nothing else sees such a list. So these nodes are differentiated together, though one of them writes: the gradient of
the list is that of ``%y``, unbound, and the gradient of the tensor of iteration ``%t`` is element ``%t`` of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rekindle.analysis.constants import is_constant
from rekindle.ir.graph import Node, Value
from rekindle.ir.types import TENSOR, ListType


@dataclass(frozen=True, slots=True)
class CollectedList:
    """The node that makes an empty list, the one in a loop that appends to it, and those that read it afterwards."""

    construct: Node
    append: Node
    readers: tuple[Node, ...]

    @property
    def value(self) -> Value:
        return self.construct.output


def collected_lists(loop: Node) -> list[CollectedList]:
    """The lists that ``loop`` fills."""
    return [found for node in loop.blocks[0].nodes if (found := _filled_by(node, loop)) is not None]


def _filled_by(append: Node, loop: Node) -> CollectedList | None:
    if append.kind != "aten::append" or append.output.type != ListType(TENSOR) or append.output.uses:
        return None
    construct = append.inputs[0].node
    if construct.kind != "prim::ListConstruct" or construct.inputs or construct.owning_block is not loop.owning_block:
        return None
    readers = [use.user for use in construct.output.uses if use.user is not append]
    if not readers or not all(_stacks_after(reader, loop) for reader in readers):
        return None
    return CollectedList(construct, append, tuple(readers))


def _stacks_after(reader: Node, loop: Node) -> bool:
    if reader.kind != "aten::stack" or reader.owning_block is not loop.owning_block or reader.is_before(loop):
        return False
    return all(map(is_constant, reader.inputs[1:]))


def gather_unit(loop: Node, lists: list[CollectedList]) -> list[Node]:
    """Move the nodes of ``lists`` to ``loop``, which nothing forbids: they have no other operands than constants.
    Returns them and the loop, in order."""
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
    """Whether ``node`` appends to a list that the loop around it fills."""
    block = node.owning_block
    loop = None if block is None else block.owning_node
    return loop is not None and loop.kind == "prim::Loop" and _filled_by(node, loop) is not None
