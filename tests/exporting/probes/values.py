"""Arguments and results, errors, futures and classes."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from tests.exporting.probes.registry import BATCH, NEGATIVE, POSITIVE, probe, ramp

# ----------------------------------------------------------------------------------------------- arguments and results


@probe("args.optional_none", (POSITIVE, None), ((NEGATIVE, None),))
def optional_none(x: Tensor, y: Optional[Tensor] = None) -> Tensor:
    if y is not None:
        return x + y
    return x


@probe("args.optional_given", (POSITIVE, NEGATIVE), ((NEGATIVE, NEGATIVE),))
def optional_given(x: Tensor, y: Optional[Tensor] = None) -> Tensor:
    if y is not None:
        return x * y
    return x


@probe("args.tuple", ((POSITIVE, NEGATIVE),), (((NEGATIVE, POSITIVE),),))
def tuple_argument(pair: Tuple[Tensor, Tensor]) -> Tuple[Tensor, Tensor]:
    a, b = pair
    return a + b, a * b


@probe("args.dict", ({"a": POSITIVE, "b": NEGATIVE},), (({"a": NEGATIVE, "b": NEGATIVE},),))
def dict_argument(d: Dict[str, Tensor]) -> Dict[str, Tensor]:
    out: Dict[str, Tensor] = {}
    for key, value in d.items():
        out[key + "_out"] = value * 2
    return out


class Point(NamedTuple):
    x: Tensor
    y: Tensor


@probe("args.named_tuple", (Point(POSITIVE, NEGATIVE),), ((Point(NEGATIVE, NEGATIVE),),))
def named_tuple(p: Point) -> Point:
    return Point(p.x + p.y, p.x * p.y)


@probe("args.nested", ([(POSITIVE, {"k": NEGATIVE})],), (([(NEGATIVE, {"k": POSITIVE})],),))
def nested_argument(xs: List[Tuple[Tensor, Dict[str, Tensor]]]) -> Tensor:
    total = torch.zeros(3, 4)
    for x, d in xs:
        total = total + x * d["k"]
    return total


@probe("args.string", (POSITIVE, "max"), ((NEGATIVE, "max"),))
def string_argument(x: Tensor, how: str) -> Tensor:
    if how == "max":
        return x.amax(0)
    elif how == "min":
        return x.amin(0)
    raise ValueError("how?")


@probe("args.numbers", (POSITIVE, 2, 0.5, True), ((NEGATIVE, 2, 0.5, True),))
def number_arguments(x: Tensor, n: int, f: float, b: bool) -> Tensor:
    y = x * n + f
    return y if b else x


@probe("args.mutated", (POSITIVE.clone(),), ((NEGATIVE.clone(),),))
def mutated_argument(x: Tensor) -> Tensor:
    x.add_(1)
    return x * 2


@probe("results.structure")
def structure(x: Tensor) -> Tuple[Tensor, List[Tensor], Dict[str, Tensor], int]:
    return x, [x + 1, x + 2], {"k": x * 2}, x.dim()


@probe("results.none")
def returns_none(x: Tensor) -> Optional[Tensor]:
    if x.dim() > 5:
        return x
    return None


@probe("results.views")
def views(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x * 2
    return y, y[0]


# ------------------------------------------------------------------------------------------------------------- errors


@probe("raise.assert_tensor", others=((NEGATIVE,),))
def assert_tensor(x: Tensor) -> Tensor:
    assert x.sum() > 0, "x must be positive"
    return x.sqrt()


@probe("raise.in_branch", others=((NEGATIVE,), (POSITIVE * 0,)))
def raise_in_branch(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    return x * 2


@probe("raise.nested", others=((NEGATIVE,), (POSITIVE * 50,)))
def raise_nested(x: Tensor) -> Tensor:
    if x.max() > 10:
        assert x.min() < 0, "too big"
    return x + 1


@probe("raise.size", (ramp(4, 4),), ((ramp(8, 4),),), BATCH)
def raise_size(x: Tensor) -> Tensor:
    assert x.size(1) == 4
    assert x.dim() == 2, "two dimensions"
    return x.view(x.size(0), 2, 2)


# ------------------------------------------------------------------------------------------------ futures and classes


def _double(x: Tensor) -> Tensor:
    return x * 2


@probe("fork.wait")
def fork_wait(x: Tensor) -> Tensor:
    future = torch.jit.fork(_double, x)
    y = x + 1
    return y + torch.jit.wait(future)


@probe("fork.list")
def fork_list(x: Tensor) -> Tensor:
    futures: List[torch.jit.Future[Tensor]] = []
    for i in range(3):
        futures.append(torch.jit.fork(_double, x * i))
    total = torch.zeros(3, 4)
    for future in futures:
        total = total + torch.jit.wait(future)
    return total


class Accumulator:
    def __init__(self, start: Tensor) -> None:
        self.total = start
        self.count = 0

    def add(self, x: Tensor) -> None:
        self.total = self.total + x
        self.count += 1

    def mean(self) -> Tensor:
        return self.total / self.count


@probe("class.local")
def class_local(x: Tensor) -> Tensor:
    acc = Accumulator(torch.zeros(4))
    for i in range(3):
        acc.add(x[i])
    return acc.mean()


@probe("class.in_branch")
def class_in_branch(x: Tensor) -> Tensor:
    acc = Accumulator(torch.zeros(4))
    acc.add(x[0])
    if x.sum() > 0:
        acc.add(x[1])
    return acc.mean()


@probe("class.in_while", others=((NEGATIVE,), (POSITIVE * 0.1,)))
def class_in_while(x: Tensor) -> Tensor:
    acc = Accumulator(torch.zeros(4))
    acc.add(x[0])
    while acc.total.abs().sum() < 20:
        acc.add(x[1].abs() + 0.1)
    return acc.mean()


@probe("with.no_grad")
def with_no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 2
    return y + x
