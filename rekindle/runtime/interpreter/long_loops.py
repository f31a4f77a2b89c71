"""Compile the long loops of a call that is interpreted.

The first call of a function is interpreted, since optimization does not pay if no other call follows. It pays for a
loop with many iterations. When such a loop is entered, it becomes a function of the values that it uses, which is
optimized and runs all its iterations. A loop that a condition ends becomes one after many iterations, and the function
runs the remaining ones (on-stack replacement)::

    %s : Tensor = prim::Loop(%n, %true, %x)             graph(%n : int, %x : Tensor, %w : Tensor):
      block0(%i : int, %p : Tensor):                      %true : bool = prim::Constant[value=1]()
        %q : Tensor = aten::mul(%p, %w)         ->        %s : Tensor = prim::Loop(%n, %true, %x)
        -> (%true, %q)                                      ...
                                                          return (%s)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from rekindle.analysis.work_estimate import WorkEstimate
from rekindle.errors import UNKNOWN_RANGE
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.attributes import is_writable
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.runtime.interpreter.instructions import Instruction, Opcode

LONG: Final = 20_000
"""Number of nodes whose interpretation takes about as long as the optimization of a short function: 20 to 50 ms."""

_NESTED_TRIPS: Final = 4
"""Assumed trip count of loops within loops. If it is more, they are compiled by themselves."""

LoopCompiler = Callable[[Graph, str], Callable[..., Any]]
"""Returns a function that runs a graph, optimized; called with its inputs, it returns its output, or a tuple of
several. The second argument is its name in tracebacks."""


@dataclass(slots=True, frozen=True)
class LoopEntries:
    """The entries of the loops of one function, in its code for the interpreter. ``values`` has for each register the
    values that it holds at some time, and ``name`` is the function's."""

    values: Sequence[Sequence[Value]]
    name: str

    def run_if_long(self, instruction: Instruction, registers: list[Any]) -> bool:
        """Run all iterations of the loop that ``instruction`` starts, compiled, if it is long and the current call
        compiles long loops; return whether it was run."""
        loops = _current.get()
        return loops is not None and loops.run_if_long(self, instruction, registers)

    def run_rest_if_long(self, instruction: Instruction, registers: list[Any]) -> bool | None:
        """Run the remaining iterations of the loop that ``instruction`` repeats, compiled, if it is long; return
        whether they were run. Return None for a loop that counts its iterations, which was judged when it was entered,
        and if the current call compiles no long loops."""
        loops = _current.get()
        if loops is None or instruction.opcode is Opcode.LOOP_NEXT:
            return None
        return loops.run_if_long(self, instruction, registers)


class LongLoops:
    """The loops that one call has entered, and those of them that were compiled."""

    __slots__ = ("_bodies", "_compile", "_compiled", "_entered", "_work")

    def __init__(self, compile: LoopCompiler) -> None:
        self._compile = compile
        self._work = WorkEstimate(_NESTED_TRIPS)
        self._bodies: dict[Node, int] = {}
        """The number of nodes that an iteration of each loop executes."""
        self._entered: dict[Node, int] = {}
        """The number of nodes that interpreting each loop has taken, with its nested loops."""
        self._compiled: dict[Node, _CompiledLoop] = {}

    def run_if_long(self, entries: LoopEntries, instruction: Instruction, registers: list[Any]) -> bool:
        """See :class:`LoopEntries`. A loop is long if it is entered for many iterations, or many times; one that does
        not count its iterations, after many."""
        node = instruction.node
        loop = self._compiled.get(node)
        if loop is None:
            trips = registers[instruction.input] if instruction.opcode is Opcode.LOOP_START else 1
            self._entered[node] = entered = self._entered.get(node, 0) + trips * self._work_of_body(node)
            if entered < LONG:
                return False
            with room_to_recurse(UNKNOWN_RANGE):
                loop = self._compiled[node] = _compiled_loop(node, entries, self._compile)
        results = loop.run([registers[register] for register in loop.inputs])
        for register, result in zip(loop.carried, results, strict=True):
            registers[register] = result
        return True

    def _work_of_body(self, node: Node) -> int:
        if node not in self._bodies:
            with room_to_recurse(UNKNOWN_RANGE):
                self._bodies[node] = self._work.iteration(LoopView(node))
        return self._bodies[node]


_current: Final[ContextVar[LongLoops | None]] = ContextVar("rekindle.long_loops", default=None)


@contextmanager
def long_loops_compiled(compile: LoopCompiler | None) -> Iterator[None]:
    """Compile long loops of calls that are interpreted within a ``with`` block; with None, none are compiled."""
    token = _current.set(None if compile is None else LongLoops(compile))
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(slots=True, frozen=True)
class _CompiledLoop:
    """A compiled loop. ``inputs`` are the registers of its inputs, ``carried`` those of the carried variables, which
    are also those of its results."""

    function: Callable[..., Any]
    inputs: Sequence[int]
    carried: Sequence[int]

    def run(self, values: list[Any]) -> Sequence[Any]:
        """Run the loop on ``values``, the contents of ``inputs``; return the results. Errors have the position in the
        program in their tracebacks."""
        with long_loops_compiled(None):  # where only the interpreter can run the loop, it would compile it again
            results = self.function(*values)
        return () if not self.carried else (results,) if len(self.carried) == 1 else results


def is_running_loop(frame: FrameType) -> bool:
    """Return whether ``frame``, of the traceback of an error, runs a compiled loop."""
    return frame.f_code is _CompiledLoop.run.__code__


def _compiled_loop(node: Node, entries: LoopEntries, compile: LoopCompiler) -> _CompiledLoop:
    registers: dict[Value, int] = {}
    for register, values in enumerate(entries.values):
        for value in values:
            registers.setdefault(value, register)
    graph, captured, kept = _loop_graph(node, registers)
    carried = [registers[LoopView(node).parameters[index]] for index in kept]
    return _CompiledLoop(compile(graph, entries.name), captured, carried)


def _loop_graph(node: Node, registers: dict[Value, int]) -> tuple[Graph, list[int], list[int]]:
    """Return a graph of a loop alone, for at least one iteration from its start, or, of a loop that does not count its
    iterations, from the start of any; the registers of the values that are its
    inputs; and the indices of the carried variables that are its outputs: those that are in a register."""
    view = LoopView(node)
    graph = Graph()
    inputs: list[int] = []
    values: dict[Value, Value] = {}

    def read(value: Value, register: int) -> Value:
        inputs.append(register)
        added = graph.add_input(value.base_name)
        added.set_type(value.type)
        return added

    def captured(value: Value) -> Value:
        """Return what stands for a value from before the loop. Constants are copied, unless programs may write to
        them."""
        if value not in values:
            if value.node.kind == "prim::Constant" and not is_writable(value.to_python()):
                graph.insert_clone(value.node, values)
            else:
                values[value] = read(value, registers[value])
        return values[value]

    kept: list[int] = []
    initial: list[Value] = []
    for index, variable in enumerate(view.carried):
        register = registers.get(variable.parameter)
        if register is None:  # neither the body nor what follows uses it
            initial.append(
                graph.insert_node(graph.create("prim::Uninitialized", types=[variable.parameter.type])).output
            )
        else:
            kept.append(index)
            initial.append(read(variable.parameter, register))
    trip_count, true = captured(view.trip_count), graph.insert_constant(True)
    types = [output.type for output in node.outputs]
    loop = graph.create("prim::Loop", [trip_count, true, *initial], types=types, range=node.range)
    loop.add_block().clone_from(view.body, captured)
    graph.insert_node(loop)
    for index in kept:
        graph.add_output(loop.outputs[index])
    return graph, inputs, kept
