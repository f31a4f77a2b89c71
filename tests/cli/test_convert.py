"""`rekindle convert` rewrites an archive: in the current format, on other devices."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import rekindle
from tests.archive.archives import members_of, with_members
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


class OnGpu(torch.nn.Module):
    """A program that says where things are."""

    def __init__(self) -> None:
        super().__init__()
        self.where = torch.device("cuda:0")
        self.both = [torch.device("cuda:0"), torch.device("cuda:1")]

    def part(self, n: int) -> torch.Tensor:
        return torch.ones(n, device="cuda:1")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.to(self.where) + torch.ones(2, device=torch.device("cuda")) + outside(2)
        if x.device != self.both[0]:
            x = x + 100
        return x + self.part(2)


def outside(n: int) -> torch.Tensor:
    return torch.ones(n, device="cuda:0")


def test_devices_that_programs_name(command: Command) -> None:
    rekindle.save(rekindle.script(OnGpu()), "gpu.pt")
    assert command("run", "gpu.pt", "f32[2]=1").code == 1
    assert command("convert", "gpu.pt", "mixed.pt", "--map", "cuda:0=cpu").code == 0
    mixed = rekindle.load("mixed.pt")
    assert (mixed.where, mixed.both) == (torch.device("cpu"), [torch.device("cpu"), torch.device("cuda:1")])
    assert 'torch.device("cuda:1")' in mixed.part.code
    assert command("convert", "gpu.pt", "cpu.pt", "--map", "cpu").code == 0
    for loaded in (rekindle.load("cpu.pt"), torch.jit.load("cpu.pt")):
        assert torch.equal(loaded(torch.ones(2)), torch.full((2,), 4.0))


def test_a_device_that_is_not_here(command: Command) -> None:
    members = members_of(Path("net.pt").read_bytes())
    members["data.pkl"] = members["data.pkl"].replace(b"\x03\x00\x00\x00cpu", b"\x04\x00\x00\x00cuda")
    Path("gpu.pt").write_bytes(with_members(members))
    done = command("convert", "gpu.pt", "cpu.pt")
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(
        r"rekindle: error: gpu\.pt: A tensor of the archive is on 'cuda', where PyTorch cannot put it(: [^\n]+)? "
        r"\(in 'data/\d'\) \(move it: --map cpu\)\n",
        done.err,
    )
    assert command("convert", "gpu.pt", "cpu.pt", "--map", "cpu").code == 0
    assert command("diff", "net.pt", "cpu.pt").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.pt", "no/net.pt"], "no/net.pt: No such file or directory"),
        (["no.pt", "net.pt"], "no.pt: No such file or directory"),
        (["net.pt", "x.pt", "--map", "warp=cpu"], "'warp' is not a device (see 'rekindle convert --help')"),
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
