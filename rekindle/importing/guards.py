"""Guards of an exported program on its arguments: ranks, sizes, numbers, and relations between sizes.

``torch.export`` represents the sizes that may differ as symbols, with their ranges in ``range_constraints``, and other
conditions as Python source. The imported program checks each by a branch that raises.
"""

from __future__ import annotations

import ast
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sympy  # type: ignore[import-untyped]
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument
from torch.utils._sympy.solve import try_solve

from rekindle.importing.fx.expressions import Unreadable, guard_value, value_of_expression
from rekindle.importing.fx.fx_importer import FxImporter
from rekindle.importing.fx.operators import check
from rekindle.importing.fx.pytrees import PytreeLeaf
from rekindle.ir.graph import Value

_SMALLEST: Final = 2
"""Lower bound that torch.export assumes for every symbolic size, and does not check."""


def check_arguments(
    reader: FxImporter,
    program: ExportedProgram,
    leaves: Sequence[PytreeLeaf],
    placeholders: Sequence[fx.Node],
    values: Sequence[Value],
) -> None:
    """Insert checks into the program: it raises a RuntimeError if an argument violates a constraint of the export.

    ``leaves`` are the leaves of the arguments, with their ``placeholders`` in the exported graph and their ``values``
    in the program. Warn of conditions that cannot be imported, which are not checked.
    """
    guards = _Guards(reader, program)
    for leaf, node, value in zip(leaves, placeholders, values, strict=True):
        if isinstance(leaf.argument, ConstantArgument):
            guards.constant(leaf, value)
        else:
            guards.sizes(leaf, node.meta.get("val"), value)
    guards.derived()
    guards.ranges()
    guards.texts({leaf.path: value for leaf, value in zip(leaves, values, strict=True)})


class _Guards:
    def __init__(self, reader: FxImporter, program: ExportedProgram) -> None:
        self.reader = reader
        self.program = program
        self.symbols: dict[sympy.Symbol, Value] = {}
        """The values of the symbols, as far as arguments determine them."""
        self.places: dict[sympy.Symbol, str] = {}
        """The argument or size that determines each symbol, for messages."""
        self.open: list[tuple[str, sympy.Expr, Value]] = []
        """Sizes that are expressions of symbols: where they occur, the expression and the value."""

    def constant(self, leaf: PytreeLeaf, value: Value) -> None:
        """Insert a check that an argument equals the number, string or None of the export."""
        wanted = leaf.argument.value
        message = f"{leaf.path} must be {wanted!r}, as when the program was exported"
        if isinstance(wanted, float) and math.isnan(wanted):
            check(self.reader, self.reader.insert("aten::isnan", value), message)
        else:
            kind = "aten::__is__" if wanted is None else "aten::eq"
            check(self.reader, self.reader.insert(kind, value, self.reader.value(wanted)), message)

    def sizes(self, leaf: PytreeLeaf, known: Any, value: Value) -> None:
        """Insert checks of the rank of a tensor and of the constraints on each of its sizes, or of those on a number.
        Record the symbols that the sizes determine. ``known`` is the FakeTensor or symbol of the export."""
        reader = self.reader
        if isinstance(known, torch.SymInt):
            self._symbol(leaf.path, known, value)
            return
        if not isinstance(known, torch.Tensor):
            return
        rank = reader.insert("aten::dim", value)
        check(
            reader,
            reader.insert("aten::eq", rank, known.dim()),
            f"{leaf.path} must have {known.dim()} dimensions, as when the program was exported",
        )
        for index, size in enumerate(known.shape):
            found = reader.insert("aten::size", value, index)
            place = f"{leaf.path}.size({index})"
            if isinstance(size, torch.SymInt):
                self._symbol(place, size, found)
            else:
                message = f"{place} must be {size}, as when the program was exported"
                check(reader, reader.insert("aten::eq", found, size), message)

    def _symbol(self, place: str, size: torch.SymInt, value: Value) -> None:
        expression = size.node.expr
        if isinstance(expression, sympy.Symbol):
            known = self.symbols.setdefault(expression, value)
            first = self.places.setdefault(expression, place)
            if known is not value:
                equal = self.reader.insert("aten::eq", value, known)
                check(self.reader, equal, f"{place} must be the same as {first}")
        elif expression.is_Integer:
            equal = self.reader.insert("aten::eq", value, int(expression))
            check(self.reader, equal, f"{place} must be {expression}, as when the program was exported")
        else:
            self.open.append((place, expression, value))

    def derived(self) -> None:
        """Insert checks of the sizes that are expressions of other sizes. A size whose expression has one symbol that
        no argument determines is not checked, but determines that symbol; one with several is not checked."""
        for place, expression, value in self.open:
            missing = [symbol for symbol in expression.free_symbols if symbol not in self.symbols]
            if len(missing) == 1:
                self._solve(missing[0], place, expression, value)
            if missing:
                continue
            wanted = value_of_expression(self.reader, expression, self.symbols)
            expected = sympy.sstr(expression.subs({key: sympy.Symbol(text) for key, text in self.places.items()}))
            check(self.reader, self.reader.insert("aten::eq", value, wanted), f"{place} must be {expected}")

    def _solve(self, symbol: sympy.Symbol, place: str, expression: sympy.Expr, value: Value) -> None:
        """Record the value of ``symbol``, computed from a size ``value`` that is an ``expression`` of it, and rounded
        down to an int; nothing if the equation cannot be solved."""
        own = sympy.Symbol("own", integer=True)
        solution = try_solve(sympy.Eq(expression, own), symbol)
        if solution is None:
            return
        dividend, divisor = sympy.fraction(sympy.together(solution[1]))  # floats would be inexact
        known = {**self.symbols, own: value}
        found = value_of_expression(self.reader, dividend, known)
        if divisor != 1:
            found = self.reader.insert("aten::floordiv", found, value_of_expression(self.reader, divisor, known))
        self.symbols[symbol] = found
        self.places[symbol] = str(solution[1].subs(own, sympy.Symbol(place)))

    def ranges(self) -> None:
        """Insert checks that the determined symbols, and the sizes that are expressions of symbols, are within their
        ranges, except for lower bounds up to :data:`_SMALLEST`."""
        symbols = [(self.places[symbol], symbol, value) for symbol, value in self.symbols.items()]
        for place, expression, value in [*symbols, *self.open]:
            allowed = self.program.range_constraints.get(expression)
            if allowed is None:
                continue
            for bound, kind, words in ((allowed.lower, "aten::ge", "or more"), (allowed.upper, "aten::le", "or less")):
                if not bound.is_Integer or (kind == "aten::ge" and bound <= _SMALLEST):
                    continue
                holds = self.reader.insert(kind, value, int(bound))
                check(self.reader, holds, f"{place} must be {bound} {words}")

    def texts(self, arguments: Mapping[str, Value]) -> None:
        """Insert checks of the conditions that the program has as Python source. Warn of those that cannot be imported.
        ``arguments`` has the values by access path."""
        names = {f"L['{_head(path)}']{path[len(_head(path)) :]}": value for path, value in arguments.items()}
        for text in dict.fromkeys(self.program._guards_code):
            shown = text
            for source in names:
                shown = shown.replace(source, source[3:].replace("']", "", 1))
            try:
                holds = guard_value(self.reader, ast.parse(text.strip(), mode="eval").body, names)
            except (Unreadable, SyntaxError) as why:
                warnings.warn(f"a condition of the program is not checked: {shown} ({why})", UserWarning, stacklevel=5)
                continue
            check(self.reader, holds, f"the program was exported for arguments with {shown}")


def _head(path: str) -> str:
    """Return the first component of an access path: the name of the argument."""
    for index, letter in enumerate(path):
        if letter in ".[":
            return path[:index]
    return path
