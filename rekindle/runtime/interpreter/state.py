"""Interpreter state: registers, a stack of frames and a program counter, which together are all of an execution.

A call of another function of the program pushes a frame onto the stack of the same state and needs no recursion in
Python. So a state can be suspended between any two instructions and resumed later, on another thread too;
:meth:`InterpreterState.step` does just that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from typing import Any, Final

from rekindle.errors import ArgumentError, InternalError, RekindleError, Source
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassType
from rekindle.ops.python.asynchrony import Await, Call
from rekindle.runtime.calls.conversion import class_of
from rekindle.runtime.calls.subscript_errors import word_as_python_does
from rekindle.runtime.calls.tracebacks import SourceFrame, foreign_frames, traceback_through
from rekindle.runtime.executable import code_of
from rekindle.runtime.interpreter.basic_blocks import BasicBlock, BoundInstruction, Registers
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.futures import block_until_done
from rekindle.runtime.interpreter.instructions import Instruction, Opcode
from rekindle.runtime.interpreter.long_loops import is_running_loop
from rekindle.runtime.interpreter.tasks import launch
from rekindle.runtime.interpreter.with_statements import leave_all
from rekindle.runtime.strategies.bailouts import Bailout

# Members of an enum cost ten times what names of the module do, and calls ask for them all the time.
_STORE, _CALL, _CALL_METHOD, _BAILOUT = Opcode.STORE, Opcode.CALL, Opcode.CALL_METHOD, Opcode.BAILOUT
_FORK, _WAIT, _DEFER, _AWAIT = Opcode.FORK, Opcode.WAIT, Opcode.DEFER, Opcode.AWAIT


_MAX_DEPTH: Final = 10_000
"""Maximum depth of nested calls, unless Python's own limit is higher. They take no room on Python's stack, and a chain
of awaits counts as calls too."""


class InterpreterState:
    """One execution of ``code``.

    :meth:`run` runs it from start to end, and blocks the thread where the program waits. :meth:`start`, then
    :meth:`step` or :meth:`resume` until :attr:`is_finished`, run it in parts.
    """

    __slots__ = ("_offset", "_places", "_segment", "_stack", "awaited", "code", "failed_at", "registers", "result")

    def __init__(self, code: Code) -> None:
        self.code = code
        self.registers: Registers = []
        self.result: Any = None
        """The result of the program, once it is finished."""
        self.awaited: Any = None
        """The unfinished future that the program waits for, if any."""
        self.failed_at = 0
        """The index, in the code that ran last, of the instruction that raised."""
        self._segment: BasicBlock | None = None
        self._offset = 0
        self._stack: list[tuple[Code, Registers, BasicBlock]] = []
        self._places: list[SourceFrame] = []

    # -------------------------------------------------------------------------------------------------------- running

    def run(self, arguments: Sequence[object]) -> Any:
        """Return the result for ``arguments``, which are expected to be of the right types; several results are a
        tuple.

        Raises:
            ArgumentError: there are more or fewer arguments than the program has inputs.
            Exception: whatever the program raises, with the lines of its source in the traceback.
        """
        self.start(arguments)
        del arguments
        try:
            return self.finish()
        except BaseException as caught:
            error = caught.with_traceback(self.traceback(foreign_frames(caught.__traceback__)))
        try:
            raise error
        finally:
            del error  # its traceback holds this frame, which must not hold it in turn

    def start(self, arguments: Sequence[object]) -> None:
        """Load the arguments and set the program counter to the first instruction.

        Raises:
            ArgumentError: there are more or fewer arguments than the program has inputs.
        """
        count = self.code.argument_count
        if len(arguments) != count:
            raise ArgumentError(f"{self.code.basename}() takes {count} arguments, but {len(arguments)} were given")
        self.registers = self.code.template[:]
        self.registers[:count] = arguments
        self._segment = self.code.segments[0]
        self._offset = 0
        self._pass_joints()

    def start_at(self, index: int, registers: Registers) -> None:
        """Set the program counter to the instruction ``index``, with the given contents of the registers."""
        self.registers = registers
        self._segment = max((each for each in self.code.segments if each.start <= index), key=lambda each: each.start)
        self._offset = index - self._segment.start
        self._pass_joints()

    def finish(self) -> Any:
        """Call :meth:`resume` until the program is finished, and return its result; block the thread in between."""
        result = self.resume()
        while self.awaited is not None:
            try:
                block_until_done(self.awaited)
            except BaseException as error:  # an interrupt from the keyboard
                self._fail(self._segment, None, error)
                raise
            result = self.resume()
        return result

    def resume(self) -> Any:
        """Run until the program finishes, or waits for an unfinished future (:attr:`awaited`); return its result once
        it has finished.

        An error leaves as it is, with the interpreter's frames in its traceback; :meth:`traceback` has a better one.
        """
        self.awaited = None
        while self._offset:
            self.step()
            if self.awaited is not None:
                return None
        segment = self._segment
        step = None
        try:
            while segment is not None:
                registers = self.registers
                while True:
                    for step in segment.body:
                        step(registers)
                    step = segment.transfer
                    if step is None:
                        break
                    segment = step(registers)
                self._segment = segment
                # Nothing but the state may hold registers while it leaves a function: they die with its frame.
                del registers
                self._cross(segment)
                if self.awaited is not None:
                    return None
                segment = self._segment
        except BaseException as error:
            self._fail(segment, step, error)
            raise
        result, self.result = self.result, None
        return result

    def step(self) -> bool:
        """Run one instruction. Return whether there are more.

        An instruction that waits for an unfinished future (:attr:`awaited`) does not run: it remains the next one.

        Raises:
            Exception: whatever the instruction raises; the execution has ended then.
        """
        self.awaited = None
        segment = self._segment
        if segment is None:
            return False
        step = segment.body[self._offset] if self._offset < len(segment.body) else segment.jump
        try:
            if step is None:
                self._offset = 0
                self._cross(segment)
            elif step is segment.jump:
                self._offset = 0
                self._segment = segment.jump(self.registers)
            else:
                step(self.registers)
                self._offset += 1
        except BaseException as error:
            self._fail(segment, step, error)
            raise
        if self.awaited is None:
            self._pass_joints()
        return self._segment is not None

    @property
    def is_finished(self) -> bool:
        return self._segment is None

    @property
    def position(self) -> int:
        """The index of the next instruction of :attr:`code`, which is that of the function that runs now."""
        if self._segment is None:
            return len(self.code.instructions)
        return self._segment.start + self._offset

    @property
    def depth(self) -> int:
        """Number of functions that wait for the running one."""
        return len(self._stack)

    def _pass_joints(self) -> None:
        """Follow fall-throughs at the end of a block to the block that has the next instruction."""
        segment = self._segment
        while segment is not None and segment.falls_through and self._offset == len(segment.body):
            assert segment.transfer is not None
            segment = self._segment = segment.transfer(self.registers)
            self._offset = 0

    # --------------------------------------------------------------------------------------------------------- frames

    def _cross(self, segment: BasicBlock) -> None:
        """Run what ends the basic block ``segment``: a call, a return, a guard, or a fork, wait or await of a task."""
        boundary = segment.exit_instruction
        assert boundary is not None
        opcode = boundary.opcode
        if opcode is _STORE:
            self._leave(boundary)
        elif opcode is _CALL or opcode is _CALL_METHOD:
            self._enter(boundary, segment)
        elif opcode is _BAILOUT:
            self._bail_out(boundary, segment)
        elif opcode is _WAIT:
            self._wait(boundary, segment)
        elif opcode is _FORK:
            self._fork(boundary, segment)
        elif opcode is _DEFER:
            self._defer(boundary, segment)
        else:
            self._await(boundary, segment)

    def _enter(self, call: Instruction, segment: BasicBlock) -> None:
        caller = self.registers
        if len(self._stack) >= max(_MAX_DEPTH, sys.getrecursionlimit()):
            raise RecursionError("maximum recursion depth exceeded")
        callee = code_of(call.function or _method_of(caller[call.inputs[0]], call.node.get_string("name")))
        registers = callee.template[:]
        for index, register in enumerate(call.inputs):
            registers[index] = caller[register]
        for register in call.cleared:
            caller[register] = None
        self._stack.append((self.code, caller, segment))
        self.code, self.registers, self._segment = callee, registers, callee.segments[0]

    def _leave(self, store: Instruction) -> None:
        registers = self.registers
        if len(store.inputs) == 1:
            result = registers[store.inputs[0]]
        else:
            result = tuple([registers[register] for register in store.inputs]) if store.inputs else None
        if not self._stack:
            self.result = result
            self.registers, self._segment = [], None
            return
        self.code, self.registers, segment = self._stack.pop()
        boundary = segment.exit_instruction
        assert boundary is not None
        if boundary.opcode is _AWAIT:
            self.registers[boundary.input].finish(result)
            self._go_on(boundary, segment, result)
            return
        for register in boundary.outputs:
            if register is not None:
                self.registers[register] = result
        self._segment = segment.next

    def _bail_out(self, instruction: Instruction, segment: BasicBlock) -> None:
        """Continue after a guard, or replace this frame by the rest of the program."""
        bailout = instruction.constant
        assert isinstance(bailout, Bailout)
        values = [self.registers[register] for register in instruction.inputs]
        if bailout.test(values[0]):
            self._go_on(instruction, segment, values[0])
            return
        code = bailout.code
        if not isinstance(code, Code):
            code = bailout.code = Code(bailout.graph, self.code.name)
        bailout.record_taken()
        registers = code.template[:]
        registers[: len(values)] = values
        self.code, self.registers, self._segment = code, registers, code.segments[0]

    def _fork(self, fork: Instruction, segment: BasicBlock) -> None:
        assert fork.function is not None
        state = InterpreterState(code_of(fork.function))
        state.start([self.registers[register] for register in fork.inputs])
        self._go_on(fork, segment, launch(state))

    def _wait(self, wait: Instruction, segment: BasicBlock) -> None:
        future = self.registers[wait.input]
        if not future.done():
            self.awaited = future
            self._offset = len(segment.body)
            return
        self._go_on(wait, segment, future.value())

    def _defer(self, defer: Instruction, segment: BasicBlock) -> None:
        function = defer.function
        assert function is not None
        arguments = [self.registers[register] for register in defer.inputs]
        self._go_on(defer, segment, Await(Call(partial(_run, function), arguments, function)))

    def _await(self, wait: Instruction, segment: BasicBlock) -> None:
        """Write the result of an Await, if it is known. Otherwise push a frame for its computation (the Await itself is
        in a register of the frame below), or set :attr:`awaited`, if another execution computes it.

        Raises:
            RekindleError: the Await waits for itself.
            Exception: whatever a Python function of an Await raises.
        """
        awaited = self.registers[wait.input]
        if not isinstance(awaited, Await) or awaited.is_nowait():
            self._go_on(wait, segment, awaited.wait())
            return
        call = awaited.claim()
        if call is None and not awaited.done():
            if any(awaited is item for item in self._being_computed()):
                raise RekindleError("an Await waits for itself: its function asks for its result")
            self.awaited = awaited
            self._offset = len(segment.body)
        elif call is None or call.function is None:
            self._go_on(wait, segment, _finished(awaited, call))
        else:
            callee = code_of(call.function)
            registers = callee.template[:]
            registers[: callee.argument_count] = call.arguments
            self._stack.append((self.code, self.registers, segment))
            self.code, self.registers, self._segment = callee, registers, callee.segments[0]

    def _being_computed(self) -> list[Await[Any]]:
        """Return the Awaits whose functions this execution is running."""
        return [
            registers[segment.exit_instruction.input]
            for _, registers, segment in self._stack
            if segment.exit_instruction is not None and segment.exit_instruction.opcode is _AWAIT
        ]

    def _go_on(self, instruction: Instruction, segment: BasicBlock, result: object) -> None:
        """Write the result of the instruction that ends ``segment`` to its registers, and continue after it."""
        registers = self.registers
        for register in instruction.cleared:
            registers[register] = None
        for output in instruction.outputs:
            if output is not None:
                registers[output] = result
        self._segment = segment.next

    # --------------------------------------------------------------------------------------------------------- errors

    def _fail(self, segment: BasicBlock | None, step: BoundInstruction | None, error: BaseException) -> None:
        """Record the source location of the error, exit the enclosing with statements, and release all references. The
        message of an IndexError of a subscript is replaced by Python's.

        Raises:
            BaseException: what an ``__exit__`` raises (:func:`leave_all`).
        """
        traceback = error.__traceback__
        index = 0 if segment is None else segment.boundary_index
        if step is not None:
            index = self.code.positions.get(step, index)
        is_compiled = False
        while traceback is not None:
            if is_running_loop(traceback.tb_frame):  # the error has the position in the loop
                is_compiled = True
                break
            in_loop = self.code.hot.index(traceback.tb_frame.f_code, traceback.tb_lineno)
            if in_loop is not None:
                index = in_loop
                break
            traceback = traceback.tb_next
        # A keyboard interrupt may occur while control passes from one function to another, so that the index is of
        # either.
        index = self.failed_at = min(index, len(self.code.instructions) - 1)
        frames = [(code, waiting.boundary_index) for code, _, waiting in self._stack] + [(self.code, index)]
        self._places = [place for code, at in (frames[:-1] if is_compiled else frames) for place in places_of(code, at)]
        word_as_python_does(error, self.code.instructions[index].node)
        managers: list[Any] = []
        held = [waiting for _, waiting, _ in self._stack] + [self.registers]
        for (code, at), registers in zip(frames, held, strict=True):
            managers += [registers[register] for register in code.entered_at(at)]
        given_up = self._being_computed()
        for _, registers, _ in self._stack:
            registers.clear()
        self.registers.clear()
        self._stack.clear()
        self._segment = None
        for awaited in given_up:
            awaited.give_up()
        leave_all(managers, error)

    def traceback(self, tail: TracebackType | None = None) -> TracebackType | None:
        """Return the traceback of the error that ended the program: an entry for each source location of the program,
        then ``tail``; None if there is no entry."""
        return traceback_through(self._places, tail)


def _run(function: GraphFunction, *arguments: object) -> Any:
    """Run a function for Python code that waits for the result of an Await of a program."""
    return InterpreterState(code_of(function)).run(arguments)


def _finished(awaited: Await[Any], call: Call[Any] | None) -> Any:
    """Return the result of an Await by running ``call``; if that is None, another caller computes it: wait for it."""
    if call is None:
        return awaited.wait()
    try:
        result = call()
    except BaseException:
        awaited.give_up()
        raise
    awaited.finish(result)
    return result


def places_of(code: Code, index: int, function: str = "") -> list[SourceFrame]:
    """Return the source locations of instruction ``index`` of ``code``: in the function itself, and in those that
    were inlined into it; if the node has no source, its line of ``str(code)``. ``function`` is the name of the function
    if the code is of a part of it."""
    node = code.instructions[index].node
    if not node.range.is_known:
        lines, numbers = code.listing()
        source = Source("\n".join(lines), f"<code of {code.name}>")
        start = source.line_starts[numbers[index] - 1]
        return [SourceFrame(function or code.basename, source.range(start, start + len(lines[numbers[index] - 1])))]
    places: list[SourceFrame] = []
    function = function or code.basename
    for callee, call in node.callstack:
        places.append(SourceFrame(function, call))
        function = callee.rsplit(".", 1)[-1]
    return [*places, SourceFrame(function, node.range)]


def _method_of(value: object, name: str) -> GraphFunction:
    """Return the method of an object whose class is known only at run time.

    Raises:
        InternalError: the class has no compiled method of that name.
    """
    owner = class_of(value)
    method = owner.methods.get(name) if isinstance(owner, ClassType) else None
    if method is None:
        raise InternalError(f"prim::CallMethod: a {type(value).__name__} has no compiled method '{name}'")
    return method
