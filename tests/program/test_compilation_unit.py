"""Functions compiled from program text."""

import math

import pytest
import torch

import rekindle
from rekindle.errors import CompileError, UndefinedNameError
from rekindle.ir.text.parser import parse_graph
from tests.support.messages import message_of

LIMIT = 3


def test_functions_become_attributes_and_know_each_other():
    unit = rekindle.CompilationUnit(
        """
        def even(n: int) -> bool:
            return n % 2 == 0

        def count_even(n: int) -> int:
            found = 0
            for i in range(n):
                if even(i):
                    found += 1
            return found
        """
    )
    assert unit.count_even(7) == 4
    assert unit.even(3) is False
    assert [function.name for function in unit.get_functions()] == ["even", "count_even"]
    assert "even" in dir(unit)
    assert unit.find_function("odd") is None


def test_a_function_may_call_one_that_stands_below():
    unit = rekindle.CompilationUnit("def f(x):\n    return g(x) + 1\n\ndef g(x):\n    return x * 2\n")
    assert torch.equal(unit.f(torch.ones(2)), torch.full((2,), 3.0))


def test_text_sees_the_names_of_the_caller():
    offset = 10
    unit = rekindle.CompilationUnit("def f(x: int) -> float:\n    return math.sqrt(float(x + offset + LIMIT))\n")
    assert unit.f(12) == math.sqrt(12 + offset + LIMIT)


def test_define_adds_functions():
    unit = rekindle.CompilationUnit()
    unit.define("def f(x: int):\n    return x + 1\n")
    unit.define("def g(x: int):\n    return f(x) * 2\n")
    assert unit.g(3) == 8


def test_a_failing_definition_adds_nothing():
    unit = rekindle.CompilationUnit("def f(x: int):\n    return x\n")
    with pytest.raises(UndefinedNameError):
        unit.define("def g(x: int):\n    return x\n\ndef h(x: int):\n    return missing\n")
    assert [function.name for function in unit] == ["f"]


def test_redefinition_is_refused():
    unit = rekindle.CompilationUnit("def f(x: int):\n    return x\n")
    assert message_of(CompileError, lambda: unit.define("def f(x: int):\n    return x + 1\n")) == (
        "the function 'f' is defined already\n    def f(x: int):\n        ^"
    )


def test_only_functions_and_classes_can_be_defined():
    assert message_of(CompileError, lambda: rekindle.CompilationUnit("x = 3\n")) == (
        "only functions and classes can be defined here\n    x = 3\n    ^^^^^"
    )


def test_unknown_attribute():
    assert message_of(AttributeError, lambda: rekindle.CompilationUnit().missing) == (
        "there is no function 'missing' in this compilation unit"
    )


def test_recursion():
    unit = rekindle.CompilationUnit("def f(n: int) -> int:\n    return 1 if n == 0 else n * f(n - 1)\n")
    assert unit.f(5) == 120


def test_function_from_a_graph():
    graph = rekindle.script(_double).graph.copy()
    unit = rekindle.CompilationUnit()
    made = unit.create_function("double", graph)
    assert str(made.schema) == "double(Tensor x) -> Tensor"
    assert torch.equal(unit.double(torch.ones(2)), torch.full((2,), 2.0))
    with pytest.raises(CompileError, match="defined already"):
        unit.create_function("double", graph)


def test_parameters_of_a_graph_have_different_names():
    graph = parse_graph(
        """
        graph(%x.1 : Tensor, %x_2 : Tensor, %x.3 : Tensor):
          %1 : int = prim::Constant[value=1]()
          %4 : Tensor = aten::sub(%x.1, %x_2, %1)
          %5 : Tensor = aten::sub(%4, %x.3, %1)
          return (%5)
        """
    )
    made = rekindle.CompilationUnit().create_function("less", graph)
    assert [argument.name for argument in made.schema.arguments] == ["x", "x_2", "x_3"]
    assert torch.equal(made(torch.tensor(7.0), x_3=torch.tensor(1.0), x_2=torch.tensor(2.0)), torch.tensor(4.0))


def _double(x):
    return x + x
