"""Libraries as relocatable objects, for users with a linker."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.building.c_process import compiler

MAIN = r"""
#include <stdio.h>
#include "first/first.h"
#include "second/second.h"

int main(void) {
  first_instance *first;
  second_instance *second;
  if (first_open("first/first.weights", &first) != FIRST_OK) return 1;
  if (second_open("second/second.weights", &second) != SECOND_OK) return 2;
  float data[3] = {1, 2, 3};
  int64_t shape[1] = {3};
  DLTensor x = {data, {1, 0}, 1, {2, 32, 1}, shape, NULL, 0};
  first_value a = first_tensor(&x), found;
  second_value b = second_tensor(&x), other;
  if (first_forward(first, &a, 1, &found) != FIRST_OK) return 3;
  if (second_forward(second, &b, 1, &other) != SECOND_OK) return 4;
  printf("%g %g\n", ((float *)found.t->data)[2], ((float *)other.t->data)[2]);
  if (first_open("second/second.weights", &first) == FIRST_OK) return 5;
  printf("%s\n", first_error(first));
  return 0;
}
"""


class Scaled(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.full((3,), factor))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x * self.factor) + 0.5


X = torch.tensor([1.0, 2.0, 3.0])


@pytest.mark.skipif(compiler() is None, reason="this machine has no C compiler")
def test_two_objects_in_one_program(tmp_path: Path) -> None:
    for name, factor in (("first", 2.0), ("second", 3.0)):
        module = rekindle.script(Scaled(factor))
        built = rekindle.build(module, tmp_path / name, [(X,)], name=name, cpu="v3", form="object", freestanding=True)
        assert built.library == tmp_path / name / f"{name}.o"
        assert not (tmp_path / name / f"lib{name}.so").exists()
    (tmp_path / "main.c").write_text(MAIN)
    command = [str(compiler()), "-Wall", "-o", "main", "main.c", "first/first.o", "second/second.o", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["6.5 9.5", "the file of weights is not that of this library"]


def test_an_object_for_aarch64(tmp_path: Path) -> None:
    """It is a relocatable object of that machine which defines the functions of the header. It is not run."""
    torch.manual_seed(0)
    module = rekindle.script(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Softmax(-1)).eval())
    built = rekindle.build(module, tmp_path, [(torch.randn(2, 4),)], cpu="aarch64", form="object", freestanding=True)
    image = built.library.read_bytes()
    assert image[:6] == b"\x7fELF\x02\x01"
    assert struct.unpack_from("<HH", image, 16) == (1, 183)
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("this machine has no nm, which lists the functions of the object")
    command = [nm, "--defined-only", "--extern-only", str(built.library)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    names = [line.split()[-1] for line in listed.stdout.splitlines()]
    assert sorted(names) == ["net_close", "net_error", "net_forward", "net_free", "net_open"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cpu": "aarch64"}, "the linker knows x86-64: a library for aarch64 is of the form 'object'"),
        ({"cpu": "v2,v3", "form": "object"}, "an object is for one processor: several levels are for shared libraries"),
        ({"form": "archive"}, "the form of a library is 'shared' or 'object', not 'archive'"),
        (
            {"form": "object", "embed_weights": True},
            "an object has no weights: 'embed_weights' is for shared libraries",
        ),
    ],
)
def test_what_has_no_object(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(rekindle.RekindleError) as raised:
        rekindle.build(rekindle.script(Scaled(1.0)), tmp_path, [(X,)], **options)
    assert str(raised.value) == message
