"""Continuation of the export after an unsupported construct.

An unsupported construct does not end the export: the report lists all of them, and a draft contains the rest of the
program. Missing values are taken from the *example*, a run of the program on the example's own tensors
(:mod:`rekindle.exporting.interpreter.example_run`):

- A branch or a loop takes the path of the example; the draft checks the conditions.
- An unbacked number is the number of the example; the draft checks it.
- A call of Python is made; the draft contains the operators that the tracer records.
- A print or a file that is written is omitted.
- Any other node returns the result that it had in the example. Then there is only a report, and no draft.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import SymBool, Tensor

from rekindle.errors import ExportProblem
from rekindle.exporting.interpreter import branches
from rekindle.exporting.interpreter.symbolic_interpreter import (
    Example,
    ExecutionPoint,
    Frame,
    ProgramRaises,
    SymbolicInterpreter,
    execution_point,
)
from rekindle.exporting.interpreter.values import UnbackedScalar, is_known, kind_of, with_items
from rekindle.exporting.scalars import scalar_ops
from rekindle.exporting.static_checks import static_problems
from rekindle.ir.attributes import map_items
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Node


@dataclass(slots=True, frozen=True)
class TensorMeta:
    """The metadata of a tensor of the example."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


class NeedsExample(Exception):
    """The export must restart and follow the example. ``decided`` is the branch or loop that must take the path of the
    example; None if only a run on the example is missing. ``problem`` is the reason."""

    def __init__(self, problem: ExportProblem, decided: ExecutionPoint | None = None) -> None:
        self.problem = problem
        self.decided = decided
        super().__init__(problem.message)


_WAY: Final = "this goes as it does for the example, and raises where a call would go another way"
_NUMBER: Final = "the number is the example's, {}, and the draft raises where it is another one"
_PYTHON: Final = (
    "Python is called while the draft is made: the operators that it calls then are in the draft, and nothing else of"
    " it"
)


def example_of(machine: SymbolicInterpreter, problem: ExportProblem) -> Example:
    """Return the record of the run on the example arguments. ``problem`` is the reason why it is needed.

    Raises:
        NeedsExample: there was no such run yet; the export restarts with one.
    """
    if machine.session.example is None:
        raise NeedsExample(problem)
    return machine.session.example


def follow_example_branch(machine: SymbolicInterpreter, frame: Frame, node: Node, problem: ExportProblem) -> None:
    """Enter the branch of a ``prim::If`` that the example takes, and emit a check of the condition. Add ``problem`` to
    the reasons of the session.

    Raises:
        ExportProblem: ``problem``, if the example does not reach the node.
        NeedsExample: there was no run on the example yet.
    """
    moment = execution_point(frame, node)
    way = None if moment is None else example_of(machine, problem).branch_conditions.get(moment)
    if way is None:
        raise problem
    for other in static_problems(node.blocks[1 if way else 0].nodes):
        machine.session.note(other.with_draft(_WAY))
    machine.session.note(problem.with_draft(_WAY))
    condition = scalar_ops.settled(frame.activation.env[node.input])
    _check(machine, node, condition, way)
    machine.enter_block(frame, node.blocks[0 if way else 1], node)


def follow_example_loop(
    machine: SymbolicInterpreter,
    frame: Frame,
    node: Node,
    iteration: int,
    condition: Any,
    carried: list[Any],
    problem: ExportProblem,
) -> None:
    """Enter another iteration of a loop, or end the loop, as the example does, and emit a check of the condition.

    ``iteration`` is the number of iterations so far. ``problem`` is added to the reasons of the session, and the loop
    follows the example from then on.

    Raises:
        ExportProblem: ``problem``, if the example does not reach the node.
        NeedsExample: there was no run on the example yet.
    """
    moment = execution_point(frame, node)
    trip_count = None if moment is None else example_of(machine, problem).trip_counts.get(moment)
    if moment is None or trip_count is None:
        raise problem
    machine.session.forced_by_example[moment] = problem
    machine.session.note(problem.with_draft(_WAY))
    limit = frame.activation.env[LoopView(node).trip_count]
    goes_on = iteration < trip_count
    within: Any = iteration < limit if is_known(limit) else _at_most(limit, iteration)
    _check(machine, node, scalar_ops.both(scalar_ops.settled(condition), within), goes_on)
    if goes_on:
        machine.enter_block(frame, node.blocks[0], node, [iteration, *carried], iteration)
    else:
        machine.bind(frame.activation, node, carried)


def _at_most(limit: Any, iteration: int) -> Any:
    if isinstance(limit, UnbackedScalar):
        return UnbackedScalar("bool", torch.ops.aten.gt.Scalar(limit.tensor, iteration))
    return scalar_ops.settled(limit > iteration)


def _check(machine: SymbolicInterpreter, node: Node, condition: Any, expected: bool) -> None:
    if not isinstance(condition, bool):
        wanted = condition if expected else scalar_ops.negated(condition)
        message = f"a draft follows only the path of its example ({node.range.place})"
        branches.assert_true(machine, wanted, message, is_assumed=True)


def substitute_example_results(machine: SymbolicInterpreter, frame: Frame, node: Node, problem: ExportProblem) -> None:
    """Bind the outputs of a node other than a branch or loop, so that the export continues after ``problem``.

    The node runs with the numbers of the example in place of unbacked ones, or a Python function is called. Otherwise
    the outputs are placeholders like the results of the example.

    Raises:
        ExportProblem: ``problem``, if the example does not reach the node.
        NeedsExample: there was no run on the example yet.
    """
    moment = execution_point(frame, node)
    if moment is None:
        raise problem
    example = example_of(machine, problem)
    if moment not in example.arguments:
        raise problem
    given = [frame.activation.env[value] for value in node.inputs]
    numbers: list[str] = []
    args = [
        _as_in_example(machine, node, value, known, numbers)
        for value, known in zip(given, example.arguments[moment], strict=True)
    ]
    if numbers:
        try:
            results = machine.operation(frame, node, args)
        except (ProgramRaises, ExportProblem, NeedsExample):
            raise
        except Exception:
            machine.session.note(problem)  # it was not the number alone
        else:
            machine.session.note(problem.with_draft(_NUMBER.format(", ".join(numbers))))
            machine.bind(frame.activation, node, results)
            return
    if node.kind == "prim::PythonOp" and node.operator is not None:
        try:
            result: Any = node.operator.operation_of(node)(*given)
        except Exception:
            machine.session.note(problem)  # it does not do with FakeTensors
        else:
            machine.session.note(problem.with_draft(_PYTHON))
            machine.bind(frame.activation, node, [result] if len(node.outputs) == 1 else result or ())
            return
    if moment not in example.results:
        raise problem
    machine.session.note(problem)
    machine.bind(frame.activation, node, [_placeholder_like(value) for value in example.results[moment]])


def _as_in_example(machine: SymbolicInterpreter, node: Node, value: Any, known: Any, numbers: list[str]) -> Any:
    """Return ``value`` with the number of the example, ``known``, in place of each unbacked one. Emit a check of each,
    and append it to ``numbers`` as text."""
    if isinstance(known, (list, tuple)) and isinstance(value, (list, tuple)) and len(known) == len(value):
        items = [_as_in_example(machine, node, x, y, numbers) for x, y in zip(value, known, strict=True)]
        return with_items(value, items) if isinstance(value, tuple) else items
    if known is None or kind_of(value) is None or is_known(value):
        return value
    numbers.append(str(known))
    if isinstance(value, SymBool):
        _check(machine, node, scalar_ops.settled(value), known)
    else:
        _check(machine, node, scalar_ops.equal(value, known), True)
    return known


def _placeholder_like(value: Any) -> Any:
    """Return a value like a described one: an uninitialized tensor for each :class:`TensorMeta`."""
    if isinstance(value, TensorMeta):
        return torch.empty(value.shape, dtype=value.dtype, device=value.device)
    return map_items(_placeholder_like, value)


def described(value: Any) -> Any:
    """Return a value of the example in which a :class:`TensorMeta` replaces each tensor."""
    if isinstance(value, Tensor):
        return TensorMeta(tuple(value.shape), value.dtype, value.device)
    return map_items(described, value)


def numbers_in(values: Sequence[Any]) -> list[Any]:
    """Return the values with None in place of everything but numbers, and lists and tuples of them."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found.append(numbers_in(value))
        else:
            found.append(value if isinstance(value, (bool, int, float)) else None)
    return found
