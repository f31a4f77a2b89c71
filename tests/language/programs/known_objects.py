"""What libraries are made of: configurations, tables of functions, annotations that mean only what Python has."""

import logging
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Iterable, List, Literal, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.language.corpus import program

X = torch.tensor([[1.0, -2.0]])
Y = torch.tensor([[0.5, 3.0], [1.0, 1.0]])


class Config:
    """As libraries write them: whatever it is given becomes an attribute."""

    def __init__(self, **options):
        self.__dict__.update(options)

    def __getattr__(self, name):
        raise AttributeError(name)

    @property
    def width(self):
        return self.heads * 2

    def scaled(self, x, factor=1.0):
        return x * factor / math.sqrt(self.width)


ACTIVATIONS = {"gelu": F.gelu, "relu": torch.relu, "leaky": partial(F.leaky_relu, negative_slope=0.5)}


def plain(module: nn.Module, x: Tensor, *, scale: float = 1.0, **kwargs) -> Tensor:
    return x * scale * module.config.heads


def shifted(module: nn.Module, x: Tensor, shift: float = 0.0, **kwargs) -> Tensor:
    return x + shift


class Table(dict):
    """A table with a place for what one program changes."""


IMPLEMENTATIONS = Table(shifted=shifted)


class Configured(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.config = Config(**{"heads": 2, "act": "gelu", "way": "plain", "extra": {"bias": 3}, **options})


@program("module.known_objects", (X,), (Y,), torch="refuses")
class ReadsAConfiguration(Configured):
    def forward(self, x: Tensor) -> Tensor:
        if self.config.act == "no such":
            return not_defined(x)  # type: ignore[name-defined]  # noqa: F821
        if self.config is None or "bias" not in self.config.extra:
            return also_not_defined(x)  # type: ignore[name-defined]  # noqa: F821
        return x * self.config.heads + self.config.extra["bias"] + self.config.width


@program("module.known_objects", (X,), (Y,), torch="refuses")
class CallsItsMethods(Configured):
    def forward(self, x: Tensor) -> Tensor:
        return self.config.scaled(x) + self.config.scaled(x, factor=2.0)


@program("module.known_objects", (X,), (Y,), torch="refuses")
class AsksForAttributes(Configured):
    def forward(self, x: Tensor) -> Tensor:
        y = x * getattr(self.config, "heads", 1) * getattr(self.config, "layers", 5)
        if hasattr(self.config, "layers"):
            return y + self.config.layers
        if isinstance(self.config, Config):
            y = y - 1
        return y


@program("module.known_objects function.tables", (X,), (Y,), torch="refuses")
class PicksAFunction(Configured):
    def forward(self, x: Tensor) -> Tensor:
        return ACTIVATIONS[self.config.act](x) + ACTIVATIONS["leaky"](x)


@program("module.known_objects function.tables function.annotation_of_python", (X,), (Y,), torch="refuses")
class PicksAWay(Configured):
    def forward(
        self, x: Tensor, mask: Optional[Tensor] = None, cache: Optional[Config] = None, **kwargs: Any
    ) -> Tensor:
        if cache is not None:
            x = cache.update(x)
        way: Callable = plain
        if self.config.way != "plain":
            way = IMPLEMENTATIONS[self.config.way]
        return way(self, x, scale=2.0, **kwargs)


@program("module.known_objects function.tables", (X,), (Y,), torch="refuses")
class PicksAnother(PicksAWay):
    def __init__(self):
        super().__init__(way="shifted")


@program("module.known_objects", (X,), (Y,), torch="refuses")
class HoldsAPartial(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = partial(F.gelu, approximate="tanh")

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x)


class Inner(nn.Module):
    def forward(self, x: Tensor, cache: Optional[Config] = None, flag: bool = False, **kwargs: Any) -> Tensor:
        y = x if cache is None else cache.update(x)
        return y + 1 if flag else y


@program("function.annotation_of_python module.any_arguments", (X, True), (Y, False), torch="refuses")
class PassesNothing(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor, flag: bool, cache: Optional[Config] = None, *args: Any, **kwargs: Any) -> Tensor:
        return self.inner(x, cache, flag=flag, **kwargs) + self.inner(x, flag=True)


@program("function.literal", ("sum", X), ("mean", Y), torch="refuses")
def literal_types(reduction: Literal["sum", "mean"], x: Tensor, dims: Optional[Literal[0, 1]] = None) -> Tensor:
    y = x if dims is None else x.flip(dims)
    return y.sum() if reduction == "sum" else y.mean()


class FromPython:
    def __getattr__(self, name):
        return 1


@program("function.annotation_of_python expression.isinstance_foreign", (X,), (Y,), torch="refuses")
def other_classes(x: Tensor, sizes: Optional[Union[Iterable, FromPython]] = None) -> Tensor:
    shape: Sequence[int] = x.shape
    if isinstance(x, FromPython) or isinstance(shape, logging.Logger):
        return x
    return x + shape[0]


def doubled_or_not(x: Tensor, twice: bool, *rest: int, **options: Any) -> Tensor:
    return x * 2 if twice else x


@program("optional.truth function.annotation_of_python", (X, True), (Y, None), torch="refuses")
def optional_for_a_bool(x: Tensor, twice: Optional[bool]) -> Tensor:
    return doubled_or_not(x, twice, scale=1)


class TooLarge(ValueError):
    def __init__(self, message: str, limit: int = 0) -> None:
        super().__init__(message)
        self.limit = limit


@program("statement.raise_own", (1,), (5,))
def raises_with_keywords(n: int) -> int:
    if n > 3:
        raise TooLarge(f"{n} is too large", limit=3)
    return n


def as_given(message: Optional[str] = None) -> Optional[str]:
    return message


@program("module.known_objects", (X,), (Y,), torch="refuses")
class NothingOfTwoTypes(Configured):
    """None stands for a str here and for a memory format there, in one graph."""

    def forward(self, x: Tensor) -> Tensor:
        message = as_given()
        y = x.to(torch.float64) * self.config.heads
        if message is not None:
            y = y + len(message)
        return y.to(torch.float32)


@program("call.star_lists", (X, 2), (torch.ones(2, 3, 4), 2), torch="refuses")
def star_of_sizes(x: Tensor, n: int) -> Tuple[Tensor, Tensor, List[int]]:
    sizes = x.shape[1:]
    return x.reshape(*sizes, -1), x.new_ones((*sizes, n)), [n, *sizes, *sizes, n + 1]


@program("optional.truth", (None, 0, "a"), (X[0, 0], 3, ""), torch="refuses")
def truth_of_optionals(x: Optional[Tensor], n: Optional[int], text: Optional[str]) -> int:
    found = 1 if n else 0
    if x:
        found += 10 * x.dim() + 10
    if not text:
        found += 100
    return found


@program("optional.equal", (None, "b"), (2, None), torch="refuses")
def equality_of_optionals(n: Optional[int], text: Optional[str]) -> List[bool]:
    return [n == 2, n != 2, text == "b", "b" != text, text == text, n == n]


@program("expression.in_mixed", (1, "a", None), (3, "c", 2.0), torch="refuses")
def in_mixed_tuples(n: int, text: str, f: Optional[float]) -> List[bool]:
    return [n in (1, "a", None), text in ("a", 1), f in (None, 1.0), f not in (2.0, None), n in [1.0, 2.0]]
