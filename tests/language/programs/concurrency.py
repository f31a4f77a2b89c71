"""fork, wait and Await, and what runs only when tracing."""

from typing import Dict, List, Tuple

import torch
from torch import Tensor

from tests.language.corpus import program


def slow(x: Tensor, n: int = 3) -> Tensor:
    for _ in range(n):
        x = torch.tanh(x + 1)
    return x


def count(n: int) -> int:
    total = 0
    for i in range(n):
        total += i
    return total


def fails(n: int) -> int:
    if n < 0:
        raise ValueError("a negative number")
    return n


def delayed(x: int) -> int:
    return x * 2


class Adder(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


@program("fork.function", (torch.ones(2),), (torch.zeros(1),))
def forked_function(x: Tensor) -> Tensor:
    future = torch.jit.fork(slow, x)
    other = slow(x, 1)
    return torch.jit.wait(future) + other


@program("fork.arguments", (torch.ones(2), 2), (torch.zeros(1), 0))
def forked_with_keywords(x: Tensor, n: int) -> Tuple[Tensor, int]:
    a = torch.jit.fork(slow, x, n=n)
    b = torch.jit.fork(count, n)
    return torch.jit.wait(a), torch.jit.wait(b)


@program("fork.list", (5,), (0,))
def futures_in_list(n: int) -> List[int]:
    futures: List[torch.jit.Future[int]] = []
    for i in range(n):
        futures.append(torch.jit.fork(count, i))
    return [torch.jit.wait(f) for f in futures]


@program("fork.method", (torch.ones(2),), (torch.zeros(1),))
class ForksMethod(torch.nn.Module):
    def part(self, x: Tensor) -> Tensor:
        return x * 3

    def forward(self, x: Tensor) -> Tensor:
        future = torch.jit.fork(self.part, x)
        return torch.jit.wait(future) + x


@program("fork.module", (torch.ones(2),), (torch.zeros(1),))
class ForksModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.adder = Adder()

    def forward(self, x: Tensor) -> Tensor:
        future = torch.jit.fork(self.adder, x)
        return torch.jit.wait(future) * 2


@program("fork.nested", (torch.ones(1), 4), (torch.zeros(1), 0))
def forks_in_forks(x: Tensor, n: int) -> Tensor:
    future = torch.jit.fork(inner_fork, x, n)
    return torch.jit.wait(future)


def inner_fork(x: Tensor, n: int) -> Tensor:
    future = torch.jit.fork(slow, x, n)
    return torch.jit.wait(future) - 1


@program("fork.exception", (-1,), (2,))
def error_of_a_fork(n: int) -> int:
    future = torch.jit.fork(fails, n)
    return torch.jit.wait(future)


@program("fork.future_argument", (torch.ones(2),), (torch.zeros(1),))
def future_as_argument(x: Tensor) -> Tensor:
    first = torch.jit.fork(slow, x)
    return waits(first) + 1


def waits(future: torch.jit.Future[Tensor]) -> Tensor:
    return torch.jit.wait(future)


@program("fork.dict", (3,), (0,))
def futures_in_dict(n: int) -> Dict[int, int]:
    futures: Dict[int, torch.jit.Future[int]] = {}
    for i in range(n):
        futures[i] = torch.jit.fork(count, i + 2)
    found: Dict[int, int] = {}
    for k, f in futures.items():
        found[k] = torch.jit.wait(f)
    return found


@program("await.function", (3,), (-1,))
def awaited(n: int) -> int:
    later = torch.jit._awaitable(delayed, n)
    return torch.jit._awaitable_wait(later) + 1


@program("await.nowait", (3,), (-1,))
def ready_at_once(n: int) -> int:
    later = torch.jit._awaitable_nowait(n)
    return torch.jit._awaitable_wait(later) + 1


@program("await.argument", (3,), (-1,))
def await_as_argument(n: int) -> int:
    later = torch.jit._awaitable(delayed, n)
    return takes_await(later)


def takes_await(later: torch._awaits._Await[int]) -> int:
    return torch.jit._awaitable_wait(later)


@torch.jit.script_if_tracing
def looped(x: Tensor) -> Tensor:
    for _ in range(int(x.size(0))):
        x = x + 1
    return x


@program("decorator.script_if_tracing", (torch.ones(2),), (torch.zeros(1),))
def calls_script_if_tracing(x: Tensor) -> Tensor:
    return looped(x) * 2
