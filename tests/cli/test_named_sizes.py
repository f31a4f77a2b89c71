"""Sizes with names and ranges on the command line."""

from __future__ import annotations

from rekindle.cli.named_sizes import example_sizes, read_ranges, within


def test_examples_are_within_their_ranges() -> None:
    bounds = read_ranges(("a=0..0", "c=7..9"))
    assert example_sizes(("f32[a,b]", "i64[c,b]"), bounds) == {"a": 0, "b": 4, "c": 7}
    assert bounds == {"a": (0, 0), "b": (2, None), "c": (7, 9)}


def test_nearest_sizes() -> None:
    assert [within(size, (2, 4)) for size in (1, 3, 5)] == [2, 3, 4]
    assert (within(5, (0, 0)), within(5, (2, None)), within(1, (2, None))) == (0, 5, 2)
