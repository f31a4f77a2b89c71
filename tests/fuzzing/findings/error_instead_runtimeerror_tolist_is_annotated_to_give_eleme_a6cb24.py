"""error instead: RuntimeError: tolist() is annotated to give elements of type float, but the tensor is of torch

Program 1002 of seed 1003; unoptimised, call 0.

RuntimeError: tolist() is annotated to give elements of type float, but the tensor is of torch.int64
"""
from typing import List
import torch
def f(x):
    v: List[float] = x.sum(0).tolist()
    return v
SUBJECT = f
CALLS = [lambda: (torch.tensor([[True]]),)]
WAYS = ('unoptimised',)
