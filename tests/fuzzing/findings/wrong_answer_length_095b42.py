"""wrong answer: length

Program 395 of seed 5; unoptimised, call 0.

result[1] is [-1, -2, -3, -1, -2, -3], not [-1, -2, -3, -1, -2, -3, -1, -2]
"""
from typing import Dict, List, NamedTuple
import torch
from torch import nn
class State(NamedTuple):
    value: List[int]
    count: int
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.total = 0.0
        self.table: Dict[str, int] = {'a': 1}
        self.act = nn.ReLU()

    def forward(self, x):
        state = State([~j for j in range(3)], int(self.total - self.total))
        try:
            pass
        except ValueError:
            pass
        same = state.value
        for e2, _ in zip(state.value, range(20)):
            if len(same) < 8:
                same.append(e2)
        return (x, state.value, state.count)
SUBJECT = M
CALLS = [lambda: (torch.tensor([0.0, 3.75], dtype=torch.float32),)]
WAYS = ('unoptimised',)
