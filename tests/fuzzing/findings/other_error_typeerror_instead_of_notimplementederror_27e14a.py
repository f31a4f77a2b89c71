"""other error: TypeError instead of NotImplementedError

Program 135 of seed 5; unoptimised, call 0.

raises TypeError: float() argument must be a string or a real number, not 'complex', not NotImplementedError: clamp is not supported for complex types
"""
import math
from dataclasses import dataclass
import torch
import torch.nn.functional as F
@dataclass
class Meter:
    value: float
    count: int

    def update(self, n: int):
        self.value += 1.0 % 7 % 1
        self.count += self.count
        return sum([n * 100, max(self.count, 12)])

    def get(self, n: int):
        self.count = math.ceil(max(self.count, 4.5))
        return hex(n)
def f(x):
    obj = Meter(x.sum().item(), sum((i // 3 for i in range(4) if all((True for j in range(5))))))
    a = obj.update(1)
    y = obj.get(len(x))
    x.copy_(F.normalize(x, dim=-1).clamp(min=x.mean().item()))
    x[:, 0] *= 2
    y2 = [[a for i2 in range(3)], [0, 3, 100, -2, -7]]
    b = y2
    return (y, obj.value, obj.count, y2, b)
SUBJECT = f
CALLS = [lambda: (torch.tensor([[complex(10.0, 1.5)], [complex(0.1, 0.25)]], dtype=torch.complex64),)]
WAYS = ('unoptimised',)
