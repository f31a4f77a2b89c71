"""error instead: TypeError: expected an int, got _._

Program 1977 of seed 3016; unoptimised, call 0.

TypeError: expected an int, got 9.25
"""
import torch
from torch import Tensor, nn
def mix(s: bool):
    if 0:
        pass
    return torch.tensor(1.0).view(1)
class M(nn.Module):

    def __init__(self):
        super().__init__()
        0
        self.table: 0[0] = 'a'
        0

    def forward(self, x: Tensor):
        0
        t = mix(True)
        best = None
        for i, row in enumerate(x):
            if 1:
                best = row.sum().item()
        0
        t[...] = best
        return 0
SUBJECT = M
CALLS = [lambda: (torch.tensor([[0.5, -2.5, 4.5], [1.0, 3.75, 4.5]], dtype=torch.float32),)]
WAYS = ('unoptimised',)
