"""What a value that may be None becomes where something else is wanted.

TorchScript refuses it; a program from Python checks when it runs. Whoever emits such a program puts its checks into
the graph (:attr:`Graph.none_checks`), and the matching of calls asks them where no overload takes the arguments as they
are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rekindle.errors import SourceRange
    from rekindle.ir.graph import Value
    from rekindle.ir.operators.schema import Argument, FunctionSchema
    from rekindle.ir.types.base import Type


class NoneChecks(Protocol):
    """How a program that is being emitted takes values out of Optionals."""

    def can_check(self, value: Value) -> bool:
        """Whether the value may be None, and may be something that is known else: then it can be checked."""

    def takes_none(self, schema: FunctionSchema, formal: Argument) -> bool:
        """Whether Python goes on with None as this argument, so that a check would be wrong."""

    def check_argument(
        self, value: Value, range: SourceRange, name: str, schema: FunctionSchema, formal: Argument, is_method: bool
    ) -> Value:
        """The value without None; what is inserted raises where it is None. ``name`` is what is called, as a method if
        ``is_method``."""

    def check(
        self, value: Value, range: SourceRange, error: str, message: str, *, is_number_wanted: bool = False
    ) -> Value:
        """The value without None; what is inserted raises ``error(message)`` where it is None.

        Of a value that is a Tensor or a number, the Tensor; with ``is_number_wanted`` the number.
        """

    def container_in(self, value: Value, range: SourceRange, message: str) -> Value | None:
        """The list, tuple, dict or str that a value is which may be a number instead; what is inserted raises
        TypeError where it is one, with ``message``, whose braces stand for its class. None for other values."""

    def tensors_in(self, values: Value, range: SourceRange) -> Value:
        """The list of Tensors that a list of Tensors and numbers is; what is inserted raises TypeError at a number."""

    def number_as(self, value: Value, type: Type, range: SourceRange) -> Value:
        """Insert a conversion of a number to ``type``, an int, float or complex; it raises TypeError where Python does
        not take the number for one: a float where an int is needed."""
