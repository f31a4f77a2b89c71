"""wrong answer: Tensor value

Program 3134 of seed 3005; unoptimised, call 0.

result is tensor(255.), not tensor(-1.)
"""
import torch
from torch import Tensor
def f(y: Tensor):
    loss_sum = 0.0
    for row in y:
        loss_sum -= row
    return loss_sum
SUBJECT = f
CALLS = [lambda: (torch.tensor([1], dtype=torch.uint8),)]
WAYS = ('unoptimised',)
