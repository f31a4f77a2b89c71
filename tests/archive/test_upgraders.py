"""The functions that stand for operators in old archives, each against what its release did."""

from __future__ import annotations

import pytest
import torch

import rekindle.ops  # noqa: F401 (fills the registry)
from rekindle.archive.upgraders import upgraders_of
from rekindle.errors import ArgumentError
from rekindle.program.function import Function

KINDS = "clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ grid_sampler affine_grid_generator".split()
KINDS += "div div_ full linspace logspace gelu arange tensor round floor_divide floor_divide_".split()
BY_VERSION = {"div", "div_", "full", "linspace", "logspace", "gelu"}
UP_TO_1_12 = {"floor_divide", "floor_divide_"}
UP_TO_1_11 = {kind for kind in KINDS if kind.startswith("clamp")} | UP_TO_1_12
UP_TO_1_2 = {"grid_sampler", "affine_grid_generator"}
INTS = torch.tensor([7, -7, 9])
FLOATS = torch.tensor([7.0, -7.0, 9.0])


def names(version: int, older_than: tuple[int, int] | None = None) -> set[str]:
    find = upgraders_of(version, older_than)
    assert not find("aten::add")
    return {kind for kind in KINDS if find(f"aten::{kind}")}


def call(kind: str, *arguments: object, **keywords: object) -> object:
    """The first of the functions that takes the arguments."""
    for record in upgraders_of(1, (1, 3))(f"aten::{kind}"):
        try:
            return Function(record)(*arguments, **keywords)
        except ArgumentError:
            continue
    raise AssertionError(f"no upgrader of {kind} takes these arguments")


def test_what_each_version_upgrades() -> None:
    assert names(1, (1, 3)) == set(KINDS)
    assert names(1, (1, 4)) == set(KINDS) - UP_TO_1_2
    assert names(1, (1, 5)) == set(KINDS) - UP_TO_1_2 - {"arange"}
    assert names(2, (1, 6)) == set(KINDS) - UP_TO_1_2 - {"arange"}
    assert names(3, (1, 12)) == BY_VERSION | UP_TO_1_11
    assert names(3, (1, 13)) == BY_VERSION | UP_TO_1_12
    assert names(3) == BY_VERSION
    assert names(4) == BY_VERSION - {"div", "div_"}
    assert names(5) == {"linspace", "logspace", "gelu"}
    assert names(8) == {"logspace", "gelu"}
    assert names(9) == {"gelu"}
    assert names(10) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_every_one_compiles(kind: str) -> None:
    for record in upgraders_of(1, (1, 3))(f"aten::{kind}"):
        assert list(record.graph.block.nodes), record.schema


def test_ints_are_divided_as_c_divides_them() -> None:
    two = torch.tensor([2, 2, -2])
    assert torch.equal(call("div", INTS, two), torch.tensor([3, -3, -4]))
    assert torch.equal(call("div", INTS, 2), torch.tensor([3, -3, 4]))
    assert torch.equal(call("div", INTS, 2.5), INTS / 2.5)
    assert torch.equal(call("div", FLOATS, two), torch.tensor([3.5, -3.5, -4.5]))
    out = torch.zeros_like(INTS)
    assert call("div", INTS, two, out=out) is out
    assert torch.equal(out, torch.tensor([3, -3, -4]))


def test_in_place_too() -> None:
    ints = INTS.clone()
    assert call("div_", ints, 2) is ints
    assert torch.equal(ints, torch.tensor([3, -3, 4]))
    floats = FLOATS.clone()
    assert call("div_", floats, torch.tensor(2)) is floats
    assert torch.equal(floats, torch.tensor([3.5, -3.5, 4.5]))


def test_quotients_were_cut_off() -> None:
    assert torch.equal(call("floor_divide", INTS, 2), torch.tensor([3, -3, 4]))
    assert torch.equal(call("floor_divide", FLOATS, torch.tensor(2)), torch.tensor([3.0, -3.0, 4.0]))


def test_what_fills_was_a_float() -> None:
    assert torch.equal(call("full", [2], 3), torch.tensor([3.0, 3.0]))
    assert torch.equal(call("full", [2], 3, dtype=torch.int64), torch.tensor([3, 3]))


def test_steps_that_were_not_given_were_a_hundred() -> None:
    assert torch.equal(call("linspace", 0, 1), torch.linspace(0, 1, 100))
    assert torch.equal(call("linspace", 0, 1, 3), torch.linspace(0, 1, 3))
    assert torch.equal(call("logspace", 0, 1), torch.logspace(0, 1, 100))
    assert torch.equal(call("linspace", 0, 1, out=torch.zeros(0)), torch.linspace(0, 1, 100))


@pytest.mark.parametrize(
    ("number", "rounded"),
    [(0.5, 1.0), (-0.5, -1.0), (2.5, 3.0), (0.49999999999999994, 0.0), (-2.4, -2.0), (1e300, 1e300)],
)
def test_halves_were_rounded_away_from_zero(number: float, rounded: float) -> None:
    assert call("round", number) == rounded
    assert call("round", float("inf")) == float("inf")
    assert str(call("round", -0.25)) == "-0.0"


def test_primitives_that_are_gone() -> None:
    (shape,) = upgraders_of(1, (1, 5))("prim::shape")
    assert list(Function(shape)(INTS)) == [3]
    assert not upgraders_of(2, (1, 6))("prim::shape")


def test_sizes_that_were_not_given() -> None:
    assert call("list_with_default", [2, 3], [1, 7, 7]) == [2, 3]
    assert not upgraders_of(2, (1, 6))("aten::list_with_default")


def test_bounds_of_ints_were_cut_off() -> None:
    assert torch.equal(call("clamp", INTS, 0.5, 5.5), torch.tensor([5, 0, 5]))
    assert torch.equal(call("clamp", INTS, None, 5.5), torch.tensor([5, -7, 5]))
    assert torch.equal(call("clamp", FLOATS, 0.5), torch.tensor([7.0, 0.5, 9.0]))
    assert torch.equal(call("clamp_min", INTS, 0.5), torch.tensor([7, 0, 9]))
    ints = INTS.clone()
    assert call("clamp_max_", ints, 7.5) is ints
    assert torch.equal(ints, torch.tensor([7, -7, 7]))


def test_corners_were_aligned() -> None:
    image, theta = torch.arange(16.0).view(1, 1, 4, 4), torch.eye(3)[None, :2]
    grid = torch.affine_grid_generator(theta, [1, 1, 2, 3], True)
    assert torch.equal(call("affine_grid_generator", theta, [1, 1, 2, 3]), grid)
    assert torch.equal(call("grid_sampler", image, grid, 0, 0), torch.grid_sampler(image, grid, 0, 0, True))


def test_dtypes_of_what_scripts_made() -> None:
    assert torch.equal(call("tensor", 0.1), torch.tensor(0.1, dtype=torch.float64))
    assert torch.equal(call("tensor", [0.1, 2.0]), torch.tensor([0.1, 2.0], dtype=torch.float64))
    assert torch.equal(call("tensor", [[0.1]], dtype=torch.float32), torch.tensor([[0.1]]))
    assert torch.equal(call("arange", 3), torch.tensor([0.0, 1.0, 2.0]))
    assert torch.equal(call("arange", 1, 6, 2), torch.tensor([1.0, 3.0, 5.0]))
    assert torch.equal(call("arange", 3, dtype=torch.int64), torch.tensor([0, 1, 2]))
