"""What may be None, used as what it is else: Python raises where it is None."""

import math
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from tests.language.corpus import program

X = torch.tensor([[1.0, -2.0], [3.0, 0.5]])


@program("optional.checked", (3, 2), (None, 2), torch="refuses")
def added(x: Optional[int], n: int) -> int:
    return x + n


@program("optional.checked", (2, 3), (2, None), torch="refuses")
def right_operand(n: int, x: Optional[int]) -> float:
    return n * x + n / x


@program("optional.checked", (X,), (None,), torch="refuses")
def tensor_operand(x: Optional[Tensor]) -> Tensor:
    return 1 - x * 2


@program("optional.checked", (X, X), (X, None), torch="refuses")
def matrix_product(x: Tensor, y: Optional[Tensor]) -> Tensor:
    return x @ y


@program("optional.checked", (1.5,), (None,), torch="refuses")
def negated(x: Optional[float]) -> float:
    return -x


@program("optional.checked", (1,), (None,), torch="refuses")
def compared(x: Optional[int]) -> bool:
    return x < 2


@program("optional.checked", ("a",), (None,), torch="refuses")
def text(s: Optional[str]) -> str:
    return s.upper() + "!"


@program("optional.checked", ("a",), (None,), torch="refuses")
def concatenated_text(s: Optional[str]) -> str:
    return "!" + s


@program("optional.checked optional.known_after", (X,), (None,), torch="refuses")
def method(x: Optional[Tensor]) -> Tuple[int, Tensor]:
    rows = x.size(0)
    return rows, x.t() + x[0]


@program("optional.checked", (X, 1), (X, None), torch="refuses")
def argument(x: Tensor, dim: Optional[int]) -> Tensor:
    return x.unsqueeze(dim)


@program("optional.checked", (X,), (None,), torch="refuses")
def argument_of_a_function(x: Optional[Tensor]) -> Tensor:
    return torch.relu(x)


@program("optional.checked", (4,), (None,), torch="refuses")
def argument_of_a_library(x: Optional[int]) -> float:
    return math.sqrt(x)


@program("optional.checked", (X, 1), (X, None))
def argument_that_may_be_none(x: Tensor, dim: Optional[int]) -> Tensor:
    return torch.argmax(x, dim)


@program("optional.checked", ([1, 2, 3], 1), ([1], None), torch="refuses")
def index(xs: List[int], i: Optional[int]) -> int:
    return xs[i]


@program("optional.checked", ([1, 2, 3],), (None,), torch="refuses")
def indexed(xs: Optional[List[int]]) -> int:
    return xs[-1]


@program("optional.checked", ({"a": 1},), (None,), torch="refuses")
def item_assigned(d: Optional[Dict[str, int]]) -> int:
    d["b"] = 2
    return len(d)


@program("optional.checked", ([1, 2, 3],), (None,), torch="refuses")
def iterated(xs: Optional[List[int]]) -> int:
    total = 0
    for x in xs:
        total += x
    return total


@program("optional.checked", ([1, 2],), (None,), torch="refuses")
def comprehended(xs: Optional[List[int]]) -> List[int]:
    return [x * 2 for x in xs]


@program("optional.checked", ((1, 2.5),), (None,), torch="refuses")
def unpacked(pair: Optional[Tuple[int, float]]) -> float:
    a, b = pair
    return a + b


@program("optional.checked", (3,), (None,), torch="refuses")
def counted(n: Optional[int]) -> int:
    total = 0
    for i in range(n):
        total += i
    return total


@program("optional.checked", ([1, 2],), (None,), torch="differs")
def measured(xs: Optional[List[int]]) -> int:
    return len(xs)


@program("optional.checked", ([1, 2], 2), (None, 2), torch="refuses")
def contained(xs: Optional[List[int]], x: int) -> bool:
    return x in xs


@program("optional.checked", (1,), (None,), torch="refuses")
def augmented(x: Optional[int]) -> int:
    x += 2
    return x


@program("optional.checked", (X,), (None,), torch="refuses")
def augmented_tensor(x: Optional[Tensor]) -> Tensor:
    x *= 2
    x[0] = 7.0
    return x


@program("optional.checked optional.truth", (0,), (None,), torch="refuses")
def truth(x: Optional[int]) -> bool:
    return bool(x)


@program("optional.checked optional.known_after", (1, 3), (None, 3), torch="refuses")
def none_again(x: Optional[int], n: int) -> Optional[int]:
    n = n + x
    for i in range(n):
        x = None if i == 2 else i
    return x


@program("optional.checked optional.known_after", (1, 3), (None, 0), torch="refuses")
def in_a_loop(x: Optional[int], n: int) -> int:
    total = 0
    while n > 0:
        total += x
        n -= 1
        x = x + 1
    return total


@program("optional.checked", (X, 2), (X, None), torch="refuses")
class UsesAnAttribute(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias: Optional[Tensor] = torch.ones(2)
        self.scale: Optional[float] = None

    def forward(self, x: Tensor, n: Optional[int]) -> Tensor:
        x = x + self.bias
        return x * n if self.scale is None else x * self.scale


def _doubled(n: int) -> int:
    return n * 2


@program("optional.passed_on", (2,), (3,), torch="refuses")
def passed_on(n: Optional[int]) -> int:
    return _doubled(n)


@program("optional.passed_on", ({"a": 2},), ({"a": 3, "b": 4},), torch="refuses")
def returned(d: Dict[str, int]) -> int:
    return d.get("a")


class Cache:
    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: Optional[Tensor] = None

    def update(self, x: Tensor) -> Tuple[Tensor, int]:
        if self.kept is None:
            self.kept = x
        else:
            self.kept = torch.cat([self.kept, x], dim=0)
        if self.kept.size(0) > self.most:
            self.kept = self.kept[-self.most :]
        return self.kept, self.kept.shape[0]


@program("optional.checked optional.passed_on", (X, 3), (X, 0), torch="refuses")
def cache_of_tensors(x: Tensor, n: int) -> Tuple[Tensor, int]:
    cache = Cache(5)
    found, count = x, 0
    for i in range(n):
        found, count = cache.update(x * i)
    return found, count


@program("optional.checked", (X, X), (X, None), torch="refuses")
def items_that_may_be_none(x: Tensor, y: Optional[Tensor]) -> Tensor:
    return torch.cat((x, y), dim=-1) + torch.stack([x, y]).sum()
