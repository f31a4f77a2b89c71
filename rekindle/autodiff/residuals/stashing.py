"""Stash residuals: return the values of branches and loops that the backward reads.

.. code-block:: text

                                                    %kept : Tensor[] = prim::ListConstruct()
    %y : Tensor = prim::Loop(%n, %true, %x)         %y : Tensor = prim::Loop(%n, %true, %x)
      block0(%i : int, %a : Tensor):                  block0(%i : int, %a : Tensor):
        %b : Tensor = aten::sin(%a)       becomes       %b : Tensor = aten::sin(%a)
        return (%true, %b)                              %1 : Tensor[] = aten::append(%kept, %a)
                                                        return (%true, %b)

The backward takes ``%kept``, and its iteration ``%j`` reads ``%kept[%n - 1 - %j]``. A branch returns its residuals; the
other branch returns None for them.

For a loop that runs the iterations of one segment (:mod:`rekindle.autodiff.residuals.loop_checkpointing`), ``%kept`` is
returned only if the segment is saved; otherwise the backward runs the loop again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from rekindle.autodiff.residuals.loop_checkpointing import CheckpointSegment
from rekindle.autodiff.residuals.selection import block_of, depth_of
from rekindle.autodiff.reverse_mode.gradient_regions import constant, optional
from rekindle.autodiff.reverse_mode.reverse import BlockBackward, LinkedBackward
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import INT, TENSOR, ListType, OptionalType, TensorType


def stash_residuals(backward: LinkedBackward, segments: Mapping[Node, CheckpointSegment] | None = None) -> None:
    """Rewrite ``backward`` and its forward graph, so that ``backward`` reads only values of the top-level block of the
    forward graph: branches return their values, and loops append theirs to lists. ``segments`` are the loops of which
    not all iterations need to be saved."""
    _ResidualStasher(backward, segments or {}).run()


@dataclass(slots=True, eq=False)
class _ResidualStasher:
    backward: LinkedBackward
    segments: Mapping[Node, CheckpointSegment]
    indices: dict[Block, Value] = field(default_factory=dict)
    """For each body of a loop of the backward: the index of the forward iteration that it differentiates."""
    lists: dict[Node, list[Value]] = field(default_factory=dict)
    """Lists that hold the values of the loops of segments."""

    @property
    def graph(self) -> Graph:
        return self.backward.graph

    def run(self) -> None:
        read = self.backward.read
        first = len(self.graph.inputs) - len(read)
        for value in [value for value in read if value.node.kind == "prim::Constant"]:
            self._reading(value).replace_all_uses_with(self._known(value))
            self._forget(value)
        while True:
            inner = [index for index, value in enumerate(read) if block_of(value).owning_node is not None]
            if not inner:
                return
            index = max(inner, key=lambda each: depth_of(block_of(read[each])))
            value, here = read[index], self.graph.inputs[first + index]
            loop = next((loop for loop, lists in self.lists.items() if value in lists), None)
            if loop is not None:
                self._recompute_segment(self.segments[loop], self.lists.pop(loop))
                continue
            here.replace_all_uses_with(self._outside(value, self.backward.scopes[block_of(value)]))
            self._forget(value)

    def _reading(self, value: Value) -> Value:
        """Return the input of the backward graph for the forward value ``value``; it is added if there is none."""
        read = self.backward.read
        first = len(self.graph.inputs) - len(read)
        if value in read:
            return self.graph.inputs[first + read.index(value)]
        read.append(value)
        return self.graph.add_input(type=value.type)

    def _forget(self, value: Value) -> None:
        """Remove the input of the backward graph for ``value``, which is no longer used."""
        read = self.backward.read
        index = read.index(value)
        self.graph.block.erase_input(len(self.graph.inputs) - len(read) + index)
        del read[index]

    def _outside(self, value: Value, scope: BlockBackward) -> Value:
        """Return ``value`` in the block of ``scope``, stashed out of the blocks in between."""
        node = scope.forward.owning_node
        assert node is not None
        if node.kind == "prim::If":
            return self._of_branch(value, scope, node)
        if value is LoopView(node).iteration:
            return self._index(scope)
        return self._residual_of_iteration(value, scope, node)

    def _of_branch(self, value: Value, scope: BlockBackward, node: Node) -> Value:
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

    def _residual_of_iteration(self, value: Value, scope: BlockBackward, node: Node) -> Value:
        type = ListType(TENSOR if isinstance(value.type, TensorType) else value.type)
        forward = node.graph
        saved = forward.create("prim::ListConstruct", [], types=[type]).insert_before(node).output
        append = forward.create("aten::append", [saved, value], types=[type], range=value.node.range)
        append.insert_before(scope.forward.return_node)
        if node in self.segments:
            self.lists.setdefault(node, []).append(saved)
        index = self._index(scope)
        item = self.graph.create("aten::__getitem__", [self._reading(saved), index], types=[value.type])
        return item.insert_after(index.node).output

    def _index(self, scope: BlockBackward) -> Value:
        found = self.indices.get(scope.block)
        if found is None:
            loop = scope.block.owning_node
            assert loop is not None
            view = LoopView(loop)
            first = scope.block.return_node.next
            with self.graph.inserting_before(first):
                last = self.graph.insert("aten::sub", [view.trip_count, 1])
                found = self.indices[scope.block] = self.graph.insert("aten::sub", [last, view.iteration])
            assert found.type == INT
        return found

    # ----------------------------------------------------------------------------------------------------- segments

    def _recompute_segment(self, segment: CheckpointSegment, lists: list[Value]) -> None:
        """Insert a branch that returns the contents of ``lists``: the saved ones, or those of a recomputation if the
        segment was not saved."""
        segment.measure(lists)
        scope = self.backward.scopes[block_of(segment.is_saved)]
        graph = self.graph
        index = self._index(scope)
        node = graph.create("prim::If", [self._reading(segment.is_saved)], types=[value.type for value in lists])
        node.insert_after(index.node)
        for value, output in zip(lists, node.outputs, strict=True):
            self._reading(value).replace_all_uses_with(output)
            self._forget(value)
        handed, again = node.add_block(), node.add_block()
        copies = segment.run(again.return_node, lists, self._known)
        for value in lists:
            again.add_output(copies[value])
        for value in self._handed_on(segment, lists):
            handed.add_output(self._reading(value))

    def _known(self, value: Value) -> Value:
        """Return the value of the backward graph for a forward value: a copy of a constant, else an input."""
        if value.node.kind != "prim::Constant":
            return self._reading(value)
        clone = self.graph.create_clone(value.node, self._known)
        return clone.insert_before(self.graph.return_node.next).output

    def _handed_on(self, segment: CheckpointSegment, lists: list[Value]) -> list[Value]:
        """Replace the loop of a segment by a branch: it fills ``lists`` if the segment is saved, and leaves them empty
        otherwise. Return the lists that the branch returns."""
        loop = segment.loop
        forward = loop.graph
        results = [*lists, *loop.outputs]
        branch = forward.create("prim::If", [segment.is_saved], types=[value.type for value in results])
        branch.insert_before(loop)
        for is_kept in (True, False):
            block = branch.add_block()
            copies = {value: block.append(forward.create_clone(value.node, _same)).output for value in lists}
            copy = block.append(forward.create_clone(loop, partial(_either, copies)))
            copies.update(zip(loop.outputs, copy.outputs, strict=True))
            for value in results:
                block.add_output(copies[value])
            if not is_kept:
                for use in [use for value in lists for use in copies[value].uses if use.user.kind == "aten::append"]:
                    use.user.destroy()
        read = self.backward.read
        for value, output in zip(results, branch.outputs, strict=True):
            if value in read:
                read[read.index(value)] = output
            value.replace_all_uses_with(output)
        loop.destroy()
        for value in lists:
            value.node.destroy()
        return list(branch.outputs)[: len(lists)]


def _same(value: Value) -> Value:
    return value


def _either(copies: Mapping[Value, Value], value: Value) -> Value:
    return copies.get(value, value)
