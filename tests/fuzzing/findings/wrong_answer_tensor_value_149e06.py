"""wrong answer: Tensor value

Program 4028 of seed 3016; optimised, call 2.

result is tensor(inf), not tensor(7.0711e+19)
"""
import torch
def f(y):
    z = (y.unsqueeze(0) * y).abs()
    return z.std()
SUBJECT = f
CALLS = [lambda: (torch.tensor([1.5, 10000000000.0]),)]
WAYS = ('optimised',)
