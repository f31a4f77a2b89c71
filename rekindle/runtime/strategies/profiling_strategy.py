"""The strategy ``profiling``: profile calls, specialize the function to the recorded types, bail out on others.

The first calls run in the interpreter, which records the types of tensors. Then a version is compiled that guards these
types, and passes rely on them. The guards at its start, of arguments and attributes, select the version for a call: if
one fails, the next older version is tried. After the oldest one the call is profiled, and results in a new version. A
guard that fails later continues with the rest of the program.

:func:`rekindle.set_fusion_strategy` sets the number of versions, and which of them guard sizes. Once the limit is
reached, calls that fit no version run one that assumes nothing; so the number of compilations is bounded.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch

from rekindle.errors import UNKNOWN_RANGE
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import COMPILING, GraphFunction
from rekindle.ir.types import unshaped
from rekindle.passes import (
    InsertBailOuts,
    InsertGuards,
    Pass,
)
from rekindle.passes.speculation.insert_guards import GUARD
from rekindle.runtime.background import in_background
from rekindle.runtime.executable import code_of
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Opcode
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import GUARD_ELIMINATION, OPTIMIZATION, PROFILE_SPECIALIZATION
from rekindle.runtime.settings import SETTINGS, FusionStrategy
from rekindle.runtime.strategies.bailouts import Bailout
from rekindle.runtime.strategies.profiling import ProfilingRecord, profiled_runs
from rekindle.runtime.version import Version

_LOG: Final = logging.getLogger(__name__)

MAX_BAILOUTS: Final = 4
"""Number of bailouts of a version before it is discarded."""


@dataclass(slots=True, eq=False)
class ProfiledVersion:
    """A ``version`` specialized to the types in ``recording``; ``older`` is tried for a call that it does not fit.
    ``misses`` counts the calls that left it after their start."""

    version: Version
    recording: ProfilingRecord
    older: ProfiledVersion | None
    bailouts: tuple[Bailout, ...]
    misses: int = 0

    def fits(self, arguments: Sequence[object]) -> bool:
        """Return whether a call with these arguments passes the guards on arguments."""
        inputs = self.version.graph.inputs
        return all(
            bailout.test(arguments[bailout.argument]) for bailout in self.bailouts if bailout.argument is not None
        ) and len(arguments) == len(inputs)


@dataclass(slots=True)
class Counters:
    """Statistics of a strategy: the numbers of profiled calls, of compiled versions, and of guards in these versions;
    how often a guard at the start failed (``entry_failures``), and a guard in the body (``bailouts``)."""

    profiled_calls: int = 0
    versions: int = 0
    guards: int = 0
    entry_failures: int = 0
    bailouts: int = 0


class ProfilingStrategy:
    """The execution strategy ``profiling`` (:class:`rekindle.runtime.version.Strategy`). ``fusion`` and ``runs``
    default to the settings. ``guarding`` are the passes that eliminate guards. A version is discarded after
    ``patience`` calls have bailed out after its start.

    Any number of threads may call. While one thread profiles or compiles, the others run the existing versions.
    """

    def __init__(
        self,
        record: GraphFunction,
        *,
        fusion: FusionStrategy | None = None,
        runs: int | None = None,
        guarding: Sequence[Pass] = GUARD_ELIMINATION,
        patience: int = MAX_BAILOUTS,
    ) -> None:
        self.record = record
        self.counters = Counters()
        self.newest: ProfiledVersion | None = None
        """The version that calls try first; None if no version has been compiled, or all were discarded."""
        self._guarding = guarding
        self._patience = patience
        self._runs = profiled_runs() if runs is None else runs
        fusion = SETTINGS.fusion if fusion is None else fusion
        self._knows_sizes = [behavior == "STATIC" for behavior, count in fusion for _ in range(count)]
        """Whether it guards sizes, for each version that may still be made."""
        self._graph: Graph | None = None
        self._recording: ProfilingRecord | None = None
        self._watching: Code | None = None
        self._seen = 0
        self._is_busy = False
        """Whether something is being made in the background."""
        self._general: Version | None = None
        self._current: Version | None = None
        self._default_dtype = torch.get_default_dtype()

    # -------------------------------------------------------------------------------------------------------- choosing

    def select(self, arguments: Sequence[object]) -> Version:
        """Return the version for a call with these arguments."""
        current = self._current
        if current is not None and current is self._general:
            return current
        # What is known of the results of operators holds as long as these are as they usually are.
        if _autocasts() or _function_modes() or torch.get_default_dtype() is not self._default_dtype:
            return self.general()
        return current or self._begin()

    def prepare(self, arguments: Sequence[object]) -> Version:
        """Return the version that fits these arguments; if there is none, compile one from their types, without running
        the function, or the general one if no more may be made."""
        with COMPILING, room_to_recurse(UNKNOWN_RANGE):
            at = self.newest
            while at is not None:
                if at.fits(arguments):
                    return at.version
                at = at.older
            if not self._knows_sizes:
                return self.general()
            recording = ProfilingRecord(self.graph)
            recording.note_arguments(arguments)
            self._specialize(recording)
            return self._current or self.general()

    def general(self) -> Version:
        """Return the version that assumes nothing."""
        found = self._general
        if found is None:
            with COMPILING, room_to_recurse(UNKNOWN_RANGE):
                started = time.perf_counter()
                found = self._general = Version.of(self.graph, self.record.name)
                found.seconds = time.perf_counter() - started
        return found

    @property
    def graph(self) -> Graph:
        """Return the graph optimized for any arguments."""
        if self._graph is None:
            with COMPILING, room_to_recurse(UNKNOWN_RANGE):
                graph = self.record.graph.copy()
                optimize(graph, OPTIMIZATION)
                for value in graph.inputs:
                    value.set_type(unshaped(value.type))  # types recorded by a trace are not guarantees
                self._graph = graph
        return self._graph

    @property
    def versions(self) -> Sequence[Version]:
        """The versions so far, the newest first."""
        found: list[Version] = []
        at = self.newest
        while at is not None:
            found.append(at.version)
            at = at.older
        return found if self._general is None else [*found, self._general]

    # -------------------------------------------------------------------------------------------------------- watching

    def _begin(self) -> Version:
        """Return the version for calls before the first specialized version exists. It profiles them, except while the
        graph is optimized in the background, or if no specialized version may be made."""
        if SETTINGS.in_background and self._graph is None:
            if not self._is_busy:
                self._is_busy = True
                in_background(partial(self._finish, lambda: self.graph))
            return Version.interpreted(code_of(self.record))
        with COMPILING, room_to_recurse(UNKNOWN_RANGE):
            code = self._profiled_code()
            if code is None:
                self._current = self.general()
            elif self._current is None:
                self._current = Version.interpreted(code)
                self._current.function = self._unknown
            return self._current

    def _profiled_code(self) -> Code | None:
        """Return the code that profiles calls; None if the maximum number of versions is reached."""
        if self._knows_sizes and self._watching is None:
            self._recording = self._recording or ProfilingRecord(self.graph)
            self._watching = Code(self._recording.graph, self.record.name)
            self._seen = 0
        return self._watching

    def _unknown(self, *arguments: object) -> Any:
        """Run a call that fits no version, and return its result."""
        if self._is_busy:
            return InterpreterState(code_of(self.record)).run(arguments)
        with COMPILING:
            code = self._profiled_code()
        if code is None:
            return self.general().function(*arguments)
        result = InterpreterState(code).run(arguments)
        with COMPILING, room_to_recurse(UNKNOWN_RANGE):
            if self._watching is code:
                self.counters.profiled_calls += 1
                self._seen += 1
                if self._seen >= self._runs and self._recording is not None:
                    recording, self._recording, self._watching = self._recording, None, None
                    self._learn(recording)
        return result

    def _learn(self, recording: ProfilingRecord) -> None:
        """Compile a version for the profiled properties, now or in the background."""
        if not SETTINGS.in_background:
            self._specialize(recording)
            return
        self._is_busy = True
        in_background(partial(self._finish, partial(self._specialize, recording)))

    def _finish(self, work: Callable[[], object]) -> None:
        """Run ``work``, which no call waits for; until it is done, and for good after an error, calls that fit no
        version run the unoptimized function."""
        try:
            with COMPILING, room_to_recurse(UNKNOWN_RANGE):
                work()
        except Exception:
            _LOG.exception("%s: could not be optimized, and runs as it was compiled", self.record.name)
        else:
            self._is_busy = False

    # ------------------------------------------------------------------------------------------------- specializations

    def _specialize(self, recording: ProfilingRecord) -> None:
        """Compile a version for the profiled properties, and select it; if nothing in the program depends on them,
        neither this version nor a later one is compiled."""
        started = time.perf_counter()
        graph = recording.finish().copy()
        optimize(graph, [InsertGuards(sizes=self._knows_sizes.pop(0)), *self._guarding])
        if graph.find_nodes(GUARD):
            optimize(graph, [InsertBailOuts(), *PROFILE_SPECIALIZATION])
            version = Version.of(graph, self.record.name)
            version.seconds = time.perf_counter() - started
            self._add(version, recording)
        else:
            self._knows_sizes.clear()
        self._current = self.general() if self.newest is None else self.newest.version

    def _add(self, version: Version, recording: ProfilingRecord) -> None:
        instructions = [each for each in version.code.instructions if each.opcode is Opcode.BAILOUT]
        bailouts = tuple(each.constant for each in instructions if isinstance(each.constant, Bailout))
        made = self.newest = ProfiledVersion(version, recording, self.newest, bailouts)
        for bailout in bailouts:
            if bailout.is_at_entry:
                bailout.restart = partial(self._misfit, made)
            else:
                bailout.notice = partial(self._missed, made)
        self.counters.versions += 1
        self.counters.guards += len(bailouts)

    def _misfit(self, specialization: ProfiledVersion, *arguments: object) -> Any:
        """Run a call whose arguments fail the guards of a version, and return its result."""
        self.counters.entry_failures += 1
        older = specialization.older
        return self._unknown(*arguments) if older is None else older.version.function(*arguments)

    def _missed(self, specialization: ProfiledVersion) -> None:
        """Record that a call left a version after its start, by a guard in the body, and discard the version when too
        many have."""
        self.counters.bailouts += 1
        specialization.misses += 1
        if specialization.misses == self._patience:
            with COMPILING:
                self._give_up(specialization)

    def _give_up(self, specialization: ProfiledVersion) -> None:
        """Discard a version. Its record of types is kept and extended, so that the next version also fits the calls
        that left this one."""
        newer: ProfiledVersion | None = None
        at = self.newest
        while at is not None and at is not specialization:
            newer, at = at, at.older
        if at is None:
            return
        if newer is None:
            self.newest = specialization.older
        else:
            newer.older = specialization.older
        if self._recording is None and self._knows_sizes:
            self._recording = specialization.recording
        self._current = None if self.newest is None else self.newest.version


_autocasts: Final[Callable[[], bool]] = torch._C._is_any_autocast_enabled
_function_modes: Final[Callable[[], int]] = torch._C._len_torch_function_stack
