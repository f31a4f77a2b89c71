"""`rekindle convert` writes an archive anew: in today's format, on other devices."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import rekindle
from tests.cli.conftest import Command

GOLDEN = Path(__file__).parent.parent / "archive" / "golden"


def test_what_is_converted_is_the_same_program(command: Command) -> None:
    done = command("convert", "net.pt", "again.pt")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert command("diff", "net.pt", "again.pt", "--graph").code == 0
    files = {"labels.txt": ""}
    assert torch.equal(rekindle.load("again.pt", _extra_files=files)(torch.ones(1, 2)), torch.tensor([[17.0, 37.0]]))
    assert files == {"labels.txt": b"cat\ndog\n"}


def test_in_place(command: Command, folder: Path) -> None:
    assert command("convert", "net.pt", "net.pt").code == 0
    once = (folder / "net.pt").read_bytes()
    assert command("convert", "net.pt", "net.pt").code == 0
    assert (folder / "net.pt").read_bytes() == once


def test_torch_jit_reads_what_was_converted_from_an_old_release(command: Command) -> None:
    old = next(iter(sorted((GOLDEN / "torch-1.4").glob("*.pt"))))
    assert command("convert", str(old), "new.pt").code == 0
    assert {*torch.jit.load("new.pt").state_dict()} == {*rekindle.load(old).state_dict()}


@pytest.mark.parametrize("maps", [["meta"], ["cpu=meta"]])
def test_devices(command: Command, maps: list[str]) -> None:
    assert command("convert", "net.pt", "meta.pt", *(f"--map={text}" for text in maps)).code == 0
    assert {tensor.device.type for tensor in rekindle.load("meta.pt").state_dict().values()} == {"meta"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.pt", "no/net.pt"], "no/net.pt: No such file or directory"),
        (["no.pt", "net.pt"], "no.pt: No such file or directory"),
        (
            ["net.pt", "x.pt", "--map", "cpu=warp"],
            "there is no device 'warp' here (see 'rekindle convert --help')",
        ),
        (
            ["net.pt", "x.pt", "--map", "cpu=", "--map", "a=b"],
            "'cpu=' maps no device to another: write cuda:0=cpu (see 'rekindle convert --help')",
        ),
    ],
)
def test_what_is_wrong(command: Command, arguments: list[str], message: str) -> None:
    done = command("convert", *arguments)
    assert (done.code, done.out, done.err) == (2, "", f"rekindle: error: {message}\n")
