"""Outputs of an exported program: numbers as symbols, futures as their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from rekindle.errors import ExportProblem
from rekindle.exporting.interpreter.symbolic_interpreter import ExportSession
from rekindle.exporting.interpreter.values import (
    KNOWN_TEXT,
    UNKNOWN_TEXT,
    UNSET,
    CompletedFuture,
    SymbolicObject,
    UnbackedScalar,
    UnknownText,
    has_rows,
)
from rekindle.exporting.pytree_registry import register_named_tuple
from rekindle.ir.attributes import map_items
from rekindle.ir.graph_function import GraphFunction


@dataclass(slots=True, frozen=True)
class Results:
    """Converts the results of a function to the types that PyTorch's exporter accepts. ``written`` is the memory of
    buffers that change later: results that share it are copied."""

    session: ExportSession
    record: GraphFunction
    written: set[int]

    def taken(self, value: Any) -> Any:
        """Return ``value`` converted for PyTorch's exporter. An object of a class is noted as a problem, and becomes a
        dict of its attributes.

        Raises:
            ExportProblem: ``value`` is, or contains, a list of data-dependent length or a text of an unknown number.
        """
        if isinstance(value, UnbackedScalar):
            return value.number
        if isinstance(value, UnknownText):
            raise self.problem(UNKNOWN_TEXT, hint=KNOWN_TEXT)
        if isinstance(value, Tensor):
            return value.clone() if value.untyped_storage()._cdata in self.written else value
        if isinstance(value, CompletedFuture):
            return self.taken(value.value)
        if has_rows(value):
            raise self.problem(
                "the program returns a list whose length is data-dependent",
                hint="return them as one tensor: torch.stack(list)",
            )
        if isinstance(value, (list, tuple, dict)):
            if hasattr(value, "_fields"):
                register_named_tuple(type(value))
            return map_items(self.taken, value)
        if isinstance(value, SymbolicObject):
            self.session.note(
                self.problem(
                    f"the program returns an object of the class {value.type.basename}",
                    hint="return what it holds: a tuple, a NamedTuple or a dict",
                    in_draft="a dict of its attributes is returned",
                )
            )
            return {name: self.taken(item) for name, item in value.slots.items()}
        return None if value is UNSET else value

    def problem(self, message: str, *, hint: str, in_draft: str | None = None) -> ExportProblem:
        """Return a reason that prevents the export, located at the result of the function."""
        outputs = self.record.graph.outputs
        return ExportProblem(message, outputs[0].node.range, hint=hint, in_draft=in_draft)
