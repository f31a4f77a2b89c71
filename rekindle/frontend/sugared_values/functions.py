"""Functions that accept arguments other than values of the graph: functions, modules, classes."""

from __future__ import annotations

from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue


def sugared_arguments(call: CallSite) -> tuple[list[SugaredValue], dict[str, SugaredValue]]:
    """Return the positional and the keyword arguments of a call as sugared values."""
    args: list[SugaredValue] = [SimpleValue(item.materialize(call.graph)) for item in call.args]
    return args, {item.name or "": SimpleValue(item.materialize(call.graph)) for item in call.kwargs}


class SugaredFunction(SugaredValue):
    """A function whose calls :meth:`call_with` emits, so that arguments need not be values of the graph."""

    accepts_sugared_args = True

    def call(self, call: CallSite) -> SugaredValue:
        args, kwargs = sugared_arguments(call)
        return self.call_with(call.range, call.graph, args, kwargs, call.targets)
