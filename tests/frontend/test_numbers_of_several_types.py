"""Numbers that may be bools, beside ints and floats: declared as Unions, or by the path that control takes."""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any, Optional, Union

import pytest
import torch

import rekindle

EXPRESSIONS = (
    *("n + 1", "n * 2", "n / 2", "n // 1", "n % 2", "-n", "+n", "abs(n)", "n ** 2", "2 ** n", "1 - n", "0.5 - n"),
    *("n == 1", "n < 2", "n == x.item()", "n + x.item()", "n * True", "n + n", "n > True", "n != None", "n is None"),
    *("int(n)", "float(n)", "bool(n)", "str(n)", "f'{n}'", "f'{n:.2f}'", "'%s' % n", "repr(n)", "complex(n)"),
    *("round(n)", "round(n, 1)", "n and 3", "n or 4", "not n", "n if n else 0", "divmod(n, 2)", "pow(n, 2)"),
    *(
        "sum([1.5, n])",
        "sorted([1.5, n])",
        "max(n, 1)",
        "min([n, 0.25])",
        "[n] * 2",
        "(n, 2)",
        "{'a': n}",
        "n in [1, 2]",
    ),
    *("math.floor(n)", "math.sqrt(abs(n))", "math.isnan(n)", "isinstance(n, bool)", "type(n) is bool"),
    *("x * n", "x + n", "n - x", "torch.full((2,), n)", "torch.tensor(n)", "torch.tensor([n, 1])", "x == n"),
)
ORIGINS = (
    "True if x.item() > 2 else (0.5 if x.item() > 0 else 3)",
    "True if x.item() > 2 else 0.5",
    "2 if x.item() > 0 else False",
)
DECLARED = ("Union[bool, float]", "Union[int, bool]", "Union[int, float, bool]", "Union[int, float, complex]")


def defined(parameters: str, body: str) -> Callable[..., Any]:
    """Return the function ``f`` of a source text, which Python and the compiler can read."""
    source = f"def f({parameters}):\n{body}"
    filename = f"<{source}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = {"math": math, "torch": torch, "Union": Union, "Optional": Optional}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["f"]


def outcome(call: Callable[..., Any], *arguments: Any) -> str:
    try:
        return repr(call(*arguments))
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        return type(error).__name__


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_by_path(expression: str, origin: str) -> None:
    program = defined("x", f"    n = {origin}\n    return {expression}\n")
    compiled = rekindle.script(program)
    for value in (3, 2.5, 0.5, -7, 0):
        assert outcome(compiled, torch.tensor(value)) == outcome(program, torch.tensor(value)), value


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_declared(expression: str, declared: str) -> None:
    program = defined(f"x, n: {declared}", f"    return {expression}\n")
    compiled = rekindle.script(program)
    x = torch.tensor(3)
    for n in (True, False, 2, 0.5, -7, -0.0):
        if type(n).__name__ in declared:
            assert outcome(compiled, x, n) == outcome(program, x, n), n


def test_two_numbers_whose_types_are_known_at_run_time() -> None:
    """Each is tested once, and its conversions are made where they are used."""

    def program(x, y):
        return math.pow(x.item(), y.item()), divmod(x.item(), y.item()), max(x.item(), y.item()), x.item() // y.item()

    compiled = rekindle.script(program)
    values = [torch.tensor(value) for value in (3, 2.5, True)]
    for x in values:
        for y in values:
            assert outcome(compiled, x, y) == outcome(program, x, y), (x, y)
