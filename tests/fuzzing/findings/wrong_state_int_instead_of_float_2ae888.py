"""wrong state: int instead of float

Program 373 of seed 5; unoptimised, call 0.

state['count'] is -2, not -2.5
"""
from typing import List
import torch
from torch import Tensor, nn
def note(v: int) -> int:
    return 0
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.names: List[str] = 'a'
        self.count = 0

    def forward(self, x: Tensor):
        self.count = x.item()
        0
        pass
        calls: List[int] = []
        c2 = list((note(i) for i in [3, 1, 2]))
SUBJECT = M
CALLS = [lambda: (torch.tensor(-2.5, dtype=torch.float32),)]
WAYS = ('unoptimised',)
