"""What the Python printer adds to the text of torch.jit's, against which :mod:`tests.oracle.test_code` holds it."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor

import rekindle
from rekindle.frontend.python_printer import PythonPrinter


def test_an_expression_stays_where_it_runs_and_long_ones_become_variables() -> None:
    def f(x: Tensor, y: Tensor, n: int):
        x = torch.relu(x) + torch.relu(y) * torch.relu(x) - torch.relu(y)
        for i in range(n):
            x = x + i
        return x

    assert rekindle.script(f).code == (
        "def f(x: Tensor,\n"
        "    y: Tensor,\n"
        "    n: int) -> Tensor:\n"
        "  _0 = torch.relu(x)\n"
        "  _1 = torch.mul(torch.relu(y), torch.relu(x))\n"
        "  x0 = torch.sub(torch.add(_0, _1), torch.relu(y))\n"
        "  x1 = x0\n"
        "  for i in range(n):\n"
        "    x1 = torch.add(x1, i)\n"
        "  return x1\n"
    )


def test_a_large_whole_float_keeps_its_dot() -> None:
    def f(x: float):
        return x * 1e10

    # torch.jit writes 10000000000, which is read back as an int.
    assert "torch.mul(x, 10000000000.)" in rekindle.script(f).code


def test_constants_without_text_stand_beside_it() -> None:
    def f(s: str):
        return s + "é" + "é"

    code, constants = rekindle.script(f).code_with_constants
    assert "CONSTANTS.c0" in code
    assert constants.const_mapping == {"c0": "é"}


def test_ranges_tell_where_the_text_comes_from() -> None:
    def f(x: Tensor):
        y = torch.relu(x)
        return y, torch.neg(x)

    printer = PythonPrinter()
    printer.print_function(rekindle.script(f)._record)
    text = printer.text
    bounds = [*printer.ranges, (len(text), None)]
    pieces = {
        text[start:end]: range.text
        for (start, range), (end, _) in pairwise(bounds)
        if range is not None and range.is_known
    }
    assert pieces["torch.neg(x)"] == "torch.neg"
    assert any(where == "torch.relu" and "y = torch.relu(x)" in piece for piece, where in pieces.items())
