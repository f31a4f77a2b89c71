"""error instead: IndexError: list index out of range

Program 104 of seed 5; unoptimised, call 0.

IndexError: list index out of range
"""
import math
from typing import List
import torch
from torch import Tensor
def f(x: Tensor, y, w: List[float]):
    y.add_((complex(10.0, 0.1) * -2.5).real)
    for j, e in enumerate(w):
        for j2, item in enumerate(w):
            if True:
                w.pop()
            else:
                x[0] = float(x.max())
                if f'{item:.3e}'.isdigit():
                    c = y.min().tolist()
        if False:
            for i2, e3 in enumerate(pair):
                w2, t = (j // -2 if e > e else sum([-2, i2]), math.fsum([-2.5, 0.1, 0.2]))
                loss_sum = 0
                for v in x:
                    loss_sum -= v.sum().item()
                mean = loss_sum / len(x)
        else:
            y[...] = math.copysign(e, 10.0 - e)
SUBJECT = f
CALLS = [lambda: (torch.tensor([[1.5, 1.0], [0.1, 1.5]], dtype=torch.float32), torch.tensor([0.0, 3.75], dtype=torch.float32), [1.0, 1.5, 1.0, 1.0, -1.25])]
WAYS = ('unoptimised',)
