"""From a function and its arguments to the result. Plans, made for the arguments at hand, will stand between the
two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rekindle.ir.records import FunctionRecord
from rekindle.runtime.futures import Future
from rekindle.runtime.interpreter import InterpreterState, code_of
from rekindle.runtime.tasks import launch
from rekindle.runtime.tracebacks import foreign_frames


def execute(record: FunctionRecord, arguments: Sequence[object]) -> Any:
    """What ``record`` returns for ``arguments``, which fit its schema: :func:`rekindle.runtime.arguments.bind` makes
    such.

    Raises:
        CompileError: the function cannot be compiled, where that has not been tried before.
        Whatever the program raises, with the lines of its source in the traceback.
    """
    state = InterpreterState(code_of(record))
    state.start(arguments)
    del arguments
    try:
        return state.finish()
    except BaseException as caught:
        error = caught.with_traceback(state.traceback(foreign_frames(caught.__traceback__)))
    try:
        raise error
    finally:
        del error  # its traceback holds this frame, which must not hold it in turn


def start(record: FunctionRecord, arguments: Sequence[object]) -> Future[Any]:
    """Have another thread execute ``record``; returns the future of what :func:`execute` would return.

    Raises:
        CompileError: the function cannot be compiled, where that has not been tried before.
    """
    state = InterpreterState(code_of(record))
    state.start(arguments)
    return launch(state)
