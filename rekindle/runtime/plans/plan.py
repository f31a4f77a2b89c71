"""A whole function as Python code: registers as local variables, each operator called by its fastest form.

A plan runs what :class:`~rekindle.runtime.interpreter.code.Code` says, instruction by instruction, so that every value
dies where it dies in the interpreter. For ``relu(x @ w + 1)``, ``print(plan.source)`` shows::

    def plan(r0, r1):
     r2 = f0(r0, r1)
     r0 = r1 = None
     r3 = f1(r2, 1)
     r2 = None
     r4 = f2(r3)
     r3 = None
     return r4

What may have to stop in its middle (forks and waits) stays with the interpreter, and so do calls of methods that are
known only when they are called, whose depth has no bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from rekindle.errors.gc_pause import gc_paused
from rekindle.ir.subgraph_execution import PatchableOperation
from rekindle.ops.tensor.profiling import conditions
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Instruction, Opcode
from rekindle.runtime.interpreter.with_statements import leave_all
from rekindle.runtime.plans.python_code import MAX_LOOPS, NotCompilable, PythonWriter, literal
from rekindle.runtime.strategies.bailouts import Bailout

_PLAN = "__plan__"
"""The global variable by which a frame is known to run a plan."""


class ExecutionPlan:
    """A Python function, ``function``, that runs ``code`` on its arguments; ``source`` is its source code. With
    ``from_list``, it takes a list of the arguments, and empties it, so that those that only the list holds are freed at
    their last use.

    Raises:
        NotCompilable: the interpreter has to run it.
    """

    __slots__ = ("_indices", "code", "function", "source")

    def __init__(self, code: Code, *, from_list: bool = False) -> None:
        with gc_paused():
            writer = _PlanWriter(code)
            writer.whole()
            self.code = code
            head = writer.head_with_list() if from_list else [writer.head()]
            self.source = "\n".join([*head, *writer.lines])
            self._indices = [0] * (len(head) - 1) + writer.indices
            names = {**writer.names, _PLAN: self}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # `None[0]` after an expression that raises before it
                compiled = compile(self.source, f"<rekindle plan of {code.name}>", "exec")
            exec(compiled, names)  # noqa: S102 (the text is generated here)
            for name, value in writer.names.items():
                if isinstance(value, PatchableOperation):
                    value.add_call_site(partial(names.__setitem__, name))
        self.function: Callable[..., Any] = names["plan"]

    def instruction_at(self, line: int) -> int:
        """Return the index of the instruction that a line of the source runs."""
        return self._indices[line - 2]


def plan_of(function: object) -> ExecutionPlan | None:
    """Return the plan whose :attr:`function` is the given function; None for other objects."""
    found = getattr(function, "__globals__", {}).get(_PLAN)
    return found if isinstance(found, ExecutionPlan) else None


def plan_of_frame(frame: FrameType) -> ExecutionPlan | None:
    """Return the plan that runs in a frame; None for other frames."""
    found = frame.f_globals.get(_PLAN)
    return found if isinstance(found, ExecutionPlan) else None


class _PlanWriter(PythonWriter):
    def __init__(self, code: Code) -> None:
        super().__init__(code.instructions)
        self.code = code
        self.written: dict[int, str] = {}
        """Texts for the registers of constants."""
        for register in code.constants:
            value = code.template[register]
            text = literal(value)
            if text is None:
                text = f"c{register}"
                self.names[text] = value
            self.written[register] = text

    def source(self, register: int | None) -> str:
        assert register is not None
        return self.written.get(register) or f"r{register}"

    def target(self, register: int | None) -> str:
        return "_" if register is None else f"r{register}"

    def head(self) -> str:
        return f"def plan({', '.join(self._arguments())}):"

    def head_with_list(self) -> list[str]:
        return ["def plan(values):", f" [{', '.join(self._arguments())}] = values; values.clear()"]

    def _arguments(self) -> list[str]:
        return [f"r{number}" for number in range(self.code.argument_count)]

    def whole(self) -> None:
        self.instructions_from(0, len(self.instructions))

    def instruction(self, index: int, end: int) -> int:
        instruction = self.instructions[index]
        if self.jump_back_to(index, end) is not None:
            return super().instruction(index, end)
        if instruction.opcode is Opcode.STORE:
            self._return(index, instruction)
            return index + 1
        if instruction.opcode is Opcode.OPERATION and instruction.node.kind == "prim::Enter":
            return self._with(index, instruction, end)
        if instruction.opcode is Opcode.BAILOUT:
            self._bailout(index, instruction)
            return index + 1
        return super().instruction(index, end)

    def _return(self, index: int, store: Instruction) -> None:
        values = [self.alone(register) for register in store.inputs]
        text = values[0] if len(values) == 1 else f"({', '.join(values)})" if values else "None"
        self.write(index, f"return {text}")

    def _bailout(self, index: int, instruction: Instruction) -> None:
        """Write a test of the first input; if it fails, the continuation returns in place of this function."""
        bailout = instruction.constant
        if not isinstance(bailout, Bailout) or self.open_tries:
            raise NotCompilable
        values = [self.source(register) for register in instruction.inputs]
        self.names[f"b{index}"] = partial(bailout.continuation, self.code.name)
        holds = self._test(index, bailout, values[0])
        self.write(index, f"if not ({holds}): return b{index}()({', '.join(values)})")
        self.assign(index, instruction, values[0] if instruction.outputs[0] is not None else "")

    def _test(self, index: int, bailout: Bailout, value: str) -> str:
        if bailout.faults is not None:
            self.names[f"t{index}"] = bailout.test
            return f"t{index}({value})"
        parts = []
        for number, (text, constant) in enumerate(conditions(bailout.type)):
            name = f"t{index}_{number}"
            if "{c}" in text:
                self.names[name] = constant
            parts.append(text.format(x=value, c=name))
        return " and ".join(parts)

    def _with(self, index: int, enter: Instruction, end: int) -> int:
        """Emit ``try`` and ``except`` from a ``prim::Enter`` to its ``prim::Exit``, which remains after them.

        Raises:
            NotCompilable: blocks nest deeper than Python compiles.
        """
        exit = self._exit_of(index, end)
        if len(self.open_loops) + self.open_tries >= MAX_LOOPS:
            raise NotCompilable
        manager = self.part(enter.input)
        self.plain(index, enter)
        self.open_tries += 1
        self.inside(index, "try:", index + 1, exit)
        self.open_tries -= 1
        self.names["leave_all"] = leave_all
        self.write(index, "except BaseException as error:")
        self.write(index, f" leave_all([{manager}], error)")
        self.write(index, " raise")
        return exit

    def _exit_of(self, index: int, end: int) -> int:
        found = 0
        for at in range(index, end):
            instruction = self.instructions[at]
            if instruction.opcode is Opcode.OPERATION:
                found += (instruction.node.kind == "prim::Enter") - (instruction.node.kind == "prim::Exit")
                if not found:
                    return at
        raise NotCompilable
