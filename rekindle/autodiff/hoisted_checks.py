"""Checks that raise, moved before a group of nodes, with copies of the views and sizes that they depend on.

.. code-block:: text

    %1 : Tensor = aten::transpose(%x, %0, %1)    }           %5 : Tensor = aten::transpose(%x, %0, %1)
    %2 : int = aten::size(%1, %0)                }           %6 : int = aten::size(%5, %0)
    %3 : bool = aten::ne(%2, %4)                 } group     %7 : bool = aten::ne(%6, %4)
     = prim::If(%3)                                           = prim::If(%7)
      block0():                                  becomes       block0():
         = prim::RaiseException(%text)                            = prim::RaiseException(%text)
        -> ()                                                     -> ()
      block1():                                                block1():
        -> ()                                                    -> ()
    %y : Tensor = aten::linear(%1, %w, %b)       } group     … the nodes of the group

So the program raises its own error, not that of an operator of the group which the check guards.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from rekindle.autodiff.reverse_mode.differentiable_loops import free_values
from rekindle.ir.graph import Node, Value


def is_check(node: Node) -> bool:
    """Return whether ``node`` is an ``if`` without outputs that may raise an exception."""
    kinds = {inner.kind for inner in node.inner_nodes()}
    return node.kind == "prim::If" and not node.outputs and "prim::RaiseException" in kinds


def operands_within(node: Node, members: Container[Node], is_copied: Callable[[Node], bool]) -> list[Node] | None:
    """Return the nodes among ``members`` that ``node`` depends on, which are to be copied; None if ``is_copied`` is
    false for one of them."""
    found: dict[Node, None] = {}
    pending = [*node.inputs, *free_values(node)]
    while pending:
        maker = pending.pop().node
        if maker in members and maker not in found:
            if not is_copied(maker):
                return None
            found[maker] = None
            pending += maker.inputs
    return list(found)


def move_check(check: Node, operands: Sequence[Node], place: Node) -> None:
    """Move ``check`` before ``place``, with copies of ``operands``, which are in the order of the graph."""
    copies: dict[Value, Value] = {}
    for node in operands:
        clone = check.graph.create_clone(node, lambda value: copies.get(value, value)).insert_before(place)
        copies.update(zip(node.outputs, clone.outputs, strict=True))
    check.move_before(place)
    ends = [block.return_node for each in (check, *check.inner_nodes()) for block in each.blocks]
    for user in (check, *check.inner_nodes(), *ends):
        for index, value in enumerate(user.inputs):
            if value in copies:
                user.replace_input(index, copies[value])
