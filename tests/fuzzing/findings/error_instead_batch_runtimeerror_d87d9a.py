"""error instead: batch: RuntimeError

Program 235 of seed 1004; vmap, call 0.

RuntimeError: vmap: a mask that differs between the examples takes a different number from each
"""
import torch
def f(x, y):
    x[x > 0]
    return torch.tensor(2.0).flip(0).std()
SUBJECT = f
CALLS = [lambda: torch.tensor([[1.0, 1.0, 0.1], [1.0, 4.5, 0.0]])]
WAYS = ('vmap',)
