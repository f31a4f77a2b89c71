"""other error: UnboundLocalError instead of RuntimeError

Program 3 of seed 5; unoptimised, call 0.

raises UnboundLocalError: cannot access local variable 'hit' where it is not associated with a value, not RuntimeError: dictionary changed size during iteration
"""
import math
from typing import List
import torch
def f(x, k: List[float], s: float):
    k2 = {**{'ab': k[0]}, 'A b': 10000000000.0}
    for e2 in k2:
        if -3 < s:
            k2['-3'] = s
    with torch.no_grad():
        for j in range(2):
            for v2 in k:
                if s <= math.copysign(j, v2):
                    hit = v2
            z, t2 = (j, (hit - s) // 2)
SUBJECT = f
CALLS = [lambda: (torch.tensor(0.5, dtype=torch.float32).requires_grad_(), [-0.5, 2.0, 4.5, -1.25, 0.5], 10.0)]
WAYS = ('unoptimised',)
