"""What the runtime has made of a function."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.errors import UNKNOWN_RANGE
from rekindle.frontend.depth import room_to_recurse
from rekindle.ir.records import FunctionRecord
from rekindle.runtime.code import Code
from rekindle.runtime.plan import ExecutionPlan


@dataclass(slots=True, eq=False)
class Executable:
    """``code`` is the graph as it was compiled, for the interpreter; ``optimized`` what the passes made of it, and
    ``plan`` that as Python. Each is made when it is first needed; ``plan`` stays None where there can be none.
    """

    code: Code | None = None
    optimized: Code | None = None
    plan: ExecutionPlan | None = None


def executable_of(record: FunctionRecord) -> Executable:
    """What there is of a function so far."""
    found = record.executable
    if not isinstance(found, Executable):
        found = record.executable = Executable()
    return found


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
