"""error instead: TypeError: expected an int, got nan

Program 2286 of seed 3009; unoptimised, call 0.

TypeError: expected an int, got nan
"""
import math
from dataclasses import dataclass
from typing import List
import torch
from torch import Tensor, nn
@dataclass
class State:
    value: Tensor

    def update(self, n: int):
        return f'{2.0:.3e}'.upper()
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.mode: str = 'a'
        self.scale = 0.1
        self.act = nn.ReLU()

    def forward(self, x, k: str):
        x = self.act(x)
        point = State(torch.tensor(0.0, dtype=torch.float32).view(()).neg())
        c = point.update(math.trunc(self.scale))
        acc = 0
        if sum([10 if True else self.scale, point.value.item()]) == abs(min(5, 1, 7)):
            t = point.value
            z = t
        elif any((any((True for i in range(5))) for j in range(5))):
            if 1.5 / -3 * point.value.item() <= abs(0.25 * self.scale) == int(False) ** (abs(10) % 3 - 1):
                if (q := math.ceil((complex(10.0, 0.5) * -0.5).imag)) != sum([5, 100]):
                    z2 = point.value
            loss_sum = 0
            for v2 in x:
                loss_sum -= float(v2.sum())
        for e3 in x:
            for i3 in range(4):
                if any((bool(i5 | i5) for i5 in range(5))):
                    e3.mul_(2)
                    w, k2 = (round(i3) ** (math.factorial(0 % 25) % 4), e3[0].item() + loss_sum)
                else:
                    w = point.value.item()
                    e3.neg_()
                if bool(pow(i3, 2)):
                    t2 = c.count('a')
            values: List[int] = []
            for row in e3:
                values += [row.item()]
            try:
                c2 = point.value
                k += c
            except Exception:
                if False == (12 == -2) ^ False:
                    tries = 0
                    while True:
                        try:
                            tries += 1
                            if tries < 2:
                                raise KeyError('again')
                            left = tries // (tries - 1)
                            break
                        except (ValueError, KeyError):
                            if tries > 3:
                                raise
                        finally:
                            tries += 1
                    pair = x.topk(1)
                    w2 = pair[0]
                    top = math.inf
                    at = 0
                    for i6, v3 in enumerate(w2):
                        if v3 > top:
                            top = v3
                            at = i6
                else:
                    at = point.value.item()
                    at = float(point.value.item())
        return (x, self.mode.strip())
SUBJECT = M
CALLS = [lambda: (torch.tensor([[math.nan]], dtype=torch.float32), 'key'), lambda: (torch.tensor([[1.0, 2.0, 0.0]], dtype=torch.float32), 'ab'), lambda: (torch.tensor([[0.25, 4.5], [1.0, -1.25], [0.25, 2.0]], dtype=torch.float32), '-3'), lambda: (torch.tensor([[3.75, 2.0, -1.25], [4.5, 0.1, -1.25]], dtype=torch.float32).requires_grad_(), 'key')]
NO_GRAD = (2,)
WAYS = ('unoptimised', 'optimised')
