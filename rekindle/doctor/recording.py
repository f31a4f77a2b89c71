"""The recorder: what a process compiles through ``torch.jit``'s names, and whether calls return what eager returns.

It runs in a process of its own, with the drop-in installed, and writes events as lines of JSON: one for each program
when it is compiled or fails, and one for each compiled program when the process ends.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import torch

from rekindle.api.drop_in.install import install_recording
from rekindle.api.drop_in.torch_jit_shims import SHIMS
from rekindle.doctor.comparison import copied, difference, is_plain
from rekindle.doctor.inputs import NotGenerated, generated
from rekindle.doctor.problems import problems_of
from rekindle.doctor.ways_out import measured, native_library, onnx, portable_program
from rekindle.program.calling import interceptors
from rekindle.program.function import Function
from rekindle.program.modules import module as program_module
from rekindle.program.modules.module import ScriptModule
from rekindle.scripting.modules.module_classes import compile_instance
from rekindle.scripting.script import script

_IF_TRACING: Final = ("script_if_tracing", "_script_if_tracing")
RECORDED: Final = ("script", "trace", "trace_module", *_IF_TRACING, "freeze", "optimize_for_inference", "load")
MAX_CALLS: Final = 3
"""Number of calls of each program that are compared with eager."""
MAX_PROGRAMS: Final = 500
"""Number of programs whose calls are compared; further programs are recorded alone."""
FINISH_SECONDS: Final = 120.0
"""Time after which :meth:`Recorder.finish` begins no more measurements and conversions."""


@dataclass(slots=True, eq=False)
class Program:
    """A compiled function or module (``compiled``), its Python original (``eager``), and the comparison of their calls.

    ``difference`` describes the first difference. ``not_compared`` is the reason why calls are not compared. Both are
    None by default.
    """

    number: int
    compiled: Any
    eager: Any
    calls: int = 0
    """Number of compared calls."""
    inputs: str = ""
    """Where the inputs came from: ``recorded``, ``generated`` or ``example``."""
    difference: str | None = None
    not_compared: str | None = None
    examples: tuple[Any, ...] | None = None
    """The arguments that it was traced with."""
    arguments: tuple[tuple[Any, ...], dict[str, Any]] | None = None
    """A copy of the arguments of the last compared call that returned."""
    answer: Any = None
    """The result of eager for these arguments."""


@dataclass(slots=True, eq=False)
class _Deferred:
    """A function marked with ``script_if_tracing``, and the event to write once it is compiled. The recorder compiles
    it when its module has been imported."""

    event: dict[str, Any]
    function: Callable[..., Any]


@dataclass(slots=True, eq=False)
class Recorder:
    """Recorder of compilations and calls, which appends events to ``file``.

    With ``keeps_going``, an object that cannot be compiled is returned to the caller as it is; otherwise the error is
    raised. Errors of ``load`` are always raised.
    """

    file: Path
    keeps_going: bool
    programs: dict[int, Program] = field(default_factory=dict)
    """The programs whose calls may be compared, by the ``id`` of the compiled object."""
    deferred: list[_Deferred] = field(default_factory=list)
    inputs: str = "recorded"
    """What calls are made with: ``recorded``, ``generated`` or ``example`` inputs, those of a trace."""
    _busy: threading.local = field(default_factory=threading.local)
    _lock: Any = field(default_factory=threading.Lock)
    _count: int = 0

    def write(self, event: dict[str, Any]) -> None:
        """Append an event to the file, as a line of JSON."""
        with self._lock, self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")

    # ------------------------------------------------------------------------------------------------- compilations

    def install(self) -> None:
        """Install the drop-in with functions that record every compilation, and compare calls with eager.

        This replaces ``__call__`` of compiled functions and modules in this process, for good.
        """
        install_recording({name: self._recorded(name) for name in RECORDED})
        for cls in (Function, ScriptModule):
            setattr(cls, "__call__", self._compared(vars(cls)["__call__"]))  # noqa: B010
        program_module.compile_instance.provide(self._compile_instance)

    def _recorded(self, name: str) -> Callable[..., Any]:
        shim = SHIMS[name]

        def recorded(*args: Any, **kwargs: Any) -> Any:
            subject = args[0] if args else next(iter(kwargs.values()), None)
            event = {"event": "program", "name": name, **_caller(sys._getframe(1)), **_described(subject)}
            try:
                result = shim(*args, **kwargs)
            except Exception as error:  # whatever the user's code raises while it is traced
                self.write({**event, "ok": False, "problems": problems_of(error)})
                if not self.keeps_going or name == "load":
                    raise
                return subject
            if name in _IF_TRACING:
                self.deferred.append(_Deferred(event, args[0]))
                return result
            number = self._add(result, subject)
            if number is not None and name == "trace":
                examples = args[1] if len(args) > 1 else kwargs.get("example_inputs")
                self.programs[id(result)].examples = examples if isinstance(examples, tuple) else (examples,)
            self.write({**event, "ok": True, "program": number})
            return result

        recorded.__name__ = recorded.__qualname__ = name
        recorded.__doc__ = shim.__doc__
        return recorded

    def _compile_instance(self, module: ScriptModule) -> None:
        """Compile an object of a class that derives from ``torch.jit.ScriptModule``. Write one event for each such
        class among its classes.

        Raises:
            Exception: an error of the compilation; the events have its problems.
        """
        problems: list[dict[str, Any]] = []
        try:
            compile_instance(module)
        except Exception as error:
            problems = problems_of(error)
            raise
        finally:
            for cls in type(module).__mro__[:-1]:
                if issubclass(cls, ScriptModule) and cls.__module__.partition(".")[0] not in ("rekindle", "torch"):
                    event = {"event": "program", "name": "ScriptModule", **_place_of_class(cls), **_described(cls)}
                    self.write({**event, "ok": not problems, "problems": problems, "program": None})

    def make_objects(self, module: types.ModuleType) -> None:
        """Call each class of ``module`` that derives from ``torch.jit.ScriptModule``, without arguments. This compiles
        the object. Errors are ignored: those of the compilation are in the events."""
        for cls in list(vars(module).values()):
            if isinstance(cls, type) and issubclass(cls, ScriptModule) and cls.__module__ == module.__name__:
                with contextlib.suppress(Exception):  # what matters is recorded
                    cls()

    def _add(self, compiled: Any, eager: Any) -> int | None:
        """Register a compiled program and its original; return its number.

        Return None for other objects, and if there are :data:`MAX_PROGRAMS` programs.
        """
        if not isinstance(compiled, (Function, ScriptModule)) or len(self.programs) >= MAX_PROGRAMS:
            return None
        known = self.programs.get(id(compiled))
        if known is not None:
            return known.number
        self._count += 1
        known_eager = self.programs.get(id(eager))
        if known_eager is not None:
            eager = known_eager.eager
        program = Program(self._count, compiled, eager)
        if isinstance(eager, (str, bytes, os.PathLike, ScriptModule, Function)) or not callable(eager):
            program.not_compared = "there is no eager program beside it"
        self.programs[id(compiled)] = program
        return self._count

    def compile_deferred(self) -> None:
        """Compile the functions marked with ``script_if_tracing``, write their events, and register the programs."""
        for each in self.deferred:
            try:
                compiled = script(each.function)
            except Exception as error:  # a compiler of user code meets anything
                self.write({**each.event, "ok": False, "problems": problems_of(error)})
            else:
                self.write({**each.event, "ok": True, "program": self._add(compiled, each.function)})
        self.deferred.clear()

    # -------------------------------------------------------------------------------------------------------- calls

    def _compared(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def __call__(compiled: Any, /, *args: Any, **kwargs: Any) -> Any:
            program = self.programs.get(id(compiled))
            if program is None or interceptors:
                return call(compiled, *args, **kwargs)
            if getattr(self._busy, "eager", False):
                # What eager code calls is to be eager too.
                target = compiled if program.not_compared else program.eager
                return call(compiled, *args, **kwargs) if target is compiled else target(*args, **kwargs)
            if program.calls >= MAX_CALLS or program.not_compared is not None:
                return call(compiled, *args, **kwargs)
            return self._call_both(program, lambda: call(compiled, *args, **kwargs), args, kwargs)

        return __call__

    def _call_both(
        self,
        program: Program,
        call: Callable[[], Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Call a program, and its eager version with copies of the arguments; record how the results differ in
        ``program``. Return the result of the program.

        Raises:
            Exception: what the program raises.
        """
        try:
            (eager_args, eager_kwargs), kept = copied((args, kwargs)), copied((args, kwargs))
            eager = _copy_of_eager(program)
        except Exception as error:  # what copying an object of the user raises
            program.not_compared = f"what it is called with cannot be copied: {type(error).__name__}"
            return call()
        random_state = torch.get_rng_state()
        found, raised = _outcome(call)
        after = torch.get_rng_state()
        torch.set_rng_state(random_state)
        expected, eager_raised = self._eager_outcome(lambda: eager(*eager_args, **eager_kwargs))
        draws = not torch.equal(torch.get_rng_state(), random_state) or not torch.equal(after, random_state)
        torch.set_rng_state(after)
        program.calls += 1
        program.inputs = self.inputs
        if raised is None:
            program.arguments, program.answer = kept, expected
        text = _difference(expected, eager_raised, found, raised)
        if text is not None and draws:
            program.not_compared = "it draws random numbers, and in another order than eager"
        elif text is not None and program.difference is None:
            program.difference = text
        if raised is not None:
            raise raised
        return found

    def _eager_outcome(self, call: Callable[[], Any]) -> tuple[Any, Exception | None]:
        """Call an eager program, in which compiled programs run as eager too. Return its result and its exception; the
        latter is None if the call returns."""
        self._busy.eager = True
        try:
            return _outcome(call)
        finally:
            self._busy.eager = False

    def call_with_generated_inputs(self) -> None:
        """Call each program that has not been called, and compare it with eager: a trace with its examples, others with
        generated inputs that eager accepts. Errors of the calls are recorded, not raised."""
        for program in list(self.programs.values()):
            if program.calls or program.not_compared is not None:
                continue
            self.inputs = "generated" if program.examples is None else "example"
            try:
                self._try_inputs(program)
            except NotGenerated as error:
                program.not_compared = str(error)
            except Exception as error:  # a program may raise anything
                program.not_compared = f"{type(error).__name__}: {error}"

    def _try_inputs(self, program: Program) -> None:
        compiled = program.compiled
        schema = compiled.forward.schema.bound if isinstance(compiled, ScriptModule) else compiled.schema
        rejected = ""
        for args in [list(program.examples)] if program.examples is not None else generated(schema):
            if program.calls >= MAX_CALLS or program.not_compared is not None:
                return
            try:
                eager_args = copied(args)
                eager = _copy_of_eager(program)
            except Exception as error:  # what copying an object of the user raises
                program.not_compared = f"it cannot be copied: {type(error).__name__}"
                return
            _, raised = self._eager_outcome(partial(eager, *eager_args))
            if raised is not None:
                rejected = f"{type(raised).__name__}: {raised}".partition("\n")[0][:200]
                continue
            with contextlib.suppress(Exception):  # the difference is kept
                compiled(*args)
        if not program.calls:
            program.not_compared = f"eager raises on all generated inputs, the last time {rejected}"

    # ------------------------------------------------------------------------------------------------------- at last

    def finish(self) -> None:
        """Compile deferred functions, save results for :mod:`~rekindle.doctor.stock`, and write an event of each
        program.

        Called programs without a known difference are measured and exported, and a second event has these results too.
        Calls are not compared any more.
        """
        self.compile_deferred()
        end = time.monotonic() + FINISH_SECONDS
        programs, self.programs = self.programs, {}
        self._keep_answers(list(programs.values()))
        for program in programs.values():
            event: dict[str, Any] = {
                "event": "calls",
                "program": program.number,
                "calls": program.calls,
                "inputs": program.inputs,
                "difference": program.difference,
                "not_compared": program.not_compared,
            }
            self.write(event)
            if program.arguments is not None and program.difference is None:
                self.write({**event, **_beyond(program, end)})

    def _keep_answers(self, programs: list[Program]) -> None:
        """Save the arguments of the functions that stock PyTorch can run too, and the results of eager, beside the
        events."""
        kept = {}
        for program in programs:
            python = program.eager
            if program.arguments is None or program.arguments[1] or not isinstance(python, types.FunctionType):
                continue
            if "<" not in python.__qualname__ and is_plain((program.arguments[0], program.answer)):
                key = f"{python.__module__}:{python.__qualname__}"
                kept[key] = {"inputs": list(program.arguments[0]), "answer": program.answer}
        if kept:
            torch.save(kept, self.file.with_suffix(".pt"))


def _beyond(program: Program, end: float) -> dict[str, Any]:
    """Return the times of calls of a program in seconds, and for each export format whether its result agrees.

    After ``end``, a time of ``time.monotonic``, nothing is tried.
    """
    if time.monotonic() > end:
        return {"pt2": "not tried: there was no time left"}
    assert program.arguments is not None
    args, kwargs = program.arguments
    found: dict[str, Any] = {}
    times = measured(program.compiled, program.eager, args, kwargs)
    if times is not None:
        found["seconds"], found["eager_seconds"] = times
    exported, found["pt2"] = portable_program(program.compiled, args, kwargs)
    found["native"] = native_library(program.compiled, args, kwargs)
    found["onnx"] = onnx(exported, args, kwargs)
    return found


def _copy_of_eager(program: Program) -> Any:
    """Return the eager program. A module is copied, since a call may change its state."""
    return copied(program.eager) if isinstance(program.eager, torch.nn.Module) else program.eager


def _outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as error:  # a program may raise anything
        return None, error


def _difference(expected: Any, eager_raised: Exception | None, found: Any, raised: Exception | None) -> str | None:
    if eager_raised is None and raised is None:
        return difference(expected, found)
    if eager_raised is not None and raised is not None:
        return None
    if raised is not None:
        return f"{type(raised).__name__} here, an answer in eager: {str(raised).partition(chr(10))[0][:300]}"
    text = str(eager_raised).partition("\n")[0][:300]
    return f"an answer here, {type(eager_raised).__name__} in eager: {text}"


def _caller(frame: types.FrameType) -> dict[str, Any]:
    return {"file": os.path.realpath(frame.f_code.co_filename), "line": frame.f_lineno}


def _place_of_class(cls: type) -> dict[str, Any]:
    try:
        lines, first = inspect.getsourcelines(cls)
        file = inspect.getsourcefile(cls)
    except (OSError, TypeError):
        return {"file": "", "line": 0}
    offset = next((index for index, line in enumerate(lines) if line.lstrip().startswith("class ")), 0)
    return {"file": os.path.realpath(file or ""), "line": first + offset}


def _described(subject: object) -> dict[str, Any]:
    """Return the name, the module and the kind (``class``, ``function``, ``object`` or ``archive``) of what is
    compiled."""
    named = subject if isinstance(subject, (type, types.FunctionType, types.MethodType)) else type(subject)
    if isinstance(subject, (str, bytes, os.PathLike)):
        return {"subject": os.path.basename(os.fsdecode(subject)), "module": "", "kind": "archive"}
    if hasattr(subject, "read"):
        return {"subject": "an open file", "module": "", "kind": "archive"}
    kind = "class" if isinstance(subject, type) else "function" if named is subject else "object"
    name, module = getattr(named, "__qualname__", str(named)), getattr(named, "__module__", "")
    return {"subject": name, "module": module, "kind": kind}


@contextlib.contextmanager
def recording(folder: Path, keeps_going: bool) -> Iterator[Recorder]:
    """Record what this process compiles within the ``with`` block, as events in ``folder/events-PID.jsonl``.

    The drop-in stays installed afterwards. See :class:`Recorder` for ``keeps_going``.
    """
    recorder = Recorder(folder / f"events-{os.getpid()}.jsonl", keeps_going)
    recorder.install()
    recorder.write({"event": "start"})
    try:
        yield recorder
    finally:
        recorder.finish()
