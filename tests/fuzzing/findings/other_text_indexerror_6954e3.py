"""other text: IndexError

Program 27 of seed 5; unoptimised, call 0.

'select(): index 0 out of range for tensor of size [0] at dimension 0', not 'index 0 is out of bounds for dimension 0 with size 0'
"""
import torch
def f(x):
    x[0] = 0
SUBJECT = f
CALLS = [lambda: (torch.zeros(0),)]
WAYS = ('unoptimised',)
