"""`rekindle run` calls a method with inputs that are files, shapes, numbers or words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy
import pytest
import torch

import rekindle
from rekindle.cli.inputs import read_input
from rekindle.cli.run import summary
from tests.cli.conftest import Command


def test_a_summary_of_the_result(command: Command) -> None:
    done = command("run", "net.pt", "f32[2,2]=1")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "        type     shape   min  mean  max\n"
        "result  float32  [2, 2]   17    27   37\n"
    )  # fmt: skip


def test_inputs_by_name_and_several_results(command: Command) -> None:
    done = command("run", "net.pt", "x=f32[1,2]=1", "scale=2.0", "--json")
    assert json.loads(done.out) == [
        {"name": "result", "type": "float32", "shape": [1, 2], "min": 34.0, "mean": 54.0, "max": 74.0}
    ]
    done = command("run", "net.pt", "f32[2,2]=1", "--method", "classify")
    assert done.out == (
        "           type  value\n"
        "result[0]  str   'dog'\n"
        "result[1]  str   'dog'\n"
    )  # fmt: skip


class Prints(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("called")  # noqa: T201
        return x


def test_what_a_program_prints_is_not_part_of_the_json(command: Command, folder: Path) -> None:
    rekindle.save(rekindle.script(Prints()), "prints.pt")
    done = command("run", "prints.pt", "f32[1]=1", "--json")
    assert json.loads(done.out) == [{"name": "result", "type": "float32", "shape": [1], "value": 1.0}]
    assert done.err == "called\n"
    done = command("report", "prints.pt", "f32[1]=1", "--calls", "2", "--json")
    assert json.loads(done.out)["name"] == "forward"
    assert done.err == "called\ncalled\n"
    assert command("run", "prints.pt", "f32[1]=1").out.startswith("called\n")


def test_files(command: Command, folder: Path) -> None:
    torch.save(torch.ones(2, 2), "x.pt")
    numpy.save("x.npy", numpy.ones((2, 2), dtype="f4"))
    expected = command("run", "net.pt", "f32[2,2]=1").out
    assert command("run", "net.pt", "x.pt").out == expected
    assert command("run", "net.pt", "x.npy", "--out", "y.pt").out == expected
    assert torch.equal(torch.load("y.pt"), torch.tensor([[17.0, 37.0], [17.0, 37.0]]))


def test_the_mode_is_as_it_was_saved(command: Command) -> None:
    assert "17    27   37" in command("run", "net.pt", "f32[2,2]=1").out
    assert " 0     0    0" in command("run", "net.pt", "f32[2,2]=1", "--train").out


def test_random_inputs_are_the_same_for_the_same_seed(command: Command) -> None:
    first = command("run", "net.pt", "f32[2,2]").out
    assert command("run", "net.pt", "f32[2,2]").out == first
    assert command("run", "net.pt", "f32[2,2]", "--seed", "1").out != first


@pytest.mark.parametrize(
    ("text", "dtype", "shape"),
    [
        ("f32[1,3,224,224]", torch.float32, (1, 3, 224, 224)),
        ("bf16[2, 3]", torch.bfloat16, (2, 3)),
        ("float64[4]", torch.float64, (4,)),
        ("c64[2]", torch.complex64, (2,)),
        ("i64[]", torch.int64, ()),
        ("bool[5]", torch.bool, (5,)),
        ("u8[0,2]", torch.uint8, (0, 2)),
    ],
)
def test_shapes(text: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    made = read_input(text)
    assert (made.dtype, made.shape) == (dtype, shape)


def test_numbers_of_shapes() -> None:
    torch.manual_seed(0)
    assert set(read_input("i64[1000]").tolist()) == set(range(10))
    assert set(read_input("bool[100]").tolist()) == {True, False}
    assert abs(float(read_input("f16[10000]").float().std()) - 1.0) < 0.1
    assert read_input("i8[2]=-3").tolist() == [-3, -3]
    assert read_input("bool[2]=true").tolist() == [True, True]
    assert read_input("f64[1]=0.1").tolist() == [0.1]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-1", -1),
        ("2.5", 2.5),
        ("1e-3", 0.001),
        ("true", True),
        ("None", None),
        ("str:a=[1].pt ", "a=[1].pt "),
    ],
)
def test_other_inputs(text: str, value: object) -> None:
    assert read_input(text) == value
    assert type(read_input(text)) is type(value)


class Pair(NamedTuple):
    first: torch.Tensor
    second: int


def test_every_value_of_a_result_has_a_row() -> None:
    value = [
        Pair(torch.tensor([[1.0, 2.0]]), 3),
        {"a": None, "b": (torch.tensor(True), [])},
        torch.zeros(2, dtype=torch.complex64),
    ]
    assert summary(value, "result") == [
        {"name": "result[0].first", "type": "float32", "shape": [1, 2], "min": 1.0, "mean": 1.5, "max": 2.0},
        {"name": "result[0].second", "type": "int", "value": 3},
        {"name": "result[1]['a']", "type": "None", "value": None},
        {"name": "result[1]['b'][0]", "type": "bool", "shape": [], "value": True},
        {"name": "result[1]['b'][1]", "type": "list", "value": "[]"},
        {"name": "result[2]", "type": "complex64", "shape": [2]},
    ]


def test_a_named_tuple_is_saved_as_a_tuple(command: Command) -> None:
    @rekindle.script
    def pair(x: torch.Tensor) -> Pair:
        return Pair(x, 2)

    rekindle.save(pair, "pair.pt")
    assert command("run", "pair.pt", "f32[1]=1", "--out", "y.pt").code == 0
    assert torch.load("y.pt") == (torch.ones(1), 2)


def test_numbers_that_json_does_not_have(command: Command) -> None:
    done = command("run", "net.pt", "f32[1,2]=1e38", "scale=10", "--json")
    assert json.loads(done.out) == [
        {"name": "result", "type": "float32", "shape": [1, 2], "min": "inf", "mean": "inf", "max": "inf"}
    ]


FORMS = (
    "a file (.pt, .npy; a .pt file of torch.save may hold a list, a tuple or a dict), a shape such as f32[1,3,224,224] "
    "(random numbers) or i64[2,5]=1 (all of them 1), a number, true, false, none, or str:text"
)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            [],
            (
                "forward() is missing 1 argument: 'x'; it is forward(Tensor x, float scale=1.) -> Tensor "
                "(see 'rekindle run --help')"
            ),
        ),
        (["--methd"], f"'--methd' is not an input; an input is {FORMS} (see 'rekindle run --help')"),
        (
            ["f33[2]"],
            (
                "'f33' is not a dtype; there are f16, bf16, f32, f64, c64, c128, u8, i8, i16, i32, i64, bool "
                "(see 'rekindle run --help')"
            ),
        ),
        (["f32[2]=one"], "'one' is not a number, in 'f32[2]=one' (see 'rekindle run --help')"),
        (["x=1", "x=2"], "the input 'x' is given twice (see 'rekindle run --help')"),
        (["f32[1,2]", "--device", "warp"], "there is no device 'warp' here (see 'rekindle run --help')"),
        (["f32[99999999,99999999]"], "f32[99999999,99999999]: too large for this machine"),
        (["f32[99999999999999999999]"], "f32[99999999999999999999]: too large for this machine"),
        (["i8[2]=300"], "i8[2]=300: value cannot be converted to type int8_t without overflow"),
        (["nothing.pt"], "nothing.pt: No such file or directory"),
        (["nothing.npy"], "nothing.npy: No such file or directory"),
        (["objects.pt"], "objects.pt: no file of tensors, numbers, lists, tuples and dicts alone"),
        (["net.pt"], "net.pt: no file of tensors, numbers, lists, tuples and dicts alone"),
        (["objects.npy"], "objects.npy: Object arrays cannot be loaded when allow_pickle=False"),
    ],
)
def test_what_is_no_input(command: Command, inputs: list[str], message: str) -> None:
    torch.save(torch.nn.Linear(1, 1), "objects.pt")
    numpy.save("objects.npy", numpy.array([{}], dtype=object))
    done = command("run", "net.pt", *inputs)
    assert (done.code, done.out, done.err) == (2, "", f"rekindle: error: {message}\n")


def test_an_error_of_the_program(command: Command) -> None:
    done = command("run", "net.pt", "f32[1,2]", "--method", "fail")
    assert (done.code, done.out, done.err) == (1, "", "rekindle: error: the program raised ValueError: as asked\n")


def test_a_result_that_cannot_be_written(command: Command) -> None:
    done = command("run", "net.pt", "f32[1,2]", "--out", "no/such/folder/y.pt")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "rekindle: error: no/such/folder/y.pt: the result cannot be saved: "
        "Parent directory no/such/folder does not exist.\n"
    )
