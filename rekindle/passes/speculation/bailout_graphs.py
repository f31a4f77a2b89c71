"""Continuations: the remainder of a program after a bailout, as a separate graph.

Its inputs are those of the ``prim::BailOut``: the value that failed the guard, then the captured values. Within a
branch, the continuation runs to the end of the branch, then the nodes after the ``prim::If``. Within a loop, it
finishes the iteration; then a loop runs the remaining iterations, and counts on from there::

    %r : Tensor = prim::Loop(%n, %true, %x)                  %e : Tensor = aten::neg(%d)
      block0(%i : int, %c : Tensor):                         %done : int = aten::add(%i, %one)
        %d : Tensor = aten::mul(%c, %i)                      %left : int = aten::sub(%n, %done)
        %1 : Tensor = prim::BailOut[index=0](%d, …)  gives   %r : Tensor = prim::Loop(%left, %true, %e)
        %e : Tensor = aten::neg(%1)                            block0(%j : int, %c : Tensor):
        -> (%true, %e)                                           %i : int = aten::add(%done, %j)
    return (%r)                                                  …
                                                             return (%r)

No node that has run before the bailout runs again. The continuation has no bailouts: it assumes nothing.
"""

from __future__ import annotations

from rekindle.errors import GraphError
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import INT
from rekindle.passes.speculation.insert_bailouts import BAILOUT, is_captured


def bailout_graph(template: Graph, index: int) -> Graph:
    """Return the continuation graph: the rest of ``template`` from its bailout ``index`` on.

    Raises:
        GraphError: there is no such bailout, or it does not capture a value that the rest reads.
    """
    for node in template.find_nodes(BAILOUT):
        if node["index"] == index:
            return _BailoutGraphBuilder(node).build()
    raise GraphError(f"the template has no bailout {index}")


class _BailoutGraphBuilder:
    def __init__(self, bailout: Node) -> None:
        self.bailout = bailout
        self.graph = Graph()
        self.values: dict[Value, Value] = {}
        """Values of the continuation, by the value of the template that they replace."""

    def build(self) -> Graph:
        for value in self.bailout.inputs:
            self.values[value] = self.graph.add_input(value.base_name, value.type)
        guarded, *_ = self.bailout.inputs
        self.values[self.bailout.output] = self.values[guarded]
        at = self.bailout
        while True:
            block = at.owning_block
            assert block is not None
            self.copy_following(at)
            owner = block.owning_node
            if owner is None:
                break
            if owner.kind == "prim::If":
                for output, result in zip(owner.outputs, block.outputs, strict=True):
                    self.values[output] = self.of(result)
            else:
                self.remaining_iterations(owner)
            at = owner
        for output in block.outputs:
            self.graph.add_output(self.of(output))
        self.drop_bailouts()
        return self.graph

    def of(self, value: Value) -> Value:
        """Return the value of the continuation graph for ``value``. Constants of the template are recreated at its
        start.

        Raises:
            GraphError: the bailout does not capture ``value``.
        """
        found = self.values.get(value)
        if found is None:
            if is_captured(value):
                raise GraphError(f"bailout {self.bailout['index']} does not capture %{value.name}")
            with self.graph.inserting_before(self.graph.return_node.next):
                found = self.graph.insert_node(self.graph.create_clone(value.node, self.of)).output
            self.values[value] = found
        return found

    def copy_following(self, node: Node) -> None:
        """Append copies of the nodes after ``node`` in its block."""
        assert node.owning_block is not None
        end = node.owning_block.return_node
        while (node := node.next) is not end:
            self.graph.insert_clone(node, self.values, self.of)

    def remaining_iterations(self, loop: Node) -> None:
        """Append a loop that runs the iterations of ``loop`` after the current one."""
        graph, view = self.graph, LoopView(loop)
        body, trip_count, counter = view.body, view.trip_count, view.iteration
        done: Value | None = None
        left = None
        if view.counts:
            one = graph.insert_constant(1, range=loop.range)
            done = self._number("aten::add", self.of(counter), one, loop)
            left = (
                self.of(trip_count) if view.is_endless else self._number("aten::sub", self.of(trip_count), done, loop)
            )
        first = [left or self.of(trip_count), *map(self.of, body.outputs)]
        copy = graph.create("prim::Loop", first, types=[output.type for output in loop.outputs], range=loop.range)
        copy.callstack, copy.scope = loop.callstack, loop.scope
        graph.append_node(copy)
        inner = copy.add_block()
        local = inner.clone_from(body, self.of)
        if done is not None and local[counter].has_uses:
            self._count_on(inner, local[counter], done, loop)
        for old, new in zip(loop.outputs, copy.outputs, strict=True):
            self.values[old] = new.copy_metadata(old)

    def _count_on(self, body: Block, counter: Value, done: Value, loop: Node) -> None:
        users = counter.uses
        with self.graph.inserting_before(body.return_node.next):
            number = self._number("aten::add", counter, done, loop)
        for user, offset in users:
            user.replace_input(offset, number)

    def _number(self, kind: str, left: Value, right: Value, loop: Node) -> Value:
        node = self.graph.create(kind, [left, right], types=[INT], range=loop.range)
        node.callstack, node.scope = loop.callstack, loop.scope
        return self.graph.insert_node(node).output

    def drop_bailouts(self) -> None:
        for node in self.graph.find_nodes(BAILOUT):
            guarded, *_ = node.inputs
            node.replace_with(guarded)
