"""One way to run a function: a graph, and what runs it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from rekindle.analysis.default_device import is_sole_function_mode, may_read_default_device, run_outside
from rekindle.errors import UNKNOWN_RANGE
from rekindle.errors.gc_pause import gc_paused
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph
from rekindle.ir.profiling import recorded
from rekindle.ir.subgraph_execution import defers_first_calls
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.long_loops import LoopCompiler, long_loops_compiled
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.native_plans.availability import native_function
from rekindle.runtime.native_plans.native_plan import native_plan_of
from rekindle.runtime.plans.first_run import InterpretedRun, runs_once
from rekindle.runtime.plans.plan import ExecutionPlan, plan_of
from rekindle.runtime.plans.python_code import NotCompilable
from rekindle.runtime.settings import SETTINGS

RunsAs = Literal["native plan", "plan", "interpreter"]


class Version:
    """``function`` runs ``code`` on arguments. ``seconds`` is the time that compiling it took, including passes, if
    it was measured. ``captured`` replays calls on a GPU, if CUDA graphs are enabled
    (:class:`~rekindle.runtime.cuda_graphs.captured_function.CapturedFunction`). ``for_completed`` returns the version
    that is best for calls with arguments of the same sizes as a call that has completed; None if it is this one."""

    __slots__ = ("__weakref__", "_python", "captured", "code", "for_completed", "function", "reference", "seconds")

    def __init__(self, code: Code, function: Callable[..., Any], python: PythonFunction | None = None) -> None:
        self.code = code
        self.function = function
        self._python = python
        self.reference: Callable[[], Code | None] = weakref.ref(code)
        self.seconds = 0.0
        self.captured: Any = None
        self.for_completed: Callable[[Sequence[object]], Version | None] = _none

    @classmethod
    def of(cls, graph: Graph, name: str, *, from_list: bool = False, defers: bool = False) -> Version:
        """Return the fastest way to run the unchanged ``graph``. With ``from_list``, its function takes a list of the
        arguments, and empties it: see :func:`rekindle.ir.subgraph_execution.consuming_callable_of`. If the version
        ``defers``, its plan is written at the second call; the first one may be interpreted.

        Raises:
            SchemaError: nothing is registered that runs one of the nodes.
        """
        with recorded(f"plan {name.rpartition('.')[2]}"):
            code = Code(graph, name)
            if defers and defers_first_calls() and runs_once(code):
                version = cls(code, _none)
                version.function = _FirstRun(code, weakref.ref(version))
                return version
            return cls(code, *_planned(code, from_list))

    def complete(self) -> Callable[..., Any]:
        """Return ``function``, after its plan was written."""
        if isinstance(self.function, _FirstRun):
            self.function = self.function.planned()
        return self.function

    @classmethod
    def interpreted(cls, code: Code, compile_loop: LoopCompiler | None = None) -> Version:
        """Return a version that the interpreter runs, except long loops, which ``compile_loop`` compiles if it is
        given."""
        return cls(code, _Interpreted(code, compile_loop))

    @property
    def graph(self) -> Graph:
        return self.code.graph

    @property
    def runs_as(self) -> RunsAs:
        """The form in which the version runs: interpreted, as a plan in Python, or as a native plan."""
        return runs_as(self.complete())

    @property
    def plan(self) -> ExecutionPlan | None:
        """The plan in Python, to which a native plan falls back; None if the interpreter runs the code."""
        self.complete()
        return None if self._python is None else plan_of(self._python.made())


def _none(arguments: Sequence[object]) -> None:
    return None


class PythonFunction:
    """A function that runs ``code`` by a plan in Python, made at the first call, or in the interpreter if no plan is
    possible. With ``from_list``, it takes a list of the arguments, and empties it.

    A native plan falls back to it for the calls that it does not support. If that is because of a default device, on
    which nothing in ``code`` depends, it calls the native plan again, without the mode of the default device."""

    __slots__ = ("_from_list", "_function", "_may_read_device", "code", "native")

    def __init__(self, code: Code, *, from_list: bool = False) -> None:
        self.code = code
        self._from_list = from_list
        self._function: Callable[..., Any] | None = None
        self._may_read_device: bool | None = None
        self.native: Callable[[], Callable[..., Any] | None] = _no_function
        """A weak reference to the function of the native plan that falls back to this one."""

    def made(self) -> Callable[..., Any]:
        """Return the function of the plan, or one that interprets the code."""
        if self._function is None:
            try:
                self._function = ExecutionPlan(self.code, from_list=self._from_list).function
            except NotCompilable:
                self._function = (_InterpretedFromList if self._from_list else _Interpreted)(self.code)
        return self._function

    def __call__(self, *arguments: Any) -> Any:
        if is_sole_function_mode():
            native = self.native()
            if self._may_read_device is None:
                self._may_read_device = may_read_default_device(self.code.graph)
            if native is not None and not self._may_read_device:
                return run_outside(native, arguments)
        return self.made()(*arguments)


def _no_function() -> None:
    return None


def _planned(code: Code, from_list: bool = False) -> tuple[Callable[..., Any], PythonFunction]:
    """Return the function that runs ``code`` by a plan, and the one that calls fall back to."""
    python = PythonFunction(code)
    native = native_function(code, python) if SETTINGS.native_plans else None
    if native is not None:
        python.native = weakref.ref(native)
    if from_list:
        plan = native_plan_of(native)
        python = PythonFunction(code, from_list=True)
        native = None if plan is None or native is None else plan.consuming_function(native)
    return native or python.made(), python


class _FirstRun:
    """A function that interprets ``code`` at the first call, and writes its plan at the second one. That is the
    function of ``version`` from then on."""

    __slots__ = ("_function", "_version", "code", "was_called")

    def __init__(self, code: Code, version: Callable[[], Version | None]) -> None:
        self.code = code
        self.was_called = False
        self._version = version
        self._function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        if self.was_called:
            return self.planned()(*arguments)
        self.was_called = True
        return InterpretedRun(self.code)(*arguments)

    @gc_paused()
    @room_to_recurse(UNKNOWN_RANGE)
    def planned(self) -> Callable[..., Any]:
        """Return the function of the plan."""
        if self._function is None:
            with recorded(f"plan {self.code.basename}"):
                self._function, python = _planned(self.code)
            version = self._version()
            if version is not None:
                version.function, version._python = self._function, python
        return self._function


class _Interpreted:
    """A function that runs ``code`` in the interpreter, and has ``compile_loop``, if it is given, compile long
    loops."""

    __slots__ = ("_compile_loop", "code")

    def __init__(self, code: Code, compile_loop: LoopCompiler | None = None) -> None:
        self.code = code
        self._compile_loop = compile_loop

    def __call__(self, *arguments: Any) -> Any:
        with long_loops_compiled(self._compile_loop):  # not by a call that this one is part of
            return InterpreterState(self.code).run(arguments)


class _InterpretedFromList(_Interpreted):
    """A function that runs ``code`` in the interpreter on a list of arguments, which it empties."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        (values,) = arguments
        return InterpreterState(self.code).run(_take_all(values))


def _take_all(values: list[Any]) -> list[Any]:
    """Return what is in the list ``values``, and empty it."""
    taken = values[:]
    values.clear()
    return taken


def plain_function(function: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """Return the function that takes arguments and computes what ``function``, of a version from a list, computes for a
    list of them."""
    plan = native_plan_of(function)
    if plan is not None:
        return plan.plain_function()
    code = underlying_code(function)
    assert code is not None
    return PythonFunction(code)


def underlying_code(function: Callable[..., Any] | None) -> Code | None:
    """Return the code that a native plan, a plan in Python or an interpreted function runs; None for other
    functions."""
    if isinstance(function, (_Interpreted, _FirstRun, InterpretedRun)):
        return function.code
    plan = native_plan_of(function) or plan_of(function)
    return None if plan is None else plan.code


def runs_as(function: Callable[..., Any]) -> RunsAs:
    """Return the form in which a function runs: a native plan, a plan in Python, or otherwise the interpreter."""
    if native_plan_of(function) is not None:
        return "native plan"
    return "plan" if plan_of(function) is not None else "interpreter"


class Strategy(Protocol):
    """The interface of execution strategies: which version of a function runs a call, and when it is compiled."""

    def select(self, arguments: Sequence[object]) -> Version:
        """Return the version for a call with these arguments. If there is none, it is compiled now, or in the
        background while this call runs unoptimized code.

        Raises:
            CompileError: the function cannot be compiled.
        """

    def prepare(self, arguments: Sequence[object]) -> Version:
        """Select a version as :meth:`select` does, but compile it before returning, regardless of the settings."""

    @property
    def versions(self) -> Sequence[Version]:
        """The versions so far."""
