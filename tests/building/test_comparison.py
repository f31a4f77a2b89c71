"""Results of programs and of their libraries, brought to one form."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.building.comparison import comparable
from rekindle.cli.comparison import difference_of
from rekindle.doctor.ways_out import native_library


class Shade(enum.Enum):
    LIGHT = 10
    DARK = 20


class Leaf:
    def __init__(self, value: Tensor) -> None:
        self.value = value
        self.shade = Shade.DARK


class Tree:
    def __init__(self, leaf: Leaf) -> None:
        self.leaves = [leaf]
        self.up: Tree | None = None


class Pair(NamedTuple):
    first: int
    second: str


class Growing(nn.Module):
    def forward(self, x: Tensor, is_circle: bool) -> tuple[Tree, dict[str, Leaf]]:
        leaf = Leaf(x * 2)
        tree = Tree(leaf)
        if is_circle:
            tree.up = tree
        return tree, {"leaf": leaf}


class Chain(nn.Module):
    def forward(self, leaf: int) -> Tree:
        tree = Tree(Leaf(torch.zeros(1)))
        for _ in range(leaf):
            above = tree
            tree = Tree(Leaf(torch.zeros(1)))
            tree.up = above
        return tree


class Others(nn.Module):
    def forward(self, x: Tensor) -> tuple[Shade, set[int], torch.dtype, Pair, dict[Shade, int], list[int]]:
        return Shade.DARK, {3, 1, 2}, x.dtype, Pair(1, "a"), {Shade.LIGHT: 1}, list(x.shape)


@pytest.mark.parametrize("is_circle", [False, True])
def test_objects_are_compared_by_their_attributes(tmp_path: Path, is_circle: bool) -> None:
    program = rekindle.script(Growing())
    x = torch.ones(2)
    rekindle.build(program, tmp_path, [(x, True), (x, False)])
    library = rekindle.NativeLibrary(tmp_path)
    expected = program(x, is_circle)
    assert difference_of(*comparable(expected, library(x, is_circle))) is None
    assert difference_of(*comparable(expected, library(x + 1, is_circle))) == (
        "[0]: ['leaves']: [0]: ['value']: float32[2]: 2 of 2 numbers differ, by up to 2"
    )
    assert difference_of(*comparable(program(x, True), library(x, False))) == "[0]: ['up']: Tree became NoneType"
    assert native_library(program, (x, is_circle), {}) == "agrees"


def test_long_chains_are_not_compared(tmp_path: Path) -> None:
    program = rekindle.script(Chain())
    rekindle.build(program, tmp_path, [(1,)])
    library = rekindle.NativeLibrary(tmp_path)
    assert difference_of(*comparable(program(62), library(62))) is None
    with pytest.raises(rekindle.LibraryError) as raised:
        comparable(program(63), library(63))
    assert str(raised.value) == "objects within 64 others are not compared"


def test_types_that_libraries_do_not_return(tmp_path: Path) -> None:
    program = rekindle.script(Others())
    x = torch.ones(2, 3)
    rekindle.build(program, tmp_path, [(x,)])
    expected, found = program(x), rekindle.NativeLibrary(tmp_path)(x)
    assert difference_of(*comparable(expected, found)) is None
    wrong = (0, {1: True, 2: True}, 7, (1, "b"), {1: 1}, (2, 3))
    texts = [difference_of(*comparable(*pair)) for pair in zip(expected, wrong, strict=True)]
    assert texts == [
        "1 became 0",
        "the keys ['[1]', '[2]', '[3]'] became ['[1]', '[2]']",
        "6 became 7",
        "[1]: 'a' became 'b'",
        "the keys ['[0]'] became ['[1]']",
        "list became tuple",
    ]
    assert native_library(program, (x,), {}) == "agrees"
