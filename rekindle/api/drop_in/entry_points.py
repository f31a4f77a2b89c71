"""Entry points that users pass for inspection: functions and modules, compiled or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rekindle.ir.graph_function import GraphFunction
from rekindle.program.function import Function, Method
from rekindle.program.modules.module import ScriptModule
from rekindle.runtime.calls.arguments import bind
from rekindle.scripting.script import script


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """A compiled function, and the object that it is a method of."""

    record: GraphFunction
    owner: tuple[Any, ...] = ()

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """Return the arguments in the order of the graph's inputs, with the owner in front.

        Raises:
            ArgumentError: they do not fit.
        """
        return bind(self.record.schema, (*self.owner, *args), kwargs)


def entry_point_of(f: Any) -> EntryPoint:
    """Return the function that a call of ``f`` runs: ``forward`` of a module. What is not compiled is, by
    :func:`rekindle.script`.

    Raises:
        CompileError, NotScriptableError: it cannot be.
        TypeError: it is overloaded.
    """
    if not isinstance(f, (Function, Method, ScriptModule)):
        f = script(f)
    if isinstance(f, ScriptModule):
        f = f.forward
    if isinstance(f, Method):
        return EntryPoint(f._record, (f.owner,))
    if isinstance(f, Function):
        return EntryPoint(f._record)
    raise TypeError(f"this takes one function or module, but got {f!r}; pass one of its 'overloads'")
