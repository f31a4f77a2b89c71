"""other text: IndexError

Program 1566 of seed 3005; saved, call 0.

'select(): index 0 out of range for tensor of size [0] at dimension 0', not 'index 0 is out of bounds for dimension 0 with size 0'
"""
import torch
def f(x):
    pair = x.sort()
    u = pair.values
    float(u[0].item())
SUBJECT = f
CALLS = [lambda: (torch.zeros(0).requires_grad_(),)]
WAYS = ('saved',)
