"""Attributes that methods of a module make, and names of attributes as strings."""

from typing import List, Optional

import torch
from torch import Tensor, nn

from rekindle.errors import TypeMismatchError, UndefinedNameError
from tests.language.corpus import program, refused

X = torch.tensor([[1.0, 2.0]])
Y = torch.tensor([[0.0], [-3.0]])


@program("module.made_attribute", (X, 2), (Y, 0), torch="refuses")
class MakesOne(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        self.last = x.sum() * n
        return self.last + 1


@program("module.made_attribute", (X,), (Y,), torch="refuses")
class AnotherMethodReads(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        self.sizes = [x.size(0)]
        self.sizes.append(x.dim())
        return self.helper(x)

    def helper(self, x: Tensor) -> Tensor:
        return x + len(self.sizes) + self.sizes[0]


@program("module.made_attribute builtin.getattr", (X,), (Y,), torch="refuses")
class AsksBeforeItMakes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if hasattr(self, "calls"):
            self.calls = self.calls + 1
        else:
            self.calls = 0
        return x + self.calls


@program("module.made_attribute builtin.getattr", (X,), (Y,), torch="refuses")
class CountsFromADefault(nn.Module):
    def forward(self, x: Tensor) -> int:
        self.count = getattr(self, "count", 10) + 1
        return self.count


@program("module.made_attribute builtin.getattr", (X,), (Y,), torch="refuses")
class ComputesOnce(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "scale"):
            self.scale = x.max()
        return x / (self.scale.abs() + 1)


@program("module.made_attribute", (X,), (Y,), torch="refuses")
class ClassHasTheFirstValue(nn.Module):
    calls = 5

    def forward(self, x: Tensor) -> int:
        self.calls += 1
        return self.calls


@program("module.made_attribute", (X, True), (Y, False), torch="refuses")
class DeclaredInTheClass(nn.Module):
    cache: Optional[Tensor]

    def forward(self, x: Tensor, keep: bool) -> Tensor:
        self.cache = x if keep else None
        cache = self.cache
        return x if cache is None else x + cache


@program("module.made_attribute", (X,), (Y,), torch="refuses")
class DeclaredInTheMethod(nn.Module):
    def forward(self, x: Tensor) -> List[int]:
        self.shape: List[int] = []
        for size in x.shape:
            self.shape.append(size)
        return self.shape


@program("module.made_attribute exception.of_python", (X, False), (Y, True), torch="refuses")
class ReadsWhatIsNotThere(nn.Module):
    def forward(self, x: Tensor, first: bool) -> Tensor:
        if first:
            self.kept = x
        return self.kept * 2


class Part(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        self.seen = x.mean()
        return x * 2


@program("module.made_attribute", (X,), (Y,), torch="refuses")
class PartsMakeThem(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Part()
        self.second = Part()

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(self.first(x))
        return y + self.first.seen - self.second.seen


@program("builtin.setattr", (X, 3), (Y, -1), torch="refuses")
class SetsByName(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n = 1
        self.register_buffer("total", torch.zeros(()))

    def forward(self, x: Tensor, n: int) -> Tensor:
        self.n = self.n + n
        self.total = self.total + x.sum()
        self.made = n * 2
        return self.total * self.n + self.made


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


@program("builtin.setattr builtin.getattr", (3,), (-1,), torch="refuses")
def set_of_an_object(n: int) -> int:
    p = Point(n)
    setattr(p, "x", getattr(p, "x") + 1)  # noqa: B009, B010
    return p.x if hasattr(p, "x") else 0


@refused("builtin.setattr", UndefinedNameError, "'Point' has no attribute 'y' to assign")
def sets_what_objects_do_not_have(n: int) -> int:
    p = Point(n)
    setattr(p, "y", 1)  # noqa: B010
    return p.x


@refused("module.made_attribute", TypeMismatchError, "attribute 'last' of 'OfTwoTypes' is int, got str")
class OfTwoTypes(nn.Module):
    def forward(self, x: Tensor, n: int) -> Tensor:
        self.last = n
        self.last = "text"
        return x
