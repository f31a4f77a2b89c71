"""`rekindle build` writes native libraries."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import rekindle
from tests.cli.conftest import Command


def test_what_is_built_is_the_program(command: Command, folder: Path) -> None:
    done = command("build", "net.pt", "-o", "out", "--input", "f32[b,2]", "--check")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].startswith("out: libnet.so (")
    assert lines[1:5] == [
        "The library needs the C library alone.",
        "call 1 (b=3): agree",
        "call 2 (b=7): agree",
        "call 3 (b=2): agree",
    ]
    assert lines[5].startswith("A call takes ")
    ran = [command("run", where, "f32[5,2]=1") for where in ("out", "net.pt")]
    assert [each.code for each in ran] == [0, 0]
    assert ran[0].out == ran[1].out
    x = torch.ones(5, 2)
    torch.testing.assert_close(rekindle.NativeLibrary("out")(x), rekindle.load("net.pt")(x))


def test_a_program_that_needs_pytorch(command: Command, folder: Path) -> None:
    rekindle.save(rekindle.script(torch.nn.Conv1d(2, 3, 2)), "conv.pt")
    inputs = ("--input", "f32[b,2,n]", "--range", "n=2..20")
    done = command("build", "conv.pt", "-o", "out", *inputs, "--name", "conv", "--check")
    assert done.code == 0
    assert "The library needs PyTorch for aten::conv1d." in done.out
    assert Path("out/libconv.so").exists()
    done = command("build", "conv.pt", "-o", "other", *inputs, "--freestanding")
    assert (done.code, done.err) == (1, "rekindle: error: the program needs PyTorch for aten::conv1d\n")
    assert not Path("other").exists()


class Total:
    def __init__(self, sum: torch.Tensor) -> None:
        self.sum = sum
        self.rows = sum.size(0)


class Adding(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[Total, int]:
        return Total(x.sum(1)), x.size(0)


def test_objects_in_results_are_compared(command: Command, folder: Path) -> None:
    rekindle.save(rekindle.script(Adding()), "adding.pt")
    done = command("build", "adding.pt", "-o", "out", "--input", "f32[b,2]", "--check")
    assert done.code == 0
    assert done.out.splitlines()[2:5] == ["call 1 (b=3): agree", "call 2 (b=7): agree", "call 3 (b=2): agree"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--input", "f32[2,b]"], 1, "the program raises an error on example 1 of 'forward': RuntimeError:"),
        (["--input", "f32[1,2]", "--method", "nothing"], 2, "nothing"),
        (["--input", "f32[1,2]", "--cpu", "z80"], 1, "'native' or one of x86-64"),
        (
            ["--input", "f32[1,2]", "--name", "a-b"],
            1,
            "the name of a library must be an identifier of C and C++, and 'a-b' is not one",
        ),
        ([], 1, "an example of 'forward' lacks the argument 'x'"),
    ],
)
def test_what_cannot_be_done(command: Command, arguments: list[str], code: int, message: str) -> None:
    done = command("build", "net.pt", "-o", "out", *arguments)
    assert done.code == code
    assert message in done.err
    assert not Path("out").exists()
