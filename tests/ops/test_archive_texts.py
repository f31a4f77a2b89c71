"""Text as archives have it, beside torch.jit, which writes it as all releases did."""

from __future__ import annotations

import random
from enum import Enum
from typing import Any, NamedTuple

import pytest
import torch

from rekindle.ops.archive.texts import format_values, percent_format, print_values, text_of


class Colour(Enum):
    RED = 1


class Point(NamedTuple):
    x: int
    y: float


def _numbers() -> list[float]:
    generator = random.Random(5)
    special = [0.0, -0.0, 5.0, 0.1, 1e15, 1e16, 1e17, 1e20, 1e-5, -2.5, 1 / 3, float("inf"), float("nan"), 123456.789]
    return special + [generator.uniform(-10, 10) * 10 ** generator.randint(-20, 20) for _ in range(200)]


@torch.jit.script
def text_of_floats(numbers: list[float]) -> list[str]:
    return [str(number) for number in numbers]


@torch.jit.script
def text_of_tensors(tensors: list[torch.Tensor]) -> list[str]:
    return [str(tensor) for tensor in tensors]


def test_floats() -> None:
    numbers = _numbers()
    assert [text_of(number) for number in numbers] == text_of_floats(numbers)
    assert text_of(5.0) == "5."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "True"),
        (None, "None"),
        ("it's", "it's"),
        (-3, "-3"),
        (1 - 2j, "1.-2.j"),
        (complex(0.1, 1e20), "0.10000000000000001+1e+20j"),
        ([1, 2], "[1, 2]"),
        ([0.5, 2.0], "[0.5, 2.]"),
        (["a", "b"], "[a, b]"),
        ((1,), "(1,)"),
        ((), "()"),
        (Point(1, 2.0), "(1, 2.)"),
        ({"a": 1, "b": [2.0]}, "{a: 1, b: [2.]}"),
        (Colour.RED, "Enum<Colour.RED>"),
        (torch.device("cpu"), "cpu"),
    ],
)
def test_other_values(value: object, text: str) -> None:
    assert text_of(value) == text


def _tensors() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    tensors = [torch.tensor(number) for number in (3, 0.1234567, 1e-8, True, 1e20, 123456789.0)]
    tensors += [torch.tensor([float("nan"), 1.0]), torch.tensor([float("inf"), 1.5]), torch.tensor([1e5, 2.0])]
    tensors += [torch.zeros(0), torch.zeros(2, 0), torch.zeros(2), torch.tensor([1 + 2j]), torch.ones(1, 1, 1)]
    tensors += [torch.ones(2, dtype=dtype) for dtype in (torch.float16, torch.bfloat16, torch.int8, torch.uint8)]
    for shape in ((3,), (2, 3), (3, 40), (2, 2, 3), (2, 2, 1, 3), (2, 3, 30), (1, 1)):
        for scale in (1, 1e-3, 1e3, 1e6, 1e-10, 1e200):
            tensors.append(torch.randn(shape, dtype=torch.float64, generator=generator) * scale)
        tensors.append(torch.randint(-1000, 1000, shape, generator=generator))
        tensors.append(torch.randint(0, 10**11, shape, generator=generator))
        tensors.append(10 ** (torch.randn(shape, generator=generator) * 3))
    return tensors


@pytest.mark.filterwarnings("ignore:Casting complex values to real:UserWarning")
def test_tensors() -> None:
    tensors = _tensors()
    for tensor, expected in zip(tensors, text_of_tensors(tensors), strict=True):
        assert text_of(tensor) == expected


def test_braces() -> None:
    assert format_values("{} {:d} {}", 1, 2.0) == "1 {:d} 2."
    assert format_values("{{}} {}", 1, "s", 3) == "{1} s"
    assert format_values("", 1) == ""
    with pytest.raises(RuntimeError, match=r"Too few arguments for format string: \{\} \{\}"):
        format_values("{} {}", 1)


@pytest.mark.parametrize(
    ("template", "values", "text"),
    [
        ("%d items", (3,), "3 items"),
        ("%i%%", (2.9,), "2%"),
        ("%s=%s", (("x", 2.0),), "x=2."),
        ("%f %e", ((2.5, 1),), "2.500000 1.000000e+00"),
        ("%c%c", (("a", 98),), "ab"),
        ("%s", ([1, 2],), "[1, 2]"),
    ],
)
def test_percents(template: str, values: tuple[Any, ...], text: str) -> None:
    assert percent_format(template, *values) == text


@pytest.mark.parametrize(
    ("template", "values", "message"),
    [
        ("%", (1,), "Incomplete format specifier"),
        ("%d %d", (1,), "Too few arguments for format string"),
        ("%d", ((1, 2),), "Too many arguments for format string"),
        ("%.2f", (1.0,), "The specifier %. is not supported in TorchScript format strings"),
        ("%d", ("x",), "%d requires a number for formatting, but got str"),
        ("%c", (1.5,), "%c requires an int or char for formatting, but got float"),
    ],
)
def test_percents_that_fail(template: str, values: tuple[Any, ...], message: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        percent_format(template, *values)
    assert str(caught.value) == message


def test_a_print_is_a_line_of_texts(capsys: pytest.CaptureFixture[str]) -> None:
    print_values(1.0, "a", ["b"], torch.ones(1))
    print_values()
    assert capsys.readouterr().out == "1. a [b]  1\n[ CPUFloatType{1} ]\n\n"
