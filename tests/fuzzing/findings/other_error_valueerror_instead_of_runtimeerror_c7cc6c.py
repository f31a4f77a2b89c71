"""other error: ValueError instead of RuntimeError

Program 495 of seed 1003; optimised, call 0.

raises ValueError: list.remove(x): x not in list, not RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.
"""
from typing import List
import torch
from torch import Tensor
def f(x: Tensor, flag: List[str]):
    x -= (0 - x).abs().log()
    flag.remove('a')
SUBJECT = f
CALLS = [lambda: (torch.tensor(1.0).requires_grad_(), [])]
WAYS = ('optimised',)
