"""wrong state: sign of zero

Program 3988 of seed 3009; optimised, call 2.

state['last'] is -0.0, not 0.0
"""
import torch
from torch import Tensor, nn
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.last: 0[0] = None
        self.act = nn.ReLU()

    def forward(self, x: Tensor):
        x = self.act(x)
        self.last = float(x.min())
SUBJECT = M
CALLS = [lambda: (torch.tensor([1.5, -0.0, 0]),)]
WAYS = ('optimised',)
