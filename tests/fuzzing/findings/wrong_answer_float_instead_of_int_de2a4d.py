"""wrong answer: float instead of int

Program 183 of seed 5; unoptimised, call 0.

result[1] is 0.0, not 0
"""
from typing import Dict, List, Union
import torch
from torch import Tensor, nn
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.count = 0

    def forward(self, x: Tensor, y: Tensor, m: Dict[str, int], w: Union[int, float], n: List[int]):
        best = -1
        left = 0
        while left < 3 and True:
            left += 1
            y += divmod(0.25, 2.0)[0] + 2.0 % 3
            v = left
            if -2 ** 31 != 0.1:
                continue
        self.count += (r := left) + r
        best2 = 0
        where2 = -1
        for j2, row2 in enumerate(y):
            if float(row2) < best2:
                best2 = float(row2)
                where2 = j2
        return (where2, best2)
SUBJECT = M
CALLS = [lambda: (torch.tensor([[3.75, 1.5], [-0.5, 10.0]], dtype=torch.float32), torch.tensor([4.5, -0.5], dtype=torch.float32), {'a': 100}, 1, [7, 4, 7])]
WAYS = ('unoptimised',)
