"""Script classes that inherit, class methods, attributes by name."""

import abc
from dataclasses import dataclass
from typing import Dict, List, Tuple

import torch
from torch import Tensor

from rekindle.errors import NotScriptableError
from tests.language.corpus import program, refused

X = torch.tensor([[1.0, -2.0]])
Y = torch.tensor([[0.5, 3.0], [1.0, 1.0]])


class Shape:
    sides = 0
    unit = "cm"

    def __init__(self, name: str):
        self.name = name
        self.history: List[float] = []

    def area(self) -> float:
        return 0.0

    def told(self) -> str:
        self.history.append(self.area())
        return f"{self.name} of {int(self.area())} {self.unit}, {self.sides} sides"

    @property
    def label(self) -> str:
        return self.name.upper()

    @classmethod
    def unnamed(cls):
        return cls("nothing")

    @classmethod
    def count(cls, more: int) -> int:
        return cls.sides + more

    @staticmethod
    def doubled(x: float) -> float:
        return 2 * x


class Square(Shape):
    sides = 4

    def __init__(self, side: float):
        super().__init__("square")
        self.side = side

    def area(self) -> float:
        return self.side * self.side

    @classmethod
    def unit_square(cls):
        return cls(1.0)


class Cube(Square):
    sides = 12

    def area(self) -> float:
        return 6 * super().area()

    def told(self) -> str:
        return "cube: " + super().told()


class Named(Shape):
    """Nothing of its own."""


@program("class.inherited", (3.0,), (0.5,), torch="refuses")
def inherited_methods(side: float) -> Tuple[str, str, str]:
    square = Square(side)
    return square.told(), square.label, Named("point").told()


@program("class.inherited class.super", (3.0,), (0.5,), torch="refuses")
def methods_through_super(side: float) -> Tuple[str, List[float]]:
    cube = Cube(side)
    told = cube.told()
    cube.side = 2 * side
    return told + cube.told(), cube.history


@program("class.class_methods", (3.0,), (0.5,), torch="refuses")
def made_by_class_methods(side: float) -> Tuple[str, float, float]:
    return Shape.unnamed().told(), Square.unit_square().area(), Cube.unit_square().area() + Cube(side).area()


@program("class.class_methods", (3,), (0,), torch="refuses")
def class_methods_know_their_class(n: int) -> List[int]:
    return [Shape.count(n), Square.count(n), Cube.count(more=n), Square(1.0).count(n)]


@program("class.inherited class.staticmethod", (3.0,), (-1.0,), torch="refuses")
def inherited_static_methods(x: float) -> float:
    return Square.doubled(x) + Cube(1.0).doubled(x)


class Operation(abc.ABC):
    def __init__(self, scale: float = 2.0):
        self.scale = scale

    @abc.abstractmethod
    def apply(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def __call__(self, x: Tensor) -> Tensor:
        return self.apply(x) * self.scale


class Shift(Operation):
    def __init__(self, by: float):
        super().__init__(scale=3.0)
        self.by = by

    def apply(self, x: Tensor) -> Tensor:
        return x + self.by


class Negate(Operation):
    def apply(self, x: Tensor) -> Tensor:
        return -x


@program("class.inherited class.abstract", (X,), (Y,), torch="refuses")
def abstract_classes(x: Tensor) -> Tensor:
    return Shift(1.0)(x) + Negate()(x)


def applied(operation, x: Tensor) -> Tensor:
    return operation.apply(x) / operation.scale


@program("class.inherited", (X,), (Y,), torch="refuses")
def passed_by_their_methods(x: Tensor) -> Tensor:
    return applied(Shift(0.5), x) - applied(Negate(), x)


@program("class.inherited", (X,), (Y,), torch="refuses")
def asked_for_their_bases(x: Tensor) -> List[bool]:
    shift = Shift(1.0)
    return [isinstance(shift, Shift), isinstance(shift, Operation), isinstance(shift, Negate)]


class Mixed:
    def describe(self) -> str:
        return f"weighs {self.weight}"


class Tagged:
    def __init__(self):
        self.tags: Dict[str, int] = {}

    def tag(self, name: str) -> int:
        self.tags[name] = len(self.tags)
        return self.tags[name]


class Parcel(Mixed, Tagged):
    def __init__(self, weight: int):
        super().__init__()
        self.weight = weight

    def tag(self, name: str) -> int:
        return 10 + super().tag(name + "!")


@program("class.inherited class.super", (3,), (7,), torch="refuses")
def several_bases(weight: int) -> Tuple[str, int, Dict[str, int]]:
    parcel = Parcel(weight)
    found = parcel.tag("a") + parcel.tag("b")
    return parcel.describe(), found, parcel.tags


@dataclass
class Point:
    x: float
    y: float = 1.0

    def norm(self) -> float:
        return (self.x**2 + self.y**2) ** 0.5


@dataclass
class Point3(Point):
    z: float = 2.0

    def norm(self) -> float:
        return (super().norm() ** 2 + self.z**2) ** 0.5

    @classmethod
    def origin(cls):
        return cls(0.0, 0.0, 0.0)


@program("class.inherited dataclass.inherited", (3.0,), (0.0,), torch="refuses")
def inherited_fields(x: float) -> Tuple[float, float, bool]:
    point = Point3(x)
    return point.norm(), Point3.origin().norm(), point == Point3(x, 1.0, 2.0)


class Callback:
    def __init__(self):
        self.total = 0.0

    def run(self, x: float) -> float:
        self.total += self.step(x)
        return self.total

    def step(self, x: float) -> float:
        raise NotImplementedError("no step")


class Halving(Callback):
    def step(self, x: float) -> float:
        return x / 2


@program("class.inherited", (3.0,), (-1.0,), torch="refuses")
def methods_that_bases_leave_open(x: float) -> float:
    halving = Halving()
    halving.run(x)
    return halving.run(2 * x)


class FromList(list):
    def first(self) -> int:
        return 1


@refused("class.inherited", NotScriptableError, "not all of it is written in Python")
def class_that_is_a_list(n: int) -> int:
    return FromList().first() + n


class Measured:
    def __init__(self, size: int) -> None:
        self.size = size

    def area(self) -> int:
        return self.size


class Squared(Measured):
    def area(self) -> int:
        return self.size * self.size


def _area_of(shape: Measured, times: int = 1) -> int:
    return shape.area() * times


@program("class.inherited class.arguments", (3,), (-1,), torch="refuses")
def derived_where_a_base_is_named(n: int) -> List[int]:
    return [_area_of(Squared(n)), _area_of(Measured(n)), _area_of(times=2, shape=Squared(n))]
