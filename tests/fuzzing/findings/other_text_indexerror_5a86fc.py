"""other text: IndexError

Program 37 of seed 5; unoptimised, call 0.

'list index out of range', not 'list assignment index out of range'
"""
import math
from typing import List
import torch
from torch import Tensor
def mix(s: float) -> bool:
    return isinstance(s, float)
def f(x: Tensor, y, z, m: List[int]):
    c = z[:]
    same = m
    for e in m:
        if e in same:
            same.remove(e)
    with torch.no_grad():
        tries = 0
        while tries < 3:
            tries += 1
            for item in x:
                c += int(z[0].item())
                if 'ab' < 'A b':
                    z2 = tries ** 3
                else:
                    z2 = m[0] if m else int(tries // 1)
                d = {'s': 0, 'n': 0}
                d['s'] += item.item()
                d['n'] += z2.bit_length()
                if math.sin(z2) <= 0.1 + tries:
                    continue
                *z3, y2 = [z2 + 1, *m]
            c2 = mix((-0.5 + tries) / 3)
        del m[0]
    m[-1] = tries
    top = 0
    for row in c:
        if float(row) >= top:
            top = float(row)
    return (tries, item, z3, top)
SUBJECT = f
CALLS = [lambda: (torch.tensor([4.5, -0.5, -0.5], dtype=torch.float32), torch.tensor(-1.25, dtype=torch.float32), torch.tensor([5, -4, 5], dtype=torch.int64), [100, 12, 100])]
WAYS = ('unoptimised',)
