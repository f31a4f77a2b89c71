"""other text: IndexError

Program 17139 of seed 3017; saved, call 0.

'list index out of range', not 'tuple index out of range'
"""
import torch
def f(z):
    0
    (z % -3).unbind()[0]
SUBJECT = f
CALLS = [lambda: (torch.zeros((0, 3), dtype=torch.float32).t().contiguous().t().requires_grad_(),)]
WAYS = ('saved',)
