"""wrong answer: NamedTuple instead of min

Program 275 of seed 5; unoptimised, call 0.

result is NamedTuple(values=tensor(2.), indices=tensor(0)), not torch.return_types.min( values=tensor(2.), indices=tensor(0))
"""
from typing import Dict, Union
import torch
def f(x, y, s: Dict[str, float], m: Union[float]):
    r = x.min(0)
    b = 0
    t = 0
    return r
SUBJECT = f
CALLS = [lambda: (torch.tensor(2.0), torch.tensor([-0.5, 3.75, 0.1], dtype=torch.float32), {'b': 1.0, 'c': 4.5, 'a': 4.5}, 0.1)]
WAYS = ('unoptimised',)
