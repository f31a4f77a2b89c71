"""Compiled functions as source text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rekindle.frontend.python_printer import PythonPrinter
from rekindle.ir.graph_function import GraphFunction


class Constants(SimpleNamespace):
    """The constants that a source text names, as attributes: ``constants.c0`` is the text's ``CONSTANTS.c0``."""

    @property
    def const_mapping(self) -> dict[str, Any]:
        """The constants by name."""
        return dict(vars(self))


def code_with_constants(record: GraphFunction, is_method: bool) -> tuple[str, Constants]:
    """Return the source of a function, or of a method (whose ``self`` has no annotation), and its constants.

    Raises:
        UnsupportedError: the function has something that TorchScript source cannot express.
    """
    printer = PythonPrinter()
    if is_method:
        printer.print_method(record)
    else:
        printer.print_function(record)
    return printer.text, Constants(**{f"c{index}": value for index, value in enumerate(printer.constants.values)})
