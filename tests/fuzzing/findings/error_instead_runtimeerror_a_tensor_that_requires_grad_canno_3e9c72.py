"""error instead: RuntimeError: a tensor that requires grad cannot stand for a number; call .item() or detach it

Program 253 of seed 5; unoptimised, call 3.

RuntimeError: a tensor that requires grad cannot stand for a number; call .item() or detach it
"""
import torch
def f(y):
    best = float()
    for j, v in enumerate(y):
        if v >= best:
            best = v
    0.0
SUBJECT = f
CALLS = [lambda: (torch.tensor([2.0, 0.0], dtype=torch.float32),), lambda: (torch.tensor([-2.5], dtype=torch.float32).requires_grad_(),), lambda: (torch.zeros((0,), dtype=torch.float32),), lambda: (torch.tensor([-0.5, 1.0, 3.75, -0.5], dtype=torch.float32).requires_grad_(),)]
NO_GRAD = (1, 2)
WAYS = ('unoptimised', 'optimised')
