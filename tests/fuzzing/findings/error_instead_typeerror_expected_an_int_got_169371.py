"""error instead: TypeError: expected an int, got _._

Program 3161 of seed 3010; unoptimised, call 0.

TypeError: expected an int, got 0.1
"""
from torch import nn
class M(nn.Module):

    def forward(self):
        if 1:
            *y, = [0]
        z = y
        z.append(min(0.1, 1))
SUBJECT = M
CALLS = [lambda: ()]
WAYS = ('unoptimised',)
