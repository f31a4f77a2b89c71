"""What the runtime has made of a function."""

from __future__ import annotations

import weakref
from typing import Any, Final

from rekindle.errors import UNKNOWN_RANGE
from rekindle.frontend.depth import room_to_recurse
from rekindle.ir.records import FunctionRecord
from rekindle.runtime.code import Code


class Executable:
    """``code`` is the graph as it was compiled, for the interpreter; ``strategy`` what runs calls otherwise, a
    :class:`~rekindle.runtime.version.Strategy`. Each is made when it is first needed.
    """

    __slots__ = ("__weakref__", "code", "strategy")

    def __init__(self) -> None:
        self.code: Code | None = None
        self.strategy: Any = None


_ALL: Final[weakref.WeakSet[Executable]] = weakref.WeakSet()


def executable_of(record: FunctionRecord) -> Executable:
    """What there is of a function so far."""
    found = record.executable
    if not isinstance(found, Executable):
        found = record.executable = Executable()
        _ALL.add(found)
    return found


def forget_strategies() -> None:
    """Have every function begin anew, because what is asked of a strategy has changed."""
    for executable in list(_ALL):
        executable.strategy = None


def code_of(record: FunctionRecord) -> Code:
    """The code of a function as it was compiled, made when it is first asked for.

    Raises:
        CompileError: the function cannot be compiled, where that has not been tried before.
    """
    executable = executable_of(record)
    code = executable.code
    if code is None:
        with room_to_recurse(UNKNOWN_RANGE):
            code = executable.code = Code(record.graph, record.name)
    return code
