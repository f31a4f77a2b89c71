"""wrong answer: int instead of float

Program 76 of seed 5; unoptimised, call 0.

result['s'] is 0, not 0.0
"""
import torch
from torch import Tensor
def note(v: int):
    return 0
def f(x: Tensor, k: int=1):
    pair = x.topk(1)
    b = pair.values
    0
    0
    with torch.no_grad():
        d = {'s': 0, 'n': 0}
        d['s'] += b.max().item()
    return d
SUBJECT = f
CALLS = [lambda: (torch.tensor([[0.0, -1.25, -2.5]], dtype=torch.float32),)]
WAYS = ('unoptimised',)
