"""Build the library that main.c and main.cpp call: means of rows, which objects of a class add up."""

import torch
from torch import Tensor, nn

import rekindle


class Statistics:
    """The number of rows, and their sum."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self.total = torch.zeros(size)

    def add(self, row: Tensor) -> None:
        self.count += 1
        self.total = self.total + row

    def mean(self) -> Tensor:
        if self.count == 0:
            raise ValueError("there are no rows")
        return self.total / self.count


class Means(nn.Module):
    """Functions of the library, which take and return objects."""

    @rekindle.export
    def start(self, size: int) -> Statistics:
        return Statistics(size)

    @rekindle.export
    def add(self, statistics: Statistics, row: Tensor) -> int:
        statistics.add(row)
        return statistics.count

    @rekindle.export
    def mean(self, statistics: Statistics) -> Tensor:
        return statistics.mean()


first = Statistics(3)
first.add(torch.ones(3))
examples = {"start": [(3,)], "add": [(first, torch.ones(3))], "mean": [(first,)]}
built = rekindle.build(rekindle.script(Means()), "means", examples, name="means", freestanding=True)
print(f"{built.library}: {built.library.stat().st_size} bytes")
