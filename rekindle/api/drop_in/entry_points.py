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
    """The record of a compiled function; ``owner`` holds the object that it is a method of, and is empty for a
    function."""

    record: GraphFunction
    owner: tuple[Any, ...] = ()

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """Return the arguments in the order of the graph's inputs, after the owner if there is one.

        Raises:
            ArgumentError: the arguments do not fit the schema.
        """
        return bind(self.record.schema, (*self.owner, *args), kwargs)


def entry_point_of(f: Any) -> EntryPoint:
    """Return the function that a call of ``f`` runs: of a module, its ``forward``. An ``f`` that is not compiled is
    compiled with :func:`rekindle.script`.

    Raises:
        CompileError, NotScriptableError: ``f`` cannot be compiled.
        TypeError: ``f`` is an overloaded function, or a class.
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
