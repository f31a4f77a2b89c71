"""other error: RuntimeError instead of TypeError

Program 126 of seed 5; unoptimised, call 0.

raises RuntimeError: tolist() is annotated to give elements of type int, but the tensor is of torch.float64, not TypeError: list indices must be integers or slices, not float
"""
from typing import List
import torch
from torch import Tensor, nn
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.count = 0
        self.history: List[float] = [0.5]

    def forward(self, x, y: Tensor):
        self.count = x.mean().tolist()
        acc = 0
        self.history.append(float(self.count) - self.history[self.count])
SUBJECT = M
CALLS = [lambda: (torch.tensor([[-2.5, 0.25], [0.25, 3.75], [4.5, 4.5]], dtype=torch.float64), torch.tensor(-2.5, dtype=torch.float32))]
WAYS = ('unoptimised',)
