"""wrong answer: int value

Program 5 of seed 5; unoptimised, call 0.

result[3]['a'] is -6, not 18014398509481986
"""
import math
from typing import Dict, List
from torch import nn
def note(log: List[int], v: int) -> int:
    return v * 2
def helper(q: float=0.0):
    pass
def combine(s: List[int], q: float=0.25):
    sums: Dict[int, int] = {}
    return {'x y': sum(sums.values()) & (-7 | 7), 'b': (q2 := (-1 + 4)) + q2}
class M(nn.Module):

    def __init__(self):
        super().__init__()
        self.mode = 'a'

    def forward(self, w: List[int], s: float):
        a2 = combine([max(w + [4]), int(-2)])
        for item in (item * 2 for item in w):
            for v3 in (v3 * 2 for v3 in w):
                if True:
                    if True:
                        v4 = item
                    else:
                        v4 = v3
                    a2.setdefault(f'{s:.3e}', sum((5 for i in w if True)) ^ -4)
                    same = w
                    for _, e2 in enumerate(w):
                        if len(same) < 8:
                            same.append(e2)
                else:
                    w3 = combine([sum(w, v3), +-1], abs(s - item))
                    w3.setdefault('a'.title(), item << v3 % 70 if 7 <= item else v3 + item)
                c = sum([a2.get(self.mode, v3) if isinstance(s, float) else math.fsum([10.0, 0.1, 0.2]), math.gcd(v3, item) ** (-1)])
                for key in list(a2):
                    a2[self.mode] = item
        s -= s
        return (self.mode, w, s, a2)
SUBJECT = M
CALLS = [lambda: ([-3, 2 ** 53 + 1, -3], 0.25)]
WAYS = ('unoptimised',)
