"""Constant folding: which operators may run at compile time on the constants that are their arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.ir.operators.registry import Operator
from rekindle.ir.scalar_types import DTYPES, LAYOUTS, MEMORY_FORMATS

_NAMED: Final = {"ScalarType": DTYPES, "Layout": LAYOUTS, "MemoryFormat": MEMORY_FORMATS}
"""Types whose values are numbers here, of which few are valid: PyTorch may crash on others."""

_READS_DEFAULTS: Final = frozenset({"aten::result_type"})
"""Operators on numbers whose result depends on the default dtype, which may be another when the program runs."""


def may_fold(operator: Operator, values: Sequence[object]) -> bool:
    """Return whether a call of ``operator`` with these constants may be folded, if the operator is deterministic: its
    result does not depend on the default dtype, and all numbers of dtypes, layouts and memory formats are valid."""
    if operator.name in _READS_DEFAULTS:
        return False
    for value, argument in zip(values, operator.schema.arguments, strict=False):
        table = _NAMED.get((argument.spelling or "").rstrip("?"))
        if table is None or not isinstance(value, int):
            continue
        if not 0 <= value < len(table) or table[value] is None:
            return False
    return True
