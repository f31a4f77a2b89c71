"""None checks: unwrap an Optional value where another type is expected.

TorchScript rejects such a value; a program from Python checks it at run time. The emitter of such a program registers
the checks with the graph (:attr:`Graph.none_checks`), and schema matching applies them if no overload accepts the
unchanged arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rekindle.errors import SourceRange
    from rekindle.ir.graph import Value
    from rekindle.ir.operators.schema import Argument, FunctionSchema
    from rekindle.ir.types.base import Type


class NoneChecks(Protocol):
    """The None checks of a program that is being emitted: they unwrap Optional values."""

    def can_check(self, value: Value) -> bool:
        """Return whether a None check applies to a value: its type is an Optional of a known type."""

    def takes_none(self, schema: FunctionSchema, formal: Argument) -> bool:
        """Return whether Python accepts None as this argument, so that a check would be wrong."""

    def check_argument(
        self, value: Value, range: SourceRange, name: str, schema: FunctionSchema, formal: Argument, is_method: bool
    ) -> Value:
        """Unwrap the Optional value of an argument: insert a check that raises if it is None, and return the result of
        the check. ``name`` is the name of the callee, a method if ``is_method``."""

    def check(
        self, value: Value, range: SourceRange, error: str, message: str, *, is_number_wanted: bool = False
    ) -> Value:
        """Unwrap an Optional value: insert a check that raises ``error(message)`` if it is None, and return the result.
        ``error`` is the qualified name of a class, such as ``builtins.TypeError``. A value that may be a Tensor or a
        number is checked to be a Tensor, or, with ``is_number_wanted``, a number.
        """

    def container_in(self, value: Value, range: SourceRange, message: str) -> Value | None:
        """Return the list, tuple, dict or str in a value that may be a number instead. The inserted check raises
        TypeError for a number with ``message``, in which braces are replaced by its class. None for other values."""

    def tensors_in(self, values: Value, range: SourceRange) -> Value:
        """Convert a list of Tensors and numbers to a list of Tensors: insert a check that raises TypeError for a
        number."""

    def ints_in(self, numbers: Value, range: SourceRange) -> Value:
        """Convert a list of numbers to a list of ints: insert a check that raises TypeError for another number."""

    def truth_of_number(self, value: Value, range: SourceRange) -> Value:
        """Insert the truth of a number whose type is known only at run time."""

    def number_as(self, value: Value, type: Type, range: SourceRange) -> Value:
        """Insert a conversion of a number to ``type``: int, float or complex. It raises TypeError if Python would not
        accept the number as one, such as a float as an int."""
