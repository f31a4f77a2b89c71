"""Segmented checkpointing: run loops in segments, so that residuals need not be saved for all iterations.

.. code-block:: text

    %y : Tensor = prim::Loop(%n, %true, %x)        %s : int = autodiff::segment_length(%limit, %n, %kept, %carried)
      block0(%i : int, %a : Tensor):               %end : int, %y : Tensor = prim::Loop(%forever, %any, %zero, %x)
        %b : Tensor = aten::sin(%a)                  block0(%k : int, %start : int, %a : Tensor):
        return (%true, %b)                             %left : int = aten::sub(%n, %start)
                                         becomes       %m : int = prim::min(%left, %s)
                                                       %b : Tensor = prim::Loop(%m, %true, %a)
                                                         block0(%j : int, %c : Tensor):
                                                           %i : int = aten::add(%start, %j)
                                                           …
                                                       %next : int = aten::add(%start, %m)
                                                       %more : bool = aten::lt(%next, %n)
                                                       return (%more, %next, %b)

The residuals of the inner loop are saved for some segments, and recomputed for the others by running it again:
:mod:`rekindle.autodiff.residuals.stashing`. The bytes per iteration are measured by running the first two iterations
beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from rekindle.analysis.constants import constant_bool
from rekindle.analysis.effects import is_nondeterministic
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.reverse_mode.gradient_regions import constant
from rekindle.ir.control_flow import MAX_TRIP_COUNT, LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import BOOL, INT, TENSOR, ListType

_STATES: Final = ListType(TENSOR)
_ONCE_ONLY_KINDS: Final = frozenset({"prim::Print", "aten::warn"})
"""Kinds whose effects must occur once only."""


@dataclass(slots=True, eq=False)
class CheckpointSegment:
    """A loop that was split into segments. ``loop`` runs the iterations of one segment, in the body of another loop.
    ``is_saved`` is whether the residuals of this segment are saved.

    ``kept_bytes`` and ``carried_bytes`` are nodes before the outer loop; the values to measure become their inputs.
    There, values of the body of the outer loop are mapped by ``first_iteration_values``. ``state`` is the state of the
    random number generators before ``loop``, if it draws any.
    """

    loop: Node
    is_saved: Value
    kept_bytes: Node
    carried_bytes: Node
    first_iteration_values: dict[Value, Value]
    state: Value | None

    def run(self, place: Node, lists: Collection[Value], local: Callable[[Value], Value]) -> dict[Value, Value]:
        """Insert code that recomputes the segment: before ``place``, the empty ``lists`` for its residuals, and a copy
        of ``loop`` that draws the same random numbers, and prints and warns of nothing. Return the values of the copy
        by those of ``loop``. ``local`` maps the other values."""
        graph = place.graph
        copies: dict[Value, Value] = {}

        def known(value: Value) -> Value:
            return copies[value] if value in copies else local(value)

        for value in lists:
            copies[value] = graph.create_clone(value.node, known).insert_before(place).output
        now: Value | None = None
        if self.state is not None:
            now = graph.create("autodiff::generator_state", types=[_STATES]).insert_before(place).output
            graph.create("autodiff::set_generator_state", [known(self.state)], outputs=0).insert_before(place)
        copy = graph.create_clone(self.loop, known).insert_before(place)
        if now is not None:
            graph.create("autodiff::set_generator_state", [now], outputs=0).insert_before(place)
        for node in list(copy.blocks[0].all_nodes()):
            if node.kind in _ONCE_ONLY_KINDS:
                node.destroy()
        copies.update(zip(self.loop.outputs, copy.outputs, strict=True))
        return copies

    def measure(self, lists: Collection[Value]) -> None:
        """Insert a run of the first two iterations before the loop. Its ``lists`` become inputs of ``kept_bytes``, and
        the loop-carried values inputs of ``carried_bytes``."""
        place = self.kept_bytes
        graph = place.graph
        known = dict(self.first_iteration_values)

        def local(value: Value) -> Value:
            found = known.get(value)
            if found is None:
                if value.node.owning_block is not self.loop.owning_block:
                    return value
                clone = graph.create_clone(value.node, local).insert_before(place)
                known.update(zip(value.node.outputs, clone.outputs, strict=True))
                found = known[value]
            return found

        copies = self.run(place, lists, local)
        for value in lists:
            self.kept_bytes.add_input(copies[value])
        for value in self.loop.outputs:
            if may_contain_tensor(value.type):
                self.carried_bytes.add_input(copies[value])


def checkpoint_loops(graph: Graph, wanted: Collection[Value], limit: int) -> dict[Node, CheckpointSegment]:
    """Split the outermost loops of ``graph`` through which gradients of ``wanted`` may flow into segments, in place, so
    that they save about ``limit`` bytes together. Return a :class:`CheckpointSegment` for each, by the loop that runs
    the iterations of one segment."""
    reached = _reached_from(wanted)
    loops = [
        loop for loop in _outermost(graph.block) if any(_uses(node, reached) for node in loop.blocks[0].all_nodes())
    ]
    segments = [_segmented(loop, limit // len(loops)) for loop in loops]
    return {segment.loop: segment for segment in segments}


def _outermost(block: Block) -> Iterator[Node]:
    for node in block.nodes:
        if node.kind == "prim::Loop":
            yield node
            continue
        for inner in node.blocks:
            yield from _outermost(inner)


def _uses(node: Node, values: Collection[Value]) -> bool:
    return any(value in values for value in node.inputs)


def _reached_from(wanted: Collection[Value]) -> set[Value]:
    """Return the values that may depend on ``wanted``."""
    found = set(wanted)
    pending = list(found)
    while pending:
        for user, offset in pending.pop().uses:
            made = list(user.outputs)
            block = user.owning_block
            if user.kind == "prim::Return":
                owner = None if block is None else block.owning_node
                made = [] if owner is None else list(owner.outputs)
                if owner is not None and owner.kind == "prim::Loop":
                    made += owner.blocks[0].inputs
            elif user.kind == "prim::Loop" and offset >= 2:
                made.append(LoopView(user).parameters[offset - 2])
            fresh = [value for value in made if value not in found]
            found.update(fresh)
            pending += fresh
    return found


def _segmented(loop: Node, limit: int) -> CheckpointSegment:
    """Replace ``loop`` by a loop over segments, which contains a loop over the iterations of a segment. Return the
    segment."""
    graph = loop.graph
    made = _LoopArithmetic(loop)
    trip_count, condition, *starts = loop.inputs
    true, zero, one = constant(graph, True, BOOL), constant(graph, 0), constant(graph, 1)
    room, forever = constant(graph, limit), constant(graph, MAX_TRIP_COUNT)
    is_counted = constant_bool(condition) is True and constant_bool(loop.blocks[0].outputs[0]) is True

    first_trip_count = made.before(loop, "prim::min", trip_count, constant(graph, 2))
    kept_bytes = graph.create("autodiff::bytes_per_iteration", types=[INT]).insert_before(loop)
    carried_bytes = graph.create("autodiff::storage_bytes", types=[INT]).insert_before(loop)
    sizes = [kept_bytes.output, carried_bytes.output]
    at_once = made.before(loop, "autodiff::segment_length", room, trip_count, *sizes)
    begins = made.before(loop, "aten::gt", trip_count, zero)
    if not is_counted:
        begins = made.before(loop, "aten::__and__", begins, condition)

    outer = graph.create("prim::Loop", [forever, begins, zero, *starts], outputs=0, range=loop.range)
    outer.insert_before(loop)
    block = outer.add_block()
    end = block.return_node
    block.add_input(type=INT)
    start = block.add_input(type=INT)
    outer.add_output(INT)
    carried = [block.add_input(type=output.type).copy_metadata(output) for output in loop.outputs]
    for output in loop.outputs:
        output.replace_all_uses_with(outer.add_output(output.type).copy_metadata(output))
    number = made.before(end, "aten::floordiv", start, at_once)
    is_saved = made.before(end, "autodiff::is_kept", room, trip_count, *sizes, at_once, number)
    most = made.before(end, "prim::min", made.before(end, "aten::sub", trip_count, start), at_once)
    first = {start: zero, most: first_trip_count, **dict(zip(carried, starts, strict=True))}
    state = None
    if any(is_nondeterministic(node) for node in loop.blocks[0].all_nodes() if not node.blocks):
        state = graph.create("autodiff::generator_state", types=[_STATES]).insert_before(end).output
        before = graph.create("autodiff::generator_state", types=[_STATES]).insert_before(kept_bytes)
        first[state] = before.output

    inner = graph.create_clone(loop, lambda value: value).insert_before(end)
    for index, value in enumerate(carried):
        inner.replace_input(index + 2, value)
    results = list(inner.outputs)
    if is_counted:
        inner.replace_input(0, most)
        made.count_from(inner, LoopView(inner).iteration, start)
        following = made.before(end, "aten::add", start, most)
        goes_on = made.before(end, "aten::lt", following, trip_count)
    else:
        goes = block.add_input(type=BOOL)
        outer.add_input(condition)
        outer.add_output(BOOL)
        first[goes] = condition
        inner.replace_input(0, forever)
        runs = made.before(inner, "aten::__and__", goes, made.before(inner, "aten::gt", most, zero))
        inner.replace_input(1, runs)
        done, goes = made.ask(inner, start, most, (true, zero, one))
        following = made.before(end, "aten::add", start, done)
        goes_on = made.before(end, "aten::__and__", goes, made.before(end, "aten::lt", following, trip_count))
        results.append(goes)
    for value in (goes_on, following, *results):
        block.add_output(value)
    loop.destroy()
    return CheckpointSegment(inner, is_saved, kept_bytes, carried_bytes, first, state)


_BOOL_KINDS: Final = frozenset({"autodiff::is_kept", "aten::gt", "aten::lt", "aten::__and__"})


@dataclass(slots=True, frozen=True)
class _LoopArithmetic:
    """Inserts the arithmetic on iteration numbers for the segments of ``loop``."""

    loop: Node

    def before(self, place: Node, kind: str, *inputs: Value) -> Value:
        type = BOOL if kind in _BOOL_KINDS else INT
        node = place.graph.create(kind, inputs, types=[type], range=self.loop.range)
        return node.insert_before(place).output

    def count_from(self, inner: Node, iteration: Value, start: Value) -> None:
        """Renumber the iterations of ``inner``: the users of its iteration number read ``start`` plus ``iteration``
        instead."""
        view = LoopView(inner)
        uses = view.iteration.uses
        number = self.before(view.body.return_node.next, "aten::add", start, iteration)
        for use in uses:
            use.user.replace_input(use.offset, number)

    def ask(self, inner: Node, start: Value, most: Value, known: tuple[Value, Value, Value]) -> tuple[Value, Value]:
        """Rewrite the loop ``inner`` so that it ends when its condition is false, or after ``most`` iterations. Return
        its number of iterations and its last condition."""
        true, zero, one = known
        block = inner.blocks[0]
        inner.add_input(true)
        block.add_input(type=BOOL)
        inner.add_input(zero)
        iteration = block.add_input(type=INT)
        self.count_from(inner, iteration, start)
        goes = block.outputs[0]
        count = self.before(block.return_node, "aten::add", iteration, one)
        block.add_output(goes)
        block.add_output(count)
        more = self.before(block.return_node, "aten::lt", count, most)
        block.replace_output(0, self.before(block.return_node, "aten::__and__", goes, more))
        goes_on = inner.add_output(BOOL)
        return inner.add_output(INT), goes_on
