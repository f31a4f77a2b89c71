"""What the Python printer adds to the text of torch.jit's, against which :mod:`tests.oracle.test_code` holds it."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import Any, Dict, List

import torch
from torch import Tensor

import rekindle
from rekindle.frontend.python_printer import PythonPrinter
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.schema_parser import parse_schema


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


def test_text_that_is_to_be_read_back_says_that_it_means_what_python_means() -> None:
    def f(x: float, s: str):
        print(x)  # noqa: T201
        return str(x), "{} {}".format(x, s), "%s" % s

    record = rekindle.script(f)._record
    printer = PythonPrinter(importable=True)
    printer.print_function(record)
    assert printer.text == (
        "def f(x: float,\n"
        "    s: str) -> Tuple[str, str, str]:\n"
        "  ops.prim.Print(x)\n"
        '  _0 = (ops.aten.str(x), ops.aten.format("{} {}", x, s), ops.aten.percentFormat("%s", s))\n'
        "  return _0\n"
    )
    assert 'str(x), torch.format("{} {}", x, s), torch.percentFormat("%s", s)' in rekindle.script(f).code


def test_the_text_operators_of_archives_have_the_names_that_archives_have() -> None:
    graph = parse_graph(
        "graph(%x : float):\n"
        '  %template : str = prim::Constant[value="{}"]()\n'
        " = archive::Print(%x)\n"
        "  %a : str = archive::str(%x)\n"
        "  %b : str = archive::format(%template, %x)\n"
        "  %c : str = archive::percentFormat(%template, %x)\n"
        "  %all : (str, str, str) = prim::TupleConstruct(%a, %b, %c)\n"
        "  return (%all)\n"
    )
    printer = PythonPrinter(importable=True)
    printer.print_function(GraphFunction("f", graph, parse_schema("f(float x) -> (str, str, str)")))
    assert 'print(x)\n  a = str(x)\n  b = torch.format("{}", x)' in printer.text
    assert 'c = torch.percentFormat("{}", x)' in printer.text


def test_branches_that_assign_an_any_say_so() -> None:
    class Either(torch.nn.Module):
        def forward(self, flag: bool) -> Any:
            found: Any = "text" if flag else {"a": 1}
            return found

    module = rekindle.script(Either())
    held = io.BytesIO()
    rekindle.save(module, held)
    held.seek(0)
    loaded = rekindle.load(held)
    held.seek(0)
    theirs = torch.jit.load(held)
    for flag in (True, False):
        assert module(flag) == loaded(flag) == theirs(flag) == Either()(flag)


def test_complex_numbers_with_a_negative_zero_are_calls() -> None:
    def f() -> list[complex]:
        return [complex(1.0, -0.0), complex(-0.0, 1.0), complex(-0.0, -0.0), complex(0.0, -1.0), complex(-0.0, -2.0)]

    compiled = rekindle.script(f)
    expected = ["(1-0j)", "(-0+1j)", "(-0-0j)", "-1j", "(-0-2j)"]
    archive = io.BytesIO()
    rekindle.save(compiled, archive)
    archive.seek(0)
    assert list(map(repr, compiled())) == list(map(repr, rekindle.load(archive)())) == list(map(repr, f())) == expected


def test_variables_do_not_hide_the_functions_that_the_text_uses() -> None:
    def f(torch: Tensor, int: Tensor, float: Tensor, range: Tensor, bool: Tensor, annotate: Tensor, xs: List[str]):
        total = torch + int + float + range + bool + annotate
        found: Dict[str, Tensor] = {}
        for x in xs:
            found[x] = total
            if total.sum() > 0:
                total = total + total.sum().item()
        return found, total

    compiled = rekindle.script(f)
    archive = io.BytesIO()
    rekindle.save(compiled, archive)
    archive.seek(0)
    inputs = [*map(torch.tensor, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)), ["a", "b"]]
    assert rekindle.load(archive)(*inputs) == compiled(*inputs) == f(*inputs)
    archive.seek(0)
    assert torch.jit.load(archive)(*inputs) == f(*inputs)
    assert compiled.code.startswith("def f(torch0: Tensor,\n    int0: Tensor,\n    float0: Tensor,\n")
