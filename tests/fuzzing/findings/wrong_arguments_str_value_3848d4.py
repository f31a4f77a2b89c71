"""wrong arguments: str value

Program 2542 of seed 3005; unoptimised, call 0.

the keys of arguments[2][1] is 'tensor(1., grad_fn=<SelectBackward0>)', not 'tensor(1., grad_fn=<UnbindBackward0>)'
"""
from typing import Dict, List
import torch
from torch import Tensor
class Meter:

    def __init__(self, value: List[int], count: Tensor):
        0
        0

    def update(self):
        pass
def f(x: Tensor, y, w: Dict[str, float]):
    state = Meter([1], torch.tensor(1.5).squeeze())
    0
    None
    for j, v2 in enumerate(y):
        top = v2
        0
    w[str(top)] = 1.0
SUBJECT = f
CALLS = [lambda: (torch.tensor(0.1).requires_grad_(), torch.tensor([1.5, 1.0]).requires_grad_(), {'a': 0.5})]
WAYS = ('unoptimised',)
