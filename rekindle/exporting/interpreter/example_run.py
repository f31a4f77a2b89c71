"""Example run: a program runs on tensors, node by node, to record which paths it takes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import traceback as fx_traceback
from torch.utils import _pytree as pytree

from rekindle.errors import ExportProblem
from rekindle.exporting.interpreter.calls import EntryCall
from rekindle.exporting.interpreter.example_fallback import described, numbers_in
from rekindle.exporting.interpreter.node_execution import ExportInterpreter, step_of
from rekindle.exporting.interpreter.provenance import ProvenanceTable
from rekindle.exporting.interpreter.symbolic_interpreter import Activation, Example, ExportSession, Frame, ProgramRaises
from rekindle.exporting.interpreter.values import UnbackedScalar
from rekindle.exporting.module_state import ProgramState
from rekindle.exporting.static_checks import constants_of
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Node
from rekindle.ir.graph_function import GraphFunction

MAX_NODES: Final = 200_000
"""Maximum number of nodes of a run that are recorded."""

_SILENT: Final = frozenset({"prim::Print", "archive::Print", "aten::warn", "aten::save"})


class _LongEnough(Exception):
    """The run has reached :data:`MAX_NODES`."""


def run_example(call: EntryCall, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Example:
    """Run a call on copies of all tensors, and return the record of the paths that it takes.

    The record ends where the call ends, raises, or has run :data:`MAX_NODES` nodes. The program and the arguments are
    not changed, and neither is the state of the CPU's random number generator.
    """
    example = Example()
    state = ProgramState(call.owner, frozenset(), {})
    state.hold_constants(constants_of(call.records))
    state.copy_tensors()
    root = None if state.root is None else state.load(state.root, {})
    constants = state.constants()
    given, named = pytree.tree_map_only(Tensor, _copied, (args, dict(kwargs)))
    session = ExportSession(ProvenanceTable(), example=example)

    def run(function: GraphFunction, values: Sequence[Any]) -> Any:
        steps = (step_of(function, root, None),)
        results = _ConcreteInterpreter.of_graph(session, function.graph, values, steps, constants).run()
        return results[0] if len(results) == 1 else tuple(results)

    saved = fx_traceback.current_meta
    fx_traceback.current_meta = {}
    try:
        with torch.random.fork_rng(devices=[]), torch.set_grad_enabled(torch.is_grad_enabled()), _silence():
            call.result(run, root, given, named, call.bound(root, given, named))
    except (ExportProblem, ProgramRaises, _LongEnough):
        pass  # what came before is known
    finally:
        fx_traceback.current_meta = saved
    return example


@contextmanager
def _silence() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _copied(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


class _ConcreteInterpreter(ExportInterpreter):
    """An interpreter that runs on real tensors, so that every number is known. It records in ``example`` the
    branches taken, the trip counts of loops, and arguments and results of operators. It stops after ``MAX_NODES``
    nodes."""

    count = 0

    @property
    def example(self) -> Example:
        """The record of the run."""
        assert self.session.example is not None
        return self.session.example

    def execute(self, frame: Frame, node: Node) -> None:
        self.count += 1
        if self.count > MAX_NODES:
            raise _LongEnough
        try:
            self.step(frame, node)
        except (ExportProblem, ProgramRaises, _LongEnough):
            raise
        except Exception as error:
            raise self.to_export_problem(frame, node, error) from error

    def step(self, frame: Frame, node: Node) -> None:
        if node.kind != "prim::If":
            super().step(frame, node)
            return
        assert frame.path is not None
        way = bool(frame.activation.env[node.input])
        self.example.branch_conditions[frame.path, id(node)] = way
        self.enter_block(frame, node.blocks[0 if way else 1], node)

    def refuse(self, frame: Frame, node: Node) -> None:
        """Do nothing: in a run on the example, every node may run."""

    def iterate(self, frame: Frame, node: Node, iteration: int, condition: Any, carried: list[Any]) -> None:
        assert frame.path is not None
        self.example.trip_counts[frame.path, id(node)] = iteration
        if condition and iteration < frame.activation.env[LoopView(node).trip_count]:
            self.enter_block(frame, node.blocks[0], node, [iteration, *carried], iteration)
        else:
            self.bind(frame.activation, node, carried)

    def operation(self, frame: Frame, node: Node, args: list[Any]) -> Any:
        if node.kind in _SILENT:
            return ()
        assert frame.path is not None
        moment = (frame.path, id(node))
        self.example.arguments[moment] = numbers_in(args)
        operator = node.operator
        if node.kind in _REAL and operator is not None:
            result: Any = operator.operation_of(node)(*args)
            results = [result] if len(node.outputs) == 1 else list(result or ())
        else:
            results = [_known(value) for value in super().operation(frame, node, args)]
        self.example.results[moment] = [described(value) for value in results]
        return results

    def bind(self, activation: Activation, node: Node, values: Iterable[Any]) -> None:
        super().bind(activation, node, [_known(value) for value in values])


_REAL: Final = frozenset({"prim::PythonOp", "aten::backward", "aten::grad"})


def _known(value: Any) -> Any:
    """Return the plain number of a scalar, which is known in a run on the example."""
    if not isinstance(value, UnbackedScalar):
        return value
    return {"int": int, "float": float, "bool": bool}[value.kind](value.tensor.item())
