"""Symbolic interpreter: runs a program on FakeTensors, so that PyTorch's tracer records it. Its state can be copied.

Branches and loops whose conditions are known at export time leave no trace in the exported program. At a data-dependent
condition or trip count, :mod:`rekindle.exporting.interpreter.branches` and :mod:`rekindle.exporting.interpreter.loops`
copy the interpreter, and each copy follows one path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from torch import Tensor

from rekindle.errors import ExportProblem, SourceRange
from rekindle.exporting.interpreter.provenance import CallFrame, ProvenanceTable
from rekindle.exporting.interpreter.values import (
    CompletedFuture,
    LeafKey,
    StateCopier,
    SymbolicObject,
    leaf_key,
    leaves,
    parts,
)
from rekindle.ir.graph import Block, Graph, Node, Value


class ProgramRaises(Exception):
    """The program always raises on the current path, which ends here."""

    def __init__(self, message: str, frame: Frame, node: Node) -> None:
        super().__init__(message)
        self.message = message
        self.frame = frame
        self.node = node


CallPath: TypeAlias = "tuple[int, ...]"
"""Path to a block: the ids of the nodes of the calls, and the iteration numbers of the loops, the outermost first."""

ExecutionPoint: TypeAlias = "tuple[CallPath, int]"
"""One execution of a node: the path to its block, and the id of the node."""


@dataclass(slots=True)
class Activation:
    """A function in execution: the values of its variables, and how it was called."""

    env: dict[Value, Any]
    steps: tuple[CallFrame, ...]
    """The functions around it and itself, the outermost first."""


@dataclass(slots=True)
class Frame:
    """A block in execution. ``node`` is next; ``owner`` is the node that the block belongs to, or that called it, and
    None for the outermost. ``iteration`` counts the iterations of an unrolled loop."""

    activation: Activation
    block: Block
    node: Node
    owner: Node | None
    caller: Activation | None = None
    iteration: int = 0
    path: CallPath | None = ()
    """The calls and iterations on the path to this state; None within an iteration that represents all."""


def execution_point(frame: Frame, node: Node) -> ExecutionPoint | None:
    """Return the execution point of ``node``; None within an iteration that represents all iterations of a loop."""
    return None if frame.path is None else (frame.path, id(node))


@dataclass(slots=True)
class Example:
    """Record of the program's run on the arguments of the example."""

    branch_conditions: dict[ExecutionPoint, bool] = field(default_factory=dict)
    """The conditions of branches."""
    trip_counts: dict[ExecutionPoint, int] = field(default_factory=dict)
    """Trip counts of loops."""
    arguments: dict[ExecutionPoint, list[Any]] = field(default_factory=dict)
    """Inputs of nodes; None for values other than numbers and lists of them."""
    results: dict[ExecutionPoint, list[Any]] = field(default_factory=dict)
    """Results of nodes, with a :class:`~rekindle.exporting.interpreter.example_fallback.TensorMeta` for each tensor."""


@dataclass(slots=True)
class ExportSession:
    """State shared by all interpreters of one export."""

    places: ProvenanceTable
    budget: int = 256
    """Remaining number of paths that may be split."""
    problems: list[ExportProblem] = field(default_factory=list)
    example: Example | None = None
    """Record of the example run, once an unsupported construct requires it."""
    forced_by_example: dict[ExecutionPoint, ExportProblem] = field(default_factory=dict)
    """Branches and loops that follow the example, and the reason of each."""
    maybe_aliased: dict[int, tuple[Any, ExecutionPoint | None]] = field(default_factory=dict)
    """Memory that may be shared, depending on which tensor a data-dependent branch returned: a tensor with this
    memory, and the branch or loop."""
    written: set[int] = field(default_factory=set)
    """Memory that operators have written to."""
    read_leaves: set[LeafKey] = field(default_factory=set)
    """Leaves that operators have read."""
    assertions: int = 0
    """Number of assertions made so far."""
    assigned: dict[tuple[str, str], ExportProblem] = field(default_factory=dict)
    """Attributes of modules that the program assigns, by path of the module and name; the value has the source
    location."""
    mutated_containers: dict[int, tuple[Any, ExportProblem]] = field(default_factory=dict)
    """Lists and dicts that operators have written to, by id, with the source location."""
    external_storages: set[int] = field(default_factory=set)
    """The memory of arguments, parameters and buffers."""
    asks_dtype: bool = False
    """Whether the program has queried a dtype."""
    dry_run_depth: int = 0
    """Number of nested dry runs in progress; these record nothing."""
    subgraph_depth: int = 0
    """Nesting depth of branches and loop bodies being traced."""

    @property
    def is_unconditional(self) -> bool:
        """Whether the exported program certainly reaches the current execution point."""
        return not self.dry_run_depth and not self.subgraph_depth

    @contextmanager
    def in_body(self) -> Iterator[None]:
        """Mark the ``with`` block as the trace of a branch or a loop body."""
        self.subgraph_depth += 1
        try:
            yield
        finally:
            self.subgraph_depth -= 1

    def note(self, problem: ExportProblem) -> None:
        """Record a problem, unless it is known. It keeps its replacement in a draft only if each occurrence has one."""
        for index, known in enumerate(self.problems):
            if known.key == problem.key:
                if problem.in_draft is None:
                    self.problems[index] = problem
                return
        self.problems.append(problem)


class SymbolicInterpreter:
    """A symbolic execution of a program, or of a part of it. ``frames`` is the call stack, and the point at which it
    continues."""

    def __init__(
        self, session: ExportSession, frames: list[Frame], constants: dict[int, Tensor], kept: list[Any]
    ) -> None:
        self.session = session
        self.frames = frames
        self.constants = constants
        """Values for the constant tensors of the program, by id."""
        self.kept = kept
        """Values that are used after the interpreter has finished: modules, arguments."""
        self.result: list[Any] | None = None

    @classmethod
    def of_graph(
        cls,
        session: ExportSession,
        graph: Graph,
        arguments: Sequence[Any],
        steps: tuple[CallFrame, ...],
        constants: dict[int, Tensor],
    ) -> SymbolicInterpreter:
        """Return an interpreter that runs ``graph`` from its start."""
        env = dict(zip(graph.inputs, arguments, strict=True))
        frame = Frame(Activation(env, steps), graph.block, graph.return_node.next, None)
        return cls(session, [frame], constants, list(arguments))

    # -------------------------------------------------------------------------------------------------------- running

    def run(self) -> list[Any]:
        """Run to the end of the outermost block; return its outputs."""
        while self.result is None:
            frame = self.frames[-1]
            node = frame.node
            if node is frame.block.return_node:
                self._leave(frame)
            else:
                frame.node = node.next
                self.session.places.enter(frame.activation.steps, node)
                self.execute(frame, node)
        return self.result

    def execute(self, frame: Frame, node: Node) -> None:
        """Run ``node``: see :mod:`rekindle.exporting.interpreter.node_execution`."""
        raise NotImplementedError

    def operation(self, frame: Frame, node: Node, args: list[Any]) -> Any:
        """Return the outputs of a node that is neither a constant nor control flow."""
        raise NotImplementedError

    def _leave(self, frame: Frame) -> None:
        values = [frame.activation.env[output] for output in frame.block.outputs]
        self.frames.pop()
        owner = frame.owner
        if owner is None:
            self.result = values
        elif frame.caller is not None:
            assert self.frames
            self.returned(frame, owner, values)
        elif owner.kind == "prim::Loop":
            self.iterate(self.frames[-1], owner, frame.iteration + 1, values[0], values[1:])
        else:
            self.bind(frame.activation, owner, values)

    def returned(self, frame: Frame, owner: Node, values: list[Any]) -> None:
        """Handle the end of a called function."""
        assert frame.caller is not None
        self.bind(frame.caller, owner, values)

    def note_reads(self, args: list[Any]) -> None:
        """Record which leaves are read, for the dry run of a branch."""
        raise NotImplementedError

    def iterate(self, frame: Frame, node: Node, iteration: int, condition: Any, carried: list[Any]) -> None:
        """Handle the head of a loop, before iteration number ``iteration``."""
        raise NotImplementedError

    def bind(self, activation: Activation, node: Node, values: Iterable[Any]) -> None:
        """Bind the outputs of ``node`` to values."""
        activation.env.update(zip(node.outputs, values, strict=True))

    def enter_block(
        self, frame: Frame, block: Block, owner: Node | None, arguments: Iterable[Any] = (), iteration: int = 0
    ) -> None:
        """Push a frame for ``block`` of the function that ``frame`` runs."""
        frame.activation.env.update(zip(block.inputs, arguments, strict=True))
        path = frame.path
        if path is not None and owner is not None and owner.kind == "prim::Loop":
            path = (*path, iteration)
        self.frames.append(Frame(frame.activation, block, block.return_node.next, owner, None, iteration, path))

    def call(self, frame: Frame, node: Node, graph: Graph, arguments: Sequence[Any], step: CallFrame | None) -> None:
        """Push a frame for a function that ``node`` calls."""
        steps = frame.activation.steps if step is None else (*frame.activation.steps, step)
        env = dict(zip(graph.inputs, arguments, strict=True))
        path = None if frame.path is None else (*frame.path, id(node))
        new = Frame(Activation(env, steps), graph.block, graph.return_node.next, node, frame.activation, path=path)
        self.frames.append(new)

    def fresh(self, frames: list[Frame], copier: StateCopier, kept: Sequence[Any]) -> SymbolicInterpreter:
        """Return another interpreter of the same session, for frames that ``copier`` has copied. ``kept`` are the
        originals of the objects that it must keep alive."""
        constants = {key: copier.copy(tensor) for key, tensor in self.constants.items()}
        return type(self)(self.session, frames, constants, [copier.copy(value) for value in kept])

    # -------------------------------------------------------------------------------------------------------- copying

    def live(self, frames: Sequence[Frame]) -> list[list[Value]]:
        """Return for each of ``frames`` the values that the rest of its block uses and that are bound."""
        return [[value for value in _needed(frame) if value in frame.activation.env] for frame in frames]

    def copied(self, frames: Sequence[Frame], copier: StateCopier) -> list[Frame]:
        """Return copies of ``frames``, with copies of their live values."""
        activations: dict[int, Activation] = {}
        for frame in frames:
            for each in (frame.activation, frame.caller):
                if each is not None and id(each) not in activations:
                    activations[id(each)] = Activation({}, each.steps)
        for frame, needed in zip(frames, self.live(frames), strict=True):
            env, old = activations[id(frame.activation)].env, frame.activation.env
            for value in needed:
                if value not in env:
                    env[value] = copier.copy(old[value])
        return [
            Frame(
                activations[id(frame.activation)],
                frame.block,
                frame.node,
                frame.owner,
                None if frame.caller is None else activations[id(frame.caller)],
                frame.iteration,
                frame.path,
            )
            for frame in frames
        ]

    def leaves_of(self, frames: Sequence[Frame]) -> dict[LeafKey, Any]:
        """Return all tensors and symbols that ``frames`` may still use, by their keys."""
        found: dict[LeafKey, Any] = {}
        seen: set[int] = set()
        for tensor in self.constants.values():
            found[("tensor", id(tensor))] = tensor
        for frame, needed in zip(frames, self.live(frames), strict=True):
            for value in needed:
                for leaf in leaves(frame.activation.env[value], seen):
                    key = leaf_key(leaf)
                    assert key is not None
                    found.setdefault(key, leaf)
        return found

    def surviving(self, frames: Sequence[Frame]) -> list[Any]:
        """Return the containers that ``frames``, or users of the final state, may still access."""
        found: dict[int, Any] = {}
        for value in self.kept:
            _collect(value, found)
        for frame, needed in zip(frames, self.live(frames), strict=True):
            for value in needed:
                _collect(frame.activation.env[value], found)
        return list(found.values())

    # --------------------------------------------------------------------------------------------------------- places

    def problem(self, frame: Frame, node: Node, message: str, hint: str) -> ExportProblem:
        """Return a reason why the program cannot be exported, with the source location of ``node`` and a hint."""
        range: SourceRange = node.range
        return ExportProblem(message, range, hint=hint, callers=callers_of(frame))


def callers_of(frame: Frame) -> list[tuple[str, SourceRange]]:
    """Return the functions on the call stack of a frame, with the location of each call."""
    return [(step.name, step.called_from) for step in frame.activation.steps if step.called_from]


_USED: dict[int, tuple[Node, frozenset[Value]]] = {}


def _used_by(node: Node) -> frozenset[Value]:
    """Return all values that a node and the nodes in its blocks use."""
    known = _USED.get(id(node))
    if known is not None and known[0] is node:
        return known[1]
    found = set(node.inputs)
    for block in node.blocks:
        found.update(block.outputs)
        for inner in block.nodes:
            found |= _used_by(inner)
    result = frozenset(found)
    _USED[id(node)] = (node, result)
    return result


def _needed(frame: Frame) -> list[Value]:
    """Return the values that the rest of a frame's block uses; those of the whole block, if it runs again."""
    found: set[Value] = set(frame.block.outputs)
    owner = frame.owner
    node = frame.node
    if owner is not None and owner.kind == "prim::Loop":
        found |= _used_by(owner)
        node = frame.block.return_node.next
    while node is not frame.block.return_node:
        found |= _used_by(node)
        node = node.next
    return sorted(found, key=lambda value: value.unique)


def _collect(value: Any, found: dict[int, Any]) -> None:
    """Add the mutable containers in ``value`` to ``found``."""
    if isinstance(value, (list, dict, SymbolicObject)):
        if id(value) in found:
            return
        found[id(value)] = value
    if isinstance(value, (list, dict, SymbolicObject, tuple, CompletedFuture)):
        for part in parts(value):
            _collect(part, found)


def forget_uses() -> None:
    """Clear the caches of which values nodes use: programs may change between exports."""
    _USED.clear()
