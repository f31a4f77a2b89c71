"""wrong answer: length

Program 391 of seed 5; unoptimised, call 0.

the keys of result[2] is ['key'], not ['key', '-4.500e+00']
"""
import math
from typing import Dict, List, NamedTuple
import torch
from torch import Tensor
class State(NamedTuple):
    value: int
    count: Tensor
    rest: int
def f(x: Tensor, opt: List[str]):
    state = State(len(opt), torch.tensor(-0.5, dtype=torch.float32) % -2 * (torch.tensor(-0.5, dtype=torch.float32) % -2), any((True for e in range(5))) + int(x))
    if False == (True or False):
        c = 1e-10 / 5 % complex(2.0, 10.0).imag
    else:
        c = -7
    tries = 0
    while True:
        tries += 1
        c -= min(-2.5, float(state.count))
        for item in opt:
            if (state.rest | state.rest > state.value) == (min(tries, state.rest, -2) >= -2.5 * state.value):
                opt.append(f'{c:.3e}')
                w, k = (int(state.count), c * 2.0 / -2)
            else:
                u = {'c': 4, 'b': 1, 'k': -7}
                del u[item]
            left = 0
            while True:
                left += 1
                opt.append(item)
                w2: Tensor = torch.tensor([5, -1, 1], dtype=torch.int64)
                if left > 3:
                    break
            if c == left and 'a' < item:
                break
            same = opt
            for e3 in opt:
                if len(same) > 1:
                    same.pop()
        else:
            w3 = {'12': math.degrees(10.0) * state.count.dim()}
        if tries > 4:
            break
    counts: Dict[str, int] = {}
    for v in opt:
        counts[v] = counts.get(v, 0) + 1
    return (c, tries, counts)
SUBJECT = f
CALLS = [lambda: (torch.tensor(3, dtype=torch.int64), ['key'])]
WAYS = ('unoptimised',)
