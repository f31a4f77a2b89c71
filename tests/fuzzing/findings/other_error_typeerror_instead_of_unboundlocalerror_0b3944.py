"""other error: TypeError instead of UnboundLocalError

Program 5009 of seed 3004; unoptimised, call 0.

raises TypeError: expected an int, got 2.25, not UnboundLocalError: cannot access local variable 'hit' where it is not associated with a value
"""
import math
from typing import Union
import torch
from torch import Tensor
class Refused(RuntimeError):
    pass
def combine(q: Union[int, float], p: str):
    left = 0
    while True:
        left += 1
        w, z = divmod(min(12, math.floor(0.5), 5), 3)
        if (left if True else 1.0) <= z:
            b2 = ~int(2.0 // 1)
        else:
            b2 = w
        if left > 3:
            break
    return [2, 7, -7]
class Meter:

    def __init__(self, value: float, count: int):
        self.value = value
        self.count = count
def f(x: Tensor, y):
    point = Meter(math.fsum([1.0, 0.1, 0.2]) % float(x), -7)
    for i in range(2):
        try:
            if ('' in '-'.join(['a', 'key'])) == torch.equal(x, x):
                u, a = divmod(y.dim(), 2)
            else:
                v = x
                v2 = pow(sum((int(y.item()) for e in range(4))), 2)
            try:
                v3 = combine(sum([point.value / 7, point.count]), 'a')
                for e2 in v3:
                    if round(4.5) in v3:
                        hit = e2
                        break
                else:
                    hit = math.gcd(i, hit)
                if bool(max((u for j2 in v3), default=i)):
                    raise ValueError('bad')
            except Refused:
                u = x.item()
        finally:
            v3[0] += y.item()
    c, b = divmod((r := point.count) + r, 3)
SUBJECT = f
CALLS = [lambda: (torch.tensor(-2.5, dtype=torch.float32), torch.tensor(0.25, dtype=torch.float32))]
WAYS = ('unoptimised',)
