"""Inputs on the command line whose sizes have names: ``f32[b,3,224,224]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import click

from rekindle.cli.inputs import read_input

_NAMED: Final = re.compile(r"(\w+)\[([\w, ]*)\](=.*)?")
_RANGE: Final = re.compile(r"([A-Za-z_]\w*)=(\d+)\.\.(\d+)")
_FIRST: Final = 3
"""Size of the first named dimension in the example; the other names get the following numbers."""


def read_ranges(ranges: tuple[str, ...]) -> dict[str, tuple[int, int | None]]:
    """Parse ranges such as ``b=2..64``; return the lowest and highest size of each name, both included.

    Raises:
        UsageError: a text has another form, or the lowest size is above the highest.
    """
    found: dict[str, tuple[int, int | None]] = {}
    for text in ranges:
        match = _RANGE.fullmatch(text)
        if match is None or int(match[2]) > int(match[3]):
            raise click.UsageError(f"'{text}' is not a range: write b=2..64")
        found[match[1]] = int(match[2]), int(match[3])
    return found


def size_names(text: str) -> list[str]:
    """Return the sizes in the text of a tensor input, numbers too: ``["b", "3"]`` of ``f32[b,3]``. Of another input,
    return an empty list."""
    match = _NAMED.fullmatch(text)
    return [] if match is None else [size.strip() for size in match[2].split(",") if size.strip()]


def example_sizes(inputs: tuple[str, ...], bounds: dict[str, tuple[int, int | None]]) -> dict[str, int]:
    """Return the size that each name has in the example: 3 for the first name and one more for each further one, within
    the range of the name.

    Names without a range are added to ``bounds``, with the range from 2 on.

    Raises:
        UsageError: ``bounds`` has a name that is not a size of an input.
    """
    found: dict[str, int] = {}
    for text in inputs:
        for size in size_names(text):
            if not size.isdecimal() and size not in found:
                low, high = bounds.setdefault(size, (2, None))
                found[size] = within(_FIRST + len(found), (low, high))
    for name in bounds:
        if name not in found:
            raise click.UsageError(f"--range names '{name}', which is not a size of an input")
    return found


def read_example(text: str, sizes: Mapping[str, int]) -> Any:
    """Parse an input whose named sizes have the values ``sizes``."""
    names = size_names(text)
    if not any(name in sizes for name in names):
        return read_input(text)
    kind, _, rest = text.partition("[")
    filling = rest.partition("]")[2]
    return read_input(f"{kind}[{','.join(str(sizes.get(name, name)) for name in names)}]{filling}")


def within(size: int, bounds: tuple[int, int | None]) -> int:
    """Return the size between two bounds that is nearest to ``size``. There is no upper bound if it is None."""
    low, high = bounds
    return max(low, size if high is None else min(size, high))
