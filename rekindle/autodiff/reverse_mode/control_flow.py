"""Backward of branches and loops.

The backward of an ``if`` differentiates the branch that was taken; the backward of a loop runs over the iterations in
reverse:

.. code-block:: text

    %y : Tensor = prim::Loop(%n, %true, %x)               %gx : Tensor = prim::Loop(%n, %true, %gy)
      block0(%i : int, %a : Tensor):                        block0(%j : int, %g : Tensor):
        %b : Tensor = aten::mul(%a, %w)       becomes         %ga : Tensor = aten::mul(%g, %w)
        return (%true, %b)                                    return (%true, %ga)

Values that a block captures have gradients too: a branch returns them, a loop accumulates them over its iterations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rekindle.analysis.constants import constant_bool, constant_int
from rekindle.autodiff.reverse_mode.collected_lists import collected_lists
from rekindle.autodiff.reverse_mode.gradient_regions import constant, joined_gradient_type
from rekindle.autodiff.reverse_mode.tape import TapeEntry
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Node, Value
from rekindle.ir.types import BOOL, INT, Type

if TYPE_CHECKING:
    from rekindle.autodiff.reverse_mode.reverse import BlockBackward


def backward_of_if(scope: BlockBackward, step: TapeEntry, node: Node) -> None:
    """Emit the backward of ``node``, a ``prim::If``: an ``if`` on the same condition."""
    graph = scope.graph
    given = [
        (index, scope.as_value(scope.gradients[output]))
        for index, output in enumerate(node.outputs)
        if output in scope.gradients
    ]
    back = graph.insert_node(graph.create("prim::If", [scope.control_values(node.input)], outputs=0))
    found: list[dict[Value, Value]] = []
    for forward, steps in zip(node.blocks, step.blocks, strict=True):
        inner = scope.inner(forward, back.add_block())
        for index, gradient in given:
            inner.add(forward.outputs[index], gradient)
        inner.build_backward(steps)
        found.append(
            {value: inner.as_value(each) for value, each in inner.gradients.items() if _is_around(value, forward)}
        )
    for value in dict.fromkeys((*found[0], *found[1])):
        type = joined_gradient_type(*(branch[value].type if value in branch else None for branch in found))
        assert type is not None
        output = back.add_output(type)
        for block, branch in zip(back.blocks, found, strict=True):
            block.add_output(_fitted(scope, block, branch.get(value), type))
        scope.add(value, output)


def _fitted(scope: BlockBackward, block: Block, value: Value | None, type: Type) -> Value:
    """Return ``value`` converted to ``type``, as a result of ``block``; a constant None if there is no value."""
    if value is None:
        return constant(scope.graph, None, type)
    with scope.graph.inserting_at_end(block):
        return scope.places.fitting(value, type)


def _is_around(value: Value, block: Block) -> bool:
    """Return whether ``value`` is defined outside of ``block``."""
    own = value.node.owning_block
    return own is not block and (own is None or not block.contains(value.node))


def _used_from_around(block: Block) -> Iterator[Value]:
    """Yield the values that ``block`` captures."""
    pending = [block]
    while pending:
        each = pending.pop()
        for node in (*each.nodes, each.return_node):
            pending += node.blocks
            yield from (value for value in node.inputs if _is_around(value, block))


# ---------------------------------------------------------------------------------------------------------------- loops


def backward_of_loop(scope: BlockBackward, step: TapeEntry, node: Node) -> None:
    """Emit the backward of the loop ``node``: a loop over its iterations, from the last to the first. If a condition
    may end ``node``, it gets an output that counts its iterations."""
    _LoopBackward(scope, step, node).run()


class _LoopBackward:
    """Builder of the backward of a loop. The backward is rebuilt as long as a gradient that it carries turns out to
    be optional in some iteration."""

    def __init__(self, scope: BlockBackward, step: TapeEntry, node: Node) -> None:
        self.scope = scope
        self.step = step
        self.node = node
        self.forward = node.blocks[0]
        needed = scope.way.active
        self.carried = [each for each in LoopView(node).carried if each.parameter in needed]
        self.filled = [each.value for each in collected_lists(node)]
        """Lists whose gradients the loop reads, and does not add to."""
        around = dict.fromkeys(value for value in _used_from_around(self.forward) if value in needed)
        self.around = [value for value in around if value not in self.filled]

    def run(self) -> None:
        scope = self.scope
        starts: list[Value | None] = [self._start(output) for *_, output in self.carried]
        taken: set[Value] = set()
        for value in self.around:
            known = self._known(value)
            if known is not None:
                taken.add(value)
            starts.append(known)
        types: list[Type | None] = [
            None if start is None else joined_gradient_type(start.type, start.type) for start in starts
        ]
        # The types only get wider when a loop around this one is built again. Starting from those of the build before
        # keeps the time polynomial in the depth.
        known_types = scope.way.carried_types.get(self.node, types)
        types = [_wider(type, known) for type, known in zip(types, known_types, strict=True)]
        iterations = trip_count(self.node)
        while True:
            back, results = self._build(starts, types, iterations)
            wider = [_wider(type, None if r is None else r.type) for type, r in zip(types, results, strict=True)]
            if wider == types:
                break
            back.destroy()
            types = wider
        scope.way.carried_types[self.node] = types
        block = back.blocks[0]
        for type, result in zip(types, results, strict=True):
            if type is not None:
                block.add_output(_fitted(scope, block, result, type))
        outputs = iter(back.outputs)
        for value in taken:
            del scope.gradients[value]
        for value, type in zip([*(start for start, *_ in self.carried), *self.around], types, strict=True):
            if type is not None:
                scope.add(value, next(outputs))

    def _start(self, output: Value) -> Value | None:
        gradient = self.scope.of(output)
        return None if gradient is None else self.scope.as_value(gradient)

    def _known(self, value: Value) -> Value | None:
        """Return the gradient that ``value`` already has, if iterations can add to it; else None."""
        scope = self.scope
        gradient = scope.of(value)
        if gradient is None or scope.place is not scope.places.root:
            return None
        return scope.as_value(gradient)

    def _build(
        self, starts: list[Value | None], types: list[Type | None], iterations: Value
    ) -> tuple[Node, list[Value | None]]:
        """Create the backward loop with these initial values and types of carried gradients. Return the node, whose
        body so far returns only its condition, and the values that the body is to return."""
        scope = self.scope
        graph = scope.graph
        true = constant(graph, True, BOOL)
        inputs = [scope.control_values(iterations), true]
        for start, type in zip(starts, types, strict=True):
            if type is not None:
                inputs.append(_fitted(scope, scope.place.block, start, type))
        defined_types = [type for type in types if type is not None]
        loop = graph.insert_node(graph.create("prim::Loop", inputs, types=defined_types))
        block = loop.add_block()
        block.add_input(type=INT)
        block.add_output(true)
        inner = scope.inner(self.forward, block)
        results = [result for _, _, result, _ in self.carried]
        for type, value in zip(types, [*results, *self.around], strict=True):
            if type is not None:
                inner.add(value, block.add_input(type=type))
        for value in self.filled:
            gradient = scope.of(value)
            inner.add(value, None if gradient is None else scope.as_value(gradient))
        inner.build_backward(self.step.blocks[0])
        found: list[Value | None] = []
        for value in [*(inside for _, inside, _, _ in self.carried), *self.around]:
            gradient = inner.of(value)
            found.append(None if gradient is None else inner.as_value(gradient))
        return loop, found


def _wider(type: Type | None, result: Type | None) -> Type | None:
    """Return the type of a carried gradient that starts as ``type``, and that an iteration returns as ``result``; None
    if there is a gradient in neither."""
    return None if type is None and result is None else joined_gradient_type(type, result)


def trip_count(loop: Node) -> Value:
    """Return the number of iterations of ``loop``: its limit, if its condition never ends it, else an output that
    counts iterations, which is added to ``loop`` if there is none."""
    view = LoopView(loop)
    block = view.body
    if constant_bool(view.condition) and constant_bool(view.next_condition):
        return view.trip_count
    counted = loop.outputs[-1] if loop.outputs else None
    if counted is not None and _is_counter(loop):
        return counted
    graph = loop.graph
    with graph.inserting_before(loop):
        loop.add_input(graph.insert_constant(0))
    with graph.inserting_at_end(block):
        before = block.add_input(type=INT)
        block.add_output(graph.insert("aten::add", [before, 1]))
    return loop.add_output(INT)


def _is_counter(loop: Node) -> bool:
    """Return whether the last variable that a loop carries counts its iterations."""
    variable = LoopView(loop).carried[-1]
    made = variable.following.node
    if made.kind != "aten::add" or constant_int(variable.initial) != 0:
        return False
    number, step, *_ = made.inputs
    return number is variable.parameter and constant_int(step) == 1
