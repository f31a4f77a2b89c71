"""`rekindle export` writes files of torch.export."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import rekindle
from tests.cli.conftest import Command

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # PyTorch's own


def test_what_is_written_is_the_program(command: Command, folder: Path) -> None:
    done = command("export", "net.pt", "-o", "net.pt2", "--input", "f32[b,2]", "--range", "b=2..9", "--check")
    assert done.code == 0
    assert done.out.splitlines() == ["call 1 (b=3): agree", "call 2 (b=5): agree", "call 3 (b=2): agree"]
    exported = torch.export.load("net.pt2").module()
    assert torch.equal(exported(torch.ones(7, 2)), rekindle.load("net.pt")(torch.ones(7, 2)))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--method", "fail", "--input", "f32[1,2]"], 1, "'fail' cannot be exported: the program raises"),
        (["--input", "f32[b,2]", "--range", "b=9..2"], 2, "'b=9..2' is not a range: write b=2..64"),
        (["--input", "f32[3,2]", "--range", "b=2..9"], 2, "--range names 'b', which is not a size of an input"),
        (["--input", "none"], 2, "forward() argument 'x' (position 1) takes Tensor, but got None;"),
    ],
)
def test_what_cannot_be_done(command: Command, arguments: list[str], code: int, message: str) -> None:
    done = command("export", "net.pt", "-o", "net.pt2", *arguments)
    assert done.code == code
    assert message in done.err
    assert not Path("net.pt2").exists()


def test_lists_beside_named_sizes(command: Command, folder: Path) -> None:
    class Scaled(torch.nn.Module):
        def forward(self, x: torch.Tensor, factors: list[int]) -> torch.Tensor:
            return x * sum(factors)

    rekindle.save(rekindle.script(Scaled()), "scaled.pt")
    torch.save([1, 2], "factors.pt")
    inputs = ["--input", "f32[n]", "--input", "factors.pt"]
    done = command("export", "scaled.pt", "-o", "scaled.pt2", *inputs, "--check")
    assert (done.code, done.err) == (0, "")


def test_drafts_say_that_they_are(command: Command, folder: Path) -> None:
    class Loud(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            print(x)  # noqa: T201 - what is left out
            return x * 2

    rekindle.save(rekindle.script(Loud()), "loud.pt")
    done = command("export", "loud.pt", "-o", "loud.pt2", "--input", "f32[2]", "--draft")
    assert done.code == 0
    assert done.err.startswith(
        "rekindle: the exported program is a draft, which differs from 'forward' in one place.\n\n"
        "1. this prints, and an exported program cannot\n"
    )
    assert done.err.endswith("In the draft: nothing is printed\n")
    assert torch.equal(torch.export.load("loud.pt2").module()(torch.ones(2)), torch.full((2,), 2.0))
