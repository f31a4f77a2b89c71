"""wrong answer: float instead of int

Program 230 of seed 5; unoptimised, call 0.

result is 1.0, not 1
"""
import torch
def f(x):
    c = 2 ** (-(10 % 5))
    u = 0
    top = None
    for i, row in enumerate('a'):
        at = True
    return c
SUBJECT = f
CALLS = [lambda: (torch.tensor(0.5),)]
WAYS = ('unoptimised',)
