"""error instead: TypeError: expected an int, got _._

Program 8092 of seed 3005; optimised, call 1.

TypeError: expected an int, got 0.5
"""
from torch import nn
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.count = 0
        self.table: 0[0] = {'a': 1}

    def forward(self):
        self.table.get('a', self.count)
        self.count = 0.5
SUBJECT = M
CALLS = [lambda: ()]
WAYS = ('optimised',)
