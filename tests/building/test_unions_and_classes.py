"""Arguments whose type is known at run time only, and instances of classes as arguments and results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from tests.building.c_process import memory_checker, run


def library_of(program: Any, folder: Path, examples: Any = ()) -> Any:
    rekindle.build(rekindle.script(program), folder, examples)
    return rekindle.NativeLibrary(folder)


def kind_of(x: list[int] | list[str] | dict[str, float] | tuple[int, str] | int | str | None) -> str:
    if x is None:
        return "none"
    if isinstance(x, int):
        return f"int {x + 1}"
    if isinstance(x, str):
        return x + "!"
    if isinstance(x, tuple):
        return f"pair {x[0]} {x[1]}"
    if torch.jit.isinstance(x, list[int]):
        return f"ints {sum(x)}"
    if torch.jit.isinstance(x, list[str]):
        return ",".join(x)
    return "dict of " + str(len(x))


@pytest.mark.parametrize("x", [3, "a", None, [1, 2], ["a", "b"], {"k": 0.5}, (1, "b"), {}])
def test_alternatives(x: Any, tmp_path: Path) -> None:
    assert library_of(kind_of, tmp_path)(x) == rekindle.script(kind_of)(x)


@pytest.mark.parametrize("x", [1.5, [1, "a"], [None], {"k": 1}, (1,), (1, 2)])
def test_what_is_no_alternative_is_refused(x: Any, tmp_path: Path) -> None:
    with pytest.raises(rekindle.LibraryError, match="which is not that of its type"):
        library_of(kind_of, tmp_path)(x)


def real_or_text(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x}"


def test_numbers_become_floats_for_unions(tmp_path: Path) -> None:
    library, program = library_of(real_or_text, tmp_path), rekindle.script(real_or_text)
    for x in (3, True, 1.5, "a"):
        assert library(x) == program(x)


def test_the_type_of_an_empty_list_is_not_guessed(tmp_path: Path) -> None:
    def is_of_strings(x: list[int] | list[str]) -> bool:
        return torch.jit.isinstance(x, list[str])

    library = library_of(is_of_strings, tmp_path)
    assert library(["a"]) is True
    assert library([1]) is False
    with pytest.raises(rekindle.LibraryError, match="depends on the elements that it has"):
        library([])


def anything(x: Any) -> str:
    if torch.jit.isinstance(x, list[int]):
        return f"ints {len(x)}"
    if torch.jit.isinstance(x, dict[str, Tensor]):
        return f"tensors {len(x)}"
    if torch.jit.isinstance(x, tuple[int, float]):
        return f"pair {x[1]}"
    if isinstance(x, float):
        return f"float {x}"
    return "another"


@pytest.mark.parametrize(
    "x", [[1, 2], ["a"], {"t": torch.ones(1)}, {"t": 1}, (1, 2.0), (1, 2), (1.0, 2, 3), 0.5, None, True, (), "x"]
)
def test_any(x: Any, tmp_path: Path) -> None:
    assert library_of(anything, tmp_path)(x) == rekindle.script(anything)(x)


def returned(x: Any) -> Any:
    return x


@pytest.mark.parametrize("x", [[1, "a", [2.0]], {"a": [1], "b": 2}, {1: "a"}, (1, "a", None), [], {}, [(1, 2)]])
def test_any_is_returned_as_it_is(x: Any, tmp_path: Path) -> None:
    assert library_of(returned, tmp_path)(x) == x


@pytest.mark.parametrize("x", [(1, 2, 3, 4), {(1, 2): 3}, {1: 2, "a": 3}])
def test_some_containers_of_any_type_are_refused(x: Any, tmp_path: Path) -> None:
    with pytest.raises(rekindle.LibraryError):
        library_of(returned, tmp_path)(x)


class Point:
    def __init__(self, x: int, y: float) -> None:
        self.x = x
        self.y = y

    def moved(self, dx: int) -> Point:
        return Point(self.x + dx, self.y)


class Shape:
    def __init__(self, name: str, points: list[Point], weight: Tensor) -> None:
        self.name = name
        self.points = points
        self.weight = weight


def moved(shape: Shape, dx: int) -> tuple[Shape, list[Point], float]:
    total = 0.0
    points: list[Point] = []
    for point in shape.points:
        total += point.y
        points.append(point.moved(dx))
    shape.name += "!"
    shape.weight = shape.weight * 2
    return shape, points, total


def test_tuples_of_attributes_become_instances(tmp_path: Path) -> None:
    weight = torch.rand(3)
    shape = Shape("a", [Point(1, 0.5), Point(2, 1.5)], weight)
    library = library_of(moved, tmp_path, [(shape, 1)])
    changed, points, total = library(("a", [(1, 0.5), (2, 1.5)], weight), 3)
    name, before, doubled = changed.unpack()
    assert name == "a!"
    assert [each.unpack() for each in before] == [(1, 0.5), (2, 1.5)]
    torch.testing.assert_close(doubled, weight * 2)
    assert [each.unpack() for each in points] == [(4, 0.5), (5, 1.5)]
    assert total == 2.0
    assert library(("b", [], weight), 3)[1] == []
    with pytest.raises(rekindle.LibraryError, match="which is not that of its type"):
        library(("a", [(1, 0.5, 2)], weight), 3)


class Other:
    def __init__(self, x: int, y: float) -> None:
        self.x = x
        self.y = y


def which(first: bool, second: bool) -> str:
    x: Any = (1, 0.5)
    if first:
        x = Other(1, 0.5)
    elif second:
        x = Point(1, 0.5)
    if isinstance(x, Point):
        return "point"
    if isinstance(x, Other):
        return "other"
    return "pair" if torch.jit.isinstance(x, tuple[int, float]) else "none"


def test_classes_with_the_same_attributes_are_told_apart(tmp_path: Path) -> None:
    library = library_of(which, tmp_path)
    for args in ((False, False), (False, True), (True, False)):
        assert library(*args) == which(*args)


@pytest.mark.skipif(memory_checker() is None, reason="this machine has no valgrind")
def test_memory(tmp_path: Path) -> None:
    weight = torch.ones(2)
    examples = [(Shape("a", [Point(1, 0.5)], weight), 1)]
    options: dict[str, Any] = {"cpu": "x86-64-v3", "freestanding": True}
    built = rekindle.build(rekindle.script(moved), tmp_path / "a", examples, **options)
    calls: list[tuple[Any, ...]] = [(("a", [(1, 0.5)], weight), 1), (("a", [(1, "b")], weight), 1), ((1,), 2)]
    answers = run(built, "call", calls, tmp_path, prefix=memory_checker() or ())
    assert [each.code for each in answers] == [0, 10, 10]
    built = rekindle.build(rekindle.script(returned), tmp_path / "b", **options)
    calls = [([1, "a", {"b": (1, 2.0)}],), ({"a": [weight]},), ({"a": 1, 2: 3},), ((1, 2, 3, 4),)]
    answers = run(built, "call", calls, tmp_path, prefix=memory_checker() or ())
    assert [each.code for each in answers] == [0, 0, 10, 10]
