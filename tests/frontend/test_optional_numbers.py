"""Operators and builtins of numbers that may be None: Python's results, with their types, and Python's errors."""

from __future__ import annotations

from typing import Any, Optional

import pytest
import torch

import rekindle
from tests.frontend.test_numbers_of_several_types import defined

_EXPRESSIONS = (
    *("round(t)", "round(v)", "round(n)", "round(v, 1)", "round(n, -1)", "round(t, 1)", "round(-v)", "abs(round(t))"),
    *("pow(t, 2)", "pow(v, 2)", "pow(n, 2)", "pow(n, -1)", "t ** 2", "n ** 2", "n ** -1", "2 ** n", "2 ** t"),
    *("min(t, 2)", "max(n, 2.5)", "min(v, 1)", "max(2, t, n)", "divmod(n, 2)", "divmod(v, 2)", "divmod(t, 2)"),
    *("int(t)", "float(n)", "bool(n)", "abs(t)", "-t", "not t", "n // 2", "n / 2", "t // 2", "n == 3.0", "t < 4"),
    *("math.sqrt(t)", "math.floor(v)", "math.floor(t)", "math.pow(n, 2)", "n.bit_length()", "n << 1", "~n"),
    *("f'{t}'", "f'{v:.2f}'", "str(n)", "'%s' % t", "x + n", "x * t", "n if n else 0", "isinstance(n, int)"),
)
_ARGUMENTS = (([3.75], 2.5, 3), ([3], 1.5, 3), ([], None, None))


def _outcome(function: Any, numbers: list[Any], v: Optional[float], n: Optional[int]) -> str:
    try:
        return repr(function(torch.tensor(numbers), v, n))
    except (TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


@pytest.mark.parametrize("expression", _EXPRESSIONS)
def test_of_numbers_that_may_be_none(expression: str) -> None:
    body = f"    t = None\n    for row in x:\n        t = row.item()\n    return {expression}\n"
    function = defined("x, v: Optional[float], n: Optional[int]", body)
    compiled = rekindle.script(function)
    for arguments in _ARGUMENTS:
        assert _outcome(compiled, *arguments) == _outcome(function, *arguments), arguments
