"""``min``, ``max`` and ``in`` of objects and members of enums: the result is one of the operands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, List

import pytest
import torch

from tests.frontend.outcomes import agrees


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Ordered:
    def __init__(self, n: int) -> None:
        self.n = n

    def __lt__(self, other: Ordered) -> bool:
        return self.n < other.n

    def __gt__(self, other: Ordered) -> bool:
        return self.n > other.n


@dataclass(order=True)
class Item:
    rank: int
    name: str = "a"


class Plain:
    def __init__(self, n: int) -> None:
        self.n = n


def objects(xs: List[int]):
    items = [Item(x) for x in xs] + [Item(2, "b")]
    ordered = [Ordered(x) for x in xs]
    return max(items), min(items), max(Item(1), Item(2), Item(0)), min(Ordered(2), Ordered(1)).n, max(ordered).n


def members(n: int):
    largest = max(Level.LOW, Level.HIGH)
    return largest, min([Level.HIGH, Level.LOW]), max(Level.LOW, 2) + n, torch.zeros(largest), str(largest)


def contained(xs: List[int]):
    items = [Item(x) for x in xs]
    plain = [Plain(x) for x in xs]
    return Item(2) in items, Item(7) not in items, Plain(3) in plain, [p in plain for p in plain]


@pytest.mark.parametrize(
    ("program", "calls"),
    [(objects, [([3, 1, 2],), ([5],), ([],)]), (members, [(5,), (0,)]), (contained, [([3, 1, 2],), ([],)])],
    ids=["objects", "members", "contained"],
)
def test_as_eager(program: Any, calls: list[tuple[Any, ...]]) -> None:
    agrees(program, *calls)
