"""Lower loops: unroll those whose trip count is known at export time, and emit ``while_loop`` for the others.

A loop is unrolled if its maximum trip count is known, and its condition before each iteration. Otherwise it becomes one
operator::

    while x.sum() < n:                     while_loop(lambda c, x, n: c,
        x = x + x                becomes              lambda c, x, n: (sum(x + x) < n, x + x),
                                                      (sum(x) < n, x), (n,))

What an iteration changes is carried as tensors; numbers that stay the same are constants of the body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import SymInt, Tensor
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

from rekindle.errors import ExportProblem
from rekindle.exporting.interpreter import branches
from rekindle.exporting.interpreter.appended_lists import GROWING
from rekindle.exporting.interpreter.dry_run import (
    DryRun,
    Operands,
    as_operand,
    dealias,
    dry_run,
    from_operand,
    has_plain_strides,
    note_shared,
    phi_placeholder,
    slot_tensors,
    surrogate,
    unaliased,
    values_of,
    without_gradients,
    without_recording,
)
from rekindle.exporting.interpreter.example_fallback import NeedsExample
from rekindle.exporting.interpreter.state_join import (
    AbstractState,
    JoinedState,
    JoinError,
    Phi,
    PhiInfo,
    Unchanged,
    join_states,
    tensor_for,
    value_of,
)
from rekindle.exporting.interpreter.symbolic_interpreter import Activation, Frame, SymbolicInterpreter, execution_point
from rekindle.exporting.interpreter.values import LeafKey, StateCopier, UnbackedScalar, number_as_tensor, with_symbols
from rekindle.exporting.scalars import scalar_ops
from rekindle.exporting.scalars.unbacked_arithmetic import unbacked_arithmetic
from rekindle.exporting.static_checks import reachable
from rekindle.ir.control_flow import MAX_TRIP_COUNT, LoopView
from rekindle.ir.graph import Node, Value

MAX_FIXPOINT_ROUNDS: Final = 8
"""The maximum number of dry runs of a body to determine the state that it changes."""

MAX_SPECULATIVE_UNROLL: Final = 16
"""Loops of at most this many iterations are unrolled without a dry run, as long as their condition is known."""

MAX_PEELED: Final = 2
"""Maximum number of iterations peeled off before the operator, after which the variables have their final types."""

MAX_UNROLLED: Final = 4096
"""Maximum number of iterations of one loop that are unrolled."""


def start(machine: SymbolicInterpreter, frame: Frame, node: Node) -> None:
    """Begin the execution of a loop: call ``iterate`` with its initial condition and values."""
    env = frame.activation.env
    view = LoopView(node)
    machine.iterate(frame, node, 0, env[view.condition], [env[value] for value in view.initial])


def iterate(
    machine: SymbolicInterpreter, frame: Frame, node: Node, iteration: int, condition: Any, carried: list[Any]
) -> None:
    """Execute the head of a loop, before iteration number ``iteration``: end the loop, unroll an iteration, or lower
    the rest to one operator.

    Raises:
        ExportProblem: there are too many iterations to unroll, or a ``while_loop`` cannot carry the variables.
    """
    limit = frame.activation.env[LoopView(node).trip_count]
    machine.note_reads([limit, condition])
    condition = scalar_ops.settled(condition)
    within = limit if isinstance(limit, UnbackedScalar) else scalar_ops.settled(with_symbols(limit) > iteration)
    if condition is False or within is False:
        machine.bind(frame.activation, node, carried)
        return
    is_known = condition is True and within is True
    if is_known and (iteration > 0 or _is_to_unroll(machine, frame, node, limit, carried)):
        if iteration >= MAX_UNROLLED:
            raise machine.problem(
                frame,
                node,
                f"this loop has more than {MAX_UNROLLED} iterations, which is too many to unroll",
                hint="make its number of iterations an argument, an int that dynamic_shapes names, and keep what it"
                " carries of one kind and shape: it becomes a while_loop then",
            )
        machine.enter_block(frame, node.blocks[0], node, [iteration, *carried], iteration)
        return
    try:
        while_loop(machine, frame, node, iteration, condition, carried)
    except JoinError as mismatch:
        if is_known and iteration < MAX_PEELED:
            machine.enter_block(frame, node.blocks[0], node, [iteration, *carried], iteration)
            return
        if iteration < MAX_PEELED and _peel(machine, frame, node, iteration, condition, carried):
            return
        raise machine.problem(
            frame,
            node,
            f"{_named(limit)} changes the kind of what it carries: {mismatch}",
            hint="give the variables before the loop values of the same kinds and shapes as it leaves, and write to a"
            " tensor of the full size instead of appending to a list",
        ) from None


def _named(limit: Any) -> str:
    """Return the subject of an error about a loop of at most ``limit`` iterations, if that is known."""
    is_bounded = limit < MAX_TRIP_COUNT if isinstance(limit, int) else isinstance(limit, SymInt)
    if is_bounded:
        return "this loop, which a data-dependent condition may end early (a 'break' or 'return'),"
    return "this loop, whose trip count is data-dependent,"


def _peel(
    machine: SymbolicInterpreter, frame: Frame, node: Node, iteration: int, condition: Any, carried: list[Any]
) -> bool:
    """Peel off an iteration that is data-dependent: the program continues separately with it and without it. Return
    True if it does, False if the paths cannot be split."""
    session = machine.session
    known, decided = len(session.problems), dict(session.forced_by_example)
    limit = frame.activation.env[LoopView(node).trip_count]
    within = unbacked_arithmetic("aten::gt", limit, iteration) or scalar_ops.settled(with_symbols(limit) > iteration)
    machine.bind(frame.activation, node, carried)
    frame.activation.env.update(zip(node.blocks[0].inputs, [iteration, *carried], strict=True))
    path = None if frame.path is None else (*frame.path, iteration)
    body = node.blocks[0]
    inner = Frame(frame.activation, body, body.return_node.next, node, None, iteration, path)

    def enter(taken: bool) -> None:
        if taken:
            machine.frames.append(inner)

    try:
        ways = [[*machine.frames, inner], [*machine.frames]]
        goes_on = scalar_ops.both(condition, within)
        if branches.split_paths(machine, frame, node, goes_on, ways, enter, is_trial=True):
            return True
    except (JoinError, ExportProblem, NeedsExample):
        pass
    del session.problems[known:]
    session.forced_by_example = decided
    return False


def _is_to_unroll(machine: SymbolicInterpreter, frame: Frame, node: Node, limit: Any, carried: list[Any]) -> bool:
    """Return whether to unroll a loop: it has few iterations, a known trip count and no condition, or a first iteration
    that raises or after which the condition is known."""
    if isinstance(limit, int) and limit <= MAX_SPECULATIVE_UNROLL:
        return True
    body = node.blocks[0]
    if _is_constant(body.outputs[0], True):
        return isinstance(limit, int)
    rehearsal = dry_run(machine, [_body_frame(frame, node, [0, *carried])], machine.surviving(machine.frames))
    return rehearsal.raised is not None or isinstance(scalar_ops.settled(rehearsal.world.values[0]), bool)


def _is_constant(value: Value, wanted: bool) -> bool:
    node = value.node
    return (
        node.kind == "prim::Constant"
        and value.type.kind == "BoolType"
        and bool(node.attributes.get("value", False)) is wanted
    )


def _body_frame(frame: Frame, node: Node, arguments: Sequence[Any]) -> Frame:
    body = node.blocks[0]
    activation = Activation({**frame.activation.env}, frame.activation.steps)
    activation.env.update(zip(body.inputs, arguments, strict=True))
    return Frame(activation, body, body.return_node.next, None, path=None)


# ----------------------------------------------------------------------------------------------------------- while_loop


@dataclass(slots=True)
class _Loop:
    """A loop that is lowered to one operator, with the results of the dry run of an iteration."""

    frame: Frame
    """Its execution point is the start of the body."""
    template: JoinedState
    """Join of the values before and after an iteration; its first value is the condition."""
    rehearsal: DryRun
    surviving: list[Any]
    """The containers that are used after an iteration."""
    first: list[Any]
    """Values of the slots before the first iteration."""
    operands: Operands
    limit: Any
    """The maximum number of iterations; None if it is unbounded."""
    capacity: Any
    """Maximum number of elements that the iterations append; None if it is unknown before the loop."""

    @property
    def condition(self) -> Any:
        return self.template.values[0]


def while_loop(
    machine: SymbolicInterpreter, frame: Frame, node: Node, iteration: int, condition: Any, carried: list[Any]
) -> None:
    """Lower the remaining iterations of a loop to one operator.

    Raises:
        JoinError: a value changes its kind, shape or structure from one iteration to the next.
        ProgramRaises: an iteration always raises.
        ExportProblem: the body writes to shared memory, or ``while_loop`` rejects it.
    """
    state = [condition, *carried]
    start = _body_frame(frame, node, [iteration, *carried])
    surviving = machine.surviving([*machine.frames, start])
    outside = AbstractState(state, StateCopier({}))
    template = JoinedState([Unchanged(value) for value in state])
    limit = frame.activation.env[LoopView(node).trip_count]
    limit = None if isinstance(limit, int) and limit >= MAX_TRIP_COUNT else limit
    capacity = _capacity(frame, node, limit, iteration, carried)
    for _ in range(MAX_FIXPOINT_ROUNDS):
        before, rehearsal = _dry_run_iteration(machine, start, node, iteration, template, limit, surviving)
        if rehearsal.raised is not None:
            raise rehearsal.raised
        with without_recording(machine):
            found = join_states(before, rehearsal.world, surviving, is_strict=False, capacity=capacity)
        _check_slots(found)
        if found.signature() == template.signature():
            break
        template = found
    else:
        raise JoinError("values that differ in another way each time")
    outside.copier.copies = {id(container): (container, container) for container in surviving}
    first = found.leaves_of(outside)
    operands = Operands.of(found, [rehearsal])
    loop = _Loop(start, found, rehearsal, surviving, first, operands, limit, capacity)
    _check_writes(machine, frame, node, loop)
    values = _operator(machine, frame, node, iteration, loop)
    machine.bind(frame.activation, node, values[1:])


def _capacity(frame: Frame, node: Node, limit: Any, iteration: int, carried: Sequence[Any]) -> Any:
    """Return the maximum number of remaining iterations, which bounds the number of elements that are appended to a
    list. Return None if it is unknown before the loop, or nothing is appended."""
    body = node.blocks[0]
    if not any(inner.kind == "aten::append" for inner in reachable(body.nodes)):
        return None
    if isinstance(limit, (int, SymInt)):
        return scalar_ops.as_size(limit - iteration)
    for term in _terms(body.outputs[0]):
        if term.node.kind not in ("aten::lt", "aten::le") or term.node.owning_block is not body:
            continue
        made, bound = term.node.inputs
        last = frame.activation.env.get(bound)
        if body.contains(bound.node) or not isinstance(last, (int, SymInt)):
            continue
        for value, given, after in zip(carried, body.inputs[1:], body.outputs[1:], strict=True):
            if after is made and isinstance(value, (int, SymInt)) and _step(given, after) >= 1:
                count = last - value if term.node.kind == "aten::lt" else last - value + 1
                return count if scalar_ops.settled(count >= 1) is True else torch.sym_max(count, 1)
    return None


def _terms(condition: Value) -> Iterator[Value]:
    """Yield the conjuncts of ``condition``."""
    node = condition.node
    if node.kind == "aten::__and__":
        for part in node.inputs:
            yield from _terms(part)
    elif node.kind == "prim::If" and _is_constant(node.blocks[1].outputs[condition.offset], False):
        yield from _terms(node.input)  # a and b
        yield from _terms(node.blocks[0].outputs[condition.offset])
    else:
        yield condition


def _step(given: Value, made: Value) -> int:
    """Return the increment of a carried int in an iteration, from ``given`` to ``made``; 0 if it is unknown."""
    node = made.node
    if node.kind != "aten::add":
        return 0
    left, right, *_ = node.inputs
    if given not in (left, right):
        return 0
    by = right if left is given else left
    found = by.node.attributes.get("value")
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _dry_run_iteration(
    machine: SymbolicInterpreter,
    start: Frame,
    node: Node,
    iteration: int,
    template: JoinedState,
    limit: Any,
    surviving: Sequence[Any],
) -> tuple[AbstractState, DryRun]:
    """Run an iteration without recording, from a state in which the values in the slots of ``template`` are unknown.
    Return that state and the dry run."""
    with without_recording(machine):
        counter = UnbackedScalar(
            "int", surrogate(number_as_tensor(iteration)), -1 if not isinstance(limit, (int, SymInt)) else limit
        )
        counters = _counters(node, template, start)
        leaves = [
            _initial_value(info, phi_placeholder(info), index in counters) for index, info in enumerate(template.slots)
        ]
    before: list[Any] = []

    def prepare(frames: list[Frame], copier: StateCopier) -> None:
        _begin(frames[0], node, counter, template.built(leaves, copier))
        untouched = StateCopier(copier.replacements)
        machine.copied([start], untouched)
        before.extend((template.built(leaves, untouched), untouched))

    rehearsal = dry_run(machine, [start], surviving, prepare)
    return AbstractState(before[0], before[1], rehearsal.world.origins), rehearsal


def _initial_value(info: PhiInfo, tensor: Tensor, is_counter: bool) -> Any:
    """Return the value of a slot at the start of an iteration, represented by ``tensor``. For a counter, which starts
    at 0 or above and only grows, it is a non-negative unbacked int; for rows, a list entry that must not be read."""
    if info.kind == "rows":
        return UnbackedScalar("rows", tensor, GROWING)
    return UnbackedScalar("int", tensor, -1) if is_counter else value_of(info.kind, tensor)


def _counters(node: Node, template: JoinedState, start: Frame) -> set[int]:
    """Return the slots of ints that start at 0 or above and only grow."""
    body = node.blocks[0]
    found: set[int] = set()
    for value, given, made in zip(template.values[1:], body.inputs[1:], body.outputs[1:], strict=True):
        first = start.activation.env.get(given)
        if isinstance(value, Phi) and isinstance(first, int) and first >= 0 and _step(given, made) > 0:
            found.add(value.index)
    return found


def _begin(frame: Frame, node: Node, counter: Any, state: Sequence[Any]) -> None:
    body = node.blocks[0]
    frame.activation.env.update(zip(body.inputs, [counter, *state[1:]], strict=True))


def _check_slots(template: JoinedState) -> None:
    for info in template.slots:
        a, b = info.examples
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            if any(not _is_same_size(x, y) for x, y in zip(a.shape, b.shape, strict=True)):
                raise JoinError(f"a tensor of shape {_shape(a)} before an iteration and {_shape(b)} after it")


def _is_same_size(a: Any, b: Any) -> bool:
    if isinstance(a, SymInt) or isinstance(b, SymInt):
        return scalar_ops.settled(a == b) is True
    return bool(a == b)


def _shape(tensor: Tensor) -> str:
    return "[" + ", ".join(str(size) for size in tensor.shape) + "]"


def _check_writes(machine: SymbolicInterpreter, frame: Frame, node: Node, loop: _Loop) -> None:
    """Check that the body writes only to memory that no other tensor shares.

    Raises:
        ExportProblem: the body writes to memory that another tensor may share.
    """
    shared = loop.operands.shared_memory() is not None
    seen = {
        leaf.untyped_storage()._cdata for leaf in machine.leaves_of(machine.frames).values() if isinstance(leaf, Tensor)
    } | machine.session.external_storages
    for info, value in zip(loop.template.slots, loop.first, strict=True):
        before = info.examples[0]
        if isinstance(before, Tensor) and before.untyped_storage()._cdata in loop.rehearsal.memory:
            shared |= isinstance(value, Tensor) and value.untyped_storage()._cdata in seen
    if shared:
        raise machine.problem(
            frame,
            node,
            f"{_named(loop.limit)} writes to a tensor that others see too",
            hint="write to a copy: x = x.clone()",
        )


def _operator(machine: SymbolicInterpreter, frame: Frame, node: Node, iteration: int, loop: _Loop) -> list[Any]:
    """Emit ``while_loop``; return its last condition and the carried values after the loop.

    Tensors that the body writes to are updated. In a dry run, nothing is emitted and the results are placeholders.

    Raises:
        ExportProblem: ``while_loop`` rejects the loop.
    """
    template, session = loop.template, machine.session
    if session.dry_run_depth:
        results: Sequence[Tensor] = [phi_placeholder(info) for info in template.slots]
        note_shared(machine, template, [loop.rehearsal], results, execution_point(frame, node))
        return values_of(template, results)
    functions = _Functions(machine, node, loop, iteration)
    session.places.enter(frame.activation.steps, node)
    first = functions.first()
    try:
        results = torch.ops.higher_order.while_loop(
            functions.goes_on, functions.body, first, tuple(functions.additional())
        )
    except (RuntimeError, AssertionError) as error:
        if isinstance(error, ExportProblem):
            raise
        raise machine.problem(
            frame,
            node,
            f"while_loop cannot hold this loop: {error}",
            hint="have it run a number of times that is known, or move what is not supported in it out of the loop",
        ) from error
    session.places.enter(frame.activation.steps, node)
    count = len(template.slots)
    loop.operands.write_back(results[1 + count :])
    passed = UnbackedScalar("int", results[0])
    results = without_gradients(template, results[1 : 1 + count])
    if isinstance(loop.condition, Phi):
        for index, info in enumerate(template.slots):
            if info.kind == "rows":
                results[index] = _as_many(results[index], passed, iteration)
    note_shared(machine, template, [loop.rehearsal], results, execution_point(frame, node))
    return values_of(template, results)


def _as_many(rows: Tensor, passed: UnbackedScalar, iteration: int) -> Tensor:
    """Return the first ``passed - iteration`` rows: those that the iterations of the operator have written. ``passed``
    is the iteration number after the loop, ``iteration`` the one before it."""
    count = passed.number - iteration
    torch._check(count >= 0)
    torch._check(count <= rows.shape[0])
    return rows.narrow(0, 0, count)


class _Functions:
    """The condition and the body that ``while_loop`` takes. Its carried values are the index of the iteration, the
    slots, and the tensors that the body writes to; the loop-invariant inputs follow."""

    def __init__(self, machine: SymbolicInterpreter, node: Node, loop: _Loop, iteration: int) -> None:
        self.iteration = iteration
        self.machine = machine
        self.node = node
        self.loop = loop
        operands = loop.operands
        self.written = list(operands.written)
        self.read = {key: leaf for key, leaf in operands.leaves.items() if key not in operands.written}
        self.sizes = {key: leaf for key, leaf in self.read.items() if self._is_of_sizes(leaf)}
        """The numbers that are sizes of tensors, or computed from sizes. An iteration recomputes them."""
        self.read = {key: leaf for key, leaf in self.read.items() if key not in self.sizes}

    def _is_of_sizes(self, leaf: Any) -> bool:
        known = {size.node.expr for size in self._sizes_of(self.read)}
        return isinstance(leaf, SymInt) and bool(leaf.node.expr.free_symbols) and leaf.node.expr.free_symbols <= known

    def _sizes_of(self, tensors: Mapping[LeafKey, Any], like: Mapping[LeafKey, Any] | None = None) -> Iterator[SymInt]:
        """Yield the sizes of ``tensors`` at the dimensions at which those of ``like`` are symbols."""
        for key, tensor in (tensors if like is None else like).items():
            if isinstance(tensor, Tensor):
                for index, size in enumerate(tensor.shape):
                    if isinstance(size, SymInt) and size.node.expr.is_Symbol:
                        yield tensors[key].shape[index]

    def _computed(self, replacements: Mapping[LeafKey, Any]) -> dict[LeafKey, Any]:
        """Return the replacements of numbers that are computed from sizes, given those of the tensors."""
        symbols = [size.node.expr for size in self._sizes_of(self.read)]
        known = dict(zip(symbols, self._sizes_of(replacements, self.read), strict=True))
        return {key: sympy_interp(PythonReferenceAnalysis, known, leaf.node.expr) for key, leaf in self.sizes.items()}

    def first(self) -> tuple[Tensor, ...]:
        """Return the initial carried values."""
        tensors = []
        for info, value in zip(self.loop.template.slots, self.loop.first, strict=True):
            tensor = self._no_rows(info) if info.kind == "rows" else tensor_for(info, value)
            tensors.append(tensor if has_plain_strides(info) else tensor.contiguous())
        written = list(self.loop.operands.written.values())
        return unaliased([number_as_tensor(self.iteration), *tensors, *written], list(self.read.values()))

    def _no_rows(self, info: PhiInfo) -> Tensor:
        """Return zeros with one row for each element that the iterations may append to a list."""
        shape = [self.loop.capacity, *info.example.shape[1:]]
        made: Tensor = torch.ops.aten.full.default(shape, 0, dtype=info.example.dtype, device=info.example.device)
        return made

    def additional(self) -> list[Any]:
        """Return the loop-invariant inputs; the last one is the limit, if it is data-dependent."""
        given = dealias([as_operand(leaf) for leaf in self.read.values()])
        if isinstance(self.loop.limit, (UnbackedScalar, SymInt)):
            limit = self.loop.limit
            given.append(number_as_tensor(limit))
        return given

    def goes_on(self, counter: Tensor, *rest: Any) -> Tensor:
        """Compute the condition of ``while_loop``: whether there is another iteration."""
        limit, condition = self.loop.limit, self.loop.condition
        result: Any = True
        if isinstance(limit, (UnbackedScalar, SymInt)):
            result = UnbackedScalar("bool", torch.ops.aten.lt.Tensor(counter, rest[-1]))
        elif limit is not None:
            result = UnbackedScalar("bool", torch.ops.aten.lt.Scalar(counter, limit))
        if isinstance(condition, Phi):
            result = scalar_ops.both(result, UnbackedScalar("bool", rest[condition.index]))
        return unaliased([scalar_ops.condition_tensor(result)], [counter, *rest])[0]

    def body(self, counter: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        """Compute the body of ``while_loop``: one iteration."""
        loop, machine, template = self.loop, self.machine, self.loop.template
        count, written_count = len(template.slots), len(self.written)
        slots, written, given = rest[:count], rest[count : count + written_count], rest[count + written_count :]
        replacements: dict[LeafKey, Any] = {
            key: from_operand(leaf, value) for (key, leaf), value in zip(self.read.items(), given, strict=False)
        }
        replacements.update(self._computed(replacements))
        replacements.update((key, tensor.clone()) for key, tensor in zip(self.written, written, strict=True))
        copier = StateCopier(replacements)
        frames = machine.copied([loop.frame], copier)
        state = template.built(self._slot_values(slots), copier)
        _begin(frames[0], self.node, UnbackedScalar("int", counter, self._limit()), state)
        with machine.session.in_body():
            world = AbstractState(machine.fresh(frames, copier, loop.surviving).run(), copier)
        changed = [replacements[key] for key in self.written]
        following = torch.ops.aten.add.Tensor(counter, 1)
        number = counter if self.iteration == 0 else torch.ops.aten.sub.Tensor(counter, self.iteration)
        return unaliased([following, *slot_tensors(template, world, number), *changed], [counter, *rest])

    def _limit(self) -> int:
        limit = self.loop.limit
        return limit if isinstance(limit, int) else -1

    def _slot_values(self, slots: Sequence[Tensor]) -> list[Any]:
        values: list[Any] = []
        counters = _counters(self.node, self.loop.template, self.loop.frame)
        for index, (info, tensor) in enumerate(zip(self.loop.template.slots, slots, strict=True)):
            before = info.examples[0]
            if isinstance(before, Tensor) and before.untyped_storage()._cdata in self.loop.rehearsal.memory:
                tensor = tensor.clone()  # operators of a higher order may not write to what they are given
            values.append(_initial_value(info, tensor, index in counters))
        return values
