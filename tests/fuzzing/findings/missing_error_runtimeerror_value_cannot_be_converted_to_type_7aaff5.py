"""missing error: RuntimeError: value cannot be converted to type float without overflow

Program 191 of seed 5; optimised, call 2.

returns tensor([[0.5000, 1.0000], [0.1000, 1.5000]]), but eager raises RuntimeError: value cannot be converted to type float without overflow
"""
import math
from typing import List, NamedTuple
import torch
def note(log: List[int], v: int) -> int:
    log.append(v)
    return v
def mix(s: float=0.0):
    s *= complex(4.5, 0.0).imag
    if any((s + j < round(2) for j in range(5))):
        if math.isinf(s) and math.isnan(0.5 // 1.5):
            raise OverflowError(str(-3 if True else 12))
    return (s - s - s % s) / 3
class Point(NamedTuple):
    value: float

    def update(self, n: float):
        return -3

    def get(self, n: float):
        return n
def f(x):
    a = torch.zeros_like(x, dtype=torch.float32)
    u = a.min(1).values / torch.tensor([3.75], dtype=torch.float32)
    return x.abs().clamp(min=-1e+300 / 3).view_as(x.abs().clamp(min=-1e+300 / 3))
SUBJECT = f
CALLS = [lambda: (torch.tensor([[10.0]], dtype=torch.float32),), lambda: (torch.tensor([[-0.0], [0.25]], dtype=torch.float32).t().contiguous().t(),), lambda: (torch.tensor([[0.5, 1.0], [0.1, 1.5]], dtype=torch.float32),), lambda: (torch.tensor([[-4, -4, 1], [-4, 7, 2], [-1, 0, 5]], dtype=torch.uint8),)]
NO_GRAD = (2,)
WAYS = ('unoptimised', 'optimised', 'jvp', 'grad', 'vmap')
