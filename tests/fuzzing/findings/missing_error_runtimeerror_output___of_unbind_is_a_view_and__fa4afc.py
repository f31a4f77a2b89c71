"""missing error: RuntimeError: Output _ of Unbind is a view and is being modified inplace. This view is the out

Program 115 of seed 5; unoptimised, call 0.

returns None, but eager raises RuntimeError: Output 0 of Unbind is a view and is being modified inplace. This view is the output of a function that returns multiple views. Such functions do not allow the output views to be modified inplace. You
"""
import math
import torch
from torch import Tensor, nn
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.count = 0
        self.act = nn.ReLU()

    def forward(self, x: Tensor):
        x = self.act(x)
        for item in x:
            k, w = divmod(self.count, 3)
            item *= float(item.item())
        y = [16777217.0, -math.inf, 10.0, 3.75][:-1]
        z, c3 = divmod(int(x.mean().item()), 2)
SUBJECT = M
CALLS = [lambda: (torch.tensor([3.75, 1.5], dtype=torch.float32).requires_grad_(),)]
WAYS = ('unoptimised',)
