"""One way to run a function: a graph, and what runs it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rekindle.ir.graph import Graph
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.plans.plan import ExecutionPlan, plan_of
from rekindle.runtime.plans.python_code import NotCompilable


class Version:
    """``function`` runs ``code`` on arguments: by ``plan``, or the interpreter where there can be none. ``seconds`` is
    what making it took, with the passes before, where somebody has noted that."""

    __slots__ = ("code", "function", "plan", "reference", "seconds")

    def __init__(self, code: Code, plan: ExecutionPlan | None) -> None:
        self.code = code
        self.plan = plan
        self.function: Callable[..., Any] = _Interpreted(code) if plan is None else plan.function
        self.reference: Callable[[], Code | None] = weakref.ref(code)
        self.seconds = 0.0

    @classmethod
    def of(cls, graph: Graph, name: str) -> Version:
        """The fastest way to run ``graph`` as it stands.

        Raises:
            SchemaError: nothing is registered that runs one of the nodes.
        """
        code = Code(graph, name)
        try:
            return cls(code, ExecutionPlan(code))
        except NotCompilable:
            return cls(code, None)

    @property
    def graph(self) -> Graph:
        return self.code.graph


class _Interpreted:
    """Runs ``code`` in the interpreter."""

    __slots__ = ("code",)

    def __init__(self, code: Code) -> None:
        self.code = code

    def __call__(self, *arguments: Any) -> Any:
        return InterpreterState(self.code).run(arguments)


def underlying_code(function: Callable[..., Any] | None) -> Code | None:
    """What :attr:`Version.function` runs; None for functions from elsewhere."""
    if isinstance(function, _Interpreted):
        return function.code
    plan = plan_of(function)
    return None if plan is None else plan.code


class Strategy(Protocol):
    """How the calls of one function are run: which version runs which arguments, and when it is made."""

    def select(self, arguments: Sequence[object]) -> Version:
        """What runs a call with these arguments, made now if there is none.

        Raises:
            CompileError: the function cannot be compiled.
        """

    def prepare(self, arguments: Sequence[object]) -> Version:
        """As :meth:`select`, but made before it returns, whatever the settings say."""

    @property
    def versions(self) -> Sequence[Version]:
        """What there is so far."""
