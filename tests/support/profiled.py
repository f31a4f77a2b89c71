"""Calls under the execution strategy ``profiling``, with guards that can be made to fail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from rekindle.ir.records import FunctionRecord
from rekindle.program import calling
from rekindle.runtime import executor
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import OPTIMIZATION
from rekindle.runtime.profiling_executable import ProfilingExecutable


class Profiled:
    """What calls from Python run within :meth:`calls`: for each function a :class:`ProfilingExecutable`, which is made
    with ``options``."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.executables: dict[FunctionRecord, ProfilingExecutable] = {}

    def execute(self, record: FunctionRecord, arguments: Sequence[object]) -> Any:
        executable = self.executables.get(record)
        if executable is None:
            graph = record.graph.copy()
            optimize(graph, OPTIMIZATION)
            executable = self.executables[record] = ProfilingExecutable(graph, record.name, **self.options)
        try:
            return executable.run(arguments)
        except BaseException as error:
            inner = None if error.__traceback__ is None else error.__traceback__.tb_next
            raise error.with_traceback(executor._traceback(inner)) from None

    @property
    def executable(self) -> ProfilingExecutable:
        """The only one."""
        (found,) = self.executables.values()
        return found

    @property
    def taken(self) -> int:
        """How often guards have failed, in the specialisations that there still are."""
        found = 0
        for executable in self.executables.values():
            at = executable.newest
            while at is not None:
                found += sum(bailout.taken for bailout in at.bailouts)
                at = at.older
        return found

    @contextmanager
    def calls(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(calling, "execute", self.execute)
            yield
