"""wrong answer: int instead of float

Program 279 of seed 5; unoptimised, call 0.

result['s'] is 0, not 0.0
"""
import torch
def f(y):
    d = {'n': 0}
    d['s'] = y.item()
    return d
SUBJECT = f
CALLS = [lambda: (torch.tensor(0.0),)]
WAYS = ('unoptimised',)
