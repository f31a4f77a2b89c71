"""Lists, dicts and ranges in libraries that the corpus of programs does not reach."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Any, List

import pytest
import torch
from torch import Tensor

import rekindle


def library_of(program: Any, folder: Path, examples: Any = ()) -> Any:
    rekindle.build(rekindle.script(program), folder, examples)
    return rekindle.NativeLibrary(folder)


def outcome(function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (KeyError, RuntimeError, ValueError, MemoryError) as error:
        return type(error)


def sorted_pairs(pairs: list[tuple[str, int]], backwards: bool) -> list[tuple[str, int]]:
    return sorted(pairs, reverse=backwards)


@pytest.mark.parametrize("backwards", [False, True])
def test_tuples_are_sorted_by_their_parts(backwards: bool, tmp_path: Path) -> None:
    pairs = [("b", 2), ("a", 3), ("b", -1), ("a", 3), ("", 9)]
    assert library_of(sorted_pairs, tmp_path)(pairs, backwards) == sorted_pairs(pairs, backwards)


def sorted_floats(pairs: list[tuple[float, tuple[int, float]]]) -> list[tuple[float, tuple[int, float]]]:
    return sorted(pairs)


def test_tuples_with_floats_are_sorted_unless_one_is_nan(tmp_path: Path) -> None:
    library = library_of(sorted_floats, tmp_path)
    pairs = [(2.0, (1, 0.5)), (0.0, (3, 1.0)), (-0.0, (2, 1.0)), (2.0, (1, -0.5)), (-math.inf, (0, 0.0))]
    assert library(pairs) == sorted_floats(pairs)
    for wrong in ((math.nan, (0, 0.0)), (0.0, (0, math.nan))):
        with pytest.raises(rekindle.LibraryError) as raised:
            library([*pairs, wrong])
        assert str(raised.value).startswith("a list that holds NaN is sorted")


def popped(given: dict[str, list[int]]) -> tuple[list[tuple[str, list[int]]], int]:
    found = [given.popitem()]
    given["new"] = [1]
    found.append(given.popitem())
    return found, len(given)


def test_entries_are_popped_from_the_end(tmp_path: Path) -> None:
    library = library_of(popped, tmp_path)
    for given in ({"a": [1], "b": [2]}, {"z": []}):
        assert library(given) == popped(dict(given))
    assert outcome(library, {}) is KeyError


def repeated(items: list[str], n: int) -> list[str]:
    items *= n
    return items


@pytest.mark.parametrize("n", [-1, 0, 1, 3])
def test_lists_are_repeated_in_place(n: int, tmp_path: Path) -> None:
    assert library_of(repeated, tmp_path)(["a", "b"], n) == ["a", "b"] * n


class Color(Enum):
    RED = "r"
    BLUE = "b"


def of_colors(color: Color, other: Color) -> tuple[int, bool, int, int | None, int, list[int]]:
    sizes: dict[Color, int] = {Color.RED: 1}
    there = other in sizes
    sizes[color] = 2
    kept = sizes.setdefault(other, 5)
    copied = sizes.copy()
    copied.update({Color.BLUE: 9})
    removed = copied.pop(Color.BLUE, 0)
    del sizes[color]
    return len(sizes), there, kept, sizes.get(color), removed, [value for _, value in copied.items()]


@pytest.mark.parametrize(("color", "other"), [(Color.RED, Color.BLUE), (Color.BLUE, Color.RED), (Color.RED, Color.RED)])
def test_keys_are_members_of_enums(color: Color, other: Color, tmp_path: Path) -> None:
    assert library_of(of_colors, tmp_path)(color, other) == of_colors(color, other)


def of_tuples(n: int) -> int:
    found: dict[tuple[int, int], int] = {(n, 1): 2}
    return found[n, 1]


def test_keys_that_are_tuples_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rekindle.NotBuildable, match="native libraries have no dicts with keys of type"):
        library_of(of_tuples, tmp_path)


def ranges(n: int) -> list[Tensor]:
    return [
        torch.arange(n, dtype=torch.float32),
        torch.arange(1, n, dtype=torch.float64),
        torch.arange(-n, n, 3, dtype=torch.int32),
        torch.arange(n, dtype=torch.get_default_dtype()),
        torch.arange(n),
    ]


def test_ranges_in_a_dtype(tmp_path: Path) -> None:
    library = library_of(ranges, tmp_path)
    for n in (0, 1, 7):
        expected = outcome(ranges, n)
        found = outcome(library, n)
        if isinstance(expected, type):
            assert found is expected
        else:
            torch.testing.assert_close(found, expected)


def far_range(n: int) -> Tensor:
    return torch.arange(n, n + 4, dtype=torch.float32)


def test_ranges_that_would_be_rounded_are_refused(tmp_path: Path) -> None:
    library = library_of(far_range, tmp_path)
    torch.testing.assert_close(library(2**24 - 3), far_range(2**24 - 3))
    with pytest.raises(rekindle.LibraryError, match="a range of ints that its dtype does not hold exactly"):
        library(2**24)


def as_lists(x: Tensor, y: Tensor, z: Tensor, flags: Tensor) -> tuple[list[list[int]], list[float], float, list[bool]]:
    first: list[list[int]] = x.tolist()
    second: list[float] = y.tolist()
    third: float = z.tolist()
    fourth: list[bool] = flags.tolist()
    return first, second, third, fourth


def test_tensors_become_lists(tmp_path: Path) -> None:
    args = (torch.arange(6).reshape(2, 3).t(), torch.rand(4)[::2], torch.tensor(0.5), torch.tensor([True, False]))
    library = library_of(as_lists, tmp_path, [args])
    assert library(*args) == as_lists(*args)
    empty = (torch.zeros(0, 3, dtype=torch.int64), torch.zeros(0), *args[2:])
    assert library(*empty) == as_lists(*empty)


def described(x: Tensor, dtype: torch.dtype) -> list[str]:
    return [str(x.shape), f"{x.dtype} {dtype}", str(x.device), f"{x.shape}"]


def test_sizes_dtypes_and_devices_as_texts(tmp_path: Path) -> None:
    x = torch.zeros(2, 0, 3, dtype=torch.int16)
    library = library_of(described, tmp_path, [(x, torch.bool)])
    assert library(x, torch.complex64) == described(x, torch.complex64)


class One:
    def __init__(self, n: int) -> None:
        self.n = n


class Another:
    def __init__(self, n: int) -> None:
        self.n = n


@rekindle.script
def class_of_elements(k: int) -> int:
    xs: Any = [One(1)]
    if k > 0:
        xs = [Another(1)]
    return 1 if isinstance(xs, List[One]) else 3


def test_classes_of_elements_that_a_list_does_not_record_are_an_error(tmp_path):
    rekindle.build(class_of_elements, tmp_path, [(0,), (1,)])
    library = rekindle.NativeLibrary(tmp_path)
    assert [class_of_elements(k) for k in (0, 1)] == [1, 3]
    for k in (0, 1):
        with pytest.raises(rekindle.LibraryError, match="whether a container is of a type depends on the elements"):
            library(k)
