"""Calls of loggers of Python's ``logging``: ``logger.warning("…")`` of a logger that is known at compile time, such as
a global.

Python executes them when the program does: the level, the handlers and the filters of the logger at that time decide
what happens to a message. Archives cannot hold such calls.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, StaticValue, SugaredValue
from rekindle.ir.types import BOOL, INT, NONE, ClassType, Type
from rekindle.scripting.callables.python_calls import insert_call

_RESULTS: Final[dict[str, Type]] = {
    **dict.fromkeys(("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log"), NONE),
    "isEnabledFor": BOOL,
    "hasHandlers": BOOL,
    "getEffectiveLevel": INT,
}
"""The result types of methods of loggers. Those of other methods, such as ``warning_once`` of transformers, are
unknown: a call of them has to be a statement."""


def is_method(obj: object, name: str) -> bool:
    """Return whether ``obj`` is a logger, and ``obj.name`` a method of it."""
    return isinstance(obj, logging.Logger) and callable(getattr(obj, name, None))


class LoggerMethod(StaticValue):
    """A method of a logger."""

    def __init__(self, logger: logging.Logger, name: str) -> None:
        self.logger = logger
        self.name = name

    @property
    def description(self) -> str:
        return f"the method '{self.name}' of a logger"

    def call(self, call: CallSite) -> SugaredValue:
        result = _RESULTS.get(self.name, NONE)
        if call.targets != 0 and self.name not in _RESULTS:
            raise UnsupportedError(f"the type of what {self.description} returns is unknown", call.range)
        inputs = [item.materialize(call.graph) for item in (*call.args, *call.kwargs)]
        names = [item.name or "" for item in call.kwargs]
        for value in inputs:
            _check_argument(value.type, call.range)
        return insert_call(self.description, _Call(self.logger, self.name), call, inputs, names, result)


def _check_argument(type: Type, range: SourceRange) -> None:
    """Raise an error for an object of a class, whose text differs from that in Python.

    Raises:
        UnsupportedError: the type is that of such an object, or contains it.
    """
    if isinstance(type, ClassType):
        raise UnsupportedError(f"a logger cannot be given an object of '{type.annotation}'", range, hint="pass a text")
    for contained in type.contained:
        _check_argument(contained, range)


class _Call:
    """A method of a logger, looked up at each call."""

    way_out = "an archive cannot hold calls of loggers; leave them to what calls the program"

    def __init__(self, logger: logging.Logger, name: str) -> None:
        self.logger = logger
        self.__name__ = name
        self.__qualname__ = f"{type(logger).__qualname__}.{name}"

    def __call__(self, *args: Any, **named: Any) -> Any:
        return getattr(self.logger, self.__name__)(*args, **named)
