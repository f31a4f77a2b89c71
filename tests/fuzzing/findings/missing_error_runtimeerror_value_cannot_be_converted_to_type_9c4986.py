"""missing error: RuntimeError: value cannot be converted to type float without overflow

Program 6136 of seed 3005; saved, call 0.

returns None, but eager raises RuntimeError: value cannot be converted to type float without overflow
"""
import torch
from torch import Tensor, nn
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.scale = 3
        self.flag: bool = True
        self.act = nn.ReLU()

    def part(self, p: int):
        return 0

    def forward(self, x: Tensor, w: float):
        0
        0
        x[:] = w
SUBJECT = M
CALLS = [lambda: (torch.tensor([0.0, 0.0, 0.5], dtype=torch.float32), 1e+300)]
WAYS = ('saved',)
