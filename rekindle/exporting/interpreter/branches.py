"""Lower an ``if`` on a data-dependent condition to ``torch.cond``.

If the results of both blocks differ in tensors alone, ``torch.cond`` returns the results of the ``if``. If they differ
otherwise (None and a Tensor, lists of different lengths, a flag that ``break`` and ``return`` set), the paths are
split: all that follows is emitted into both branches, so that each knows its own values::

    if c:                            cond(c, lambda x: (sin(x),), lambda x: (g(x),), (x,))
        return sin(x)      becomes
    return g(x)

A branch that only raises becomes an assertion that it is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import SymBool, Tensor
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from rekindle.errors import ExportProblem
from rekindle.exporting.interpreter.dry_run import (
    DryRun,
    Operands,
    dry_run,
    note_shared,
    phi_placeholder,
    slot_tensors,
    unaliased,
    values_of,
    without_gradients,
)
from rekindle.exporting.interpreter.state_join import AbstractState, JoinedState, JoinError, join_states
from rekindle.exporting.interpreter.symbolic_interpreter import (
    Frame,
    ProgramRaises,
    SymbolicInterpreter,
    execution_point,
)
from rekindle.exporting.interpreter.values import StateCopier, UnbackedScalar
from rekindle.exporting.scalars import scalar_ops
from rekindle.ir.graph import Block, Node, Value
from rekindle.ops.python.exceptions import make_exception

_SPECULATABLE_KINDS: Final = frozenset(
    {
        *("prim::Constant", "aten::lt", "aten::le", "aten::gt", "aten::ge", "aten::eq", "aten::ne", "aten::Bool"),
        *("aten::sum", "aten::any", "aten::all", "aten::size", "aten::dim", "aten::__not__", "aten::abs", "aten::len"),
    }
)
"""Kinds of nodes that may run speculatively: they have no side effects, and rarely raise."""

_UNBACKED_USES: Final = frozenset(
    {
        *("aten::add", "aten::sub", "aten::mul", "aten::lt", "aten::le", "aten::gt", "aten::ge", "aten::eq"),
        *("aten::ne", "prim::Return", "prim::If", "prim::Loop", "prim::TupleConstruct"),
    }
)
"""Kinds that accept an unbacked int."""


def branch(machine: SymbolicInterpreter, frame: Frame, node: Node) -> None:
    """Execute a ``prim::If``: take one branch, emit ``torch.cond``, or split the paths.

    Raises:
        ExportProblem: the branches have results that no exported program can return.
        ProgramRaises: both branches raise.
    """
    condition = scalar_ops.settled(frame.activation.env[node.input])
    if isinstance(condition, bool):
        machine.enter_block(frame, node.blocks[0 if condition else 1], node)
        return
    machine.note_reads([condition])
    if _combine(machine, frame, node, condition):
        return
    ways = [_path_frame(frame, block, None) for block in node.blocks]
    surviving = machine.surviving(machine.frames)
    rehearsals = [dry_run(machine, [way], surviving) for way in ways]
    if _assert_path_not_taken(machine, condition, rehearsals, lambda taken: _enter(machine, frame, node, taken)):
        return
    first, second = rehearsals
    try:
        may_be_late = [_may_be_unbacked(output) for output in node.outputs]
        template = join_states(first.world, second.world, surviving, may_be_late=may_be_late)
    except JoinError as mismatch:
        _split(machine, frame, node, condition, mismatch, rehearsals)
        return
    values = _cond(machine, frame, node, condition, [[way] for way in ways], template, rehearsals, surviving)
    machine.bind(frame.activation, node, values)


def _path_frame(frame: Frame, block: Block, owner: Node | None) -> Frame:
    return Frame(frame.activation, block, block.return_node.next, owner, path=frame.path)


def _enter(machine: SymbolicInterpreter, frame: Frame, node: Node, taken: bool) -> None:
    machine.enter_block(frame, node.blocks[0 if taken else 1], node)


def _assert_path_not_taken(
    machine: SymbolicInterpreter, condition: Any, rehearsals: Sequence[DryRun], enter: Callable[[bool], None]
) -> bool:
    """Assert in the exported program that the path that always raises is not taken, call ``enter`` with whether the
    first one is taken, and return True. Return False if neither path always raises.

    Raises:
        ProgramRaises: both paths raise; the exception of the first one.
    """
    first, second = (rehearsal.raised for rehearsal in rehearsals)
    if first is None and second is None:
        return False
    if first is not None and second is not None:
        raise first
    raised = first or second
    assert raised is not None
    wanted = scalar_ops.negated(condition) if first is not None else condition
    assert_true(machine, wanted, _message_of(raised))
    enter(first is None)
    return True


def _message_of(raised: ProgramRaises) -> str:
    node = raised.node
    _, *class_names = (raised.frame.activation.env.get(value) for value in node.inputs)
    error = make_exception(raised.message, next((name for name in class_names if isinstance(name, str)), None))
    place = node.range.place
    return f"{type(error).__name__}: {error}" + (f" ({place})" if place else "")


def assert_true(machine: SymbolicInterpreter, condition: Any, message: str, *, is_assumed: bool = False) -> None:
    """Emit an assertion of ``condition`` with ``message``. With ``is_assumed``, a condition on symbols becomes a fact
    of PyTorch's shape environment on every path, even if the assertion is on one path only."""
    machine.session.assertions += 1
    # PyTorch takes a checked condition on symbols for true everywhere, not only after the check.
    if isinstance(condition, SymBool) and (is_assumed or machine.session.is_unconditional):
        torch._check(condition, lambda: message)
    else:
        torch.ops.aten._assert_async.msg(scalar_ops.condition_tensor(condition), message)


def _combine(machine: SymbolicInterpreter, frame: Frame, node: Node, condition: Any) -> bool:
    """Compute the bool result of a ``prim::If`` (``a and b``, ``a or b``) without a branch, and return True.

    Both blocks run, and the output is bound to the result of a logical operator. Return False, and do nothing, if the
    result is not a bool or a node may not run speculatively.
    """
    if len(node.outputs) != 1 or node.output.type.kind != "BoolType":
        return False
    if not all(
        inner.kind in _SPECULATABLE_KINDS and not inner.blocks for block in node.blocks for inner in block.nodes
    ):
        return False
    results: list[Any] = []
    for block in node.blocks:
        for inner in block.nodes:
            machine.session.places.enter(frame.activation.steps, inner)
            machine.execute(frame, inner)
        results.append(frame.activation.env[block.outputs[0]])
    first, second = results
    if second is False:
        result = scalar_ops.both(condition, first)
    elif first is True:
        result = scalar_ops.either(condition, second)
    elif first is False:
        result = scalar_ops.both(scalar_ops.negated(condition), second)
    elif second is True:
        result = scalar_ops.either(scalar_ops.negated(condition), first)
    else:
        taken = scalar_ops.both(condition, first)
        result = scalar_ops.either(taken, scalar_ops.both(scalar_ops.negated(condition), second))
    frame.activation.env[node.output] = result
    return True


def _may_be_unbacked(value: Value) -> bool:
    """Return whether all uses of ``value`` accept an unbacked scalar, a number that is data-dependent."""
    return all(use.user.kind in _UNBACKED_USES for use in value.uses)


def _split(
    machine: SymbolicInterpreter,
    frame: Frame,
    node: Node,
    condition: Any,
    mismatch: JoinError,
    rehearsals: Sequence[DryRun],
) -> None:
    """Split the paths at a ``prim::If``: each branch continues separately to the end of the region. If that is not
    possible, join the branches less strictly, or let PyTorch add a guard of the condition.

    ``mismatch`` is the reason why the branches cannot be joined.

    Raises:
        ExportProblem: none of these is possible.
    """
    ways = [[*machine.frames, _path_frame(frame, block, node)] for block in node.blocks]
    try:
        if split_paths(machine, frame, node, condition, ways, lambda taken: _enter(machine, frame, node, taken)):
            return
    except JoinError as later:
        mismatch = later
    try:
        surviving = machine.surviving(machine.frames)
        template = join_states(rehearsals[0].world, rehearsals[1].world, surviving, is_strict=False)
    except JoinError:
        pass
    else:
        blocks = [[_path_frame(frame, block, None)] for block in node.blocks]
        values = _cond(machine, frame, node, condition, blocks, template, rehearsals, surviving)
        machine.bind(frame.activation, node, values)
        return
    if isinstance(condition, SymBool) and not free_unbacked_symbols(condition):
        machine.enter_block(frame, node.blocks[0 if bool(condition) else 1], node)  # PyTorch guards it
        return
    raise machine.problem(
        frame,
        node,
        f"the branches of this data-dependent 'if' come to {mismatch}",
        hint="return values of the same kind from both: a Tensor in place of None, lists of the same length, one "
        "dtype, numbers in place of strings",
    )


def split_paths(
    machine: SymbolicInterpreter,
    frame: Frame,
    node: Node,
    condition: Any,
    ways: Sequence[Sequence[Frame]],
    enter: Callable[[bool], None],
    *,
    is_trial: bool = False,
) -> bool:
    """Continue two paths separately to the end of the region; the first is taken if ``condition`` holds. If one always
    raises, ``enter`` is called to take the other one. Return False if too many paths are split already, or if
    ``is_trial`` and something on them is unsupported.

    Raises:
        JoinError: the results of the two paths differ in more than tensors.
        ProgramRaises: both paths raise.
    """
    session = machine.session
    if session.budget <= 0:
        return False
    session.budget -= 1
    known = len(session.problems)
    lasting = machine.surviving([])
    both = [dry_run(machine, way, lasting) for way in ways]
    if is_trial and len(session.problems) > known:
        return False
    if _assert_path_not_taken(machine, condition, both, enter):
        return True
    template = join_states(both[0].world, both[1].world, lasting, is_strict=False)
    machine.result = _cond(machine, frame, node, condition, ways, template, both, lasting)
    return True


def _cond(
    machine: SymbolicInterpreter,
    frame: Frame,
    node: Node,
    condition: Any,
    ways: Sequence[Sequence[Frame]],
    template: JoinedState,
    rehearsals: Sequence[DryRun],
    surviving: Sequence[Any],
) -> list[Any]:
    """Emit ``torch.cond`` for both paths; return the joined values, with its results in the slots of ``template``.

    Tensors that the paths write to are updated. In a dry run, nothing is emitted and the results are placeholders.

    Raises:
        ExportProblem: a path writes to memory that two operands share, or ``torch.cond`` rejects a branch.
    """
    operands = Operands.of(template, rehearsals)
    if operands.shared_memory() is not None:
        raise machine.problem(
            frame,
            node,
            "a branch of this data-dependent 'if' writes to a tensor that shares memory with "
            "another one"
            " that the branches read",
            hint="write to a copy: x = x.clone()",
        )
    count = len(template.slots)
    if machine.session.dry_run_depth:
        results: Sequence[Tensor] = [phi_placeholder(info) for info in template.slots]
        note_shared(machine, template, rehearsals, results, execution_point(frame, node))
        return values_of(template, results)
    asserts = any(rehearsal.asserts for rehearsal in rehearsals)
    if not template.slots and not operands.written and not asserts:
        return values_of(template, [])  # nothing comes of it
    functions = [_branch_function(machine, way, template, operands, surviving, asserts) for way in ways]
    predicate = condition.tensor if isinstance(condition, UnbackedScalar) else condition
    machine.session.places.enter(frame.activation.steps, node)
    given = operands.tensors()
    try:
        results = torch.ops.higher_order.cond(predicate, functions[0], functions[1], given)
    except (RuntimeError, AssertionError) as error:
        if isinstance(error, ExportProblem):
            raise
        raise machine.problem(
            frame,
            node,
            f"torch.cond cannot hold the branches of this 'if': {error}",
            hint="compute both and choose with torch.where, or move what is not supported there out of the branches",
        ) from error
    machine.session.places.enter(frame.activation.steps, node)
    if asserts:
        *results, passed = results
        torch.ops.aten._assert_async.msg(passed, "a check in a branch has failed")
    operands.write_back(results[count:])
    results = without_gradients(template, results[:count])
    note_shared(machine, template, rehearsals, results, execution_point(frame, node))
    return values_of(template, results)


def _branch_function(
    machine: SymbolicInterpreter,
    frames: Sequence[Frame],
    template: JoinedState,
    operands: Operands,
    surviving: Sequence[Any],
    asserts: bool,
) -> Callable[..., tuple[Tensor, ...]]:
    def run(*given: Any) -> tuple[Tensor, ...]:
        replacements = operands.replacements(given)
        copier = StateCopier(replacements)
        copy = machine.fresh(machine.copied(frames, copier), copier, surviving)
        with machine.session.in_body():
            world = AbstractState(copy.run(), copier)
        written = [replacements[key] for key in operands.written]
        # What checks something must give something that is used, or it would be thrown away as dead.
        passed = [scalar_ops.condition_tensor(True)] if asserts else []
        return unaliased([*slot_tensors(template, world), *written, *passed], given)

    return run
