"""other error: RuntimeError instead of TypeError

Program 49 of seed 1004; optimised, call 0.

raises RuntimeError: a tensor of dtype torch.float32 cannot stand for an int; convert it with int(), not TypeError: unsupported operand type(s) for //: 'complex' and 'int'
"""
import torch
from torch import Tensor
def f(x: Tensor):
    x.neg_()
    x.min().item() ** 0.5 // 0
    return True * torch.tensor(2.5)
SUBJECT = f
CALLS = [lambda: (torch.tensor(1.5),)]
WAYS = ('optimised',)
