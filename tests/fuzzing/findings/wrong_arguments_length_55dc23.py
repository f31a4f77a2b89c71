"""wrong arguments: length

Program 218 of seed 5; unoptimised, call 0.

arguments[1] is [9007199254740993, 100, 9007199254740993, 100], not [9007199254740993, 100, 9007199254740993, 100, 9007199254740993, 100, 9007199254740993, 100]
"""
from dataclasses import dataclass
from typing import List
import torch
@dataclass
class Point:
    value: float
    count: float
    rest: int
def f(x, k: List[int]):
    0
    if True:
        same2 = k
        for key in k:
            if len(same2) < 8:
                same2.append(key)
    0
SUBJECT = f
CALLS = [lambda: (torch.tensor([[4.5, 2.0, 2.0]], dtype=torch.float32), [2 ** 53 + 1, 100])]
WAYS = ('unoptimised',)
