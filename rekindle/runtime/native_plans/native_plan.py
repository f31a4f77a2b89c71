"""Native plans: the function that Python calls, and its exits.

An error of a plan has one frame in its traceback, with the pseudo file ``<rekindle native plan 7>``, whose line numbers
are the indices of instructions. ``native_place`` finds the plan by that name.

A plan exits on a value that its instructions do not support (a subclass of Tensor, an int of more than 64 bits): the
interpreter takes over the registers, and runs the rest of the call.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

from rekindle.codegen.llvm.cpython_wrappers import capsule_of, function_at
from rekindle.codegen.llvm.engine import NativeCode
from rekindle.codegen.llvm.tensor_abi import tensor_objects
from rekindle.codegen.plan_runtime.entry_ir import PlanStructure
from rekindle.codegen.plan_runtime.frame import WORD
from rekindle.codegen.plan_runtime.library import ENTRY, LIST_ENTRY
from rekindle.ir.subgraph_execution import PatchableOperation
from rekindle.ops.python.tuples import check_count
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import copy_constant
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.native_plans.instruction_table import CallSite, FinishedTable
from rekindle.runtime.native_plans.writer import PlanWriter, Unsuitable
from rekindle.runtime.native_plans.written_plan import written_plan

_FILE: Final = "<rekindle native plan "
_ITEMS: Final = -2
"""In place of a register: the items of the result belong to the outputs of the instruction."""
_numbers: Final = itertools.count(1)
_PLANS: Final[WeakValueDictionary[str, NativePlan]] = WeakValueDictionary()
_FUNCTIONS: Final[WeakKeyDictionary[Callable[..., Any], ref[NativePlan]]] = WeakKeyDictionary()


class NativePlan:
    """A description of the native function that runs ``code``: ``handlers`` are the index of an instruction of the code
    and the name of its handler, for each table entry in order. ``str(plan)`` lists them."""

    __slots__ = ("__weakref__", "_capsule", "_entries", "_kept", "code", "handlers")

    def __init__(self, code: Code, writer: PlanWriter) -> None:
        self.code = code
        self.handlers = [(entry.index, entry.handler) for entry in writer.table.entries]
        self._kept: list[object] = []
        self._entries: dict[str, int] = {}
        self._capsule: object = None

    def function(self, library: NativeCode, writer: PlanWriter, fallback: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, which keeps the plan alive; calls that it does not support are passed to
        ``fallback``."""
        table = writer.table.finish(library.address)
        words = table.words
        self._kept += [*writer.table.kept, words, library, fallback]
        self._link_operations(table)
        file = f"{_FILE}{next(_numbers)}>"
        structure = self._structure(writer, words, file, fallback)
        self._capsule = capsule_of(structure)
        self._entries = {name: library.address(name) for name in (ENTRY, LIST_ENTRY)}
        _PLANS[file] = self
        return self.plain_function()

    def plain_function(self) -> Callable[..., Any]:
        """Return a function that takes the arguments."""
        return self._function(ENTRY)

    def consuming_function(self, plain: Callable[..., Any]) -> Callable[[list[Any]], Any]:
        """Return a function that takes a list of the arguments, and empties it: an argument that only the list holds is
        freed at its last use. It keeps ``plain`` alive, the function that takes the arguments."""
        return self._function(LIST_ENTRY, plain)

    def _function(self, entry: str, *kept: object) -> Callable[..., Any]:
        function = function_at(self._entries[entry], self.code.basename, self._capsule, (self, *kept))
        _FUNCTIONS[function] = ref(self)
        return function

    def __str__(self) -> str:
        lines, numbers = self.code.listing()
        written: dict[int, list[str]] = {}
        for index, handler in self.handlers:
            written.setdefault(numbers[index] - 1, []).append(handler)
        width = max(map(len, lines))
        shown = [f"{line:{width}} | {' '.join(written.get(at, []))}".rstrip(" |") for at, line in enumerate(lines)]
        return "\n".join(shown)

    def _link_operations(self, table: FinishedTable) -> None:
        """Register the call sites of operations that are replaced by faster ones later, so that the plan calls
        these."""
        for value in list(self._kept):
            if isinstance(value, PatchableOperation):
                places, sites = table.references.get(id(value), []), table.sites.get(id(value), [])
                value.add_call_site(CallSite(table.words, places, sites, self._kept))

    def _structure(self, writer: PlanWriter, words: Any, file: str, fallback: Callable[..., Any]) -> PlanStructure:
        layout = writer.layout
        template = (ctypes.c_int64 * layout.words)()
        for word, value in layout.template.items():
            template[word] = value
        arguments = []
        for register in layout.registers[: self.code.argument_count]:
            arguments += [int(register.kind), register.offset, int(register.is_tensor)]
        registers = [(register.kind, register.offset) for register in layout.registers]
        name, path = self.code.basename.encode(), file.encode()
        resume = _Resume(self.code, writer.lists)
        structure = PlanStructure(
            layout.words * WORD,
            ctypes.addressof(template),
            ctypes.addressof(words),
            self.code.argument_count,
            self._words(arguments),
            len(layout.owners),
            self._words([word for owner in layout.owners for word in owner]),
            len(registers),
            self._words([word for register in registers for word in register]),
            id(fallback),
            id(resume),
            self._text(name),
            self._text(path),
        )
        self._kept += [template, resume, structure]
        return structure

    def _words(self, values: Sequence[int]) -> int:
        array = (ctypes.c_int64 * max(len(values), 1))(*map(int, values))
        self._kept.append(array)
        return ctypes.addressof(array)

    def _text(self, data: bytes) -> int:
        buffer = ctypes.create_string_buffer(data)
        self._kept.append(buffer)
        return ctypes.addressof(buffer)


class _Resume:
    """A function that resumes the call in the interpreter at the instruction where the native plan stopped."""

    def __init__(self, code: Code, lists: dict[int, object]) -> None:
        self.code = code
        self.lists = lists

    def __call__(self, index: int, after: bool, values: list[Any], pending: int, result: Any) -> Any:
        registers = values
        for register in self.code.constants:
            registers[register] = self.code.template[register]
        for register, constant in self.lists.items():
            registers[register] = copy_constant(constant)
        if pending == _ITEMS:
            self._unpack(index, registers, result)
        elif pending >= 0:
            registers[pending] = result
        if after:
            for register in self.code.instructions[index].cleared:
                registers[register] = None
            index += 1
        state = InterpreterState(self.code)
        state.start_at(index, registers)
        del registers, values, result
        try:
            return state.finish()
        except BaseException:
            index = state.failed_at  # for `native_place`
            raise

    def _unpack(self, index: int, registers: list[Any], items: Sequence[Any]) -> None:
        """Write the items of a result to the outputs of an instruction."""
        outputs = self.code.instructions[index].outputs
        check_count(items, len(outputs))
        for register, item in zip(outputs, items, strict=True):
            if register is not None:
                registers[register] = item


def compiled_plan(code: Code, library: NativeCode, fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return a function that runs ``code`` by the handlers of ``library``; None if that is impossible, or not faster
    than a plan in Python. Calls that it does not support are passed to ``fallback``."""
    objects = tensor_objects()
    assert objects is not None
    try:
        writer = written_plan(code, objects.tensor_offset)
    except Unsuitable:
        return None
    if not writer.pays:
        return None
    return NativePlan(code, writer).function(library, writer, fallback)


def native_place(frame: FrameType, line: int) -> tuple[Code, int] | None:
    """Return the code that a frame of a native plan runs, and the index of the instruction that raised; None for other
    frames."""
    if frame.f_code is _Resume.__call__.__code__:
        return frame.f_locals["self"].code, frame.f_locals["index"]
    file = frame.f_code.co_filename
    plan = _PLANS.get(file) if file.startswith(_FILE) else None
    return None if plan is None else (plan.code, line - 1)


def native_plan_of(function: object) -> NativePlan | None:
    """Return the native plan that ``function`` runs; None for other objects."""
    try:
        found = _FUNCTIONS.get(function)  # type: ignore[call-overload]
    except TypeError:  # it cannot be referred to weakly, or has no hash
        return None
    return None if found is None else found()
