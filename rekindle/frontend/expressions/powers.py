"""Where a power of two ints is wanted as a float, so that its exponent may be negative."""

from __future__ import annotations

from typing import Final

from rekindle.ir.graph import Value
from rekindle.ir.types import FLOAT, Type
from rekindle.syntax.views import BinOp, Const, Expr

_SCALES: Final = ("+", "-", "*", "/")


def is_scaled(operator: str, lhs: Value, rhs: Expr) -> bool:
    """Whether ``rhs`` is a power that becomes a float at once: ``0.5 * 2 ** n``."""
    return rhs.tree.kind == "**" and operator in _SCALES and lhs.type == FLOAT


def float_beside(expr: BinOp) -> Type | None:
    """``FLOAT`` where the left side of ``expr`` becomes one at once: ``2 ** n * 0.5``."""
    rhs = expr.rhs.tree
    is_float = rhs.kind == Const.KIND and isinstance(Const(rhs).value, float)
    return FLOAT if is_float and expr.operator in _SCALES else None
