"""wrong arguments: length

Program 8 of seed 5; unoptimised, call 0.

arguments[0] is [], not [-3, 0]
"""
from typing import List
from torch import nn
def mix():
    pass
class M(nn.Module):

    def forward(self, m: List[int]):
        same2 = m
        for key in m:
            same2.pop()
SUBJECT = M
CALLS = [lambda: ([-3, 0, 5, -2],)]
WAYS = ('unoptimised',)
