"""The execution strategy ``profiling``: watch a call, specialise the program to what flowed, bail out where something
else flows.

The first calls run in the interpreter, with notes of the tensors that flow. Then the program is specialised: guards
insist on what was seen, and the passes work with it. What a call does depends on the guards at its start, which are
those of arguments and attributes: where one fails, the next older specialisation is tried, and behind the oldest one
the call is watched and gives rise to a new one. A guard that fails later leaves for the rest of the program.

How many specialisations there may be, and which of them know sizes, the fusion strategy says, as in
``set_fusion_strategy([("STATIC", 2), ("DYNAMIC", 10)])``. When they are spent, what fits none of them runs a plan that
assumes nothing; so there is a bound on what is compiled, whatever comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Final

import torch

from rekindle.ir.execution import callable_of
from rekindle.ir.graph import Graph
from rekindle.passes import (
    ConstantPooling,
    ConstantPropagation,
    DeadCodeElimination,
    EliminateGuards,
    InsertBailOuts,
    InsertGuards,
    Pass,
    Peephole,
    RefineTypes,
)
from rekindle.passes.insert_guards import GUARD
from rekindle.runtime.bailouts import Bailout
from rekindle.runtime.code import Code
from rekindle.runtime.instructions import Opcode
from rekindle.runtime.interpreter import InterpreterState
from rekindle.runtime.optimization import optimize
from rekindle.runtime.plan import ExecutionPlan
from rekindle.runtime.profiling import Recording, profiled_runs
from rekindle.runtime.python_code import NotCompilable

Strategy = Sequence[tuple[str, int]]
"""Pairs of ``"STATIC"`` or ``"DYNAMIC"`` and a number of specialisations: with sizes, or with numbers of dimensions
only."""

DEFAULT_STRATEGY: Final[Strategy] = (("STATIC", 2), ("DYNAMIC", 2))

PATIENCE: Final = 4
"""How often calls leave a specialisation in its middle before it is given up."""

GUARDING: Final[tuple[Pass, ...]] = (EliminateGuards(asked=True),)
"""What runs on a graph with guards before they become bailouts."""

SPECIALISED: Final[tuple[Pass, ...]] = (
    RefineTypes(),
    Peephole(),
    ConstantPropagation(),
    RefineTypes(),
    Peephole(),
    ConstantPropagation(),
    DeadCodeElimination(),
    ConstantPooling(),
)
"""What runs on a graph with bailouts: it makes use of what they make certain."""


@dataclass(slots=True, eq=False)
class Specialisation:
    """``function`` runs ``code``, a program that is specialised to what flowed through ``recording``; ``older`` is
    tried where a call does not fit. ``misses`` counts the calls that have left it in its middle."""

    code: Code
    function: Callable[..., Any]
    recording: Recording
    older: Specialisation | None
    bailouts: tuple[Bailout, ...]
    misses: int = 0


@dataclass(slots=True)
class Counters:
    """What an executable has done so far: calls that were watched, specialisations that were made, the guards in them,
    how often calls left one at a guard of the arguments (``misfits``), and how often in its middle (``bailouts``)."""

    watched: int = 0
    specialisations: int = 0
    guards: int = 0
    misfits: int = 0
    bailouts: int = 0


class ProfilingExecutable:
    """Runs ``graph``, which must not change any more, as the module says; ``name`` is what tracebacks call it.

    ``guarding`` are the passes that leave the guards that pay; after ``patience`` calls have left a specialisation in
    its middle, it is given up. Any number of threads may call it. While one watches, or compiles, others run what there
    is.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        strategy: Strategy = DEFAULT_STRATEGY,
        runs: int | None = None,
        *,
        guarding: Sequence[Pass] = GUARDING,
        patience: int = PATIENCE,
    ) -> None:
        self.graph = graph
        self.name = name
        self.counters = Counters()
        self._guarding = guarding
        self._patience = patience
        self._runs = profiled_runs() if runs is None else runs
        self._kinds = [kind == "STATIC" for kind, count in strategy for _ in range(count)]
        self._lock = Lock()
        self._recording: Recording | None = None
        self._watching: Code | None = None
        self._seen = 0
        self._general: Callable[..., Any] | None = None
        self._newest: Specialisation | None = None
        self._function: Callable[..., Any] = self._unknown
        self._default_dtype = torch.get_default_dtype()

    # -------------------------------------------------------------------------------------------------------- calls

    def run(self, arguments: Sequence[object]) -> Any:
        """What the program returns for ``arguments``.

        Raises:
            Whatever the program raises.
        """
        # What is known of the results of operators holds as long as these are as usual.
        if _autocasts() or _function_modes() or torch.get_default_dtype() is not self._default_dtype:
            return self.general(*arguments)
        return self._function(*arguments)

    @property
    def newest(self) -> Specialisation | None:
        """The specialisation that calls try first; None before there is one, and where there is no use in one."""
        return self._newest

    def general(self, *arguments: object) -> Any:
        """Run what assumes nothing."""
        function = self._general
        if function is None:
            function = self._general = callable_of(self.graph, self.name)
        return function(*arguments)

    def _unknown(self, *arguments: object) -> Any:
        """A call that fits no specialisation: watch it, if there may be one more."""
        with self._lock:
            if self._kinds and self._watching is None:
                self._recording = self._recording or Recording(self.graph)
                self._watching = Code(self._recording.graph, self.name)
                self._seen = 0
            code = self._watching
        if code is None:
            return self.general(*arguments)
        result = InterpreterState(code).run(arguments)
        with self._lock:
            if self._watching is code:
                self.counters.watched += 1
                self._seen += 1
                if self._seen >= self._runs:
                    self._specialise()
        return result

    def _misfit(self, specialisation: Specialisation, *arguments: object) -> Any:
        """A call that does not fit the start of ``specialisation``."""
        self.counters.misfits += 1
        older = specialisation.older
        return self._unknown(*arguments) if older is None else older.function(*arguments)

    def _missed(self, specialisation: Specialisation) -> None:
        """A call is leaving ``specialisation`` in its middle."""
        self.counters.bailouts += 1
        specialisation.misses += 1
        if specialisation.misses == self._patience:
            with self._lock:
                self._give_up(specialisation)

    # --------------------------------------------------------------------------------------------- specialisations

    def _specialise(self) -> None:
        """Make use of what was seen. The lock is held."""
        recording = self._recording
        assert recording is not None
        self._recording = self._watching = None
        graph = recording.finish().copy()
        optimize(graph, [InsertGuards(sizes=self._kinds.pop(0)), *self._guarding])
        if not graph.find_nodes(GUARD):
            self._kinds.clear()  # nothing depends on what flows
            self._function = self.general if self._newest is None else self._newest.function
            return
        optimize(graph, [InsertBailOuts(), *SPECIALISED])
        self._add(Code(graph, self.name), recording)

    def _add(self, code: Code, recording: Recording) -> None:
        try:
            function = ExecutionPlan(code).function
        except NotCompilable:
            function = partial(_interpret, code)
        bailouts = tuple(
            instruction.constant
            for instruction in code.instructions
            if instruction.opcode is Opcode.BAILOUT and isinstance(instruction.constant, Bailout)
        )
        made = self._newest = Specialisation(code, function, recording, self._newest, bailouts)
        for bailout in bailouts:
            if bailout.is_at_entry:
                bailout.restart = partial(self._misfit, made)
            else:
                bailout.notice = partial(self._missed, made)
        self._function = function
        self.counters.specialisations += 1
        self.counters.guards += len(bailouts)

    def _give_up(self, specialisation: Specialisation) -> None:
        """Do without ``specialisation``, and learn from what did not fit. The lock is held."""
        newer: Specialisation | None = None
        at = self._newest
        while at is not None and at is not specialisation:
            newer, at = at, at.older
        if at is None:
            return
        if newer is None:
            self._newest = specialisation.older
        else:
            newer.older = specialisation.older
        if self._recording is None and self._kinds:
            self._recording = specialisation.recording  # which goes on to merge what it sees
        self._function = self._unknown if self._newest is None else self._newest.function


def _interpret(code: Code, *arguments: object) -> Any:
    return InterpreterState(code).run(arguments)


_autocasts: Final[Callable[[], bool]] = torch._C._is_any_autocast_enabled
_function_modes: Final[Callable[[], int]] = torch._C._len_torch_function_stack
