"""error instead: ValueError: _._ ** _._ is not a real number; make one of them complex

Program 121 of seed 5; unoptimised, call 0.

ValueError: -18.75 ** 0.5 is not a real number; make one of them complex
"""
from typing import List
import torch
from torch import Tensor
class State:

    def __init__(self, value: float, count: List[int], rest: Tensor):
        self.value = value
        self.count = count
        self.rest = rest

    def update(self, n: int):
        self.value = (-7 - self.value) ** 0.5

    @property
    def get(self):
        return self.value
def f(x: Tensor):
    obj = State(10.0 - 2.0 + 3.75, [3, 5, -1, 3, 0], torch.tensor(-0.5, dtype=torch.float32).squeeze() + torch.tensor(0.1, dtype=torch.float32))
    k = obj.update(-1 ^ -2)
    best = 0
    same = obj.count
    k2 = 0
    k = x.max().item()
    return (obj.get, best, k2)
SUBJECT = f
CALLS = [lambda: (torch.tensor([10.0, 1.5, -1.25, 1.0], dtype=torch.float32),)]
WAYS = ('unoptimised',)
