"""`rekindle diff` prints the differences between two archives; its exit code is whether there are any."""

from __future__ import annotations

import enum
import json
from typing import Any

import pytest
import torch

import rekindle
from rekindle.cli.comparison import difference_of
from tests.cli.conftest import Command, Net, compiled

LABELS = {"labels.txt": "cat\ndog\n"}


def test_the_same_program(command: Command) -> None:
    rekindle.save(compiled(), "again.pt", LABELS)
    done = command("diff", "net.pt", "again.pt", "--graph")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_values_and_files(command: Command) -> None:
    module = compiled()
    with torch.no_grad():
        module.first.linear.weight[0] += torch.tensor([0.5, 0.25])
        module.offset.resize_(3)
    module.names[1] = "cow"
    rekindle.save(module, "other.pt", {"labels.txt": "cat\ncow\n", "more.txt": ""})
    done = command("diff", "net.pt", "other.pt")
    assert (done.code, done.err) == (1, "")
    assert done.out == (
        "parameter first.linear.weight: float32[2, 2]: 2 of 4 numbers differ, by up to 0.5\n"
        "buffer offset: float32[2] became float32[3]\n"
        "attribute names: [1]: 'dog' became 'cow'\n"
        "file more.txt: only in the second\n"
        "file labels.txt: its content differs\n"
    )
    assert "by up to 0.5" not in command("diff", "net.pt", "other.pt", "--tolerance", "0.5").out


class Other(Net):
    def __init__(self) -> None:
        super().__init__()
        self.rate = 0.5
        del self.second

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> torch.Tensor:
        return self.first(x) * scale

    @torch.jit.unused
    def fail(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("never")


def test_programs(command: Command) -> None:
    torch.manual_seed(0)
    other = Other().eval()
    other.first.load_state_dict(compiled().first.state_dict())
    rekindle.save(rekindle.script(other), "other.pt", LABELS)
    done = command("diff", "net.pt", "other.pt")
    assert done.code == 1
    assert done.out == (
        "method fail: only in the first\n"
        "method second.forward: only in the first\n"
        "method second.linear.forward: only in the first\n"
        "schema forward\n"
        "  @@ -1 +1 @@\n"
        "  -forward(Tensor x, float scale=1.) -> Tensor\n"
        "  +forward(Tensor x, float scale=2.) -> Tensor\n"
        "code forward\n"
        "  @@ -1,14 +1,6 @@\n"
        "   def forward(self,\n"
        "       x: Tensor,\n"
        "  -    scale: float=1.) -> Tensor:\n"
        "  -  training = self.training\n"
        "  -  if training:\n"
        "  -    x0 = torch.neg(x)\n"
        "  -  else:\n"
        "  -    x0 = x\n"
        "  -  second = self.second\n"
        "  +    scale: float=2.) -> Tensor:\n"
        "     first = self.first\n"
        "  -  _0 = (second).forward((first).forward(x0, ), )\n"
        "  -  _1 = torch.mul(_0, scale)\n"
        "  -  offset = self.offset\n"
        "  -  return torch.add(_1, offset)\n"
        "  +  _0 = torch.mul((first).forward(x, ), scale)\n"
        "  +  return _0\n"
        "code classify\n"
        "  @@ -2,5 +2,5 @@\n"
        "       x: Tensor) -> List[str]:\n"
        "     _0 = annotate(List[str], [])\n"
        "  -  _1 = torch.argmax((self).forward(x, 1., ), -1)\n"
        "  +  _1 = torch.argmax((self).forward(x, 2., ), -1)\n"
        "     for _2 in range(torch.len(_1)):\n"
        "       i = torch.select(_1, 0, _2)\n"
        "parameter second.linear.weight: only in the first\n"
        "parameter second.linear.bias: only in the first\n"
        "attribute second.training: only in the first\n"
        "attribute second.linear.training: only in the first\n"
        "attribute rate: only in the second\n"
    )


def test_json(command: Command) -> None:
    module = compiled()
    module.names[1] = "cow"
    rekindle.save(module, "other.pt", LABELS)
    done = command("diff", "net.pt", "other.pt", "--json")
    assert (done.code, json.loads(done.out)) == (
        1,
        [{"kind": "attribute", "name": "names", "difference": ["[1]: 'dog' became 'cow'"]}],
    )
    assert json.loads(command("diff", "net.pt", "net.pt", "--json").out) == []


def test_an_archive_that_cannot_be_read(command: Command) -> None:
    done = command("diff", "net.pt", "nothing.pt")
    assert (done.code, done.out, done.err) == (2, "", "rekindle: error: nothing.pt: No such file or directory\n")


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (1, 1.0, "int became float"),
        (1, None, "int became NoneType"),
        (1.0, 1.25, None),
        (1.0, 1.5, "1.0 became 1.5"),
        (float("nan"), float("nan"), None),
        ("a", "b", "'a' became 'b'"),
        (True, False, "True became False"),
        ([1, [2, 3]], [1, [2, 4]], "[1]: [1]: 3 became 4"),
        ([1], [1, 2], "1 items became 2"),
        ({"a": 1}, {"b": 1}, "the keys [\"['a']\"] became [\"['b']\"]"),
        ({"a": 1}, {"a": 2}, "['a']: 1 became 2"),
        (Color.RED, Color.RED, None),
        (Color.RED, Color.BLUE, "RED became BLUE"),
        (torch.device("cpu"), torch.device("cuda:0"), "device(type='cpu') became device(type='cuda', index=0)"),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]), None),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.25, 3.0]), "float32[2]: 1 of 2 numbers differ, by up to 1"),
        (torch.tensor([2**62]), torch.tensor([2**62 + 1]), "int64[1]: 1 of 1 numbers differ, by up to 1"),
        (torch.zeros(2), torch.zeros(2, dtype=torch.half), "float32[2] became float16[2]"),
        (torch.zeros(2), torch.zeros(2).to_sparse(), "float32[2] became sparse_coo float32[2]"),
        (
            torch.ones(2).to_sparse(),
            torch.zeros(2).to_sparse(),
            "sparse_coo float32[2]: 2 of 2 numbers differ, by up to 1",
        ),
        (torch.tensor([1j]), torch.tensor([2j]), "complex64[1]: 1 of 1 numbers differ, by up to 1"),
    ],
)
def test_differences_of_values(a: Any, b: Any, told: str | None) -> None:
    assert difference_of(a, b, tolerance=0.25) == told


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_quantized_tensors() -> None:
    a, b = (torch.quantize_per_tensor(torch.full((2,), x), 0.5, 0, torch.quint8) for x in (1.0, 2.0))
    assert difference_of(a, a.clone()) is None
    assert difference_of(a, b) == "quint8[2]: 2 of 2 numbers differ, by up to 1"


def test_objects_are_compared_by_what_they_hold(command: Command) -> None:
    @rekindle.script
    class Point:
        def __init__(self, x: int, place: str) -> None:
            self.x = x
            self.place = place

    assert difference_of(Point(1, "a"), Point(1, "a")) is None
    assert difference_of([Point(1, "a")], [Point(1, "b")]) == "[0]: .place: 'a' became 'b'"
