"""Decorated functions and methods: what is called is what the decorator returned."""

import functools
from typing import Any, Callable

import torch
from torch import Tensor, nn

from rekindle.errors import NotScriptableError
from tests.language.corpus import program, refused

X = torch.tensor([[1.0, -2.0, 0.5]])
Y = torch.tensor([[0.0, 3.0, 2.0], [1.0, 1.0, 1.0]])


def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) * 2

    return wrapper


def scaled(factor: float) -> Callable[..., Any]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(self, x):  # type: ignore[no-untyped-def]
            return function(self, x + 1) * factor

        return wrapper

    return decorate


CALLS: list[int] = []


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        CALLS.append(1)
        return function(*args, **kwargs)

    return wrapper


@program("decorator.wrapper", (X,), (Y,), torch="differs")
@doubled
def decorated(x: Tensor) -> Tensor:
    return x + 1


@doubled
def _shifted(x: Tensor, by: int = 3) -> Tensor:
    return x + by


@program("decorator.wrapper", (X, 2), (Y, -1), torch="differs")
def calls_decorated(x: Tensor, n: int) -> Tensor:
    return _shifted(x) + _shifted(x, n) * _shifted(x, by=n)


@program("decorator.wrapper", (X,), (Y,), torch="differs")
@doubled
@doubled
def decorated_twice(x: Tensor) -> Tensor:
    return x - 1


@program("decorator.wrapper", (X,), (Y,))
class DecoratedMethods(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 2)

    @doubled
    def helper(self, x: Tensor, k: int) -> Tensor:
        return self.lin(x) + k

    @scaled(0.5)
    def forward(self, x: Tensor) -> Tensor:
        return self.helper(x, k=3)


@program("decorator.wrapper decorator.manager", (X,), (Y,), torch="differs")
class DecoratedWithoutGradients(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 2)

    @doubled
    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        return self.lin(x)


def _if_asked(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(self, x):  # type: ignore[no-untyped-def]
        if "dynamic" in self.kind:
            self.update(x)
        return function(self, x)

    return wrapper


@program("decorator.wrapper module.branch_left_out", (X,), (Y,))
class DecoratedForAnotherKind(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kind = "default"

    @_if_asked
    def forward(self, x: Tensor) -> Tensor:
        return x.relu()


@program("module.branch_left_out", (X,), (Y,), torch="refuses")
class BranchOfAnotherKind(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kind = "absolute"
        self.levels = 2

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "relative" or self.kind == "relative_query":
            x = x + self.distances(x)
        elif self.levels > 3:
            return self.many(x)
        return x * self.levels


@refused("decorator.wrapper", NotScriptableError, "'CALLS' is a Python object of class 'list'", "works", (X,))
@counted
def decorated_with_a_count(x: Tensor) -> Tensor:
    return x
