"""missing error: TypeError: must be real number, not complex

Program 1899 of seed 1003; unoptimised, call 0.

returns None, but eager raises TypeError: must be real number, not complex
"""
import math
import torch
from torch import Tensor, nn
class M(nn.Module):

    def forward(self, y: Tensor):
        math.sin(y.mean().item())
SUBJECT = M
CALLS = [lambda: (torch.tensor(1.0, dtype=torch.complex64),)]
WAYS = ('unoptimised',)
