"""Fork and wait: of functions, methods, modules and operators, in branches and loops, in containers."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


def scaled(x, factor: float = 2.0, shift: int = 0):
    return x * factor + shift


def split(x: Tensor) -> Tuple[Tensor, int]:
    return x + 1, x.dim()


def count(n: int) -> int:
    total = 0
    for i in range(n):
        total += i * i
    return total


def positive(x):
    if bool(x.sum() < 0):
        raise ValueError("the sum is negative")
    return x.sqrt()


def chained(x: Tensor, before: "torch.jit.Future[Tensor]") -> Tensor:
    return torch.jit.wait(before) + x


def forks_itself(x: Tensor, n: int) -> Tensor:
    future = torch.jit.fork(scaled, x, shift=n)
    return torch.jit.wait(future) - 1


def in_place(x: Tensor) -> Tensor:
    return x.add_(1)


@program((ramp(2),))
def defaults_and_keywords(x):
    plain = torch.jit.fork(scaled, x)
    keyword = torch.jit.fork(scaled, x, shift=3)
    both = torch.jit.fork(scaled, x, 0.5, shift=1)
    return torch.jit.wait(plain), torch.jit.wait(keyword), torch.jit.wait(both)


@program((ramp(2),))
def the_same_argument_twice(x):
    return torch.jit.wait(torch.jit.fork(torch.add, x, x))


@program((ramp(3, start=-1.0),))
def operators(x):
    first = torch.jit.fork(torch.relu, x)
    second = torch.jit.fork(torch.sum, x, 0, keepdim=True)
    return torch.jit.wait(first) + torch.jit.wait(second)


@program((ramp(2, 2),))
def methods_of_tensors(x):
    return torch.jit.wait(torch.jit.fork(x.matmul, x))


@program((ramp(2),), (ramp(2, 3),))
def several_results(x):
    future = torch.jit.fork(split, x)
    y, dim = torch.jit.wait(future)
    return y * dim


@program((5,), (0,))
def numbers(n: int) -> int:
    first = torch.jit.fork(count, n)
    second = torch.jit.fork(count, n + 1)
    return second.wait() - first.wait()


@program((ramp(2), 4), (ramp(2), 0))
def in_a_loop(x, n: int) -> List[Tensor]:
    futures: List[torch.jit.Future[Tensor]] = []
    for i in range(n):
        futures.append(torch.jit.fork(scaled, x, 1.0, i))
    results: List[Tensor] = []
    for future in futures:
        results.append(torch.jit.wait(future))
    return results


@program((ramp(2), 3))
def comprehensions(x, n: int):
    futures = [torch.jit.fork(scaled, x, 1.0, i) for i in range(n)]
    return [torch.jit.wait(future) for future in futures]


@program((ramp(2), True), (ramp(2), False))
def in_branches(x, flag: bool):
    if flag:
        future = torch.jit.fork(scaled, x)
    else:
        future = torch.jit.fork(scaled, x, 3.0)
    return torch.jit.wait(future)


@program((ramp(2), True), (ramp(2), False))
def on_one_path(x, flag: bool) -> Tensor:
    future = torch.jit.fork(scaled, x)
    if flag:
        return torch.jit.wait(future)
    return x - 1


@program((ramp(2), 3))
def futures_as_arguments(x, n: int):
    future = torch.jit.fork(scaled, x)
    for _ in range(n):
        future = torch.jit.fork(chained, x, future)
    return torch.jit.wait(future)


@program((ramp(2), 3))
def nested(x, n: int):
    return torch.jit.wait(torch.jit.fork(forks_itself, x, n))


@program((ramp(2),))
def in_a_dict(x):
    futures: Dict[str, torch.jit.Future[Tensor]] = {}
    futures["a"] = torch.jit.fork(scaled, x)
    futures["b"] = torch.jit.fork(scaled, x, 4.0)
    return torch.jit.wait(futures["a"]) - torch.jit.wait(futures["b"])


@program((ramp(2), 4.0), (ramp(2), None))
def optional_arguments(x, factor: Optional[float]):
    if factor is None:
        future = torch.jit.fork(scaled, x)
    else:
        future = torch.jit.fork(scaled, x, factor)
    return torch.jit.wait(future)


@program((ramp(2),), (ramp(2, start=-4.0),))
def errors(x):
    future = torch.jit.fork(positive, x)
    return torch.jit.wait(future)


@program((ramp(2),))
def writes(x):
    future = torch.jit.fork(in_place, x)
    y = torch.jit.wait(future)
    return x + y


@program((ramp(2),))
def waits_twice(x):
    future = torch.jit.fork(scaled, x)
    return torch.jit.wait(future) + torch.jit.wait(future)


@program((ramp(2, 3),))
class Branches(torch.nn.Module):
    """Modules, methods, and what is captured of self."""

    def __init__(self) -> None:
        super().__init__()
        self.left = torch.nn.Linear(3, 3)
        self.right = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        self.factor = 2.0

    def scaled(self, x: Tensor, by: float) -> Tensor:
        return x * (self.factor * by)

    def forward(self, x: Tensor) -> Tensor:
        left = torch.jit.fork(self.left, x)
        right = torch.jit.fork(self.right, x)
        own = torch.jit.fork(self.scaled, x, by=0.5)
        return torch.jit.wait(left) + torch.jit.wait(right) + torch.jit.wait(own)


@program((ramp(2, 2),))
class Experts(torch.nn.Module):
    """A list of modules, forked one after another."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        futures: List[torch.jit.Future[Tensor]] = []
        for expert in self.experts:
            futures.append(torch.jit.fork(expert, x))
        total = torch.zeros_like(x)
        for future in futures:
            total = total + torch.jit.wait(future)
        return total
