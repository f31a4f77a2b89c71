"""hang: hang

Program 17391 of seed 3015; unoptimised, call -1.


"""
import math
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union
import torch
from torch import Tensor, nn
def note(log: List[int], v: int) -> int:
    log.append(v)
    return v % 3
def combine(q: bool, s: Tensor):
    y = s[0]
    return complex(1.5, 0.25).conjugate().conjugate()
def helper(p: float, p2: Union[int, float]) -> Tuple[int, float]:
    p -= -p
    calls: List[int] = []
    b = list((note(calls, e) for e in [3, 1, 2]))
    return (sum(calls, 100 >> 2), p % 1 - int(False))
@dataclass
class Point:
    value: int
    count: List[int]
    rest: Tensor

    def update(self, n: int):
        self.count.append(self.value)
        self.rest += 1
        return 2 ** (-(n % 5))
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.total = 0
        self.mode = 'a'
        self.last: Optional[float] = None

    def part(self, p: int):
        a = 4.5 - opt - p // 7
        return sum(n, 0.0)

    def forward(self, opt: Union[int, float], n: List[float], s: List[Tensor]):
        self.total += self.total
        self.last = -0.5
        point = Point(5, [-2, 5, 5, 0], (0 & -7) * torch.tensor(0.0, dtype=torch.float32) ** 2)
        k = point.update(len(s))
        del s[0]
        k *= n[len(s)]
        point.rest.tanh_()
        tries = 0
        while tries < 3:
            tries += 1
            k2: Tuple[int, int] = (int(point.rest.item()), len(s))
            w = {'key': sum((0 for i in point.count if True)) * 5}
        for i2, v in enumerate(n):
            if tries > v == math.trunc(tries):
                return (i2, v, torch.tensor([[7, 0, 1], [5, 2, 5]], dtype=torch.int64))
            for j, item in zip(range(3), n):
                tries2 = 0
                while True:
                    tries2 += 1
                    n.insert(0, math.hypot(float(k), 1.0))
                    z, *k3 = point.count
                    if tries2 > 4:
                        break
                c = torch.stack(list(torch.tensor([[3, 3]], dtype=torch.int64).unbind(0))) * (i2 + tries) * ((torch.tensor([[-1], [1]], dtype=torch.int64) + torch.tensor([[0, 7], [-4, -4]], dtype=torch.int64)) * torch.tensor([[-4, 7, 5], [-4, 3, 0]], dtype=torch.int64))
                s.append(torch.tensor([4.5, 2.0], dtype=torch.float32).view(-1).flip(0))
            *z2, v2 = [min([tries, *point.count]), *point.count]
        with torch.no_grad():
            point.rest.copy_(torch.tensor([0.1], dtype=torch.float32).mean() - point.rest)
            tries3 = 0
            while True:
                try:
                    tries3 += 1
                    if tries3 < 2:
                        raise ValueError('again')
                    left = int(point.rest.item()) // (tries3 - 3)
                    break
                except ValueError:
                    if tries3 > 3:
                        break
        return (point.rest.dim(), point.rest.item(), torch.tensor([[1, 2], [-4, 5]], dtype=torch.int64).clone() * torch.tensor([[-4, -1, -4], [2, -4, 3]], dtype=torch.int64)[:])
SUBJECT = M
CALLS = [lambda: (0.25, [], [torch.tensor([4.5, 4.5], dtype=torch.float32), torch.tensor([4.5, 0.0], dtype=torch.float32)]), lambda: (-3, [-0.5, 0.5, 1.5, 0.0, 1e+300], [torch.tensor([10.0, 10.0], dtype=torch.float32).requires_grad_(), torch.tensor([1.5, 3.75], dtype=torch.float32).requires_grad_(), torch.tensor([-2.5, 4.5], dtype=torch.float32).requires_grad_()]), lambda: (0.1, [0.1, 4.5, 1.5, 0.1, 0.1], [torch.tensor([1.5, 1.5], dtype=torch.float32)]), lambda: (12, [1.0], [torch.tensor([3.75, 1.5], dtype=torch.float32).requires_grad_(), torch.tensor([0.1, 10.0], dtype=torch.float32).requires_grad_()])]
NO_GRAD = (2,)
WAYS = ('unoptimised', 'optimised')
