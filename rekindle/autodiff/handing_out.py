"""What the way back reads of branches and loops is handed out of them.

.. code-block:: text

                                                    %kept : Tensor[] = prim::ListConstruct()
    %y : Tensor = prim::Loop(%n, %true, %x)         %y : Tensor = prim::Loop(%n, %true, %x)
      block0(%i : int, %a : Tensor):                  block0(%i : int, %a : Tensor):
        %b : Tensor = aten::sin(%a)       becomes       %b : Tensor = aten::sin(%a)
        return (%true, %b)                              %1 : Tensor[] = aten::append(%kept, %a)
                                                        return (%true, %b)

The way back takes ``%kept``, and its turn ``%j`` reads ``%kept[%n - 1 - %j]``. A branch returns what is read of it,
None where the other is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rekindle.autodiff.captures import block_of, depth_of
from rekindle.autodiff.places import constant, optional
from rekindle.autodiff.reverse import Backward, Scope
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import INT, TENSOR, ListType, OptionalType, TensorType


def hand_out(backward: Backward) -> None:
    """Have ``backward`` read only what stands outside of all branches and loops of the forward graph, which is changed
    so that it is there."""
    _HandingOut(backward).run()


@dataclass(slots=True, eq=False)
class _HandingOut:
    backward: Backward
    indices: dict[Block, Value] = field(default_factory=dict)
    """For each body of a loop of the way back: the turn that it goes back through."""

    @property
    def graph(self) -> Graph:
        return self.backward.graph

    def run(self) -> None:
        read = self.backward.read
        first = len(self.graph.inputs) - len(read)
        while True:
            inner = [index for index, value in enumerate(read) if block_of(value).owning_node is not None]
            if not inner:
                return
            index = max(inner, key=lambda each: depth_of(block_of(read[each])))
            value, here = read[index], self.graph.inputs[first + index]
            here.replace_all_uses_with(self._outside(value, self.backward.scopes[block_of(value)]))
            self.graph.block.erase_input(first + index)
            del read[index]

    def _reading(self, value: Value) -> Value:
        """The input that stands for ``value``."""
        read = self.backward.read
        first = len(self.graph.inputs) - len(read)
        if value in read:
            return self.graph.inputs[first + read.index(value)]
        read.append(value)
        return self.graph.add_input(type=value.type)

    def _outside(self, value: Value, scope: Scope) -> Value:
        """What ``value`` is in the block of ``scope``, by way of what is handed out."""
        node = scope.forward.owning_node
        assert node is not None
        if node.kind == "prim::If":
            return self._of_branch(value, scope, node)
        if value is scope.forward.inputs[0]:
            return self._index(scope)
        return self._of_turn(value, scope, node)

    def _of_branch(self, value: Value, scope: Scope, node: Node) -> Value:
        outputs = scope.forward.outputs
        known = next((out for out, result in zip(node.outputs, outputs, strict=True) if result is value), None)
        if known is None:
            known = node.add_output(optional(value.type))
            for block in node.blocks:
                is_own = block is scope.forward
                block.add_output(value if is_own else constant(node.graph, None, known.type))
        found = self._reading(known)
        if known.type == value.type:
            return found
        kind = "prim::unchecked_unwrap_optional" if isinstance(known.type, OptionalType) else "prim::unchecked_cast"
        unwrapped = self.graph.create(kind, [found], types=[value.type])
        return scope.block.prepend(unwrapped).output

    def _of_turn(self, value: Value, scope: Scope, node: Node) -> Value:
        type = ListType(TENSOR if isinstance(value.type, TensorType) else value.type)
        forward = node.graph
        kept = forward.create("prim::ListConstruct", [], types=[type]).insert_before(node).output
        append = forward.create("aten::append", [kept, value], types=[type], range=value.node.range)
        append.insert_before(scope.forward.return_node)
        index = self._index(scope)
        item = self.graph.create("aten::__getitem__", [self._reading(kept), index], types=[value.type])
        return item.insert_after(index.node).output

    def _index(self, scope: Scope) -> Value:
        found = self.indices.get(scope.block)
        if found is None:
            turn, turns = scope.block.inputs[0], scope.turns
            assert turns is not None
            first = scope.block.return_node.next
            with self.graph.inserting_before(first):
                last = self.graph.insert("aten::sub", [self._turns(scope, turns), 1])
                found = self.indices[scope.block] = self.graph.insert("aten::sub", [last, turn])
            assert found.type == INT
        return found

    def _turns(self, scope: Scope, turns: Value) -> Value:
        """The number of turns: what the loop back has as its limit."""
        loop = scope.block.owning_node
        assert loop is not None
        return loop.inputs[0]
