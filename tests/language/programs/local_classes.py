"""Classes that functions define: Python makes them when the program is compiled."""

import enum
from dataclasses import dataclass
from typing import List, NamedTuple, Tuple

import torch
from torch import Tensor

from rekindle.errors import UnsupportedError
from tests.language.corpus import program, refused

STEP = 10


@program("statement.class_inside", (1,), (-2,), torch="refuses")
def counts_up(n: int) -> Tuple[int, int]:
    class Counting:
        def __init__(self, start: int) -> None:
            self.at = start

        def up(self, by: int = STEP) -> int:
            self.at += by
            return self.at

    counting = Counting(n)
    counting.up()
    return counting.up(1), counting.at


@program("statement.class_inside dataclass.construct", (1,), (-2,), torch="refuses")
def dataclass_within(n: int) -> List[int]:
    @dataclass(order=True)
    class Pair:
        x: int
        y: int = 3

    pairs = [Pair(n), Pair(0, 1), Pair(n, n)]
    return [pair.x * 10 + pair.y for pair in pairs if pair < Pair(1, 2)]


@program("statement.class_inside namedtuple.construct", (1,), (-2,), torch="refuses")
def named_tuple_within(n: int) -> int:
    class Pair(NamedTuple):
        x: int
        y: int = 3

    pair = Pair(n)
    return pair.x + pair.y


@program("statement.class_inside enum.compare", (1,), (-2,), torch="refuses")
def enum_within(n: int) -> str:
    class Side(enum.Enum):
        LEFT = 1
        RIGHT = 2

    side = Side.LEFT if n < 0 else Side.RIGHT
    return side.name


@program("statement.class_inside class.inherited class.super", (torch.ones(2),), (torch.zeros(1, 2),), torch="refuses")
def derived_within(x: Tensor) -> Tensor:
    class Layer:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        def apply(self, x: Tensor) -> Tensor:
            return x * self.factor

    class Shifted(Layer):
        def apply(self, x: Tensor) -> Tensor:
            return super().apply(x) + 1

    return Shifted(2.0).apply(x)


@program("statement.class_inside", (1,), (-2,), torch="refuses")
def constants_within(n: int) -> int:
    class Config:
        size = 4
        step = STEP

    return Config.size * n + Config.step


@refused("statement.class_inside", UnsupportedError, "A class within a function that reads the function's variables")
def class_of_a_variable(n: int) -> int:
    class Inner:
        def get(self) -> int:
            return n

    return Inner().get()


@refused("statement.class_inside", UnsupportedError, "the class 'Inner' cannot be made while the function is compiled")
def class_that_fails(n: int) -> int:
    class Inner:
        size = 1 // 0

    return Inner.size + n
