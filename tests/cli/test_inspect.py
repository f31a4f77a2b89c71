"""`rekindle inspect` prints what an archive holds without loading it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rekindle
from rekindle.cli.inspect import size_of
from tests.archive.archives import members_of, with_members
from tests.cli.conftest import Command

GOLDEN = Path(__file__).parent.parent / "archive" / "golden"

SUMMARY = """\
__torch__.tests.cli.conftest.Net
format 3, SIZE, little-endian
5 modules, 12 numbers in parameters

methods
  forward(__torch__.tests.cli.conftest.Net self, Tensor x, float scale=1.) -> Tensor
  classify(__torch__.tests.cli.conftest.Net self, Tensor x) -> str[]
  fail(__torch__.tests.cli.conftest.Net self, Tensor x) -> Tensor

extra files
  name           size
  labels.txt  8 bytes

operators
  kind                  calls
  aten::add                 1
  aten::append              1
  aten::argmax              1
  aten::len                 1
  aten::linear              1
  aten::mul                 1
  aten::neg                 1
  aten::relu                1
  aten::select              1
  prim::RaiseException      1

parameters: 12 numbers, 48 bytes
  name                  type     shape   device      size
  first.linear.weight   float32  [2, 2]  cpu     16 bytes
  first.linear.bias     float32  [2]     cpu      8 bytes
  second.linear.weight  float32  [2, 2]  cpu     16 bytes
  second.linear.bias    float32  [2]     cpu      8 bytes

buffers: 2 numbers, 8 bytes
  name    type     shape  device     size
  offset  float32  [2]    cpu     8 bytes
"""


def test_a_summary(command: Command, folder: Path) -> None:
    done = command("inspect", "net.pt")
    size = size_of((folder / "net.pt").stat().st_size)
    assert (done.code, done.err) == (0, "")
    assert done.out == SUMMARY.replace("SIZE", size)


def test_attributes(command: Command) -> None:
    told = command("inspect", "net.pt", "--attributes").out
    assert told == command("inspect", "net.pt").out + "\nattributes\n  name   type\n  names  List[str]\n"


def test_members(command: Command) -> None:
    told = command("inspect", "net.pt", "--members").out.partition("\nmembers\n")[2].splitlines()
    assert told[0].split() == ["name", "size", "stored"]
    assert told[1].split() == ["extra/labels.txt", "8", "bytes", "8", "bytes"]
    assert [line.split()[0] for line in told[1:]] == [*rekindle_members()]


def rekindle_members() -> list[str]:
    return list(members_of(Path("net.pt").read_bytes()))


def test_json(command: Command) -> None:
    done = command("inspect", "net.pt", "--json")
    assert json.loads(done.out) == rekindle.inspect("net.pt").as_dict()


def test_what_is_missing_here(command: Command) -> None:
    members = members_of(Path("net.pt").read_bytes())
    text = "code/__torch__/tests/cli/conftest.py"
    members[text] = members[text].replace(b"torch.neg(x)", b"ops.torchvision.nms(x, x, 0.5)")
    members[text] = members[text].replace(b"torch.mul(", b"ops.unheard.of(")
    Path("other.pt").write_bytes(with_members(members))
    done = command("inspect", "other.pt")
    assert (done.code, done.err) == (0, "")
    assert (
        "\nmissing here\n  name              package\n  torchvision::nms  torchvision\n  unheard::of       unknown\n"
    ) in done.out


def test_an_archive_of_an_old_release(command: Command) -> None:
    done = command("inspect", str(GOLDEN / "torch-1.4" / "convolutions_traced.pt"))
    assert done.out.splitlines()[:2] == [
        "__torch__.torch.nn.modules.module.___torch_mangle_5.Module",
        "format 1, older than PyTorch 1.5, 11.3 KiB, little-endian",
    ]


@pytest.mark.parametrize(
    ("nbytes", "told"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 << 30, "5.0 GiB"),
        (3 << 50, "3072.0 TiB"),
    ],
)
def test_sizes(nbytes: int, told: str) -> None:
    assert size_of(nbytes) == told
