"""error instead: TypeError: combine(): argument _ (position _) must be Union[float, int], not Tensor

Program 6767 of seed 3005; unoptimised, call 0.

TypeError: combine(): argument 'q' (position 1) must be Union[float, int], not Tensor
"""
from typing import Union
import torch
def combine(q: Union[int, float]):
    pass
def f(x):
    top = 0
    for v in x:
        top = v.sum()
    combine(top)
SUBJECT = f
CALLS = [lambda: (torch.tensor([1.0]),)]
WAYS = ('unoptimised',)
