"""error instead: RuntimeError: tolist() is annotated to give elements of type int, but the tensor is of torch.f

Program 10729 of seed 3007; unoptimised, call 0.

RuntimeError: tolist() is annotated to give elements of type int, but the tensor is of torch.float32
"""
import torch
from torch import Tensor, nn
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x: Tensor):
        self.count = x.min().tolist()
SUBJECT = M
CALLS = [lambda: (torch.tensor(0.5).t().contiguous().t(),)]
WAYS = ('unoptimised',)
