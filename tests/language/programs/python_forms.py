"""Python's words that ask for classes, take the first, and look up functions, as users write them."""

from typing import ClassVar, Dict, List, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rekindle.errors import UnsupportedError
from tests.language.corpus import program, refused

X = torch.tensor([[1.0, -2.0, 0.5], [3.0, 0.0, -1.0]])
Y = torch.tensor([[4.0, 2.0, 1.0]])
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "gelu": F.gelu}


@program("type.of", (3,), (2.5,), torch="refuses")
def class_of_a_union(x: Union[int, float, str]) -> Tuple[str, int, bool]:
    name, is_number = type(x).__name__, type(x) in (int, float)
    if type(x) is int:
        return name, x + 1, is_number
    if type(x) == float:  # noqa: E721
        return name, int(x), is_number
    return name, -1, is_number


@program("type.of", (True, [1], (1, "a"), X), (False, [], (2, "b"), Y), torch="refuses")
def classes_that_are_known(p: bool, xs: List[int], t: Tuple[int, str], x: Tensor) -> Tuple[List[bool], str, str]:
    known = [type(p) is bool, type(p) is int, type(xs) is list, type(t) is tuple, type(x) is Tensor]
    return [*known, type(p) != type(xs), type(xs) == type([1])], type(t).__name__, f"{type(x).__name__}"  # noqa: E721


@program("type.of expression.next module.class_method", (X,), (Y,), torch="refuses")
class AsksItsParameters(nn.Module):
    scale: ClassVar[int] = 3

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.acts = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.lin.parameters())).dtype

    @classmethod
    def scaled(cls, x: Tensor, times: int = 2) -> Tensor:
        return x * cls.scale * times

    def forward(self, x: Tensor) -> Tuple[Tensor, str, Tensor]:
        x = self.lin(x) + torch.ones(2, device=self.device, dtype=self.dtype)
        for act in self.acts:
            if type(act) is nn.ReLU:
                x = act(x)
        norm = sum(p.abs().sum() for p in self.parameters())
        return self.scaled(x) + AsksItsParameters.scaled(x, times=1), type(self).__name__, norm


@program("expression.next", ([3, 5], {"a": 1}), ([], {}), torch="refuses")
def first_of_several(xs: List[int], d: Dict[str, int]) -> Tuple[int, Optional[int], int]:
    large = next((x for x in xs if x > 4), None)
    return next((i for i, x in enumerate(xs) if x > 3), -1), large, next(iter(d.values()))


@refused("expression.next", UnsupportedError, "what has been taken out of an iterator so far is not known here")
def iterator_kept(xs: List[int]) -> int:
    it = xs
    return next(it)


@program("function.table_in_run", (X, "relu"), (Y, "what"), torch="refuses")
def picked_when_it_runs(x: Tensor, name: str) -> Tensor:
    return ACTIVATIONS[name](x)


@program("function.table_in_run", (X, "abs"), (Y, "what"), torch="refuses")
def picked_from_a_table_within(x: Tensor, name: str) -> Tensor:
    table = {"abs": torch.abs, "half": lambda y: y / 2, "none": lambda y: y}
    if name not in table:
        raise ValueError(f"{name!r} is none of {list(table)}")
    return table[name](x)


@program("list.builtins", (X, [X, X * 2]), (Y, [Y]), torch="refuses")
def builtins_over_rows(x: Tensor, xs: List[Tensor]):
    return sum(x), sum(xs), sum(v.sum() for v in xs) / len(xs), any(x[0] > 2), all(x[0] > -3), max(x[0]), min(x[0])


@refused("list.builtins", UnsupportedError, "sorted of a Tensor would be a list of its rows", "differs", (X,))
def sorted_rows(x: Tensor):
    return sorted(x[0])


@program("function.result_of_several", (X, True), (Y, False), torch="refuses")
def a_tuple_or_a_dict(x: Tensor, as_dict: bool):
    if not as_dict:
        return (x, x * 2)
    return {"x": x, "y": x * 2}


@program("function.result_of_several", (X, 3), (Y, 0), torch="refuses")
def one_or_two_results(x: Tensor, n: int):
    if n == 0:
        return x
    if n == 1:
        return "one"
    return x, n
